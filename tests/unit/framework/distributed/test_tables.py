"""Tables by rows against a dense table in NumPy, on one device and dealt out over several."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.core.errors import ConfigError
from framework.distributed import ParallelOptions, Partitioner
from framework.engine.experiment import TrainOptions
from framework.engine.task import Losses
from framework.engine.trainer import Trainer
from framework.io import DataLoader, Dataset
from framework.io.checkpoint import find_checkpoint, load_checkpoint
from framework.nn.functional.tables import (
    _locate,
    collect_rows,
    deal_rows,
    exact_rows,
    lookup_rows,
    split_ids,
)
from framework.nn.lookups import RowGradients
from framework.nn.table_options import TableOptimizer, TableOptions
from framework.optimizer import SGD
from framework.optimizer.tables import TableGroup, init_tables, update_tables

ROWS, FEATURES, PADDING = 103, 4, 7
RATE, BETA1, BETA2 = 0.1, 0.9, 0.999


class DenseTable:
    """The formulas in float64, on the rows that were met."""

    def __init__(self, table: np.ndarray, optimizer: TableOptimizer) -> None:
        self.table, self.optimizer, self.time = table.astype(np.float64), optimizer, 0
        self.first, self.second = np.zeros_like(self.table), np.zeros_like(self.table)

    def step(self, ids: np.ndarray, grads: np.ndarray) -> None:
        dense = np.zeros_like(self.table)
        np.add.at(dense, ids[ids >= 0], grads[ids >= 0])
        met = np.unique(ids[ids >= 0])
        g, self.time = dense[met], self.time + 1
        if self.optimizer == "sgd":
            self.table[met] -= RATE * g
        elif self.optimizer == "adagrad":
            self.second[met] += g * g
            self.table[met] -= RATE * g / (np.sqrt(self.second[met]) + 1e-6)
        elif self.optimizer == "rowwise_adagrad":
            self.second[met] += (g * g).mean(1, keepdims=True)
            self.table[met] -= RATE * g / (np.sqrt(self.second[met]) + 1e-8)
        else:
            self.first[met] = BETA1 * self.first[met] + (1 - BETA1) * g
            self.second[met] = BETA2 * self.second[met] + (1 - BETA2) * g * g
            first = self.first[met] / (1 - BETA1**self.time)
            second = self.second[met] / (1 - BETA2**self.time)
            self.table[met] -= RATE * first / (np.sqrt(second) + 1e-8)


def compare_with_dense(
    devices: int,
    options: ParallelOptions | None = None,
    optimizers: tuple[TableOptimizer, ...] = ("sgd", "adagrad", "rowwise_adagrad", "adam"),
) -> None:
    """Lookups and updates of all optimizers: duplicates, ids without a row, and all ids of one owner."""
    draw = np.random.default_rng(0)
    mesh = Partitioner(jax.devices()[:devices], options).mesh
    batches = [
        np.minimum(draw.zipf(1.3, 61) - 1, ROWS - 1),
        draw.integers(0, ROWS, 64),
        np.arange(0, 40 * devices, devices) % ROWS,  # one owner, more rows than its share
        np.full(24, 11),
    ]
    start = draw.standard_normal((ROWS, FEATURES)).astype(np.float32)

    def run(groups: Any, table: Any, states: Any, ids: Any, grads: Any) -> Any:
        seen = lookup_rows(table, (ids,), mesh if devices > 1 else None)
        met = {"table": RowGradients((ids,), grads)}
        tables, states = update_tables({"table": table}, states, met, RATE, groups, mesh)
        return seen, tables["table"], states

    for optimizer in optimizers:
        groups = {"table": TableGroup(TableOptions(optimizer))}
        dense = DenseTable(start, optimizer)
        table = jnp.asarray(start if devices == 1 else deal_rows(start, devices))
        states = init_tables({"table": table}, groups)

        step = jax.jit(functools.partial(run, groups))
        for ids in batches:
            ids = np.where(ids == PADDING, -1, ids).astype(np.int32)
            grads = draw.standard_normal((len(ids), FEATURES)).astype(np.float32)
            expected = np.where((ids >= 0)[:, None], dense.table[ids], 0)
            seen, table, states = step(table, states, ids, grads)
            np.testing.assert_allclose(seen, expected, atol=3e-6)
            dense.step(ids, grads)
        whole = np.asarray(table) if devices == 1 else collect_rows(np.asarray(table), ROWS)
        np.testing.assert_allclose(whole, dense.table, atol=3e-6, err_msg=optimizer)
        np.testing.assert_array_equal(whole[PADDING], start[PADDING])


class Clicks(Dataset):
    """Four ids of 50 and whether their sum is odd; id 0 fills up."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        ids = np.random.default_rng(index).integers(0, 50, 4).astype(np.int32)
        return ids, np.float32(ids.sum() % 2)


