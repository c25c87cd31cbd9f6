"""paddle.incubate.nn: the fused layers compute what the plain ones of paddle.nn do."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle


@pytest.mark.parametrize("before", [False, True])
def test_an_encoder_layer_is_the_plain_one(before: bool) -> None:
    paddle.seed(1)
    plain = paddle.nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation="gelu", normalize_before=before)
    fused = paddle.incubate.nn.FusedTransformerEncoderLayer(8, 2, 16, 0.0, "gelu", normalize_before=before)
    attention, ours = plain.self_attn, fused.fused_attn
    weights = [
        p.weight.numpy().T.reshape(2, 4, 8) for p in (attention.q_proj, attention.k_proj, attention.v_proj)
    ]
    ours.qkv_weight.set_value(np.stack(weights))
    ours.linear_weight.set_value(attention.out_proj.weight)
    fused.ffn._linear1_weight.set_value(plain.linear1.weight)
    fused.ffn._linear2_weight.set_value(plain.linear2.weight)
    x = paddle.randn([2, 5, 8])
    mask = paddle.to_tensor(np.triu(np.full([5, 5], -1e9, "float32"), 1))
    np.testing.assert_allclose(fused(x, mask).numpy(), plain(x, mask).numpy(), rtol=1e-5, atol=1e-5)


def test_attention_with_a_cache_is_that_of_the_whole_text() -> None:
    layer = paddle.incubate.nn.FusedMultiHeadAttention(8, 2, 0.0, 0.0, transpose_qkv_wb=True)
    layer.eval()
    x = paddle.randn([1, 3, 8])
    mask = paddle.to_tensor(np.triu(np.full([3, 3], -1e9, "float32"), 1))
    cache = paddle.zeros([2, 1, 2, 0, 4])
    steps = []
    for place in range(3):
        out, cache = layer(x[:, place : place + 1], cache=cache)
        steps.append(out.numpy())
    np.testing.assert_allclose(
        np.concatenate(steps, 1), layer(x, attn_mask=mask).numpy(), rtol=1e-5, atol=1e-5
    )


def test_linear_and_sums() -> None:
    x = paddle.randn([3, 4])
    layer = paddle.incubate.nn.FusedLinear(4, 5, transpose_weight=True)
    np.testing.assert_allclose(
        layer(x).numpy(), x.numpy() @ layer.weight.numpy().T + layer.bias.numpy(), rtol=1e-5, atol=1e-6
    )
    add = paddle.incubate.nn.FusedDropoutAdd(0.5)
    add.eval()
    np.testing.assert_allclose(add(x, x).numpy(), 2 * x.numpy(), rtol=1e-6)
    norm = paddle.incubate.nn.FusedBiasDropoutResidualLayerNorm(4, 0.0)
    expected = paddle.nn.functional.layer_norm(2 * x, [4])
    np.testing.assert_allclose(norm(x, x).numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_an_unknown_activation_says_which_there_are() -> None:
    ones = paddle.ones([2, 2])
    with pytest.raises(ValueError, match="relu, gelu, none"):
        paddle.incubate.nn.functional.fused_linear_activation(ones, ones, ones[0], activation="swish")


def test_norms_of_a_sum_give_the_sum_too() -> None:
    functional = paddle.incubate.nn.functional
    x, weight, bias = paddle.randn([2, 3, 4]), paddle.randn([4]), paddle.randn([4])
    total = x + bias + 0.5 * x
    out, residual = functional.fused_layer_norm(x, weight, bias, 1e-5, 0.5, 2, bias, x)
    np.testing.assert_allclose(residual.numpy(), total.numpy(), rtol=1e-6)
    expected = paddle.nn.functional.layer_norm(total, [4], weight, bias)
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    values = x.numpy()
    plain = values / np.sqrt((values**2).mean(-1, keepdims=True) + 1e-6) * weight.numpy()
    out, residual = functional.fused_rms_norm(x, weight, None, 1e-6, 2)
    np.testing.assert_allclose(out.numpy(), plain, rtol=1e-5, atol=1e-6)
    assert functional.fused_rms_norm(x.astype("bfloat16"), weight, None, 1e-6, 2)[0].dtype == paddle.bfloat16
    with pytest.raises(ValueError, match="quant_scale"):
        functional.fused_rms_norm(x, weight, None, 1e-6, 2, quant_scale=0.5)


@pytest.mark.parametrize("neighbours", [True, False])
def test_positions_turn_pairs(neighbours: bool) -> None:
    rotate = paddle.incubate.nn.functional.fused_rotary_position_embedding
    angle = np.arange(5)[:, None] / 10000.0 ** (np.arange(0, 4, 2) / 4)
    table = np.repeat(angle, 2, 1).astype("float32")
    query = paddle.randn([1, 3, 2, 4])
    places = paddle.to_tensor([[4, 0, 2]])
    sin, cos = paddle.to_tensor(np.sin(table)), paddle.to_tensor(np.cos(table))
    out, key, value = rotate(query, query, None, sin, cos, places, neighbours)
    x, rows = query.numpy(), table[[4, 0, 2]][None, :, None]
    pairs = [x[..., 1::2], x[..., ::2]] if neighbours else [x[..., 2:], x[..., :2]]
    crossed = np.stack([-pairs[0], pairs[1]], -1).reshape(x.shape) if neighbours else None
    crossed = np.concatenate([-pairs[0], pairs[1]], -1) if crossed is None else crossed
    np.testing.assert_allclose(out.numpy(), x * np.cos(rows) + crossed * np.sin(rows), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(key.numpy(), out.numpy())
    assert value is None
    shifted = rotate(query, position_ids=places, use_neox_rotary_style=neighbours)[0]
    np.testing.assert_allclose(shifted.numpy(), out.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="go together"):
        rotate(query, sin=sin)
