"""paddle.nn.functional.flash_attention: attention by the name of a GPU kernel, as the plain mathematics."""

from __future__ import annotations

from framework.paddle._kernel.errors import UnknownMethodError
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


def flash_attn_unpadded(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    scale: float,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    fixed_seed_offset: Tensor | None = None,
    rng_name: str = "",
    training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, None]:
    """(softmax(scale q k') v, None) of sequences one behind another [tokens, heads, D].

    Args:
        cu_seqlens_q: where each sequence begins, and the end: [sequences + 1].
        causal: each query sees the keys of its sequence up to its own position.

    Raises:
        UnknownMethodError: `return_softmax`.
    """
    if return_softmax:
        raise UnknownMethodError(
            "the weights of sequences one behind another are not given",
            where="flash_attn_unpadded.return_softmax",
            received=True,
            allowed=False,
        )
    (row, at), (column, key_at) = _places(query, cu_seqlens_q), _places(key, cu_seqlens_k)
    visible = row.unsqueeze(1) == column.unsqueeze(0)
    if causal:
        visible = visible & (at.unsqueeze(1) >= key_at.unsqueeze(0))
    q, k, v = (x.unsqueeze(0) for x in (query * (scale * query.shape[-1] ** 0.5), key, value))
    out = scaled_dot_product_attention(q, k, v, visible.unsqueeze([0, 1]), dropout, False, training)
    return out.squeeze(0), None


def _places(x: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """(number of the sequence, position in it) of each token."""
    from framework import paddle

    token = paddle.arange(x.shape[0], dtype=starts.dtype)
    sequence = paddle.searchsorted(starts, token, right=True) - 1
    return sequence, token - paddle.gather(starts, sequence)


def _weights(query: Tensor, key: Tensor, causal: bool) -> Tensor:
    from framework import paddle

    q, k = query.transpose([0, 2, 1, 3]), key.transpose([0, 2, 3, 1])
    scores = paddle.matmul(q * query.shape[-1] ** -0.5, k)
    if causal:
        visible = paddle.tril(paddle.ones(scores.shape[-2:], "bool"))
        scores = paddle.where(visible, scores, paddle.full_like(scores, -float("inf")))
    return paddle.nn.functional.softmax(scores, axis=-1)


def _select_sdp(head_dim: int) -> str:
    """ "math": the kernel of `scaled_dot_product_attention`, whatever `sdp_kernel` allows."""
    return "math"


_complete(__name__)
