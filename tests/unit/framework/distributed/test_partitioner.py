"""Batches divided over devices, parameters by the kind of their layer and by rules."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Literal

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import framework
from framework import nn
from framework.core.errors import ConfigError
from framework.distributed import ParallelOptions, Partitioner
from framework.distributed.layout import parameter_specs
from framework.engine.experiment import TrainOptions
from framework.engine.trainer import Trainer
from framework.io import DataLoader
from framework.nn.adapters import LoRA, add_adapters
from framework.optimizer import Momentum
from tests.unit.framework.engine.conftest import Points, PointTask

SIZES = {"data": 1, "fsdp": 2, "tensor": 4}


class Block(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, 64)
        self.conv = nn.Conv2D(16, 32, 3)
        self.fc1, self.fc2 = nn.Linear(64, 256), nn.Linear(256, 64)
        self.odd = nn.Linear(63, 65)
        self.norm = nn.LayerNorm(64)


def test_layouts_follow_the_kind_of_the_layer() -> None:
    specs = parameter_specs(Block(), ParallelOptions(), SIZES)
    assert specs == {
        "embed.weight": P("fsdp", "tensor"),
        "conv.weight": P("tensor", "fsdp", None, None),
        "conv.bias": P(),
        "fc1.weight": P("fsdp", "tensor"),
        "fc1.bias": P(),
        "fc2.weight": P("tensor", "fsdp"),  # takes what fc1 has divided
        "fc2.bias": P(),
        "odd.weight": P(None, None),  # nothing divides 63 and 65
        "odd.bias": P(),
        "norm.weight": P(),
        "norm.bias": P(),
    }


@pytest.mark.parametrize("weights", [None, "int8"])
def test_adapters_follow_their_layer_and_keep_their_rank_whole(weights: Literal["int8"] | None) -> None:
    block = Block()
    add_adapters(block, LoRA(rank=8, targets="fc1|fc2", weights=weights))
    specs = parameter_specs(block, ParallelOptions(smallest=1), {**SIZES, "fsdp": 1})
    assert specs["fc1.lora_A"] == P(None, None) and specs["fc1.lora_B"] == P(None, "tensor")
    assert specs["fc2.lora_A"] == P("tensor", None) and specs["fc2.lora_B"] == P(None, None)
    both = parameter_specs(block, ParallelOptions(smallest=1), SIZES)
    assert both["fc1.lora_A"] == P("fsdp", None) and both["fc1.lora_B"] == P("fsdp", "tensor")


def test_rules_go_before_and_drop_what_does_not_divide() -> None:
    options = ParallelOptions(rules={r"^fc\d\.weight$": ("tensor", None), r"odd\.weight": ("fsdp", "data")})
    specs = parameter_specs(Block(), options, SIZES)
    assert specs["fc1.weight"] == specs["fc2.weight"] == P("tensor", None)
    assert specs["odd.weight"] == P(None, "data")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"rules": {"fc3": ("fsdp",)}}, "found in no name"),
        ({"rules": {"fc1.weight": ("fsdp",)}}, "for every dimension"),
        ({"rules": {"(": ("fsdp",)}}, "regular expression"),
        ({"fsdp": 0}, "has devices"),
    ],
)
def test_wrong_rules_are_named(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parameter_specs(Block(), ParallelOptions(**options), SIZES)


def test_a_mesh_takes_all_devices() -> None:
    with pytest.raises(ConfigError, match="does not take the devices") as caught:
        Partitioner(jax.devices()[:1], ParallelOptions(fsdp=2))
    assert "fsdp 2, 1 devices" in str(caught.value)


def test_one_device() -> None:
    partitioner = Partitioner(jax.devices()[:1])
    partitioner.check_batch_size(7)
    placed = partitioner.place({"a": np.ones(3), "b": (np.zeros(2), np.float32(1))})
    assert placed["a"].sharding.is_equivalent_to(partitioner.replicated, 1)
    assert partitioner.local_rows(8) is None and partitioner.fetch(placed) is placed
    partitioner.sizes["data"] = 2
    with pytest.raises(ConfigError, match="7 samples for 2 devices"):
        partitioner.check_batch_size(7)


def test_the_last_batch_of_an_epoch_is_looked_at_before_the_first() -> None:
    """Trainer.fit would end at it, in words about shardings, when all but it was trained on."""

    def trainer(samples: int, drop_last: bool = False) -> Trainer:
        task: Any = PointTask()
        loader = DataLoader(Points(samples), batch_size=4, pack=task.pack, drop_last=drop_last, num_workers=0)
        return Trainer(
            nn.Linear(2, 2),
            task,
            Momentum(0.1, 0.9),
            loader,
            TrainOptions(epochs=1),
            partitioner=Partitioner(),
        )

    with pytest.raises(
        ConfigError, match=r"(?s)last batch of an epoch.*3 samples for 2 devices.*drop_last=True"
    ):
        trainer(11)
    for samples, drop_last in ((11, True), (10, False), (12, False)):
        trainer(samples, drop_last)


def test_values_that_were_not_read_are_drawn_and_stay_unread() -> None:
    framework.seed(0)
    whole, other = nn.Linear(4, 3), None
    framework.seed(0)
    other = nn.Linear(4, 3)
    placed = Partitioner(jax.devices()[:1])
    placed.devices = placed.devices * 2  # as of several devices: the layer's own arrays are not made
    drawn, _ = placed.init_arrays(other)
    assert other._parameters["weight"]._value is None
    np.testing.assert_array_equal(drawn["weight"], whole.weight)
    np.testing.assert_array_equal(other.weight, whole.weight)


SEVERAL = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, numpy as np, framework
from framework import nn
from framework.core.errors import ConfigError
from framework.distributed import ParallelOptions, Partitioner
from framework.distributed import partitioner as partitioner_module

partitioner = Partitioner(options=ParallelOptions(fsdp=2, tensor=2, smallest=4))
assert {name: size for name, size in partitioner.sizes.items() if size > 1} == {"data": 2, "fsdp": 2, "tensor": 2}
model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
partitioner.set_model(model)
params, _ = partitioner.init_arrays(model)
whole = dict(model.named_parameters())
assert all(parameter._value is None for parameter in whole.values())
partitioner_module._BLOCK = 3  # rows one by one
again, _ = partitioner.init_arrays(model)
for name, value in params.items():
    np.testing.assert_array_equal(value, whole[name].value)
    np.testing.assert_array_equal(again[name], whole[name].value)
shapes = {name: {shard.data.shape for shard in value.addressable_shards} for name, value in params.items()}
assert shapes == {"0.weight": {(2, 4)}, "0.bias": {(4,)}, "1.weight": {(4, 3)}, "1.bias": {(3,)}}, shapes

state = partitioner.build(
    lambda params: {
        "params": params,
        "moments": {name: value * 0 for name, value in params.items()},
        "twice": {name: jax.numpy.stack([value, value]) for name, value in params.items()},
        "count": jax.numpy.zeros(()),
    },
    params,
)
held = lambda value: {shard.data.shape for shard in value.addressable_shards}
assert held(state["moments"]["0.weight"]) == {(2, 4)} and held(state["twice"]["0.weight"]) == {(2, 2, 4)}
assert state["count"].is_fully_replicated and len(state["count"].sharding.device_set) == 8

batch = partitioner.place_batch({"x": np.arange(8), "odd": np.arange(3)})
assert held(batch["x"]) == {(2,)} and batch["odd"].is_fully_replicated
try:
    partitioner.check_batch_size(6)
except ConfigError as error:
    assert "6 samples for 4 devices" in str(error)
else:
    raise AssertionError("a batch of 6 was taken")

stage = Partitioner(options=ParallelOptions(fsdp=8, stage=1, smallest=4))
stage.set_model(model)
params, _ = stage.init_arrays(model)
state = stage.build(lambda params: {"params": params, "moments": dict(params)}, params)
assert state["params"]["0.weight"].is_fully_replicated and held(state["moments"]["0.weight"]) == {(4, 1)}
"""


def test_eight_devices() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
