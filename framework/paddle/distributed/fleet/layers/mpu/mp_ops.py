"""Operations that exchange activations among the processes of a tensor-parallel group, with their gradients.

Each is the transpose of another one, as Megatron-LM has them (arXiv 1909.08053): a copy's gradients are summed, a sum's
are copied, what is cut is joined.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from framework.distributed import collectives
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.autograd import PyLayer
from framework.paddle.distributed.collective import Group, get_group
from framework.paddle.distributed.env import get_rank
from framework.paddle.nn import functional as F


def _ranks(group: Group | None) -> tuple[int, ...]:
    return tuple((group or get_group(0)).ranks)  # type: ignore[union-attr]


def _sum(tensor: Tensor, group: Group | None) -> Tensor:
    with x64():
        return wrap(collectives.all_reduce(tensor._value, "sum", _ranks(group)))


def _join(tensor: Tensor, group: Group | None) -> Tensor:
    """The parts of all processes along the last axis."""
    with x64():
        gathered = collectives.all_gather(tensor._value, _ranks(group))
        moved = gathered.transpose(*range(1, gathered.ndim - 1), 0, gathered.ndim - 1)
        return wrap(moved.reshape(*tensor.shape[:-1], -1))


def _cut(tensor: Tensor, group: Group | None) -> Tensor:
    """The part of this process along the last axis."""
    ranks = _ranks(group)
    width = tensor.shape[-1] // len(ranks)
    start = ranks.index(get_rank()) * width
    return wrap(tensor._value[..., start : start + width])


class _Copy(PyLayer):
    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Tensor:
        tensor, group = args
        ctx.group = group
        return wrap(tensor._value)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Tensor:
        return _sum(args[0], ctx.group)


class _Reduce(PyLayer):
    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Tensor:
        tensor, group = args
        return _sum(tensor, group)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Tensor:
        return args[0]


class _Concat(PyLayer):
    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Tensor:
        tensor, group = args
        ctx.group = group
        return _join(tensor, group)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Tensor:
        return _cut(args[0], ctx.group)


class _Split(PyLayer):
    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Tensor:
        tensor, group = args
        ctx.group = group
        return _cut(tensor, group)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Tensor:
        return _join(args[0], ctx.group)


def _c_identity(tensor: Tensor, group: Group | None = None) -> Tensor:
    """The Tensor; the gradient is the sum over the group."""
    return _Copy.apply(tensor, group)


def _mp_allreduce(
    tensor: Tensor,
    op: int = 0,
    group: Group | None = None,
    use_calc_stream: bool = True,
    use_model_parallel: bool = True,
) -> Tensor:
    """The sum over the group; the gradient is that of the sum."""
    return _Reduce.apply(tensor, group)


def _c_concat(tensor: Tensor, group: Group | None = None) -> Tensor:
    """The parts of the group joined along the last axis; the gradient is cut."""
    return _Concat.apply(tensor, group)


def _c_lookup_table(
    table: Tensor, index: Tensor, start_index: int = 0, vocab_size: int = -1, name: str | None = None
) -> Tensor:
    """The rows of a table that holds those from `start_index` on; zeros for what other processes hold."""
    with x64():
        local = index._value - start_index
        inside = (local >= 0) & (local < table.shape[0])
        rows = wrap(jnp.where(inside, local, 0))
    vectors = F.embedding(rows, table)
    return vectors * wrap(inside[..., None].astype(vectors._value.dtype))


def _c_split(tensor: Tensor, group: Group | None = None) -> Tensor:
    """This process's part along the last axis; the gradient is joined."""
    return _Split.apply(tensor, group)
