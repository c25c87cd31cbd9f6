"""What the devices of a CPU give, measured: they share its cores, caches and memory."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from framework.core.device import Device
from framework.core.process import cpu_count
from framework.distributed.collectives import all_gather_object
from framework.distributed.planning.hardware import Hardware, kind_of

_CHAIN = 8  # operations of one kind in a program, each on what the one before gives
_ROUNDS = 10
_SIDE = 384  # of a matrix
_NUMBERS = 1 << 18  # of an array that is read and written: as large as activations that stay in a cache
_FEW = 1 << 8  # of an array whose all-reduce is all waiting


def hardware_of(devices: Sequence[Device]) -> Hardware:
    """What devices that are here give: those of a CPU are measured, all others have a data sheet. Of several processes
    the first one measures its own devices for all, so that they plan alike; all call it."""
    if devices[0].platform != "cpu":
        return kind_of(devices[0])
    measured = calibrate([one for one in devices if one.process_index == jax.process_index()])
    first = all_gather_object(measured)[0]
    assert isinstance(first, Hardware)
    return first


def calibrate(devices: Sequence[Device]) -> Hardware:
    """Time products, copies and all-reduces that all devices compute at once, in a second or two.

    A rate is that of the machine, so that what one device of `devices` does takes their number times as long as alone.
    """
    mesh, count, divided = Mesh(np.array(devices), ("all",)), len(devices), P("all")

    def prepare(one: Callable[[jax.Array], jax.Array], shape: tuple[int, ...]) -> Callable[[], jax.Array]:
        """A chain of an operation on an array of this shape of each device."""

        def chain(x: jax.Array) -> jax.Array:
            for _ in range(_CHAIN):
                x = lax.optimization_barrier(one(x))
            return x

        program = jax.jit(jax.shard_map(chain, mesh=mesh, in_specs=divided, out_specs=divided))
        whole = np.full((count * shape[0], *shape[1:]), 1e-3, np.float32)
        return functools.partial(program, jax.device_put(whole, NamedSharding(mesh, divided)))

    def move(x: jax.Array) -> jax.Array:
        return x * np.float32(0.5) + np.float32(1)

    def reduce(x: jax.Array) -> jax.Array:
        return lax.pcast(lax.psum(x, "all"), "all", to="varying") * np.float32(1 / count)

    chains = {
        "product": prepare(lambda x: x @ x, (_SIDE, _SIDE)),
        "move": prepare(move, (_NUMBERS,)),
        "few": prepare(reduce, (_FEW,)),
        "many": prepare(reduce, (_NUMBERS,)),
    }
    # What computes is timed by the processors' clock, which other programs change little; what waits by the wall's.
    waits, works = (dict.fromkeys(chains, math.inf) for _ in range(2))
    for turn in range(_ROUNDS + 1):
        for name, run in chains.items():
            began = time.perf_counter(), time.process_time()
            jax.block_until_ready(run())
            if turn:  # the first one compiles
                waits[name] = min(waits[name], (time.perf_counter() - began[0]) / _CHAIN)
                works[name] = min(works[name], (time.process_time() - began[1]) / _CHAIN / cpu_count())
    speed = count * 2 * 4 * _NUMBERS / works["move"]
    exchange = max(works["many"] - works["few"], works["move"])
    return Hardware(
        products=count * 2 * _SIDE**3 / works["product"],
        memory=_machine_memory() / count,
        bandwidth=speed,
        link=count * 2 * 4 * _NUMBERS / exchange,
        network=count * 2 * 4 * _NUMBERS / exchange,
        per_node=1 << 20,
        shared=True,
        latency=waits["few"] / count if count > 1 else 0.0,
    )


def _machine_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows
        return 16e9
