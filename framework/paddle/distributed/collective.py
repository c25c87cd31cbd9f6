"""Collectives among the processes that `oar launch` started; in a world of one each gives what the one process has.

All processes of a group call the same functions in the same order; framework/distributed/collectives.py moves the data.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import cast

import jax
import jax.numpy as jnp

from framework.core.errors import DeviceError
from framework.distributed import collectives
from framework.distributed.collectives import Reduction
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.methods import replace_value
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tape import no_grad
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.distributed.env import get_rank, get_world_size


class ReduceOp:
    """How values of all processes become one."""

    SUM = 0
    MAX = 1
    MIN = 2
    PROD = 3
    AVG = 4


class Group:
    """Processes that work together."""

    def __init__(self, rank: int, id: int, ranks: Sequence[int], name: str | None = None) -> None:
        self.rank, self.id, self.ranks, self.name = rank, id, list(ranks), name or f"_default_pg{id}"

    @property
    def nranks(self) -> int:
        return len(self.ranks)

    world_size = nranks

    def is_member(self) -> bool:
        return self.rank >= 0

    def get_group_rank(self, rank: int) -> int:
        return self.ranks.index(rank) if rank in self.ranks else -1

    def __repr__(self) -> str:
        return (
            f"rank: {self.rank}, nranks: {self.nranks}, id: {self.id}, ranks: {self.ranks}, name: {self.name}"
        )


class Task:
    """What a collective with `sync_op=False` returns: it is done already."""

    def wait(self) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass


_OPS: dict[int, Reduction] = {0: "sum", 1: "max", 2: "min", 3: "prod", 4: "avg"}
_groups: dict[int, Group] = {}


def _world() -> Group:
    if 0 not in _groups:
        _groups[0] = Group(get_rank(), 0, range(get_world_size()))
    return _groups[0]


def new_group(
    ranks: Sequence[int] | None = None,
    backend: str | None = None,
    timeout: datetime.timedelta = datetime.timedelta(seconds=1800),
) -> Group:
    """A group of these processes; all processes of the world call it, its members or not.

    Raises:
        DeviceError: there is no such process.
    """
    world = _world()
    members = world.ranks if ranks is None else sorted(ranks)
    if not set(members) <= set(world.ranks):
        raise DeviceError(
            "there is no such process",
            where="paddle.distributed.new_group",
            received=list(members),
            allowed=world.ranks,
        )
    rank = get_rank()
    group = Group(members.index(rank) if rank in members else -1, len(_groups), members)
    _groups[group.id] = group
    return group


def get_group(id: int = 0) -> Group | None:
    """The group of this number, or None."""
    return _world() if id == 0 else _groups.get(id)


def get_backend(group: object = None) -> str:
    """What moves data: XLA."""
    return "XLA"


def _ranks(group: Group | None) -> tuple[int, ...]:
    return tuple((group or _world()).ranks)


def _member(group: Group | None) -> bool:
    return (group or _world()).rank >= 0


def _check_member(rank: int | None, group: Group | None, where: str) -> int:
    """Raises: DeviceError, where the group has no such process."""
    ranks = _ranks(group)
    if rank not in ranks:
        raise DeviceError(
            "there is no such process",
            where=f"paddle.distributed.{where}",
            received=rank,
            allowed=list(ranks),
        )
    return rank


def _done(sync_op: bool) -> Task | None:
    return None if sync_op else Task()


def _set(target: Tensor, value: jax.Array) -> None:
    with no_grad():
        replace_value(target, wrap(value))


def _op(op: int) -> Reduction:
    if op not in _OPS:
        raise ShapeError(
            "unknown reduction",
            where="paddle.distributed",
            received=op,
            allowed="ReduceOp.SUM, MAX, MIN, PROD, AVG",
        )
    return _OPS[op]


def _get_reduce_op(reduce_op: int, func_name: str) -> int:
    """The number of a reduction, as packages pass it on. Raises: ShapeError: there is none of the number."""
    _op(reduce_op)
    return reduce_op


def all_reduce(
    tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Combine a Tensor of all processes, in place."""
    if _member(group):
        with x64():
            _set(tensor, collectives.all_reduce(tensor._value, _op(op), _ranks(group)))
    return _done(sync_op)


