"""What the devices of a CPU give, measured: they share its cores, caches and memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from framework.core.device import Device
from framework.distributed.planning.hardware import Hardware, kind_of

_CHAIN = 8  # operations of one kind in a program, each on what the one before gives
_ROUNDS = 7  # of which the fastest counts: another program may have the cores in the others
_SIDE = 384  # of a matrix
_NUMBERS = 1 << 18  # of an array that is read and written: as large as activations that stay in a cache
_FEW = 1 << 8  # of an array whose all-reduce is all waiting


def hardware_of(devices: Sequence[Device]) -> Hardware:
    """What devices that are here give: those of a CPU are measured, all others have a data sheet."""
    return calibrate(devices) if devices[0].platform == "cpu" else kind_of(devices[0])


def calibrate(devices: Sequence[Device]) -> Hardware:
    """Time products, copies and all-reduces that all devices compute at once, in about a second.

    A rate is that of the machine, so that what one device of `devices` does takes their number times as long as alone.
    """
    mesh = Mesh(np.array(devices), ("all",))
    count = len(devices)

    def seconds(one: Callable[[jax.Array], jax.Array], shape: tuple[int, ...]) -> float:
        """Of one operation, on an array of this shape of each device."""

        def chain(x: jax.Array) -> jax.Array:
            for _ in range(_CHAIN):
                x = lax.optimization_barrier(one(x))
            return x

        divided = P("all")
        program = jax.jit(jax.shard_map(chain, mesh=mesh, in_specs=divided, out_specs=divided))
        x = jax.device_put(
            np.full((count * shape[0], *shape[1:]), 1e-3, np.float32), NamedSharding(mesh, divided)
        )
        jax.block_until_ready(program(x))
        times = []
        for _ in range(_ROUNDS):
            began = time.perf_counter()
            jax.block_until_ready(program(x))
            times.append(time.perf_counter() - began)
        return min(times) / _CHAIN

    def reduce(x: jax.Array) -> jax.Array:
        return lax.pcast(lax.psum(x, "all"), "all", to="varying") * np.float32(1 / count)

    product = seconds(lambda x: x @ x, (_SIDE, _SIDE))
    copy = seconds(lambda x: x * np.float32(0.5) + np.float32(1), (_NUMBERS,))
    few = seconds(reduce, (_FEW,)) if count > 1 else 0.0
    speed = count * 2 * 4 * _NUMBERS / copy
    return Hardware(
        products=count * 2 * _SIDE**3 / product,
        memory=_machine_memory() / count,
        bandwidth=speed,
        link=speed,
        network=speed,
        per_node=1 << 20,
        shared=True,
        latency=few / count,
    )


def _machine_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows
        return 16e9
