"""paddle.incubate: what programs written for Paddle use of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework import paddle
from framework.paddle._kernel.arguments import Integers
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.geometric import segment_max as segment_max
from framework.paddle.geometric import segment_mean as segment_mean
from framework.paddle.geometric import segment_min as segment_min
from framework.paddle.geometric import segment_sum as segment_sum
from framework.paddle.geometric import send_u_recv as _send_u_recv
from framework.paddle.incubate import autograd as autograd
from framework.paddle.incubate import optimizer as optimizer
from framework.paddle.incubate.graphs import graph_khop_sampler as graph_khop_sampler
from framework.paddle.incubate.graphs import graph_reindex as graph_reindex
from framework.paddle.incubate.graphs import graph_sample_neighbors as graph_sample_neighbors
from framework.paddle.incubate.optimizer import LookAhead as LookAhead
from framework.paddle.incubate.optimizer import ModelAverage as ModelAverage


def graph_send_recv(
    x: Tensor,
    src_index: Tensor,
    dst_index: Tensor,
    pool_type: str = "sum",
    out_size: Integers | None = None,
    name: str | None = None,
) -> Tensor:
    """`paddle.geometric.send_u_recv` under its older name."""
    return _send_u_recv(x, src_index, dst_index, pool_type, out_size)


def softmax_mask_fuse(x: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """softmax(x + mask) over the last axis; XLA fuses it."""
    return paddle.nn.functional.softmax(x + mask)


@checked
def softmax_mask_fuse_upper_triangle(x: Tensor) -> Tensor:
    """softmax over the last axis of [B, H, T, T] where each row sees the columns up to its own."""
    rows, columns = x.shape[-2:]
    seen = paddle.tril(paddle.ones([rows, columns], "bool"))
    return paddle.nn.functional.softmax(paddle.where(seen, x, paddle.full_like(x, -10000.0)))


@checked
def identity_loss(x: Tensor, reduction: str | int = "none") -> Tensor:
    """x, its sum (0), its mean (1): the loss itself."""
    kinds = ("sum", "mean", "none")
    kind: Any = kinds[reduction] if reduction in (0, 1, 2) else reduction
    if kind not in kinds:
        raise ShapeError(
            "identity_loss: no such reduction", received=repr(reduction), allowed="sum, mean, none, 0, 1, 2"
        )
    return x if kind == "none" else getattr(x, kind)()


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
