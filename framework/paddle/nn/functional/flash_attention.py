"""paddle.nn.functional.flash_attention: attention by the name of a GPU kernel, as the plain mathematics."""

from __future__ import annotations

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)


def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    *,
    fixed_seed_offset: Tensor | None = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor | None]:
    """(softmax(q k' / sqrt(D)) v, weights) of [N, T, heads, D].

    The weights [N, heads, Tq, Tk] are those without dropout, and None unless `return_softmax`."""
    out = scaled_dot_product_attention(query, key, value, None, dropout, causal, training)
    return out, _weights(query, key, causal) if return_softmax else None


def _weights(query: Tensor, key: Tensor, causal: bool) -> Tensor:
    from framework import paddle

    q, k = query.transpose([0, 2, 1, 3]), key.transpose([0, 2, 3, 1])
    scores = paddle.matmul(q * query.shape[-1] ** -0.5, k)
    if causal:
        visible = paddle.tril(paddle.ones(scores.shape[-2:], "bool"))
        scores = paddle.where(visible, scores, paddle.full_like(scores, -float("inf")))
    return paddle.nn.functional.softmax(scores, axis=-1)


_complete(__name__)
