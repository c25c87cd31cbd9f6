"""The training of PARSeq: tokens, orders of reading and the loss by hand; a tiny decoder learns a batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError
from framework.core.rng import rng_scope
from framework.optimizer import Adam
from framework.vision.normalize import Normalize
from ocr.layers.parseq import PARSeqHead, random_permutations
from ocr.losses.text import permuted_cross_entropy
from ocr.tasks.distill import MutualLines
from ocr.tasks.permuted_text import PermutedTextRecognition
from ocr.text.dictionary import Dictionary
from ocr.text.preprocess import pack_lines
from ocr.text.stages import Recognizer

HALF = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
ABC = Dictionary(symbols="abc", use_space_char=False)


def task(**fields: Any) -> PermutedTextRecognition:
    return PermutedTextRecognition(HALF, **{"characters": ABC, "max_text_length": 4, **fields})


def test_words_become_tokens() -> None:
    """Classes are the end 0 and a, b, c; 4 starts and 5 pads."""
    target = jnp.array([[1, 2, 0, 0], [3, 3, 1, 2]], jnp.int32)
    found = task().word_tokens(target, jnp.array([2, 4]))
    np.testing.assert_array_equal(found, [[4, 1, 2, 0, 5, 5], [4, 3, 3, 1, 2, 0]])


def test_orders_of_reading_are_drawn_in_pairs() -> None:
    drawn = np.asarray(random_permutations(jax.random.key(3), 5, 6))
    np.testing.assert_array_equal(drawn[:2], [[0, 1, 2, 3, 4, 5, 6], [0, 6, 5, 4, 3, 2, 1]])
    assert (np.sort(drawn, axis=1) == np.arange(7)).all()
    for order, mirrored in ((2, 3), (4, 5)):
        np.testing.assert_array_equal(drawn[order, 1:-1], drawn[mirrored, 1:-1][::-1])
    assert len({tuple(row) for row in drawn.tolist()}) == 6 and (drawn[2:, -1] == 6).all()
    assert not np.array_equal(drawn[2:], random_permutations(jax.random.key(4), 5, 6)[2:])
    assert random_permutations(jax.random.key(3), 5, 2).shape == (2, 7)


def test_the_end_counts_in_the_first_two_orders() -> None:
    """One word "a" of two places, three orders; its tokens cost 1, 2, … by the logits, in order of the array."""
    tokens = jnp.array([[4, 1, 0, 5]], jnp.int32)
    # Of two classes that are left, the right one's probability is exp(-cost).
    costs = np.arange(1, 10, dtype=np.float32).reshape(3, 1, 3)
    logits = np.full((3, 1, 3, 4), -1e9, np.float32)
    for place, right in enumerate((1, 0, 2)):
        logits[:, :, place, right] = -costs[:, :, place]
        logits[:, :, place, 3] = np.log1p(-np.exp(-costs[:, :, place]))
    found = permuted_cross_entropy(jnp.asarray(logits), tokens, jnp.ones(1), end=0, padding=5)
    assert float(found) == pytest.approx((1 + 2 + 4 + 5 + 7) / 5, rel=1e-4)
    none = permuted_cross_entropy(jnp.asarray(logits), tokens, jnp.zeros(1), end=0, padding=5)
    assert float(none) == 0


class Reader(nn.Layer):
    """The decoder on four columns of colours."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_classes=4, max_text_length=4)
        self.embed = nn.Linear(3, 16)
        self.place = self.create_parameter((1, 4, 16), nn.initializer.Normal(0.0, 1.0))
        self.head = PARSeqHead(16, 2, 2, 1, 4, 4, 1)

    def _encode(self, x: jax.Array) -> jax.Array:
        return self.embed(x.reshape(x.shape[0], 32, 4, -1, 3).mean(axis=(1, 3))) + self.place

    def forward(self, x: jax.Array) -> jax.Array:
        return self.head(self._encode(x))

    def forward_permuted(self, x: jax.Array, tokens: jax.Array, permutations: jax.Array) -> jax.Array:
        return self.head.permuted(self._encode(x), tokens, permutations)


