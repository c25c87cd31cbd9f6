import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError, TraceError
from framework.core.rng import rng_scope
from segmentation.contracts import Embedded
from segmentation.contrast import Anchors, PixelContrast

X, Y = (1.0, 0.0), (0.0, 1.0)


def embed(vectors: object, num_classes: int = 2) -> Embedded:
    embedding = jnp.asarray(vectors, jnp.float32)
    return Embedded(jnp.zeros((*embedding.shape[:3], num_classes)), embedding)


_compute = jax.jit(PixelContrast.compute, static_argnums=0)
_sample = jax.jit(PixelContrast.sample, static_argnums=(0, 4))


def contrast(loss: PixelContrast, output: Embedded, labels: jax.Array) -> jax.Array:
    return _compute(loss, output, labels, jnp.zeros(output.logits.shape[:3], jnp.uint32))


def test_two_classes_by_hand() -> None:
    # Three pixels of each class give two anchors: one other of the class at cosine 1, two others at cosine 0.
    output, labels = embed([[[X, X, X], [Y, Y, Y]]]), jnp.array([[[0, 0, 0], [1, 1, 1]]])
    loss = PixelContrast(temperature=1.0, base_temperature=0.5, max_views=2)
    want = 2 * (math.log(math.e + 2) - 1)
    assert contrast(loss, output, labels) == pytest.approx(want, rel=1e-6)
    with rng_scope(jax.random.key(0)):
        assert loss(output, labels) == pytest.approx(want, rel=1e-6)


def test_classes_meet_over_the_images_of_a_batch() -> None:
    # One anchor of each class and image. Class 1 has one alone, so it only pushes.
    output = embed([[[X, X, X, X]], [[Y, Y, X, X]]])
    labels = jnp.array([[[0, 0, 255, 255]], [[0, 0, 1, 1]]])
    loss = PixelContrast(temperature=1.0, base_temperature=1.0, max_views=1)
    want = (math.log(1 + math.e) + math.log(2)) / 2
    assert contrast(loss, output, labels) == pytest.approx(want, rel=1e-6)


def test_labels_are_those_nearest_to_the_embeddings() -> None:
    output, small = embed([[[X, X, X], [Y, Y, X]]]), jnp.array([[[0, 0, 0], [1, 1, 1]]])
    large = small.repeat(3, 1).repeat(2, 2).at[:, 1::3].set(7).at[:, :, 1::2].set(255)
    loss = PixelContrast(max_views=2)
    value = contrast(loss, output, small)
    assert value > 0 and contrast(loss, output, large) == value


@pytest.mark.parametrize(
    ("hard", "easy", "max_views", "kept"),
    [
        (8, 8, 6, (3, 3)),
        (8, 8, 7, (3, 4)),  # of an odd number the easy ones are more
        (3, 8, 7, (3, 4)),
        (12, 2, 7, (5, 2)),
        (12, 0, 7, (7, 0)),
        (1, 12, 7, (1, 6)),
        (0, 12, 7, (0, 7)),
        (3, 5, 7, (3, 4)),
        (3, 4, 7, (0, 0)),  # a class has more pixels than views, or is left out
        (0, 0, 1, (0, 0)),
    ],
)
def test_half_hard_and_half_easy(hard: int, easy: int, max_views: int, kept: tuple[int, int]) -> None:
    is_hard = np.arange(16) < hard
    labels = np.where(np.arange(16) < hard + easy, 2, -1)
    loss, order = PixelContrast(max_views=max_views), jnp.zeros((1, 1, 16), jnp.uint32)
    anchors = _sample(loss, jnp.array(labels[None, None]), jnp.array(is_hard[None, None]), order, 3)
    pixels = np.asarray(anchors.pixels)[np.asarray(anchors.valid)]
    assert pixels.tolist() == [*range(kept[0]), *range(hard, hard + kept[1])]
    assert set(np.asarray(anchors.classes)[np.asarray(anchors.valid)].tolist()) <= {2}


def anchors_of(loss: PixelContrast, labels: list, num_classes: int, order: list | None = None) -> Anchors:
    given = jnp.array(labels)
    places = jnp.zeros(given.shape, jnp.uint32) if order is None else jnp.array(order, jnp.uint32)
    return _sample(loss, given, jnp.zeros(given.shape, bool), places, num_classes)


