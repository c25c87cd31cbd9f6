"""ShardedEmbedding as a layer: ids of all kinds, bags, gradients by rows, and what it refuses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, InputError, ShapeError
from framework.nn.lookups import RowGradients
from framework.optimizer import SGD, Adam


def table_of(layer: nn.ShardedEmbedding) -> np.ndarray:
    return np.asarray(layer._parameters["weight"].value)


def test_it_is_an_embedding() -> None:
    plain, table = nn.Embedding(20, 3, padding_idx=2), nn.ShardedEmbedding(20, 3, padding_idx=2)
    table.set_state_dict(plain.state_dict())
    ids = np.array([[0, 2, 19], [5, 5, 2]])
    np.testing.assert_array_equal(table(ids), plain(jnp.asarray(ids)))
    np.testing.assert_array_equal(table.row_numbers(ids), [[0, -1, 19, 5, 5, -1]])


def test_bags() -> None:
    ids = np.array([[3, 4, 0], [5, 0, 0], [0, 0, 0]])
    weights = np.array([[1.0, 3.0, 9.0], [2.0, 9.0, 9.0], [9.0, 9.0, 9.0]], np.float32)
    for combiner, bags, weighted in (
        ("sum", lambda w: [w[3] + w[4], w[5], 0 * w[0]], lambda w: [w[3] + 3 * w[4], 2 * w[5], 0 * w[0]]),
        ("mean", lambda w: [(w[3] + w[4]) / 2, w[5], 0 * w[0]],
         lambda w: [(w[3] + 3 * w[4]) / 4, w[5], 0 * w[0]]),
        ("sqrtn", lambda w: [(w[3] + w[4]) / 2**0.5, w[5], 0 * w[0]],
         lambda w: [(w[3] + 3 * w[4]) / 10**0.5, w[5], 0 * w[0]]),
    ):  # fmt: skip
        layer = nn.ShardedEmbedding(10, 2, padding_idx=0, combiner=combiner)  # type: ignore[arg-type]
        np.testing.assert_allclose(layer(ids), bags(table_of(layer)), rtol=1e-6)
        np.testing.assert_allclose(layer(ids, weights), weighted(table_of(layer)), rtol=1e-6)


def test_hashed_ids() -> None:
    layer = nn.ShardedEmbedding(1000, 2, "hashed", padding_idx=0, wide_ids=True)
    ids = np.array([0, 1, -1, 2**40 + 1, 2**63 - 1, -(2**63)], np.int64)
    rows = layer.row_numbers(ids)[0]
    assert rows[0] == -1 and len(set(rows.tolist())) == 6 and rows.max() < 1000
    words = nn.split_ids(ids)
    assert words.shape == (6, 2) and words.dtype == np.uint32
    np.testing.assert_array_equal(layer(ids), layer(words))
    np.testing.assert_array_equal(layer(ids)[1:], table_of(layer)[rows[1:]])
    narrow = nn.ShardedEmbedding(1000, 2, "hashed", padding_idx=0)  # 32 and 64 bits of one id have one row
    np.testing.assert_array_equal(narrow.row_numbers(ids), layer.row_numbers(ids))
    narrow.weight = layer.weight
    small = np.array([0, 1, -1, 77], np.int32)
    np.testing.assert_array_equal(narrow(small), layer(small.astype(np.int64)))
    spread = np.bincount(layer.row_numbers(np.arange(1, 100_001))[0], minlength=1000)
    assert spread.min() > 60 and spread.max() < 145  # Poisson of mean 100


def test_two_hashes_tell_ids_of_one_row_apart() -> None:
    layer = nn.ShardedEmbedding(50, 3, "hashed", hashes=2, combiner="sum", padding_idx=0)
    first, second = layer.row_numbers(np.arange(1, 400))
    assert len(set(first.tolist())) <= 50 < len(set(zip(first.tolist(), second.tolist())))
    table = table_of(layer)
    np.testing.assert_allclose(
        layer(np.array([[1, 2, 0]])), [(table[first[:2]] + table[second[:2]]).sum(0)], rtol=1e-5
    )


class Model(nn.Layer):
    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.table = nn.ShardedEmbedding(30, 3, padding_idx=0, **settings)
        self.out = nn.Linear(3, 1)

    def forward(self, ids: jax.Array) -> jax.Array:
        return self.out(self.table(ids) + self.table(ids[:, ::-1])).sum()


def test_gradients_are_those_of_the_rows() -> None:
    model, ids = Model(optimizer="sgd"), jnp.array([[1, 1, 0], [4, 9, 1]])
    _, grads = nn.value_and_grad(model, lambda model, ids: model(ids))(ids)
    rows = grads["table.weight"]
    assert isinstance(rows, RowGradients) and rows.values.shape == (12, 3)
    graphdef, params, buffers = nn.split(model)
    dense = jax.grad(lambda params: nn.apply(graphdef, params, buffers, None, ids)[0])(
        params
    )  # a plain lookup
    summed = np.zeros((30, 3), np.float32)
    number = np.asarray(rows.rows[0])
    np.add.at(summed, number[number >= 0], np.asarray(rows.values)[number >= 0])
    np.testing.assert_allclose(summed, dense["table.weight"], rtol=1e-6)
    before = table_of(model.table)
    SGD(0.5).step(model, grads)
    np.testing.assert_allclose(table_of(model.table), before - 0.5 * summed, rtol=1e-5, atol=1e-7)


def test_an_eager_optimizer_keeps_the_state_of_tables() -> None:
    model, ids = Model(optimizer="adam", count_ids=True), jnp.array([[1, 1, 0]])
    grad, optimizer = nn.value_and_grad(model, lambda model, ids: model(ids)), Adam(0.1)
    optimizer.step(model, grad(ids)[1])
    state = optimizer.state_dict(model)
    assert state["tables/table.weight/seen"][1] == 4 and state["tables/table.weight/count"] == 1
    other = Adam(0.1)
    twin = Model(optimizer="adam", count_ids=True)
    twin.set_state_dict(model.state_dict())
    other.set_state_dict(twin, state)
    for one, way in ((model, optimizer), (twin, other)):
        way.step(one, nn.value_and_grad(one, lambda model, ids: model(ids))(ids)[1])
    np.testing.assert_array_equal(table_of(model.table), table_of(twin.table))


def test_lazy_adam_is_torchs_sparse_adam() -> None:
    """lr .1, constant gradient 1, a row met at steps 1 and 4: .9000 and .8219 of torch.optim.SparseAdam."""
    layer = nn.ShardedEmbedding(3, 1, optimizer="adam", weight_attr=nn.initializer.Constant(1.0))
    optimizer, values = SGD(0.1), []
    for ids in ([1], [2], [2], [1]):
        _, grads = nn.value_and_grad(layer, lambda layer, ids: layer(ids).sum())(jnp.array(ids))
        optimizer.step(layer, grads)
        values.append(float(table_of(layer)[1, 0]))
    np.testing.assert_allclose(values, [0.9, 0.9, 0.9, 0.8219], atol=5e-5)


@pytest.mark.parametrize(
    "entry, trained", [(nn.CountFilterEntry(3), [False, True, True]), (None, [True] * 3)]
)
def test_rows_are_trained_from_their_third_id_on(entry: Any, trained: list[bool]) -> None:
    layer = nn.ShardedEmbedding(5, 2, optimizer="adagrad", entry=entry)
    optimizer = SGD(0.1)
    for expected in trained:  # two ids a step
        before = table_of(layer)
        _, grads = nn.value_and_grad(layer, lambda layer, ids: layer(ids).sum())(jnp.array([3, 3]))
        optimizer.step(layer, grads)
        assert bool((table_of(layer) != before)[3].all()) is expected
        assert (table_of(layer) == before)[:3].all()


def test_rows_are_admitted_by_chance() -> None:
    layer = nn.ShardedEmbedding(4000, 1, optimizer="sgd", entry=nn.ProbabilityEntry(0.25))
    optimizer, ids, before = SGD(0.1), jnp.arange(4000), None
    before = table_of(layer)
    shares = []
    for _ in range(2):
        _, grads = nn.value_and_grad(layer, lambda layer, ids: layer(ids).sum())(ids)
        optimizer.step(layer, grads)
        shares.append(float((table_of(layer) != before).mean()))
    np.testing.assert_allclose(shares, [0.25, 1 - 0.75**2], atol=0.03)


def test_a_table_of_16_bits() -> None:
    layer = nn.ShardedEmbedding(4, 2, dtype="bfloat16", optimizer="rowwise_adagrad")
    vectors = layer(np.array([1]))
    assert vectors.dtype == np.float32 and layer._parameters["weight"].value.dtype == jnp.bfloat16
    _, grads = nn.value_and_grad(layer, lambda layer, ids: layer(ids).sum())(jnp.array([1]))
    SGD(0.5).step(layer, grads)
    np.testing.assert_allclose(layer(np.array([1])), np.asarray(vectors) - 0.5, atol=0.01)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"rows": 0}, "1 or more"),
        ({"rows": 2**31 + 1, "wide_ids": True}, "multiple of 2048"),
        ({"rows": 2**31}, "nn.split_ids"),
        ({"ids": "mod"}, "'exact' or 'hashed'"),
        ({"hashes": 2}, "ids='hashed'"),
        ({"combiner": "max"}, "'sum', 'mean'"),
        ({"padding_idx": 10}, "0 to 9"),
        ({"optimizer": "lion"}, "rowwise_adagrad"),
        ({"epsilon": -1.0}, "0 or more"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        nn.ShardedEmbedding(**{"rows": 10, "features": 2, **settings})


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: nn.CountFilterEntry(-1), "0 or more"),
        (lambda: nn.CountFilterEntry(True), "integer"),
        (lambda: nn.ProbabilityEntry(1.0), "below 1"),
        (lambda: nn.ShowClickEntry("show", 3), "names"),  # type: ignore[arg-type]
    ],
)
def test_wrong_entries_are_named(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_what_it_does_not_take() -> None:
    layer = nn.ShardedEmbedding(10, 2)
    with pytest.raises(InputError, match=r"received: 10, -1"):
        layer(np.array([1, 10, -1]))
    assert not np.any(jax.jit(lambda ids: layer(ids))(jnp.array([10])))
    with pytest.raises(ShapeError, match="takes integers"):
        layer(np.ones(3, np.float32))
    with pytest.raises(ShapeError, match="two words"):
        nn.ShardedEmbedding(10, 2, "hashed", wide_ids=True)(np.ones(3, np.int32))
    with pytest.raises(ConfigError, match="HostEmbedding"):
        SGD(0.1).table_groups(nn.ShardedEmbedding(9, 2, entry=nn.ShowClickEntry("show", "click")))


def test_a_lookup_in_a_block_that_is_recomputed_is_refused() -> None:
    model = Model()
    nn.set_recompute(model, "table")
    with pytest.raises(ConfigError, match="recomputed"):
        nn.value_and_grad(model, lambda model, ids: model(ids))(jnp.array([[1, 2, 3]]))