class ClickModel(nn.Layer):
    def __init__(self, **table: Any) -> None:
        super().__init__()
        framework.seed(0)
        self.wide = nn.ShardedEmbedding(50, 1, padding_idx=0, **{"optimizer": "sgd", **table})
        self.embed = nn.ShardedEmbedding(50, 4, padding_idx=0, **table)
        self.out = nn.Linear(16, 1)

    def forward(self, ids: jax.Array) -> jax.Array:
        return (self.out(self.embed(ids).reshape(-1, 16)) + self.wide(ids).sum(1))[:, 0]


@dataclass(frozen=True)
class ClickTask:
    def pack(self, sample: Any) -> dict[str, np.ndarray]:
        return {"ids": sample[0], "label": sample[1]}

    def loss(self, model: Any, batch: Any) -> Losses:
        return Losses(nn.functional.binary_cross_entropy_with_logits(model(batch["ids"]), batch["label"]))

    def infer(self, model: Any, inputs: Any) -> dict[str, jax.Array]:
        return {"scores": model(inputs["ids"])}

    def metrics(self, labels: Any) -> dict[str, Any]:
        return {"sum": Total()}

    def check(self, model: Any, labels: Any) -> None: ...


class Total:
    higher_is_better = True
    total = 0.0

    def update(self, outputs: Any, batch: Any) -> None:
        self.total += float(outputs["scores"].sum())

    def result(self) -> dict[str, float]:
        return {"sum": self.total}


def make_trainer(
    devices: int,
    folder: Path | None = None,
    parallel: ParallelOptions | None = None,
    epochs: int = 2,
    model: nn.Layer | None = None,
    **table: Any,
) -> Trainer:
    task: Any = ClickTask()
    data = [DataLoader(Clicks(), batch_size=16, pack=task.pack, pad_last=last) for last in (False, True)]
    options = TrainOptions(epochs=epochs, amp=table.pop("amp", "float32"))
    where = Partitioner(jax.devices()[:devices], parallel)
    return Trainer(
        model or ClickModel(**table),
        task,
        SGD(0.1),
        data[0],
        options,
        eval=data[1],
        folder=folder,
        partitioner=where,
    )


def train_on_a_mesh(folder: str) -> None:
    """Eight devices give the tables of one; a checkpoint of eight goes on on one."""
    settings = {"optimizer": "adam", "count_ids": True}
    one, parallel = make_trainer(1, **settings), ParallelOptions(fsdp=2, tensor=2, smallest=4)
    many = make_trainer(8, Path(folder), parallel, **settings)
    assert many.state.params["embed.weight"].sharding.shard_shape((7, 8, 4)) == (7, 1, 4)
    assert many.fit()["sum"] == pytest.approx(one.fit()["sum"], rel=1e-4)
    for name, value in one.model.state_dict().items():
        np.testing.assert_allclose(many.model.state_dict()[name], value, atol=1e-5, err_msg=name)
    for name, value in one.table_state("embed.weight").items():
        np.testing.assert_allclose(many.table_state("embed.weight")[name], value, atol=1e-5)
    resumed = make_trainer(1, epochs=3, **settings)
    resumed.resume(find_checkpoint(Path(folder)))
    straight = make_trainer(1, epochs=3, **settings)
    straight.fit()
    resumed.fit()
    for name, value in straight.model.state_dict().items():
        np.testing.assert_allclose(resumed.model.state_dict()[name], value, atol=1e-5, err_msg=name)


def check_temporaries() -> None:
    """What a step needs beside the tables does not grow with them, and they are changed where they lie."""
    where = Partitioner()
    groups = {"table": TableGroup(TableOptions("rowwise_adagrad"))}

    def step(table: Any, states: Any, ids: Any) -> Any:
        met = {"table": RowGradients((ids,), lookup_rows(table, (ids,), where.mesh))}
        tables, states = update_tables({"table": table}, states, met, RATE, groups, where.mesh)
        return tables["table"], states

    def place(leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where.dealt)

    needs = []
    for lines in (10_000, 1_000_000):
        table = place(jax.ShapeDtypeStruct((lines, 8, FEATURES), np.float32))
        states = jax.tree.map(place, jax.eval_shape(lambda one: init_tables({"table": one}, groups), table))
        ids = jax.ShapeDtypeStruct((512,), np.int32, sharding=where.batch)
        analysis = jax.jit(step, donate_argnums=(0, 1)).lower(table, states, ids).compile().memory_analysis()
        needs.append(analysis.temp_size_in_bytes)
        assert analysis.alias_size_in_bytes == 4 * lines * (FEATURES + 1)
    assert needs[1] < 1.1 * needs[0]