def test_samples_are_shared_by_classes_and_images() -> None:
    # Three of them with at least three pixels: 8 // 3 = 2 anchors each, and two rows of the buffer stay empty.
    labels = [[[0, 0, 0, 1, 1, 1]], [[1, 1, 1, 0, 9, -1]]]
    anchors = anchors_of(PixelContrast(max_samples=8, max_views=2), labels, 2)
    assert anchors.valid.tolist() == [True] * 6 + [False] * 2
    assert anchors.pixels.tolist()[:6] == [0, 1, 3, 4, 6, 7]
    assert anchors.classes.tolist()[:6] == [0, 0, 1, 1, 1, 1]


def test_the_order_chooses() -> None:
    anchors = anchors_of(PixelContrast(max_views=2), [[[0, 0, 0, 0, 0]]], 1, [[[4, 9, 1, 2, 9]]])
    assert anchors.pixels[anchors.valid].tolist() == [2, 3]


def test_more_classes_than_samples() -> None:
    loss = PixelContrast(max_samples=2, max_views=2)
    anchors = anchors_of(loss, [[[0, 0, 0, 1, 1, 1, 2, 2, 2]]], 3)
    assert anchors.pixels.tolist() == [0, 3] and anchors.valid.all()
    output = embed([[[X, X, X, Y, Y, Y, Y, Y, Y]]], 3)
    labels = jnp.array([[[0, 0, 0, 1, 1, 1, 2, 2, 2]]])
    assert contrast(loss, output, labels) == 0  # nothing has another of its class


@pytest.mark.parametrize("labels", [[[255, 255, 255, 255]], [[0, 1, 0, 1]], [[0, 0, 0, 0]], [[0]]])
def test_nothing_to_compare_costs_nothing(labels: list) -> None:
    given = jnp.array([labels])
    vectors = jnp.ones((*given.shape, 3))
    loss = PixelContrast(temperature=0.001, max_views=2)

    def run(vectors: jax.Array) -> jax.Array:
        output = embed(vectors)
        return contrast(loss, output, given)

    value, gradient = jax.value_and_grad(run)(vectors)
    assert value == 0 and (gradient == 0).all()


def test_anchors_are_drawn_with_the_scope_s_key() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((2, 8, 8, 4))
    output = embed(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
    labels = jnp.asarray(rng.integers(0, 2, (2, 8, 8)), jnp.int32)
    loss = PixelContrast(max_views=5)

    @jax.jit
    def run(key: jax.Array) -> jax.Array:
        with rng_scope(key):
            return loss(output, labels)

    one, two = jax.random.key(1), jax.random.key(2)
    assert run(one) == run(one) != run(two)
    with pytest.raises(TraceError, match="without a random key"):
        jax.jit(loss)(output, labels)


def test_low_precision_is_taken_as_float32() -> None:
    output = embed([[[X, X, X], [Y, Y, Y]]])
    low = Embedded(output.logits.astype(jnp.bfloat16), output.embedding.astype(jnp.bfloat16))
    labels, loss = jnp.array([[[0, 0, 0], [1, 1, 1]]]), PixelContrast(max_views=2)
    value = contrast(loss, low, labels)
    assert value.dtype == jnp.float32 and value == contrast(loss, output, labels)


@pytest.mark.parametrize("name", ["temperature", "base_temperature", "max_samples", "max_views"])
def test_settings_out_of_range(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is too small") as error:
        PixelContrast(**{name: 0})
    assert f"PixelContrast.{name}" in str(error.value)


def test_outputs_without_embeddings() -> None:
    logits, labels = jnp.zeros((1, 4, 6, 2)), jnp.zeros((1, 8, 12), jnp.int32)
    with pytest.raises(ShapeError, match="the contrast is between embeddings of pixels") as error:
        PixelContrast()(logits, labels)
    assert "[1, 4, 6, 2], [1, 8, 12]" in str(error.value) and "HRNetW48Contrast" in str(error.value)
    with pytest.raises(ShapeError, match="embeddings of pixels"):
        PixelContrast()(Embedded(logits, logits), jnp.zeros((2, 8, 12), jnp.int32))
