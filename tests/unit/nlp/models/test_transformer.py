from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework.config import build
from framework.core.errors import ConfigError, ShapeError
from nlp.contracts import Tokens
from nlp.models.transformer import TransformerConfig, sinusoids

SMALL: Any = {
    "variant": "small",
    "hidden_size": 8,
    "num_heads": 2,
    "num_layers": 1,
    "feed_forward": 8,
    "max_length": 6,
}


def test_variants_are_those_of_the_paper() -> None:
    base, big = TransformerConfig(100).size, TransformerConfig(100, variant="big", dropout=0.1).size
    assert base == (512, 8, 6, 2048, 0.1) and big == (1024, 16, 6, 4096, 0.1)


def test_published_sizes() -> None:
    """Table 3: 65 and 213 million parameters with about 37,000 tokens."""
    for variant, millions in (("base", 63), ("big", 214)):
        model = build(TransformerConfig(37000, variant=variant))
        assert sum(p.size for p in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.6)


def test_waves() -> None:
    table = sinusoids(5, 6)
    assert table.shape == (5, 6) and table[0].tolist() == [0, 0, 0, 1, 1, 1]
    angles = 3 * np.array([1, 1e-2, 1e-4])
    np.testing.assert_allclose(table[3], np.concatenate([np.sin(angles), np.cos(angles)]), atol=1e-6)
    assert sinusoids(2, 5)[:, 4].tolist() == [0, 0]


def test_a_target_sees_nothing_of_what_follows() -> None:
    model = build(TransformerConfig(20, **SMALL)).eval()
    source = Tokens(np.array([[4, 5, 6]]), np.ones((1, 3), bool))
    ids = np.array([[2, 7, 8, 9]])
    other = np.array([[2, 7, 10, 11]])
    mask = np.ones((1, 4), bool)
    a, b = (np.asarray(model(source, Tokens(target, mask))) for target in (ids, other))
    assert (
        a.shape == (1, 4, 20) and np.abs(a[:, :2] - b[:, :2]).max() < 1e-6 < np.abs(a[:, 2:] - b[:, 2:]).max()
    )


def test_more_tokens_than_positions() -> None:
    model = build(TransformerConfig(20, **SMALL)).eval()
    long = Tokens(np.ones((1, 7), np.int32), np.ones((1, 7), bool))
    with pytest.raises(
        ShapeError, match=r"(?s)more tokens than the model has positions.*7.*max_length: 6.*cut texts"
    ):
        model.encode(long)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant": "tiny"}, "(?s)unknown variant of Transformer.*small, base, big"),
        ({"num_heads": 3}, "num_heads.*a divisor of hidden_size"),
        ({"num_layers": 0}, "sizes.*1 or more"),
        ({"dropout": 1.0}, "dropout.*below 1"),
        ({"eos_id": 20}, "eos_id.*tokens of both vocabularies"),
        ({"target_vocab_size": 30}, "weight_sharing.*one vocabulary, or weight_sharing: false"),
    ],
)
def test_networks_that_cannot_be(changes: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        TransformerConfig(20, **{**SMALL, **changes})
