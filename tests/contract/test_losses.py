"""What every registered loss of segmentation keeps to (segmentation/contracts.py). The registry is the test list."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.config import Kind, available, bind
from framework.core.errors import ShapeError
from framework.core.rng import rng_scope
from segmentation.contracts import Embedded

PACKAGES = ("ocr", "detection", "segmentation", "nlp", "zoo.classification", "zoo", "framework")
# What a loss takes besides its defaults.
SETTINGS: dict[str, dict[str, Any]] = {
    "Mixed": {"losses": [{"type": "CrossEntropy"}, {"type": "Dice"}], "weights": [1.0, 0.5]},
    "OhemCrossEntropy": {"min_kept": 20},
    "PixelContrast": {"max_samples": 64, "max_views": 8},
}
EMBEDDED = ("PixelContrast",)  # they look at vectors
CLASSES = 3

every = pytest.mark.parametrize("name", sorted(available("loss", PACKAGES)))


def made(name: str) -> Any:
    return bind({"type": name, **SETTINGS.get(name, {})}, Annotated[Any, Kind("loss")], PACKAGES)


def labels() -> np.ndarray:
    """[2, 8, 9]: three classes side by side, and a row that is ignored."""
    found = np.tile(np.repeat(np.arange(CLASSES), 3).astype(np.int32), (2, 8, 1))
    found[:, 2] = 255
    return found


def output(name: str, scores: np.ndarray) -> Any:
    """What the loss takes, from logits [N, H, W, C]."""
    if name in EMBEDDED:
        return Embedded(
            jnp.asarray(scores), jnp.asarray(scores / np.linalg.norm(scores, axis=-1, keepdims=True))
        )
    return jnp.asarray(scores)


def noise() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, 8, 9, CLASSES)).astype(np.float32)


@functools.cache
def compiled(name: str) -> Any:
    """The loss and its slopes, in a compiled function of (output, labels)."""
    loss = made(name)

    def value(output: Any, labels: jax.Array) -> jax.Array:
        with rng_scope(jax.random.key(0)):
            return loss(output, labels)

    step = jax.jit(jax.value_and_grad(value)).lower(output(name, noise()), jnp.asarray(labels()))
    return step.compile(compiler_options={"xla_backend_optimization_level": 0})


def call(name: str, scores: np.ndarray, labels: np.ndarray) -> tuple[jax.Array, np.ndarray]:
    """The loss, and its slopes for what the loss looks at [N, H, W, C]."""
    given, slopes = compiled(name)(output(name, scores), jnp.asarray(labels))
    return given, np.asarray(slopes.embedding if name in EMBEDDED else slopes)


@every
def test_a_scalar_with_slopes_for_the_pixels_that_count(name: str) -> None:
    given, slopes = call(name, noise(), labels())
    assert given.shape == () and given.dtype == jnp.float32 and float(given) > 0
    assert np.isfinite(slopes).all() and np.any(slopes)
    assert not np.any(slopes[:, 2]), "an ignored pixel has a slope"


@every
def test_what_is_ignored_changes_nothing(name: str) -> None:
    other = noise()
    other[:, 2] = 5 - 2 * other[:, 2]
    np.testing.assert_allclose(call(name, other, labels())[0], call(name, noise(), labels())[0], rtol=1e-6)


@every
def test_a_batch_of_ignored_pixels_costs_nothing(name: str) -> None:
    given, slopes = call(name, noise(), np.full_like(labels(), 255))
    assert float(given) == 0 and not np.any(slopes)


@every
def test_right_is_cheaper_than_wrong(name: str) -> None:
    truth = np.where(labels() == 255, 0, labels())
    right = 4 * np.eye(CLASSES, dtype=np.float32)[truth]
    mixed = np.roll(right, 1, axis=2)  # a third of the pixels is of their neighbour's class
    assert float(call(name, right, labels())[0]) < float(call(name, mixed, labels())[0])


@every
def test_low_precision_gives_a_float32(name: str) -> None:
    low = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), output(name, noise()))
    with rng_scope(jax.random.key(0)):
        given = made(name)(low, jnp.asarray(labels()))
    want = call(name, noise(), labels())[0]
    assert given.dtype == jnp.float32 and float(given) == pytest.approx(float(want), rel=0.05)


@every
def test_labels_that_do_not_fit_are_an_error(name: str) -> None:
    with rng_scope(jax.random.key(0)), pytest.raises(ShapeError, match="allowed"):
        made(name)(output(name, noise()), jnp.zeros((1, 8, 9), jnp.int32))
