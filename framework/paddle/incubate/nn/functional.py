"""paddle.incubate.nn.functional: what Paddle computes by kernels fused by hand for GPUs, as the plain mathematics.

XLA fuses it. The formulas are those of Paddle's documentation (paddle/incubate/nn/functional of 2.6.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework import paddle
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F


def fused_matmul_bias(
    x: Tensor,
    y: Tensor,
    bias: Tensor | None = None,
    transpose_x: bool = False,
    transpose_y: bool = False,
    name: str | None = None,
) -> Tensor:
    """x @ y + bias."""
    product = paddle.matmul(x, y, transpose_x, transpose_y)
    return product if bias is None else product + bias


def fused_linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    transpose_weight: bool = False,
    name: str | None = None,
) -> Tensor:
    """x @ weight + bias; `transpose_weight`: the weight is [out, in]."""
    return fused_matmul_bias(x, weight, bias, False, transpose_weight)


def fused_linear_activation(
    x: Tensor,
    y: Tensor,
    bias: Tensor,
    trans_x: bool = False,
    trans_y: bool = False,
    activation: str | None = None,
) -> Tensor:
    """activation(x @ y + bias), of "gelu", "relu" and none."""
    return _activate(activation or "none", fused_matmul_bias(x, y, bias, trans_x, trans_y))


def fused_dropout_add(
    x: Tensor,
    y: Tensor,
    p: float = 0.5,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """dropout(x) + y."""
    return F.dropout(x, p, training=training, mode=mode) + y


def fused_bias_dropout_residual_layer_norm(
    x: Tensor,
    residual: Tensor,
    bias: Tensor | None = None,
    ln_scale: Tensor | None = None,
    ln_bias: Tensor | None = None,
    dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-5,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """layer_norm(residual + dropout(x + bias)) over the last axis."""
    x = x if bias is None else x + bias
    total = residual + F.dropout(x, dropout_rate, training=training, mode=mode)
    return F.layer_norm(total, total.shape[-1:], ln_scale, ln_bias, ln_epsilon)


def fused_feedforward(
    x: Tensor,
    linear1_weight: Tensor,
    linear2_weight: Tensor,
    linear1_bias: Tensor | None = None,
    linear2_bias: Tensor | None = None,
    ln1_scale: Tensor | None = None,
    ln1_bias: Tensor | None = None,
    ln2_scale: Tensor | None = None,
    ln2_bias: Tensor | None = None,
    dropout1_rate: float = 0.5,
    dropout2_rate: float = 0.5,
    activation: str = "relu",
    ln1_epsilon: float = 1e-5,
    ln2_epsilon: float = 1e-5,
    pre_layer_norm: bool = False,
    training: bool = True,
    mode: str = "upscale_in_train",
    ring_id: int = -1,
    add_residual: bool = True,
    name: str | None = None,
) -> Tensor:
    """The feed-forward part of a Transformer layer, [N, T, E]: norm before (`pre_layer_norm`, the first) or after (the
    second) two linear maps with an activation and dropouts, and the residual."""
    out = F.layer_norm(x, x.shape[-1:], ln1_scale, ln1_bias, ln1_epsilon) if pre_layer_norm else x
    out = _activate(activation, F.linear(out, linear1_weight, linear1_bias))
    out = F.linear(F.dropout(out, dropout1_rate, training=training, mode=mode), linear2_weight, linear2_bias)
    out = F.dropout(out, dropout2_rate, training=training, mode=mode)
    out = x + out if add_residual else out
    return out if pre_layer_norm else F.layer_norm(out, out.shape[-1:], ln2_scale, ln2_bias, ln2_epsilon)


def fused_multi_head_attention(
    x: Tensor,
    qkv_weight: Tensor,
    linear_weight: Tensor,
    pre_layer_norm: bool = False,
    pre_ln_scale: Tensor | None = None,
    pre_ln_bias: Tensor | None = None,
    ln_scale: Tensor | None = None,
    ln_bias: Tensor | None = None,
    pre_ln_epsilon: float = 1e-5,
    qkv_bias: Tensor | None = None,
    linear_bias: Tensor | None = None,
    cache_kv: Tensor | None = None,
    attn_mask: Tensor | None = None,
    dropout_rate: float = 0.5,
    attn_dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-5,
    training: bool = True,
    mode: str = "upscale_in_train",
    ring_id: int = -1,
    add_residual: bool = True,
    num_heads: int = -1,
    transpose_qkv_wb: bool = False,
    name: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Self-attention with its norm, dropouts and residual, [N, T, E].

    Args:
        qkv_weight: [3, heads, D, E]; [E, 3 * E] with `transpose_qkv_wb`, which needs `num_heads`.
        qkv_bias: [3, heads, D], or [3 * E].
        cache_kv: keys and values of the positions before, [2, N, heads, T0, D]; the new one is returned second.
        attn_mask: what is added to the scores, [N, 1 or heads, T, T0 + T].

    Raises:
        ShapeError: `transpose_qkv_wb` without `num_heads`.
    """
    if transpose_qkv_wb:
        if num_heads <= 0:
            raise ShapeError(
                "transpose_qkv_wb needs num_heads", where="fused_multi_head_attention", received=num_heads
            )
        width = qkv_weight.shape[0]
        qkv_weight = paddle.transpose(qkv_weight, [1, 0]).reshape([3, num_heads, width // num_heads, width])
        qkv_bias = None if qkv_bias is None else qkv_bias.reshape([3, num_heads, width // num_heads])
    heads, size, width = qkv_weight.shape[1:]
    inner = F.layer_norm(x, x.shape[-1:], pre_ln_scale, pre_ln_bias, pre_ln_epsilon) if pre_layer_norm else x
    qkv = paddle.matmul(inner, qkv_weight.reshape([3 * heads * size, width]), transpose_y=True)
    qkv = qkv.reshape([*x.shape[:2], 3, heads, size])
    qkv = qkv if qkv_bias is None else qkv + qkv_bias
    query, key, value = paddle.transpose(qkv, [2, 0, 3, 1, 4]).unbind(0)  # [N, heads, T, D] each
    if cache_kv is not None:
        key, value = paddle.concat([cache_kv[0], key], 2), paddle.concat([cache_kv[1], value], 2)
        cache_kv = paddle.stack([key, value])
    scores = paddle.matmul(query * size**-0.5, key, transpose_y=True)
    scores = scores if attn_mask is None else scores + attn_mask
    weights = F.dropout(F.softmax(scores), attn_dropout_rate, training=training, mode=mode)
    out = paddle.transpose(paddle.matmul(weights, value), [0, 2, 1, 3]).reshape([*x.shape[:2], heads * size])
    out = F.dropout(F.linear(out, linear_weight, linear_bias), dropout_rate, training=training, mode=mode)
    out = x + out if add_residual else out
    out = out if pre_layer_norm else F.layer_norm(out, out.shape[-1:], ln_scale, ln_bias, ln_epsilon)
    return out if cache_kv is None else (out, cache_kv)


def _activate(name: str, x: Tensor) -> Tensor:
    activations = {"relu": F.relu, "gelu": F.gelu, "none": lambda values: values}
    if name not in activations:
        raise ShapeError(
            "no such activation", where="paddle.incubate.nn", received=name, allowed=", ".join(activations)
        )
    return activations[name](x)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
