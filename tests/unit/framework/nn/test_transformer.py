from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.dtypes import precision_scope
from framework.core.errors import ShapeError
from framework.nn import functional as F

RNG = np.random.default_rng(0)


def normal(*shape, dtype=jnp.float32):
    return jnp.asarray(RNG.standard_normal(shape), dtype)


Q, K, V = normal(2, 3, 2, 4), normal(2, 5, 2, 4), normal(2, 5, 2, 4)


def reference(q, k, v, mask=0.0):
    scores = np.einsum("nqhd,nkhd->nhqk", q, k) / np.sqrt(q.shape[-1]) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("nhqk,nkhd->nqhd", weights / weights.sum(-1, keepdims=True), v)


def test_attention_is_its_formula():
    np.testing.assert_allclose(F.scaled_dot_product_attention(Q, K, V), reference(Q, K, V), atol=1e-5)


def test_masks_of_all_types_hide_the_same_keys():
    visible = np.array([[1, 1, 0, 0, 1]], bool)
    expected = reference(Q, K, V, np.where(visible, 0, -1e9))
    masks = (jnp.asarray(visible), jnp.asarray(visible, jnp.int32), jnp.where(visible, 0.0, -1e9))
    for mask in masks:
        np.testing.assert_allclose(F.scaled_dot_product_attention(Q, K, V, mask), expected, atol=1e-5)


def test_causal_attention_sees_up_to_itself():
    q = normal(1, 4, 1, 2)
    weights = F.attention_with_weights(q, q, q, is_causal=True)[1][0, 0]
    assert (np.triu(weights, 1) == 0).all() and weights[0, 0] == 1
    longer = normal(1, 6, 1, 2)  # a cache of two keys before the queries
    weights = F.attention_with_weights(q, longer, longer, is_causal=True)[1]
    assert (np.triu(weights[0, 0], 3) == 0).all()
    np.testing.assert_allclose(
        F.scaled_dot_product_attention(q, q, q, is_causal=True),
        reference(q, q, q, np.where(np.tri(4, dtype=bool), 0, -1e9)),
        atol=1e-5,
    )


def test_a_row_without_visible_keys_is_finite():
    out = F.scaled_dot_product_attention(Q, K, V, jnp.zeros((1, 1, 1, 5), bool))
    np.testing.assert_allclose(
        out, np.broadcast_to(np.asarray(V).mean(1, keepdims=True), out.shape), atol=1e-5
    )


def test_low_precision_accumulates_in_float32():
    with precision_scope("bfloat16"):
        out = F.scaled_dot_product_attention(Q, K, V)
    assert out.dtype == jnp.float32
    np.testing.assert_allclose(out, reference(Q, K, V), atol=3e-2)
    low = F.scaled_dot_product_attention(*(a.astype(jnp.bfloat16) for a in (Q, K, V)))
    assert low.dtype == jnp.bfloat16


def test_dropout_of_attention_only_in_training():
    out = F.scaled_dot_product_attention(Q, K, V, dropout_p=0.5)
    assert not np.allclose(out, reference(Q, K, V), atol=1e-3)
    still = F.scaled_dot_product_attention(Q, K, V, dropout_p=0.5, training=False)
    np.testing.assert_allclose(still, reference(Q, K, V), atol=1e-5)


def test_names_are_paddles():
    layer = nn.TransformerDecoderLayer(4, 2, 8)
    parts = list(dict.fromkeys(name.rsplit(".", 1)[0] for name in layer.state_dict()))
    attention = ["q_proj", "k_proj", "v_proj", "out_proj"]
    assert parts == [
        *(f"self_attn.{p}" for p in attention), *(f"cross_attn.{p}" for p in attention),
        "linear1", "linear2", "norm1", "norm2", "norm3",
    ]  # fmt: skip
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2, nn.LayerNorm(4))
    assert next(iter(encoder.state_dict())) == "layers.0.self_attn.q_proj.weight"
    assert list(encoder.state_dict())[-1] == "norm.bias"


def test_the_layers_of_a_stack_start_from_other_values():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.3), 2)
    assert not np.array_equal(encoder.layers[0].linear1.weight, encoder.layers[1].linear1.weight)
    assert encoder.layers[1].dropout1.p == 0.3 and encoder.layers[1].self_attn.dropout == 0.3


