"""Searches against plain Python that keeps no keys and values, stops at nothing and follows the definitions."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.config import build
from framework.core.errors import ConfigError
from nlp.contracts import Tokens
from nlp.decoding import penalty, search
from nlp.models.transformer import TransformerConfig

BOS, EOS, PAD = 2, 3, 0
LENGTHS = np.array([7, 4, 2])
IDS = np.random.default_rng(0).integers(4, 14, (3, 7)).astype(np.int32)
MASK = np.arange(7) < LENGTHS[:, None]


def model(seed: int, **changes: Any) -> Any:
    """A network of strong opinions, which ends texts soon or late."""
    framework.seed(seed)
    settings = {"hidden_size": 16, "num_heads": 2, "num_layers": 2, "feed_forward": 24, "max_length": 16}
    made = build(TransformerConfig(14, **{**settings, **changes})).eval()
    _, params, buffers = nn.split(made)
    rng = np.random.default_rng(seed)
    table = "src_word_embedding.word_embedding.weight"
    params = {n: p * 2.5 if p.ndim == 2 and n != table else p for n, p in params.items()}
    params[table] = rng.normal(size=params[table].shape).astype(np.float32) * 0.5
    params[table][PAD] = 0
    nn.update(made, params, buffers)
    return made


@pytest.fixture(scope="module", params=[0, 1])
def network(request: Any) -> Network:
    return Network(request.param)


@functools.partial(jax.jit, static_argnums=(0, 5, 6, 7))
def searched(
    graphdef: Any, params: Any, buffers: Any, ids: Any, mask: Any, width: int, length: int, alpha: float
) -> Any:
    bound = graphdef.bind(params, buffers)
    step, state = bound.start(Tokens(ids, mask), width, length)
    first = jnp.full(ids.shape[0], BOS)
    settings: Any = {"max_length": length, "eos_id": EOS, "pad_id": PAD, "alpha": alpha}
    return search(step, state, first, beam_size=width, **settings)


@functools.partial(jax.jit, static_argnums=0)
def forward(graphdef: Any, params: Any, buffers: Any, tokens: Any, target: Any) -> Any:
    return graphdef.bind(params, buffers)(tokens, target)


class Network:
    """Searches of a network, and its scores by the whole network, anew for each beginning."""

    def __init__(self, seed: int) -> None:
        self.parts = nn.split(model(seed))
        self.known: dict[Any, np.ndarray] = {}

    def found(self, ids: Any, mask: Any, width: int, length: int, alpha: float) -> tuple[Any, Any]:
        ids, scores = searched(*self.parts, ids, mask, width, length, alpha)
        return np.asarray(ids), np.asarray(scores)

    def logs(self, row: int, begun: tuple[int, ...]) -> np.ndarray:
        """The logarithms of the next token's probabilities."""
        if (row, begun) not in self.known:
            text = np.zeros((1, 12), np.int32)  # one shape; what follows does not count
            text[0, : len(begun)] = begun
            source = Tokens(IDS[row : row + 1], MASK[row : row + 1])
            logits = forward(*self.parts, source, Tokens(text, text >= 0))
            wide = np.asarray(logits, np.float64)[0, len(begun) - 1]
            self.known[row, begun] = wide - np.log(np.exp(wide - wide.max()).sum()) - wide.max()
        return self.known[row, begun]


def greedy(scores: Any, max_length: int, alpha: float) -> tuple[list[int], float]:
    text, total = [], 0.0
    while len(text) < max_length and EOS not in text:
        logs = scores((BOS, *text))
        text.append(int(logs.argmax()))
        total += logs.max()
    return text, total / float(penalty(len(text), alpha))


def beams(scores: Any, width: int, max_length: int, alpha: float) -> tuple[list[int], float]:
    going: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    for _ in range(max_length):
        more = [
            (total + logs[token], [*text, token])
            for total, text in going
            for logs in [scores((BOS, *text))]
            for token in range(len(logs))
        ]
        more = sorted(more, key=lambda pair: -pair[0])[: 2 * width]
        ended += [(total / float(penalty(len(text), alpha)), text) for total, text in more if text[-1] == EOS]
        going = [(total, text) for total, text in more if text[-1] != EOS][:width]
    if ended:
        score, text = max(ended)
        return text, score
    return going[0][1], going[0][0] / float(penalty(max_length, alpha))


CASES = [(1, 10, 0.6), (2, 10, 0.0), (3, 10, 0.6), (4, 10, 1.5), (4, 3, 0.6)]


@pytest.mark.parametrize(("beam_size", "max_length", "alpha"), CASES)
def test_searches_are_the_plain_ones(network: Network, beam_size: int, max_length: int, alpha: float) -> None:
    ids, totals = network.found(IDS, MASK, beam_size, max_length, alpha)
    for row in range(3):
        scores = functools.partial(network.logs, row)
        if beam_size == 1:
            text, score = greedy(scores, max_length, alpha)
        else:
            text, score = beams(scores, beam_size, max_length, alpha)
        assert ids[row].tolist() == text + [PAD] * (max_length - len(text))
        assert totals[row] == pytest.approx(score, abs=1e-4)


