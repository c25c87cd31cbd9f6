"""paddle.incubate.nn.memory_efficient_attention: attention by the name of a GPU kernel, as the plain mathematics."""

from __future__ import annotations

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.incubate.nn.attn_bias import AttentionBias
from framework.paddle.incubate.nn.attn_bias import BlockDiagonalCausalMask as BlockDiagonalCausalMask
from framework.paddle.incubate.nn.attn_bias import BlockDiagonalMask as BlockDiagonalMask
from framework.paddle.incubate.nn.attn_bias import LowerTriangularMask as LowerTriangularMask
from framework.paddle.nn.functional.attention import scaled_dot_product_attention


def memory_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | AttentionBias | None = None,
    p: float = 0.0,
    scale: float | None = None,
    training: bool = True,
) -> Tensor:
    """softmax(scale q k' + attn_bias) v of [N, T, heads, D]; a `scale` of None is 1 / sqrt(D)."""
    if isinstance(attn_bias, AttentionBias):
        attn_bias = attn_bias.materialize([1, 1, query.shape[1], key.shape[1]], query.dtype)
    if scale is not None:
        query = query * (scale * query.shape[-1] ** 0.5)
    return scaled_dot_product_attention(query, key, value, attn_bias, p, False, training)


_complete(__name__)
