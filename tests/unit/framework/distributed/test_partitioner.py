"""Batches divided over devices, parameters by rules."""

from __future__ import annotations

import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from framework.core.errors import ConfigError
from framework.distributed import Partitioner

SEVERAL = """
import jax, numpy as np
from jax.sharding import PartitionSpec
from framework.core.errors import ConfigError
from framework.distributed import Partitioner

partitioner = Partitioner(rules=[(r"^fc\\.weight$", PartitionSpec("data"))])
assert len(partitioner.devices) == 4
tree = partitioner.place({"fc.weight": np.ones((8, 3)), "fc.bias": np.ones(3), "conv.weight": np.ones((8, 3))})
shapes = {name: {shard.data.shape for shard in value.addressable_shards} for name, value in tree.items()}
assert shapes == {"fc.weight": {(2, 3)}, "fc.bias": {(3,)}, "conv.weight": {(8, 3)}}, shapes
moments = partitioner.place({"fc.weight": {"count": np.float32(1), "first": np.ones((8, 3))}})
assert {shard.data.shape for shard in moments["fc.weight"]["first"].addressable_shards} == {(2, 3)}
batch = jax.device_put(np.arange(8), partitioner.batch)
assert [shard.data.tolist() for shard in batch.addressable_shards] == [[0, 1], [2, 3], [4, 5], [6, 7]]
try:
    partitioner.check_batch_size(6)
except ConfigError as error:
    assert "6 samples for 4 devices" in str(error)
else:
    raise AssertionError("a batch of 6 was taken")
"""


def test_four_devices() -> None:
    code = "import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'\n" + SEVERAL
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr


def test_one_device() -> None:
    partitioner = Partitioner(jax.devices()[:1])
    partitioner.check_batch_size(7)
    placed = partitioner.place({"a": np.ones(3), "b": (np.zeros(2), np.float32(1))})
    assert placed["a"].sharding.is_equivalent_to(partitioner.replicated, 1)
    assert partitioner.batch.spec == PartitionSpec("data")
    with pytest.raises(ConfigError, match="cannot be divided"):
        type("Two", (Partitioner,), {"divides": lambda self, count: False})(
            jax.devices()[:1]
        ).check_batch_size(1)