def test_the_networks_end_soon_and_late_and_the_searches_differ() -> None:
    results = [Network(seed).found(IDS, MASK, width, 10, 0.6)[0] for seed in (0, 1) for width in (1, 3)]
    lengths = np.concatenate([(ids != PAD).sum(1) for ids in results])
    assert lengths.min() < 6 and lengths.max() == 10
    assert any((a != b).any() for a, b in itertools.pairwise(results))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_padding_and_companions_change_nothing(network: Network, beam_size: int) -> None:
    together, totals = network.found(IDS, MASK, beam_size, 10, 0.6)
    wide = np.pad(IDS, ((0, 0), (0, 4)), constant_values=5), np.pad(MASK, ((0, 0), (0, 4)))
    assert (network.found(*wide, beam_size, 10, 0.6)[0] == together).all()
    for row in (1, 2):
        one, length = slice(row, row + 1), LENGTHS[row]
        ids, score = network.found(IDS[one, :length], MASK[one, :length], beam_size, 10, 0.6)
        assert (ids[0] == together[row]).all() and score[0] == pytest.approx(totals[row], abs=1e-4)


def written(table: Any, beam_size: int, max_length: int, alpha: float = 0.0, rows: int = 2) -> Any:
    """A search whose next token depends on the last one alone: table [V, V] of probabilities."""

    def step(ids: Any, place: Any, state: Any) -> Any:
        return jnp.log(jnp.asarray(table, jnp.float32))[ids], state + 1

    settings: Any = {"eos_id": 3, "pad_id": 0, "max_length": max_length, "alpha": alpha}
    first = jnp.full(rows, 2)
    return search(step, jnp.zeros(rows * beam_size), first, beam_size=beam_size, **settings)


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_a_text_that_ends_at_once(beam_size: int) -> None:
    table = np.full((5, 5), 0.02)
    table[:, 3] = 0.92
    out = written(table, beam_size, 6)
    assert out.ids.tolist() == [[3, 0, 0, 0, 0, 0]] * 2
    assert out.scores == pytest.approx(np.log(0.92), abs=1e-6)


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_a_text_that_never_ends(beam_size: int) -> None:
    table = np.full((5, 5), 0.05)
    table[:, 4], table[:, 3] = 0.85, 0.0
    out = written(table, beam_size, 6, alpha=1.0)
    assert out.ids.tolist() == [[4] * 6] * 2
    assert out.scores == pytest.approx(6 * np.log(0.85) / (11 / 6), abs=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.7, 2.0])
def test_a_beam_that_holds_all_texts_finds_the_best_of_all(alpha: float) -> None:
    rng = np.random.default_rng(3)
    table = rng.dirichlet(np.full(5, 0.6), 5)
    best = []
    for length in range(1, 5):
        for text in itertools.product((0, 1, 2, 4), repeat=length - 1):
            whole = (2, *text, 3)
            total = sum(np.log(table[a, b]) for a, b in itertools.pairwise(whole))
            best.append((total / float(penalty(length, alpha)), list(whole[1:])))
    score, text = max(best)
    out = written(table, 64, 4, alpha)
    assert out.ids[0].tolist() == text + [0] * (4 - len(text)) and out.scores[0] == pytest.approx(
        score, abs=1e-5
    )


def test_a_beam_finds_what_greed_misses() -> None:
    table = np.full((6, 6), 1e-4)
    table[2, [4, 5]] = 0.55, 0.44  # the better beginning leads to worse ends
    table[4, [1, 3]], table[1, 3] = (0.5, 0.5), 0.1
    table[5, 3] = 0.99
    assert written(table, 1, 4).ids[0].tolist()[0] == 4
    assert written(table, 2, 4).ids[0].tolist() == [5, 3, 0, 0]


def test_longer_texts_win_with_a_larger_penalty() -> None:
    table = np.full((6, 6), 1e-6)
    table[2, [3, 4]] = 0.3, 0.7
    table[4, [1, 5]] = table[5, [1, 3]] = 0.4, 0.6
    assert written(table, 3, 5).ids[0].tolist()[0] == 3  # 0.3 to 0.252
    assert written(table, 3, 5, alpha=1.0).ids[0].tolist() == [4, 5, 3, 0, 0]


def test_a_search_that_cannot_be() -> None:
    for settings in ((0, 5, 0.0), (2, 0, 0.0), (2, 5, -1.0)):
        with pytest.raises(ConfigError, match="a setting of the search is out of range"):
            written(np.full((5, 5), 0.2), *settings)