def test_need_weights_returns_them():
    layer = nn.MultiHeadAttention(4, 2, need_weights=True)
    out, weights = layer(normal(2, 3, 4))
    assert out.shape == (2, 3, 4) and weights.shape == (2, 2, 3, 3)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)


def test_a_growing_cache_gives_the_causal_output_step_by_step():
    layer = nn.TransformerEncoderLayer(4, 2, 8).eval()
    x = normal(2, 3, 4)
    expected = layer(x, nn.Transformer.generate_square_subsequent_mask(3))
    cache, steps = layer.gen_cache(x), []
    for t in range(3):
        y, cache = layer(x[:, t : t + 1], None, cache)
        steps.append(y)
    np.testing.assert_allclose(jnp.concatenate(steps, 1), expected, atol=1e-5)
    assert cache.k.shape == (2, 3, 2, 2)


def test_a_decoder_with_caches_is_the_decoder():
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2, nn.LayerNorm(4)).eval()
    x, memory = normal(2, 3, 4), normal(2, 5, 4)
    expected = decoder(x, memory, nn.Transformer.generate_square_subsequent_mask(3))
    caches, steps = decoder.gen_cache(memory), []
    for t in range(3):
        y, caches = decoder(x[:, t : t + 1], memory, None, None, caches)
        steps.append(y)
    np.testing.assert_allclose(jnp.concatenate(steps, 1), expected, atol=1e-5)


@pytest.mark.parametrize("steps", [(1, 1, 1, 1), (2, 1, 1), (4,)])
def test_a_cache_of_fixed_size_gives_the_causal_output(steps):
    layer, x = nn.MultiHeadAttention(8, 2).eval(), normal(2, 4, 8)
    visible = jnp.asarray([[1, 1, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1]], bool)[:, None, None]
    past = jnp.asarray(np.tri(4, dtype=bool)) & visible[..., :4]
    for mask, want in (
        (None, layer(x, attn_mask=np.tri(4, dtype=bool))),
        (visible, layer(x, attn_mask=past)),
    ):
        cache, outputs, place = layer.gen_cache(x, 6, nn.MultiHeadAttention.FixedCache), [], 0
        for count in steps:
            out, cache = layer(x[:, place : place + count], attn_mask=mask, cache=cache)
            outputs.append(out)
            place += count
        assert cache.k.shape == cache.v.shape == (2, 6, 2, 4) and cache.place == 4
        np.testing.assert_allclose(jnp.concatenate(outputs, 1), want, atol=1e-5)


def test_an_encoder_with_caches_and_other_cache_kinds():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, normalize_before=True), 2).eval()
    x = normal(1, 2, 4)
    out, caches = encoder(x, None, encoder.gen_cache(x))
    np.testing.assert_allclose(out, encoder(x), atol=1e-6)
    assert len(caches) == 2
    attention = nn.MultiHeadAttention(4, 2)
    given = attention.gen_cache(caches[0].k, caches[0].v)
    assert isinstance(given, nn.MultiHeadAttention.Cache) and given.k is caches[0].k


def test_a_transformer_runs_from_source_to_target():
    model = nn.Transformer(4, 2, 1, 2, 8).eval()
    assert model(normal(2, 5, 4), normal(2, 3, 4)).shape == (2, 3, 4)
    parts = nn.Transformer(4, 2, custom_encoder=model.encoder, custom_decoder=model.decoder)
    assert parts.encoder is model.encoder
    mask = nn.Transformer.generate_square_subsequent_mask(2)
    assert mask.tolist() == [[0.0, -jnp.inf], [0.0, 0.0]]


def test_attrs_for_each_module():
    layer = nn.TransformerEncoderLayer(4, 2, 8, bias_attr=[False, None])
    assert layer.self_attn.q_proj.bias is None and layer.linear1.bias is not None


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: nn.MultiHeadAttention(5, 2), "MultiHeadAttention: embed_dim divides into heads"),
        (
            lambda: nn.TransformerEncoderLayer(4, 2, 8, activation="elu"),
            "TransformerEncoderLayer: unknown activation",
        ),
        (lambda: nn.TransformerEncoderLayer(4, 2, 8, weight_attr=[None] * 3), "one attr for each module"),
        (lambda: F.scaled_dot_product_attention(Q, K[..., :3], V), "attention: query and key do not agree"),
        (lambda: F.scaled_dot_product_attention(Q, K, V[:, :4]), "attention: as many values as keys"),
    ],
)
def test_errors(run, message):
    with pytest.raises(ShapeError, match=message):
        run()
