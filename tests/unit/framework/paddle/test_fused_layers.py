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
