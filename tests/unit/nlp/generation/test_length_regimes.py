"""Rotary embeddings whose angles depend on the length of the text: texts are those without a cache."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import pytest

from framework.core import rng
from nlp.generation.engine import Engine
from nlp.generation.options import GenerationOptions
from zoo.decoder.llama import Llama, LlamaConfig
from zoo.layers.rope import RopeOptions

ROPES = {
    "longrope": RopeOptions(1e4, "longrope", None, 80, short_factor=(1.0, 1.5), long_factor=(3.0, 9.0)),
    "dynamic": RopeOptions(1e4, "dynamic", 4.0),
}
TOKENS = np.random.default_rng(3).integers(3, 64, 100).tolist()


@functools.cache
def decoder(kind: str) -> Llama:
    """Texts of dynamic are longer than it was made for: the engine is told so."""
    rng.seed(5)
    model = Llama(
        LlamaConfig(
            vocab_size=64,
            hidden_size=16,
            intermediate_size=24,
            num_layers=2,
            num_heads=4,
            max_positions=80 if kind == "dynamic" else 160,
            init_std=0.5,
            rope=ROPES[kind],
        )
    )
    model.eval()
    return model


def greedy(kind: str, prompt: list[int], count: int) -> list[int]:
    """Without a cache. Padding stands at position 0, so that the text gets no longer by it."""
    ids = list(prompt)
    for _ in range(count):
        padded, positions = np.zeros((2, 1, 112), np.int32)
        padded[0, : len(ids)], positions[0, : len(ids)] = ids, np.arange(len(ids))
        ids.append(int(np.argmax(decoder(kind)(padded, positions)[0, len(ids) - 1])))
    return ids[len(prompt) :]


@pytest.fixture(scope="module", params=ROPES)
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[str, Engine]]:
    with Engine(decoder(request.param), slots=1, max_length=160, chunk=16) as engine:
        yield request.param, engine


def test_texts_are_those_without_a_cache(engine: tuple[str, Engine]) -> None:
    """Phi-3 read the first 4,096 tokens of a longer prompt by the short factors, and the others by the long ones."""
    kind, writer = engine
    # Of the first one, keys are stored that fit to none of the longer ones; the second one becomes longer.
    for length, count in ((70, 1), (78, 5), (81, 2), (100, 3)):
        options = GenerationOptions(max_new_tokens=count, do_sample=False)
        result = writer.submit(TOKENS[:length], options).result(60)
        assert list(result.ids) == greedy(kind, TOKENS[:length], count), length


def test_beams_read_a_long_prompt_as_one(engine: tuple[str, Engine]) -> None:
    kind, writer = engine
    options = GenerationOptions(max_new_tokens=1, num_beams=2, do_sample=False)
    assert list(writer.submit(TOKENS, options).result(60).ids) == greedy(kind, TOKENS, 1)