def run_on_eight_devices(code: str) -> None:
    flags = "--xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import *\n{code}"],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_one_device_equals_a_dense_table() -> None:
    compare_with_dense(1)


def test_eight_devices_equal_a_dense_table() -> None:
    run_on_eight_devices(
        "check_temporaries()\ncompare_with_dense(8)\n"
        "compare_with_dense(6, ParallelOptions(fsdp=3, tensor=2), ('adam',))"
    )


def test_training_on_eight_devices(tmp_path: Path) -> None:
    run_on_eight_devices(f"train_on_a_mesh({str(tmp_path)!r})")


def test_a_resumed_run_has_the_numbers_of_an_unbroken_one(tmp_path: Path) -> None:
    settings = {"optimizer": "adam", "entry": nn.CountFilterEntry(3)}
    make_trainer(1, tmp_path, epochs=1, **settings).fit()
    saved = load_checkpoint(find_checkpoint(tmp_path))
    assert saved.model["embed.weight"].shape == (50, 4) and saved.train["tables/embed.weight/seen"].sum() > 0
    resumed, straight = make_trainer(1, epochs=3, **settings), make_trainer(1, epochs=3, **settings)
    resumed.resume(saved.folder)
    resumed.fit()
    straight.fit()
    for name, value in straight.model.state_dict().items():
        np.testing.assert_array_equal(resumed.model.state_dict()[name], value)


def test_float16_skips_the_rows_of_a_step_that_overflows() -> None:
    trainer = make_trainer(1, epochs=1, amp="float16", count_ids=True)
    before = np.asarray(trainer.state.params["embed.weight"])
    big = {**trainer.state.params, "out.weight": trainer.state.params["out.weight"] * 1e30}
    batch = {"ids": np.ones((16, 4), np.int32), "label": np.ones(16, np.float32)}
    state, _ = trainer.step_fn(replace(trainer.state, params=big), batch)
    np.testing.assert_array_equal(state.params["embed.weight"], before)
    assert int(state.tables["embed.weight"]["seen"].sum()) == 0


class HostModel(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        framework.seed(0)
        self.embed = nn.HostEmbedding(4, padding_idx=0, prefetch="ids", optimizer="adam")
        self.out = nn.Linear(16, 1)

    def forward(self, ids: jax.Array) -> jax.Array:
        return self.out(self.embed(ids).reshape(-1, 16))[:, 0]


def test_a_table_on_the_host_in_a_trainer(tmp_path: Path) -> None:
    def make(devices: int, epochs: int, folder: Path | None = None) -> Trainer:
        return make_trainer(devices, folder, epochs=epochs, model=HostModel())

    broken, straight, two = make(1, 1, tmp_path), make(1, 2), make(2, 2)
    broken.fit()
    resumed = make(1, 2)
    resumed.resume(find_checkpoint(tmp_path))
    assert len(resumed.host_tables["embed"].store) == 49 and resumed.step == 4
    rows = []
    for trainer in (straight, resumed, two):
        trainer.fit()
        assert float(dict(trainer.model.named_parameters())["embed.version"].value[0, 0]) == 8
        rows.append(trainer.host_tables["embed"].store.pull(np.arange(1, 50)))
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_allclose(rows[0], rows[2], atol=1e-5)


def test_accumulation_is_refused() -> None:
    with pytest.raises(ConfigError, match="updated at every step"):
        SGD(0.1, accumulate=2).table_groups(ClickModel())


def test_frozen_tables_stay() -> None:
    model = ClickModel()
    assert list(SGD(0.1, frozen="wide").table_groups(model)) == ["embed.weight"]
    model.freeze("embed")
    assert list(SGD(0.1, lr_multipliers={"wide": 0.5}).table_groups(model)) == ["wide.weight"]
    assert list(SGD(0.1).param_groups(model)) == ["out.weight", "out.bias"]


def test_rows_of_large_tables_do_not_depend_on_the_number_of_devices() -> None:
    rows = 4096 * 10**6
    ids = np.array([0, 5, 4095, 4096, rows - 1, rows, -1, 2**33], np.int64)
    low, high = (jnp.asarray(word) for word in np.moveaxis(split_ids(ids), -1, 0))
    number = exact_rows(low, high, rows)
    for devices in (2, 8, 512, 2048):
        owner, local = (np.asarray(one, np.int64) for one in _locate(number, devices))
        inside = (ids >= 0) & (ids < rows)
        np.testing.assert_array_equal(owner < devices, inside)
        np.testing.assert_array_equal((local * devices + owner)[inside], ids[inside])