def test_words_of_colours_are_learned() -> None:
    """Each column has the colour of its symbol; columns behind the text are grey."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 5, 24)
    target = np.where(np.arange(4) < lengths[:, None], rng.integers(1, 4, (24, 4)), 0).astype(np.int32)
    colours = np.array([[90, 90, 90], [255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    image = np.repeat(np.repeat(colours[target][:, None], 32, axis=1), 2, axis=2)
    batch = {
        "image": jnp.asarray(image),
        "target": jnp.asarray(target),
        "target_length": jnp.asarray(lengths, jnp.int32),
        "counts": jnp.ones(24),
    }
    model, learn = Reader().train(), task()
    graphdef, params, _ = nn.split(model)
    optimizer = Adam(0.01)
    groups = optimizer.param_groups(model)

    def loss(params: Any, key: jax.Array) -> jax.Array:
        with rng_scope(key):
            return learn.loss(graphdef.bind(params, {}), batch).total

    @jax.jit
    def step(params: Any, state: Any, key: jax.Array) -> Any:
        value, grads = jax.value_and_grad(loss)(params, key)
        params, state, _ = optimizer.update(grads, state, params, 0.01, groups)
        return params, state, value

    state, losses = optimizer.init(params, groups), []
    for number in range(150):
        params, state, value = step(params, state, jax.random.key(number))
        losses.append(float(value))
    assert losses[-1] < 0.3 * losses[0]
    nn.update(model, params, {})
    read = np.asarray(model.eval()(HALF(batch["image"])).argmax(-1))
    right = [(row[:n] == word[:n]).all() and row[n] == 0 for row, word, n in zip(read, target, lengths)]
    assert np.mean(right) > 0.9


def test_two_batches_of_other_lengths_count_as_one() -> None:
    """Two orders of reading, which are always the same: each text alone, averaged by weight, is all of them."""
    lengths, counts = np.array([1, 4, 2]), np.array([1.0, 1.0, 0.0], np.float32)
    batch = {
        "image": jnp.asarray(np.random.default_rng(0).integers(0, 255, (3, 32, 8, 3)).astype(np.uint8)),
        "target": jnp.array([[1, 0, 0, 0], [1, 2, 3, 3], [2, 2, 0, 0]], jnp.int32),
        "target_length": jnp.asarray(lengths, jnp.int32),
        "counts": jnp.asarray(counts),
    }
    model, learn = Reader().eval(), task(permutations=2)
    with rng_scope(jax.random.key(0)):
        whole = learn.loss(model, batch)
        alone = [learn.loss(model, {name: x[n : n + 1] for name, x in batch.items()}) for n in range(3)]
    weights = [float(one.weight) for one in alone]  # type: ignore[arg-type]
    assert weights == [4, 10, 0] and whole.weight == 14  # symbols and end, twice
    mean = np.average([float(one.total) for one in alone], weights=weights)
    assert mean == pytest.approx(float(whole.total), rel=1e-5)


def test_settings_that_do_not_fit() -> None:
    with pytest.raises(ConfigError, match=r"orders of reading come in pairs\n(.*\n)*.*received: 3"):
        task(permutations=3)
    with pytest.raises(ConfigError, match=r"distill is for recognisers with a CTC head"):
        task(distill=MutualLines())
    with pytest.raises(ConfigError, match=r"texts of different lengths\n(.*\n)*.*received: 9, the model 4"):
        task(max_text_length=9).check(Reader(), ())


def test_its_stage_stretches_words() -> None:
    options = task().describe_stage(None)["options"]
    assert options["stretch"] and options["widths"] == [128] and options["height"] == 32
    wide = np.zeros((10, 100, 3), np.uint8)
    batch, widths = pack_lines([wide, wide[:, :5]], 128, 32, stretch=True)
    assert batch.shape == (2, 32, 128, 3) and widths.tolist() == [128, 128]
    seen: list[tuple[int, ...]] = []

    class Engine:
        takes_any_shape = True

        def prepare(self, shapes: Any) -> None:
            seen.extend(shape["image"] for shape in shapes)

        def start(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            zeros = np.zeros((len(inputs["image"]), 8))
            return {"indices": zeros.astype(np.int32), "probabilities": zeros}

    from ocr.text.stages import RecognizeOptions

    stage = Recognizer(Engine(), RecognizeOptions(HALF, 32, (128,), stretch=True), ABC.read())  # type: ignore[arg-type]
    assert len(stage([wide, wide[:, :5]])) == 2 and seen == [(2, 32, 128, 3)]
