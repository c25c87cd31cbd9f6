"""BiGRUCRF, TextCNN and BOW: what padding and companions do, and that they learn."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import framework
from framework import nn
from framework.config import build
from framework.core.errors import ConfigError
from framework.core.rng import rng_scope
from nlp.contracts import Tokens
from nlp.layers.token_embedding import embed
from nlp.models.bigru_crf import BiGRUCRFConfig
from nlp.models.bow import BOWConfig
from nlp.models.text_cnn import TextCNNConfig

IDS = np.random.default_rng(0).integers(1, 50, (3, 6, 2))
MASK = np.arange(6) < np.array([[6], [3], [1]])
CONFIGS = [
    BiGRUCRFConfig(50, 4, embedding_dim=8, hidden_size=6, dropout=0.5, direct=True),
    TextCNNConfig(50, 4, embedding_dim=8, filters=5, hidden_size=6, dropout=0.5),
    BOWConfig(50, 4, embedding_dim=8, hidden_size=7, fc_hidden_size=6, dropout=0.5),
]


def made(config: Any) -> nn.Layer:
    framework.seed(1)
    return build(config).eval()


def results(layer: nn.Layer, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return np.asarray(layer(Tokens(ids, mask)))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)
@pytest.mark.parametrize("features", [True, False])
def test_a_text_does_not_depend_on_its_batch(config: Any, features: bool) -> None:
    layer, ids = made(config), IDS if features else IDS[..., 0]
    together = results(layer, ids, MASK)
    longer = np.pad(ids, ((0, 0), (0, 4)) + ((0, 0),) * (ids.ndim - 2), constant_values=9)
    wide = results(layer, longer, np.pad(MASK, ((0, 0), (0, 4))))
    for row, length in enumerate(MASK.sum(1)):
        alone = results(layer, ids[row : row + 1, :length], MASK[row : row + 1, :length])[0]
        for batch in (together, wide):
            own = batch[row, :length] if alone.ndim == 2 else batch[row]
            assert np.abs(own - alone).max() < 1e-5


def test_names_are_paddlenlps() -> None:
    names = list(made(BiGRUCRFConfig(50, 4, num_layers=1)).state_dict())
    assert names[0] == "word_embedding.weight" and names[-3:] == ["fc.weight", "fc.bias", "crf.transitions"]
    assert "gru.weight_ih_l0_reverse" in names
    layer = made(BiGRUCRFConfig(50, 4, num_layers=1))
    state = {name: np.asarray(value) for name, value in layer.state_dict().items()}
    doubled = dict(state)
    doubled["crf_loss.crf.transitions"] = doubled["viterbi_decoder.transitions"] = state["crf.transitions"]
    doubled["gru.0.cell_fw.weight_ih"] = state["gru.weight_ih_l0"]
    layer.set_state_dict(doubled)


def test_a_tagger_learns_and_names_probabilities() -> None:
    from framework.nn import functional_core

    layer = made(BiGRUCRFConfig(50, 4, embedding_dim=8, hidden_size=6, direct=True))
    graphdef, params, buffers = functional_core.split(layer)
    tokens, tags = Tokens(IDS, MASK), np.where(MASK, IDS[..., 0] % 4, -1)

    def loss(params: Any) -> jax.Array:
        return graphdef.bind(params, buffers).loss(tokens, tags)

    step = jax.jit(jax.value_and_grad(loss))
    first = None
    for _ in range(60):
        value, grads = step(params)
        first = value if first is None else first
        params = jax.tree.map(lambda p, g: p - 0.3 * g, params, grads)
    assert value < 0.2 * first
    found, scores = graphdef.bind(params, buffers).tag(tokens)
    assert (np.asarray(found)[MASK] == tags[MASK]).all()
    assert np.asarray(scores)[MASK].min() > 0.5 and not np.asarray(scores)[~MASK].any()


def test_whole_features_are_left_out_in_training() -> None:
    table = nn.Embedding(50, 4)
    weights = np.array([[[1.0, 0.0], [2.0, 1.0]]])
    ids = IDS[:1, :2]
    vectors = np.asarray(table.weight)[ids]
    found = embed(table, ids, weights)  # type: ignore[arg-type]
    assert np.abs(np.asarray(found) - (vectors * weights[..., None]).sum(2)).max() < 1e-6
    config = BiGRUCRFConfig(50, 4, embedding_dim=8, hidden_size=6, direct=True, feature_dropout=0.5)
    layer, tokens = made(config), Tokens(IDS, MASK)  # type: ignore[arg-type]
    calm = BiGRUCRFConfig(50, 4, embedding_dim=8, hidden_size=6, direct=True)
    assert np.array_equal(layer(tokens), made(calm)(tokens))
    layer.train()
    with rng_scope(jax.random.key(0)):
        first = layer(tokens)
    with rng_scope(jax.random.key(1)):
        assert np.abs(np.asarray(first) - layer(tokens)).max() > 1e-4


@pytest.mark.parametrize(
    "make",
    [
        lambda: BiGRUCRFConfig(0, 4),
        lambda: BiGRUCRFConfig(9, 4, feature_dropout=1.0),
        lambda: TextCNNConfig(50, widths=()),
        lambda: BOWConfig(50, dropout=1.0),
    ],
)
def test_errors(make: Any) -> None:
    with pytest.raises(ConfigError, match="a setting of the network is out of range"):
        make()
