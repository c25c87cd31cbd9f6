"""Collectives among processes on arrays of this process: what XLA's programs do, for code that runs step by step.

Every process of `ranks` calls the same functions in the same order. An array goes through one device of each process;
the programs are compiled once for a shape.
"""

from __future__ import annotations

import collections
import functools
import pickle
from collections.abc import Callable, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.typing import ArrayLike

from framework.core.errors import DeviceError
from framework.core.lazy import LazyModule
from framework.distributed.failures import WATCH

multihost = LazyModule("orbax.checkpoint.multihost")  # orbax takes a second to import

Ranks = tuple[int, ...]
Reduction = Literal["sum", "max", "min", "prod", "avg"]

_AXIS = "process"
_PATIENCE = 1800  # seconds, those of torch's process groups
_met: collections.Counter[Ranks] = collections.Counter()
_REDUCE: dict[str, Callable[[jax.Array], jax.Array]] = {
    "sum": lambda stacked: stacked.sum(0, dtype=stacked.dtype),
    "max": lambda stacked: stacked.max(0),
    "min": lambda stacked: stacked.min(0),
    "prod": lambda stacked: stacked.prod(0, dtype=stacked.dtype),
    "avg": lambda stacked: (stacked.sum(0) / stacked.shape[0]).astype(stacked.dtype),
}


def all_ranks() -> Ranks:
    """Of all processes of the run."""
    return tuple(range(jax.process_count()))


@functools.cache
def _mesh(ranks: Ranks) -> Mesh:
    """One device of each process. Raises: DeviceError, where a process is not there."""
    first = {device.process_index: device for device in reversed(jax.devices())}
    if missing := [rank for rank in ranks if rank not in first]:
        raise DeviceError(
            "there is no such process", where="a group of processes", received=missing, allowed=sorted(first)
        )
    return Mesh(np.array([first[rank] for rank in ranks]), (_AXIS,))


@functools.cache
def _program(ranks: Ranks, name: str) -> Callable[[jax.Array], jax.Array]:
    whole = NamedSharding(_mesh(ranks), PartitionSpec())
    if name.isdecimal():
        return jax.jit(lambda stacked: stacked[int(name)], out_shardings=whole)
    return jax.jit(_REDUCE.get(name, lambda stacked: stacked), out_shardings=whole)


def _stack(array: jax.Array, ranks: Ranks) -> jax.Array:
    """The arrays of all processes, [processes, …], each on its own device."""
    mesh = _mesh(ranks)
    device = next(device for device in mesh.devices.flat if device.process_index == jax.process_index())
    row = jax.device_put(array[None], device)
    sharding = NamedSharding(mesh, PartitionSpec(_AXIS))
    return jax.make_array_from_single_device_arrays((len(ranks), *array.shape), sharding, [row])


def _run(array: ArrayLike, ranks: Ranks, name: str) -> jax.Array:
    value = jnp.asarray(array)
    is_bool = value.dtype == jnp.bool_  # of which gloo knows no sum
    stacked = _stack(value.astype(jnp.int32) if is_bool else value, ranks)
    with WATCH.waits_for(ranks):
        result = jax.block_until_ready(_program(ranks, name)(stacked).addressable_data(0))
    return result.astype(jnp.bool_) if is_bool else result


def all_reduce(array: ArrayLike, op: Reduction = "sum", ranks: Ranks | None = None) -> jax.Array:
    """The arrays of all processes combined element by element; on every process."""
    ranks = all_ranks() if ranks is None else ranks
    return jnp.asarray(array) if len(ranks) == 1 else _run(array, ranks, op)


def all_gather(array: ArrayLike, ranks: Ranks | None = None) -> jax.Array:
    """The arrays of all processes, [processes, …], which have one shape; on every process."""
    ranks = all_ranks() if ranks is None else ranks
    return jnp.asarray(array)[None] if len(ranks) == 1 else _run(array, ranks, "gather")


def broadcast(array: ArrayLike, source: int, ranks: Ranks | None = None) -> jax.Array:
    """The array of the process `source`, whose shape and type those of the others have; on every process."""
    ranks = all_ranks() if ranks is None else ranks
    return jnp.asarray(array) if len(ranks) == 1 else _run(array, ranks, str(ranks.index(source)))


def all_to_all(arrays: Sequence[ArrayLike], ranks: Ranks | None = None) -> list[jax.Array]:
    """Of one array for each process, all of one shape: those that the processes have for this one."""
    ranks = all_ranks() if ranks is None else ranks
    gathered = all_gather(jnp.stack([jnp.asarray(one) for one in arrays]), ranks)
    return list(gathered[:, ranks.index(jax.process_index())])


def barrier(ranks: Ranks | None = None) -> None:
    """Wait until all processes are here, up to half an hour.

    The coordinator of the run counts them, so that one may come minutes after the others, from compiling, reading or
    evaluating: gloo, which joins CPUs, gives a process up that comes to a collective 30 s late.

    Raises:
        DeviceError: a process did not come.
    """
    ranks = all_ranks() if ranks is None else ranks
    if len(ranks) == 1:
        return
    _met[ranks] += 1
    wait = multihost.get_barrier_sync_fn(processes=set(ranks))
    try:
        with WATCH.waits_for(ranks):
            wait(key=f"oar_{'_'.join(map(str, ranks))}_{_met[ranks]}", timeout_ms=1000 * _PATIENCE)
    except RuntimeError as error:
        raise DeviceError(
            "the processes of the run did not meet",
            where=f"process {jax.process_index()} of {list(ranks)}",
            received=(str(error).splitlines() or [""])[0][:200],
            fix="look at the logs of the others",
        ) from error


def compile_together(lower: Callable[..., jax.stages.Lowered], *arguments: object) -> None:
    """Compile the jitted function whose `lower` this is, and which all processes call next with these arguments, and
    wait until all have done so: in its collectives none then waits for the compiler of another."""
    lower(*arguments).compile()
    barrier()


def all_gather_object(value: object, ranks: Ranks | None = None) -> list[object]:
    """The objects of all processes of this run, on every process, by pickle: they run one program."""
    ranks = all_ranks() if ranks is None else ranks
    if len(ranks) == 1:
        return [value]
    barrier(ranks)
    data = np.frombuffer(pickle.dumps(value), np.uint8)
    sizes = np.asarray(all_gather(np.int32(len(data)), ranks))
    padded = np.zeros(1 << int(sizes.max() - 1).bit_length(), np.uint8)  # few shapes, so few programs
    padded[: len(data)] = data
    rows = np.asarray(all_gather(padded, ranks))
    return [pickle.loads(row[:size].tobytes()) for row, size in zip(rows, sizes)]