def reduce(
    tensor: Tensor, dst: int, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """`all_reduce` for the process `dst` only."""
    _check_member(dst, group, "reduce")
    if _member(group):
        with x64():
            total = collectives.all_reduce(tensor._value, _op(op), _ranks(group))
            if get_rank() == dst:
                _set(tensor, total)
    return _done(sync_op)


def broadcast(tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Give all processes the Tensor of `src`, in place."""
    _check_member(src, group, "broadcast")
    if _member(group):
        with x64():
            _set(tensor, collectives.broadcast(tensor._value, src, _ranks(group)))
    return _done(sync_op)


def broadcast_object_list(object_list: list[object], src: int, group: Group | None = None) -> None:
    """Give all processes the objects of `src`."""
    _check_member(src, group, "broadcast_object_list")
    if _member(group):
        ranks = _ranks(group)
        sent = object_list if get_rank() == src else None
        object_list[:] = cast("list[object]", collectives.all_gather_object(sent, ranks)[ranks.index(src)])


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Append the Tensor of each process to the list."""
    if _member(group):
        with x64():
            gathered = collectives.all_gather(tensor._value, _ranks(group))
            tensor_list += [wrap(gathered[n]) for n in range(len(gathered))]
    return _done(sync_op)


def all_gather_object(object_list: list[object], obj: object, group: Group | None = None) -> None:
    """Append the object of each process to the list."""
    if _member(group):
        object_list += collectives.all_gather_object(obj, _ranks(group))


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """`all_gather` for the process `dst` only."""
    _check_member(dst, group, "gather")
    gathered: list[Tensor] = []
    all_gather(gathered, tensor, group)
    if gather_list is not None and get_rank() == dst:
        gather_list += gathered
    return _done(sync_op)


def _check_length(tensors: Sequence[object], group: Group | None, where: str) -> None:
    """Raises: ShapeError, where a list has not one entry for each process."""
    if len(tensors) != len(_ranks(group)):
        raise ShapeError(
            "a list has one entry for each process",
            where=f"paddle.distributed.{where}",
            received=len(tensors),
            allowed=str(len(_ranks(group))),
        )


def scatter(
    tensor: Tensor,
    tensor_list: Sequence[Tensor] | None = None,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Fill `tensor` with this process's entry of the list of `src`."""
    _check_member(src, group, "scatter")
    if _member(group):
        ranks = _ranks(group)
        with x64():
            if get_rank() == src:
                _check_length(tensor_list or (), group, "scatter")
                stacked = jnp.stack([one._value for one in tensor_list or ()])
            else:
                stacked = jnp.zeros((len(ranks), *tensor.shape), tensor._value.dtype)
            _set(tensor, collectives.broadcast(stacked, src, ranks)[ranks.index(get_rank())])
    return _done(sync_op)


def scatter_object_list(
    out_object_list: list[object],
    in_object_list: Sequence[object] | None = None,
    src: int = 0,
    group: Group | None = None,
) -> None:
    """Append this process's entry of the list of `src`."""
    objects = list(in_object_list or ()) if get_rank() == src else []
    if get_rank() == src:
        _check_length(objects, group, "scatter_object_list")
    broadcast_object_list(objects, src, group)
    if _member(group):
        out_object_list.append(objects[_ranks(group).index(get_rank())])


def reduce_scatter(
    tensor: Tensor,
    tensor_list: Sequence[Tensor],
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Fill `tensor` with the combination of what all processes have for this one."""
    _check_length(tensor_list, group, "reduce_scatter")
    if _member(group):
        ranks = _ranks(group)
        with x64():
            stacked = jnp.stack([one._value for one in tensor_list])
            total = collectives.all_reduce(stacked, _op(op), ranks)
            _set(tensor, total[ranks.index(get_rank())])
    return _done(sync_op)


def alltoall(
    in_tensor_list: Sequence[Tensor],
    out_tensor_list: list[Tensor],
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Each process gives each other one Tensor."""
    _check_length(in_tensor_list, group, "alltoall")
    if _member(group):
        with x64():
            received = collectives.all_to_all([one._value for one in in_tensor_list], _ranks(group))
        out_tensor_list += [wrap(one) for one in received]
    return _done(sync_op)


def alltoall_single(
    in_tensor: Tensor,
    out_tensor: Tensor,
    in_split_sizes: Sequence[int] | None = None,
    out_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """`alltoall` of the parts of one Tensor, along its first axis.

    Raises:
        ShapeError: the parts do not make up the Tensors.
    """
    if not _member(group):
        return _done(sync_op)
    ranks, index = _ranks(group), _ranks(group).index(get_rank())
    count, length = len(ranks), in_tensor.shape[0]
    sizes = list(in_split_sizes) if in_split_sizes is not None else [length // count] * count
    if sum(sizes) != length or len(sizes) != count:
        raise ShapeError(
            "the parts do not make up the Tensor",
            where="paddle.distributed.alltoall_single",
            received=f"in_split_sizes {sizes} of {length}",
            allowed=f"{count} numbers whose sum is {length}",
        )
    with x64():
        # Parts may differ in length: each process shows its whole Tensor and how it is cut.
        lengths = collectives.all_gather(jnp.asarray([length, *sizes]), ranks).tolist()
        longest = max(row[0] for row in lengths)
        padding = [(0, longest - length)] + [(0, 0)] * (len(in_tensor.shape) - 1)
        gathered = collectives.all_gather(jnp.pad(in_tensor._value, padding), ranks)
        pieces = []
        for number, (_, *cuts) in enumerate(lengths):
            start = sum(cuts[:index])
            pieces.append(gathered[number, start : start + cuts[index]])
        _set(out_tensor, jnp.concatenate(pieces))
    return _done(sync_op)


def _pair(other: int | None, where: str) -> tuple[int, ...]:
    """The two processes of a message. Raises: DeviceError, where the other is none, or this one."""
    ranks = _world().ranks
    if other not in ranks or other == get_rank():
        raise DeviceError(
            "there is no such other process",
            where=f"paddle.distributed.{where}",
            received=other,
            allowed=[rank for rank in ranks if rank != get_rank()],
            fix="guard it with `if paddle.distributed.get_world_size() > 1`",
        )
    return tuple(sorted((other, get_rank())))


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Send to another process, which receives at the same time into a Tensor of this shape and type.

    Raises:
        DeviceError: there is no such process.
    """
    with x64():
        collectives.broadcast(tensor._value, get_rank(), _pair(dst, "send"))
    return _done(sync_op)


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Receive from another process, in place.

    Raises:
        DeviceError: there is no such process.
    """
    with x64():
        _set(tensor, collectives.broadcast(tensor._value, src, _pair(src, "recv")))
    return _done(sync_op)


def isend(tensor: Tensor, dst: int, group: Group | None = None) -> Task:
    """`send`; the task that it returns is done."""
    send(tensor, dst, group)
    return Task()


def irecv(tensor: Tensor, src: int | None = None, group: Group | None = None) -> Task:
    """`recv`; the task that it returns is done."""
    recv(tensor, 0 if src is None else src, group)
    return Task()


def barrier(group: Group | None = None) -> None:
    """Wait for all processes."""
    if _member(group):
        collectives.barrier(_ranks(group))


def wait(tensor: Tensor, group: Group | None = None, use_calc_stream: bool = True) -> None:
    """Wait until the Tensor has its values."""
    tensor._value.block_until_ready()


def gloo_init_parallel_env(rank_id: int, rank_num: int, server_endpoint: str) -> None:
    """Accepted where the world is as large as it says, which `oar launch` has started.

    Raises:
        DeviceError: it is not.
    """
    if (rank_id, rank_num) != (get_rank(), get_world_size()):
        raise DeviceError(
            "the world is another one",
            where="paddle.distributed.gloo_init_parallel_env",
            received=f"rank {rank_id} of {rank_num}",
            allowed=f"rank {get_rank()} of {get_world_size()}",
            fix=f"oar launch --nproc_per_node {rank_num} SCRIPT.py",
        )


def gloo_barrier() -> None:
    """Wait for all processes."""
    barrier()


def gloo_release() -> None:
    """Nothing to release."""


_complete(__name__)
