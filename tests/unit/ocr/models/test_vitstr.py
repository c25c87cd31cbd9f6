"""ViTSTR: what its places say, and what they learn, by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.core.errors import ConfigError, ShapeError
from framework.interop.named_weights import named_weights
from framework.vision.normalize import Normalize
from ocr.losses.center import CenterLoss
from ocr.models.vitstr import ViTSTR, ViTSTRConfig
from ocr.tasks.text import TextRecognition
from ocr.text.characters import CharacterSet
from ocr.text.dictionary import Dictionary
from ocr.text.postprocess import ctc_decode

CONFIG = ViTSTRConfig(num_classes=6, max_text_length=3)
TASK = TextRecognition(
    Normalize((0.0,) * 3, (1.0,) * 3),
    Dictionary(symbols="abcde", use_space_char=False),
    max_text_length=3,
    height=224,
    width=224,
    stretch=True,
)


@pytest.fixture(scope="module")
def tiny() -> ViTSTR:
    model = ViTSTR(CONFIG).eval()
    model.set_state_dict(named_weights(model.state_shapes()))
    return model


def test_reading_leaves_the_start_out_and_stops_at_the_end(
    tiny: ViTSTR, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Class 0 of the head is the start, 1 the end, 2 is "a"."""
    best = jnp.array([[5, 2, 2, 3, 1], [0, 6, 1, 6, 6], [2, 1, 2, 2, 2], [0, 2, 0, 3, 1], [0, 3, 4, 5, 6]])
    monkeypatch.setattr(ViTSTR, "forward", lambda self, x: 2.0 * jax.nn.one_hot(best, 7))
    indices, probabilities = tiny.read(jnp.zeros((5, 224, 224, 3)))
    characters = CharacterSet.from_symbols("abcde", use_space_char=False)
    texts = ctc_decode(np.asarray(indices), np.asarray(probabilities), characters)
    assert [text.text for text in texts] == ["aab", "e", "", "a", "bcde"]
    assert texts[0].score == pytest.approx(float(np.exp(2) / (np.exp(2) + 6)))


def test_the_loss_is_that_of_symbols_and_ends(tiny: ViTSTR, monkeypatch: pytest.MonkeyPatch) -> None:
    logits = np.random.default_rng(0).normal(size=(3, 5, 7)).astype(np.float32)
    monkeypatch.setattr(ViTSTR, "forward", lambda self, x: jnp.asarray(logits))
    target, length = jnp.array([[1, 5, 0], [2, 2, 3], [4, 0, 0]]), jnp.array([2, 3, 1])
    log = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    costs = [log[0, 1, 2], log[0, 2, 6], log[0, 3, 1]]
    costs += [log[1, 1, 3], log[1, 2, 3], log[1, 3, 4], log[1, 4, 1]]
    x = jnp.zeros((3, 224, 224, 3))
    found = tiny.symbol_loss(x, target, length, jnp.array([1.0, 1.0, 0.0]))
    assert float(found) == pytest.approx(-np.mean(costs), rel=1e-5)
    assert float(tiny.symbol_loss(x, target, length, jnp.zeros(3))) == 0


def test_a_grey_image_is_weighted_as_television_does(tiny: ViTSTR) -> None:
    color = np.random.default_rng(1).uniform(size=(1, 224, 224, 3)).astype(np.float32)
    grey = color @ np.array([[0.299], [0.587], [0.114]], np.float32)
    np.testing.assert_allclose(tiny(color), tiny(np.repeat(grey, 3, axis=-1)), atol=1e-4)


def test_a_batch_is_learned() -> None:
    """By the task, from one batch, with plain steps."""
    framework.seed(1)
    model = ViTSTR(CONFIG).train()
    batch: dict[str, Any] = {
        "image": np.random.default_rng(2).integers(0, 255, (2, 224, 224, 3), dtype=np.uint8),
        "width": np.array([224, 224], np.int32),
        "target": np.array([[1, 2, 0], [3, 3, 5]], np.int32),
        "target_length": np.array([2, 3], np.int32),
        "counts": np.ones(2, np.float32),
    }
    TASK.check(model, ())
    graphdef, params, buffers = nn.split(model)

    @jax.jit
    def step(params: Any) -> Any:
        def loss(params: Any) -> jax.Array:
            return TASK.loss(graphdef.bind(params, buffers), batch).total

        value, gradients = jax.value_and_grad(loss)(params)
        return value, jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients)

    losses = []
    for _ in range(6):
        value, params = step(params)
        losses.append(float(value))
    assert losses[0] == pytest.approx(np.log(7), abs=0.7) and losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_text_length": 4}, r"texts of different lengths[\s\S]*received: 4, the model 3"),
        ({"center": CenterLoss()}, "center is for recognisers with a CTC head"),
        (
            {"keep_known": True, "pretrained_characters": Dictionary(symbols="abcde", use_space_char=False)},
            "keep_known is for recognisers with a CTC head",
        ),
    ],
)
def test_what_the_task_cannot_do_with_it(tiny: ViTSTR, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(TASK, **changes).check(tiny, ())


def test_words_of_one_size(tiny: ViTSTR) -> None:
    with pytest.raises(ShapeError, match="words of one size"):
        tiny(np.zeros((1, 224, 200, 3), np.float32))
