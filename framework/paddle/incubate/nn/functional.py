"""paddle.incubate.nn.functional: what Paddle computes by kernels fused by hand for GPUs, as the plain mathematics.

XLA fuses it. The formulas are those of Paddle's documentation (paddle/incubate/nn/functional of 2.6.2).
"""

from __future__ import annotations

from framework import paddle
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import complete as _complete
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


def fused_rms_norm(
    x: Tensor,
    norm_weight: Tensor,
    norm_bias: Tensor | None,
    epsilon: float,
    begin_norm_axis: int,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    quant_scale: float = -1,
    quant_round_type: int = 0,
    quant_max_bound: float = 0,
    quant_min_bound: float = 0,
) -> tuple[Tensor, Tensor]:
    """x + bias + residual divided by its root mean square over the axes from `begin_norm_axis` on, times the weight,
    and the sum itself, which is the next layer's residual.

    Raises:
        ShapeError: `quant_scale` asks for integers.
    """
    _refuse_integers("fused_rms_norm", quant_scale)
    total = _sum(x, bias, residual)
    axes, wide = list(range(begin_norm_axis % x.ndim, x.ndim)), _wide(total)
    out = wide * paddle.rsqrt(paddle.mean(wide * wide, axes, keepdim=True) + epsilon)
    return _affine(out, norm_weight, norm_bias, axes).astype(x.dtype), total


def fused_layer_norm(
    x: Tensor,
    norm_weight: Tensor | None,
    norm_bias: Tensor | None,
    epsilon: float,
    residual_alpha: float = 1.0,
    begin_norm_axis: int = 1,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    quant_scale: float = -1,
    quant_round_type: int = 0,
    quant_max_bound: float = 0,
    quant_min_bound: float = 0,
) -> tuple[Tensor, Tensor]:
    """layer_norm(x + bias + residual_alpha * residual) over the axes from `begin_norm_axis` on, and the sum itself,
    which is the next layer's residual; without weight and bias of the norm the sum alone.

    Raises:
        ShapeError: `quant_scale` asks for integers.
    """
    _refuse_integers("fused_layer_norm", quant_scale)
    total = _sum(x, bias, None if residual is None else residual * residual_alpha)
    if norm_weight is None and norm_bias is None:
        return total, total
    axes, wide = list(range(begin_norm_axis % x.ndim, x.ndim)), _wide(total)
    wide = wide - paddle.mean(wide, axes, keepdim=True)
    out = wide * paddle.rsqrt(paddle.mean(wide * wide, axes, keepdim=True) + epsilon)
    return _affine(out, norm_weight, norm_bias, axes).astype(x.dtype), total


def fused_rotary_position_embedding(
    q: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    sin: Tensor | None = None,
    cos: Tensor | None = None,
    position_ids: Tensor | None = None,
    use_neox_rotary_style: bool = True,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Turn the pairs of each head of [N, T, heads, D] by the angle of its position; what is None stays None.

    Args:
        sin: sine and cosine of the angles, [T, D] or [1, T, 1, D]. None: pair i of position t is turned by
            t / 10000^(2i / D).
        position_ids: [N, T], which row of `sin` and `cos` each token has; None: its own.
        use_neox_rotary_style: a pair is two neighbours; False: number i of the first half and of the second.

    Raises:
        ShapeError: only one of `sin` and `cos`.
    """
    if (sin is None) != (cos is None):
        raise ShapeError("sin and cos go together", where="fused_rotary_position_embedding")
    size = q.shape[-1]
    if sin is None or cos is None:
        sin, cos = _waves(q.shape[1] if position_ids is None else int(position_ids.max()) + 1, size)
    sine, cosine = (_of_positions(table, q.shape[1], position_ids) for table in (sin, cos))

    def turn(x: Tensor | None) -> Tensor | None:
        if x is None:
            return None
        wide = _wide(x)
        if use_neox_rotary_style:
            crossed = paddle.stack([-wide[..., 1::2], wide[..., 0::2]], -1).reshape(x.shape)
        else:
            crossed = paddle.concat([-wide[..., size // 2 :], wide[..., : size // 2]], -1)
        return (wide * cosine + crossed * sine).astype(x.dtype)

    return turn(q), turn(k), turn(v)  # type: ignore[return-value]


def _waves(length: int, size: int) -> tuple[Tensor, Tensor]:
    """Sine and cosine of the angles of the first `length` positions, [length, D]; the two of a pair are neighbours."""
    rates = 1.0 / 10000.0 ** (paddle.arange(0, size, 2, dtype="float32") / size)
    angles = paddle.arange(length, dtype="float32").unsqueeze(1) * rates.unsqueeze(0)
    angles = paddle.repeat_interleave(angles, 2, 1)
    return paddle.sin(angles), paddle.cos(angles)


def _of_positions(table: Tensor, length: int, positions: Tensor | None) -> Tensor:
    """The rows of a table that the tokens have, as [N or 1, T, 1, D]."""
    size = table.shape[-1]
    rows = _wide(table).reshape([-1, size])
    if positions is None:
        return rows[:length].reshape([1, length, 1, size])
    return paddle.gather(rows, positions.reshape([-1])).reshape([*positions.shape, 1, size])


def _wide(x: Tensor) -> Tensor:
    """At least 32 bits, in which Paddle's kernels compute."""
    return x if x.dtype in (paddle.float32, paddle.float64) else x.astype("float32")


def _sum(x: Tensor, *terms: Tensor | None) -> Tensor:
    for term in terms:
        x = x if term is None else x + term
    return x


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, axes: list[int]) -> Tensor:
    sizes = [x.shape[axis] for axis in axes]
    x = x if weight is None else x * weight.reshape(sizes)
    return x if bias is None else x + bias.reshape(sizes)


def _refuse_integers(where: str, quant_scale: float) -> None:
    if quant_scale > 0:
        raise ShapeError(
            "no integers come out of this norm here",
            where=where,
            received=f"quant_scale={quant_scale}",
            allowed="quant_scale=-1",
            fix="use paddle.quantization for a model with integers",
        )


def _activate(name: str, x: Tensor) -> Tensor:
    activations = {"relu": F.relu, "gelu": F.gelu, "none": lambda values: values}
    if name not in activations:
        raise ShapeError(
            "no such activation", where="paddle.incubate.nn", received=name, allowed=", ".join(activations)
        )
    return activations[name](x)


_complete(__name__)
