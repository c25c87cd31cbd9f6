from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nlp.decoding import search
from nlp.generation.engine import Engine
from nlp.generation.options import GenerationOptions
from tests.unit.nlp.generation.tiny_decoder import TinyDecoder

PROMPT = [5, 6, 7]


@functools.cache
def decoder() -> TinyDecoder:
    return TinyDecoder(vocab_size=23, seed=4)


def beams(**changes: Any) -> list[tuple[list[int], float]]:
    options = GenerationOptions(max_new_tokens=9, eos_token_id=(3,)).merge(**changes)
    with Engine(decoder(), None, max_length=64) as engine:
        request = engine.submit(PROMPT, options)
        request.result(60)
    return [(list(one.ids), one.score or 0.0) for one in request.beams]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_the_penalty_of_gnmt_is_that_of_translation(alpha: float) -> None:
    """`nlp.decoding` searches in one loop of the device."""
    model = decoder()
    width, count = 4, 9

    def step(token: jax.Array, position: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        positions = jnp.broadcast_to(position + len(PROMPT) - 1, (width, 1))
        hidden, state = model.decode(model.params, token[:, None], positions, state)
        return model.logits(model.params, hidden[:, 0]), state

    ids = np.tile(np.array([PROMPT[:-1]], np.int32), (width, 1))
    _, cache = model.decode(
        model.params, jnp.asarray(ids), jnp.tile(jnp.arange(2), (width, 1)), model.new_cache(width, 32)
    )
    first = np.array(PROMPT[-1:], np.int32)
    best = search(step, cache, first, beam_size=width, max_length=count, eos_id=3, pad_id=0, alpha=alpha)
    text, score = beams(num_beams=width, beam_penalty="gnmt", length_penalty=alpha)[0]
    assert text == best.ids[0, : len(text)].tolist() and not best.ids[0, len(text) :].any()
    assert score == pytest.approx(float(best.scores[0]), abs=1e-4)


def test_several_texts_differ_and_stand_in_order() -> None:
    texts = beams(num_beams=5, num_return_sequences=5)
    assert len({tuple(ids) for ids, _ in texts}) == 5
    assert [score for _, score in texts] == sorted((score for _, score in texts), reverse=True)


def test_beams_may_be_drawn() -> None:
    drawn = [beams(num_beams=3, temperature=3.0, seed=seed) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
