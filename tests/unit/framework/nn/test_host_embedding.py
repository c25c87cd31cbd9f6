"""Tables on the host: the numbers of a table on the device, admission, scores, deletion, files, and hot rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, FormatError
from framework.optimizer import SGD
from tests.unit.framework.distributed.test_tables import DenseTable

IDS = np.array([5, -3, 2**40, 5, 77, 0])


def train(layer: nn.HostEmbedding, ids: np.ndarray, optimizer: Any = None, **words: Any) -> None:
    """A step whose gradient is 1 for all numbers of all vectors."""
    grad = nn.value_and_grad(layer, lambda layer, ids: layer(ids, **words).sum())
    (optimizer or SGD(0.1)).step(layer, grad(nn.split_ids(ids))[1])


@pytest.mark.parametrize("kind", ["sgd", "adagrad", "rowwise_adagrad", "adam"])
def test_it_equals_a_dense_table(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows" if kind == "adam" else None
    layer = nn.HostEmbedding(3, padding_idx=0, wide_ids=True, optimizer=kind, path=path)
    draw, optimizer = np.random.default_rng(0), SGD(0.1)
    dense = DenseTable(layer.store.first_values(np.arange(3000))[:, :3], kind)
    for _ in range(4):  # more rows than there is room for at first
        ids, factors = draw.integers(0, 3000, 900), draw.standard_normal((900, 3)).astype(np.float32)
        known = np.where(ids == 0, -1, ids)
        expected = np.where((known >= 0)[:, None], dense.table[ids], 0)
        np.testing.assert_allclose(layer(ids), expected, atol=3e-6)
        grad = nn.value_and_grad(layer, lambda layer, ids, factors: (layer(ids) * factors).sum())
        optimizer.step(layer, grad(nn.split_ids(ids), factors)[1])
        layer.store.prefetch(ids)
        dense.step(known, factors)
    there = np.arange(1, 3000)
    np.testing.assert_allclose(layer.store.pull(there)[:, :3], dense.table[1:], atol=3e-6)
    assert 1800 < len(layer.store) < 2400


def test_first_values_follow_from_the_id() -> None:
    one, other = nn.HostTable(4, seed=3), nn.HostTable(4, seed=4)
    values = one.first_values(np.arange(20_000))
    assert (
        abs(values).max() <= 0.01
        and abs(values.mean()) < 1e-4
        and values.std() == pytest.approx(0.01 / 3**0.5, rel=0.02)
    )
    np.testing.assert_array_equal(one.pull(np.array([7, -1]))[:, :4], one.first_values(np.array([7, -1])))
    assert not np.array_equal(other.pull(np.array([7]))[:, :4], values[7:8])


def test_ids_are_admitted_by_their_count() -> None:
    layer = nn.HostEmbedding(2, wide_ids=True, optimizer="sgd", entry=nn.CountFilterEntry(3))
    before = layer.store.pull(IDS)
    train(layer, IDS)  # 5 twice
    assert len(layer.store) == 0 and layer.store.waiting_ids()[5] == 2
    train(layer, np.array([5, 77]))
    np.testing.assert_array_equal(layer.store.hot_ids(9), [5])
    assert (layer.store.pull(IDS) != before)[:, 0].tolist() == [True, False, False, True, False, False]
    assert layer.store.statistics(np.array([5, 77]))["seen"].tolist()[0] == 1


def test_ids_are_admitted_by_chance() -> None:
    layer = nn.HostEmbedding(1, wide_ids=True, optimizer="sgd", entry=nn.ProbabilityEntry(0.3))
    shares = []
    for _ in range(2):
        train(layer, np.arange(3000))
        shares.append(len(layer.store) / 3000)
    np.testing.assert_allclose(shares, [0.3, 0.51], atol=0.03)


def test_scores_of_shows_and_clicks() -> None:
    """score = .1 (show - click) + click; numbers behind the first live from a score of 2 on."""
    entry, eviction = nn.ShowClickEntry("show", "click"), nn.Eviction(embedx_threshold=2.0)
    layer = nn.HostEmbedding(3, wide_ids=True, optimizer="sgd", entry=entry, eviction=eviction)
    ids, seen = np.array([[5], [6]]), []
    for _ in range(3):
        seen.append(np.asarray(layer(ids))[:, 0])
        train(layer, ids, click=jnp.array([1.0, 0.0]), show=jnp.array([2.0, 1.0]))
    assert all((vectors[:, 1:] == 0).all() for vectors in seen[:2])  # scores 0 and 1.1, .1
    assert (seen[2][0, 1:] != 0).all() and (seen[2][1, 1:] == 0).all()  # 2.2 and .2
    first = layer.store.first_values(np.array([5, 6]))
    np.testing.assert_allclose(seen[2][:, 0], first[:, 0] - 0.2, rtol=1e-5)
    np.testing.assert_array_equal(seen[2][0, 1:], first[0, 1:3])
    assert layer.store.statistics(np.array([5, 6]))["click"].tolist() == [3, 0]


def test_rows_are_deleted_by_score_and_by_days() -> None:
    table = nn.HostTable(1, eviction=nn.Eviction(delete_threshold=0.19, delete_after_unseen_days=2))
    for ids, met in (([1, 2, 3], [1, 2, 30]), ([4], [30])):
        table.push(np.array(ids), table.pull(np.array(ids)), np.array(met))
    # Shows 1, 2 and 30 decay to .98, 1.96 and 29.4: scores .098, .196 and 2.94.
    assert table.shrink().tolist() == [1] and sorted(table.hot_ids(9).tolist()) == [2, 3, 4]
    assert table.shrink(threshold=0.3).tolist() == [2]
    for _ in range(3):
        table.next_day()
    table.push(np.array([3]), table.pull(np.array([3])), np.array([1]))
    assert table.shrink().tolist() == [4] and table.hot_ids(9).tolist() == [3]
    table.push(
        np.array([8]), table.pull(np.array([8])), np.array([1])
    )  # in the place of one that was deleted
    np.testing.assert_array_equal(table.pull(np.array([8]))[:, :1], table.first_values(np.array([8])))


def test_a_number_of_rows_is_kept() -> None:
    def made() -> nn.HostTable:
        table = nn.HostTable(1)
        for ids, met, clicks in (([1, 2, 3], [9, 5, 7], [0, 5, 0]), ([4], [1], [0])):
            one = np.array(ids)
            table.push(one, table.pull(one), np.array(met), None, np.array(clicks, np.float32))
            table.next_day()
        return table

    for by, gone in (("seen", [2, 4]), ("unseen", [2, 3]), ("score", [3, 4])):
        table = made()
        assert sorted(table.restrict(2, by=by).tolist()) == gone and len(table) == 2  # type: ignore[arg-type]
        table.push(
            np.array([8, 9, 10]), table.pull(np.array([8, 9, 10])), np.ones(3)
        )  # places are taken again
        assert len(table) == 5 and len(np.unique(table._find(table.hot_ids(9)))) == 5


def test_files(tmp_path: Path) -> None:
    layer = nn.HostEmbedding(2, wide_ids=True, entry=nn.CountFilterEntry(2), optimizer="adagrad")
    train(layer, IDS)
    layer.store.save(tmp_path / "rows.npz")
    other = nn.HostEmbedding(2, wide_ids=True, entry=nn.CountFilterEntry(2), optimizer="adagrad")
    other.store.load(tmp_path / "rows.npz")
    for one in (layer, other):
        train(one, IDS)
    assert len(layer.store) == 5
    np.testing.assert_array_equal(layer.store.pull(IDS), other.store.pull(IDS))
    with pytest.raises(FormatError, match="of another table"):
        nn.HostEmbedding(3).store.load(tmp_path / "rows.npz")
    (tmp_path / "rows.npz").write_bytes(b"PK")
    with pytest.raises(FormatError, match="cannot be read"):
        other.store.load(tmp_path / "rows.npz")
    with pytest.raises(ConfigError, match="up to 1"):
        nn.Eviction(show_click_decay_rate=1.5)


def test_hot_rows() -> None:
    layer = nn.HostEmbedding(2, wide_ids=True, padding_idx=0)
    for count in (1, 2, 3):
        train(layer, np.array([-3, 2**40, 5][:count]))
    assert layer.store.hot_ids(2).tolist() == [-3, 2**40]
    hot = nn.HotEmbedding.of(layer, layer.store.hot_ids(2))
    vectors = np.asarray(layer(IDS))
    mean = (vectors[1] + vectors[2]) / 2
    expected = [mean, vectors[1], vectors[2], mean, mean, 0 * mean]
    np.testing.assert_allclose(hot(IDS), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda words: hot(words))(nn.split_ids(IDS)), expected, rtol=1e-6)
    table = nn.ShardedEmbedding(9, 2, combiner="sum", padding_idx=0)
    ids = np.array([4, 7, 2])
    hot = nn.HotEmbedding.of(table, ids, other=np.zeros(2, np.float32))
    bags = np.array([[4, 2, 0], [7, 8, 7]], np.int32)
    weight = np.asarray(table.weight)
    np.testing.assert_allclose(hot(bags), [weight[4] + weight[2], 2 * weight[7]], rtol=1e-6)
    with pytest.raises(ConfigError, match="no id twice"):
        nn.HotEmbedding(np.array([1, 1]), np.zeros((2, 2)))
