"""paddle.distributed.stream: collectives that take whole Tensors in place of lists, and return tasks.

`use_calc_stream` says which queue of a GPU they run on; jax orders work by itself, and it changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.methods import replace_value
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tape import no_grad
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.distributed import collective
from framework.paddle.distributed.collective import Group, ReduceOp, Task

__all__ = [
    "all_gather",
    "all_reduce",
    "alltoall",
    "alltoall_single",
    "broadcast",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send",
]

Tensors = Tensor | Sequence[Tensor]


def _split(tensors: Tensors, group: Group | None, where: str) -> list[Tensor]:
    """The parts of a Tensor along its first axis, one for each process; a list as it is.

    Raises:
        ShapeError: the processes do not divide the axis.
    """
    if not isinstance(tensors, Tensor):
        return list(tensors)
    count = (group or collective._world()).nranks
    if tensors.shape[0] % count:
        raise ShapeError(
            "the first axis is not divided by the processes",
            where=f"paddle.distributed.stream.{where}",
            received=f"{list(tensors.shape)} for {count} processes",
            allowed=f"a multiple of {count}",
        )
    rows = tensors.shape[0] // count
    with x64():
        return [wrap(tensors._value[n * rows : (n + 1) * rows]) for n in range(count)]


def _fill(target: Tensor | list[Tensor], chunks: Sequence[Tensor], stacked: bool = False) -> None:
    """Put the parts into a Tensor, one after the other, or into the Tensors of a list, or into an empty list."""
    from framework import paddle

    with no_grad():
        if isinstance(target, Tensor):
            replace_value(target, paddle.stack(list(chunks)) if stacked else paddle.concat(list(chunks)))
        elif not target:
            target += chunks
        else:
            for one, chunk in zip(target, chunks, strict=True):
                replace_value(one, chunk)


def all_gather(
    tensor_or_tensor_list: Tensor | list[Tensor],
    tensor: Tensor,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """The Tensors of all processes into a list, or along the first axis of one Tensor."""
    chunks: list[Tensor] = []
    collective.all_gather(chunks, tensor, group)
    if chunks:
        _fill(tensor_or_tensor_list, chunks, stacked=not tensor.shape)
    return Task()


def all_reduce(
    tensor: Tensor,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """Combine a Tensor of all processes, in place."""
    collective.all_reduce(tensor, op, group)
    return Task()


def alltoall(
    out_tensor_or_tensor_list: Tensor | list[Tensor],
    in_tensor_or_tensor_list: Tensors,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """Each process gives each other one Tensor of a list, or one part of a Tensor."""
    received: list[Tensor] = []
    collective.alltoall(_split(in_tensor_or_tensor_list, group, "alltoall"), received, group)
    if received:
        _fill(out_tensor_or_tensor_list, received)
    return Task()


def alltoall_single(
    out_tensor: Tensor,
    in_tensor: Tensor,
    out_split_sizes: Sequence[int] | None = None,
    in_split_sizes: Sequence[int] | None = None,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """`alltoall` of parts that may differ in length."""
    collective.alltoall_single(in_tensor, out_tensor, in_split_sizes, out_split_sizes, group)
    return Task()


def broadcast(
    tensor: Tensor,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """Give all processes the Tensor of `src`, in place."""
    collective.broadcast(tensor, src, group)
    return Task()


def reduce(
    tensor: Tensor,
    dst: int = 0,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """`all_reduce` for the process `dst` only."""
    collective.reduce(tensor, dst, op, group)
    return Task()


def reduce_scatter(
    tensor: Tensor,
    tensor_or_tensor_list: Tensors,
    op: int = ReduceOp.SUM,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """Fill `tensor` with the combination of what all processes have for this one, in a list or in parts of a Tensor."""
    collective.reduce_scatter(tensor, _split(tensor_or_tensor_list, group, "reduce_scatter"), op, group)
    return Task()


def scatter(
    tensor: Tensor,
    tensor_or_tensor_list: Tensors | None = None,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """Fill `tensor` with this process's entry of the list, or part of the Tensor, of `src`."""
    chunks = None if tensor_or_tensor_list is None else _split(tensor_or_tensor_list, group, "scatter")
    collective.scatter(tensor, chunks, src, group)
    return Task()


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """`all_gather` for the process `dst` only."""
    collective.gather(tensor, gather_list, dst, group)
    return Task()


def send(
    tensor: Tensor,
    dst: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """Send to another process. Raises: DeviceError: there is no such process."""
    collective.send(tensor, dst, group)
    return Task()


def recv(
    tensor: Tensor,
    src: int = 0,
    group: Group | None = None,
    sync_op: bool = True,
    use_calc_stream: bool = False,
) -> Task:
    """Receive from another process, in place. Raises: DeviceError: there is no such process."""
    collective.recv(tensor, src, group)
    return Task()


__getattr__ = _resolver(__name__)
