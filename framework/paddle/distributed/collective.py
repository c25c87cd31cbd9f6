"""Collectives among the processes of the world, which is one process: each gives what the one process has."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, NoReturn

from framework.core.errors import DeviceError
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.methods import replace_value
from framework.paddle._kernel.tape import no_grad
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distributed.env import alone, get_rank


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


_groups = {0: Group(0, 0, [0])}


def new_group(
    ranks: Sequence[int] | None = None,
    backend: str | None = None,
    timeout: datetime.timedelta = datetime.timedelta(seconds=1800),
) -> Group:
    """A group of these processes.

    Raises:
        DeviceError: there is no such process.
    """
    alone("new_group")
    chosen = [0] if ranks is None else list(ranks)
    if any(rank != 0 for rank in chosen):
        raise DeviceError(
            "there is no such process", where="paddle.distributed.new_group", received=chosen, allowed="[0]"
        )
    group = Group(get_rank() if chosen else -1, len(_groups), chosen)
    _groups[group.id] = group
    return group


def get_group(id: int = 0) -> Group | None:
    """The group of this number, or None."""
    return _groups.get(id)


def get_backend(group: object = None) -> str:
    """What moves data: XLA."""
    return "XLA"


def _done(sync_op: bool) -> Task | None:
    return None if sync_op else Task()


def _from_here(rank: int | None, where: str) -> None:
    alone(where)
    if rank not in (0, None):
        raise DeviceError(
            "there is no such process", where=f"paddle.distributed.{where}", received=rank, allowed="0"
        )


def _copy(source: Tensor, target: Tensor) -> None:
    with no_grad():  # type: ignore[union-attr]
        replace_value(target, source.detach())


def all_reduce(
    tensor: Tensor, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Combine a Tensor of all processes, in place."""
    alone("all_reduce")
    return _done(sync_op)


def reduce(
    tensor: Tensor, dst: int, op: int = ReduceOp.SUM, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """`all_reduce` for the process `dst` only."""
    _from_here(dst, "reduce")
    return _done(sync_op)


def broadcast(tensor: Tensor, src: int, group: Group | None = None, sync_op: bool = True) -> Task | None:
    """Give all processes the Tensor of `src`, in place."""
    _from_here(src, "broadcast")
    return _done(sync_op)


def broadcast_object_list(object_list: list[object], src: int, group: Group | None = None) -> None:
    """Give all processes the objects of `src`."""
    _from_here(src, "broadcast_object_list")


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Group | None = None, sync_op: bool = True
) -> Task | None:
    """Append the Tensor of each process to the list."""
    alone("all_gather")
    tensor_list.append(tensor.clone())
    return _done(sync_op)


def all_gather_object(object_list: list[object], obj: object, group: Group | None = None) -> None:
    """Append the object of each process to the list."""
    alone("all_gather_object")
    object_list.append(obj)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """`all_gather` for the process `dst` only."""
    _from_here(dst, "gather")
    if gather_list is not None:
        gather_list.append(tensor.clone())
    return _done(sync_op)


def _only(parts: Sequence[object] | None, where: str) -> Any:
    """The one part for the one process."""
    if parts is None or len(parts) != 1:
        raise ShapeError(
            "a list has one entry for each process",
            where=f"paddle.distributed.{where}",
            received=None if parts is None else len(parts),
            allowed="1",
        )
    return parts[0]


def scatter(
    tensor: Tensor,
    tensor_list: Sequence[Tensor] | None = None,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Fill `tensor` with this process's entry of the list of `src`."""
    _from_here(src, "scatter")
    _copy(_only(tensor_list, "scatter"), tensor)
    return _done(sync_op)


def scatter_object_list(
    out_object_list: list[object],
    in_object_list: Sequence[object] | None = None,
    src: int = 0,
    group: Group | None = None,
) -> None:
    """Append this process's entry of the list of `src`."""
    _from_here(src, "scatter_object_list")
    out_object_list.append(_only(in_object_list, "scatter_object_list"))


def reduce_scatter(
    tensor: Tensor,
    tensor_list: Sequence[Tensor],
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Fill `tensor` with the sum of what all processes have for this one."""
    alone("reduce_scatter")
    _copy(_only(tensor_list, "reduce_scatter"), tensor)
    return _done(sync_op)


def alltoall(
    in_tensor_list: Sequence[Tensor],
    out_tensor_list: list[Tensor],
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """Each process gives each other one Tensor."""
    alone("alltoall")
    out_tensor_list.append(_only(in_tensor_list, "alltoall").clone())
    return _done(sync_op)


def alltoall_single(
    in_tensor: Tensor,
    out_tensor: Tensor,
    in_split_sizes: Sequence[int] | None = None,
    out_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
) -> Task | None:
    """`alltoall` of the parts of one Tensor."""
    alone("alltoall_single")
    _copy(in_tensor, out_tensor)
    return _done(sync_op)


def _no_other(where: str) -> DeviceError:
    return DeviceError(
        "there is no other process",
        where=f"paddle.distributed.{where}",
        received="a world of one process",
        fix="guard it with `if paddle.distributed.get_world_size() > 1`",
    )


def send(tensor: Tensor, dst: int = 0, group: Group | None = None, sync_op: bool = True) -> NoReturn:
    """Send to another process.

    Raises:
        DeviceError: there is none.
    """
    raise _no_other("send")


def recv(tensor: Tensor, src: int = 0, group: Group | None = None, sync_op: bool = True) -> NoReturn:
    """Receive from another process.

    Raises:
        DeviceError: there is none.
    """
    raise _no_other("recv")


def isend(tensor: Tensor, dst: int, group: Group | None = None) -> NoReturn:
    """Send without waiting: as `send`."""
    raise _no_other("isend")


def irecv(tensor: Tensor, src: int | None = None, group: Group | None = None) -> NoReturn:
    """Receive without waiting: as `recv`."""
    raise _no_other("irecv")


def barrier(group: Group | None = None) -> None:
    """Wait for all processes."""
    alone("barrier")


def wait(tensor: Tensor, group: Group | None = None, use_calc_stream: bool = True) -> None:
    """Wait until the Tensor has its values."""
    tensor.value.block_until_ready()


def gloo_init_parallel_env(rank_id: int, rank_num: int, server_endpoint: str) -> None:
    """Accepted for a world of one."""
    _from_here(rank_num - 1, "gloo_init_parallel_env")


def gloo_barrier() -> None:
    """Wait for all processes."""
    alone("gloo_barrier")


def gloo_release() -> None:
    """Nothing to release."""
