"""Layers with weights of 8 and 4 bits against the formulas in numpy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, ShapeError
from framework.nn import functional as F
from framework.nn.functional.lowering import platform_scope
from framework.nn.functional.quantized import quantize_rows
from framework.nn.quantized import (
    Int4Linear,
    Int8Embedding,
    Int8Linear,
    WeightScheme,
    quantize_linears,
    round_int4,
    round_int8,
)

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, dtype=np.float32)


def rounded_rows(x: np.ndarray) -> np.ndarray:
    """What inputs are on a CPU: 127 steps of the largest magnitude of a row."""
    scale = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    return np.rint(x / np.where(scale > 0, scale, 1)) * scale


def test_rounding_by_hand() -> None:
    levels, scale = round_int8(np.array([[1.27, -0.01, 0.5], [0, 0, 0]], np.float32))
    np.testing.assert_array_equal(levels, [[127, -1, 50], [0, 0, 0]])
    np.testing.assert_allclose(scale, [0.01, 0])
    levels, scale, zero = round_int4(np.array([[-0.5, 1.0, 0.0, 0.1] * 4], np.float32), 16)
    np.testing.assert_array_equal(levels[0, :4], [0, 15, 5, 6])
    assert zero[0, 0] == 5 and scale[0, 0] == np.float16(0.1)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_int8_is_the_product_of_rounded_rows(rows: int) -> None:
    x, weight, bias = normal(rows, 48), normal(24, 48), normal(24)
    layer = Int8Linear.from_weight(weight, jnp.asarray(bias))
    expected = rounded_rows(x) @ layer.dequantize().T + bias
    np.testing.assert_allclose(layer(jnp.asarray(x)), expected, rtol=1e-5, atol=1e-5)
    assert np.linalg.norm(expected - (x @ weight.T + bias)) < 0.02 * np.linalg.norm(expected)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_int4_is_the_product_of_rounded_groups(rows: int, symmetric: bool) -> None:
    x, weight = normal(rows, 64), normal(24, 64)
    layer = Int4Linear.from_weight(weight, 32, None, symmetric)
    expected = rounded_rows(x.reshape(rows, 2, 32)).reshape(rows, 64) @ layer.dequantize().T
    np.testing.assert_allclose(layer(jnp.asarray(x)), expected, rtol=1e-5, atol=1e-5)
    levels, _, zero = round_int4(weight, 32, symmetric)
    np.testing.assert_array_equal(layer.levels(), levels)
    assert (zero == 8).all() == symmetric


def test_a_row_is_the_same_alone_and_in_a_batch() -> None:
    x = jnp.asarray(normal(4, 7, 64))
    for layer in (Int8Linear.from_weight(normal(24, 64)), Int4Linear.from_weight(normal(24, 64), 16)):
        np.testing.assert_allclose(layer(x)[2, 3], layer(x[2, 3][None])[0], rtol=1e-6)


def test_no_product_of_one_row_on_a_cpu() -> None:
    layer = Int8Linear.from_weight(normal(24, 64))
    graph, params, buffers = nn.split(layer)
    text = str(
        jax.make_jaxpr(lambda p, x: nn.apply(graph, p, buffers, None, x)[0])(params, jnp.ones((1, 64)))
    )
    assert "i32[24,2]" in text and "i32[24,1] = dot_general" not in text


def test_other_platforms_leave_the_inputs_as_they_are() -> None:
    x, weight = normal(3, 64), normal(24, 64)
    for layer in (Int8Linear.from_weight(weight), Int4Linear.from_weight(weight, 16)):
        with platform_scope("other"):
            found = jax.jit(lambda x, layer=layer: layer(x))(jnp.asarray(x))
        np.testing.assert_allclose(found, x @ layer.dequantize().T, rtol=1e-5, atol=1e-5)


def test_gradients_are_those_of_the_rounded_matrix() -> None:
    x, y = jnp.asarray(normal(3, 64)), jnp.asarray(normal(3, 24))
    for layer in (Int8Linear.from_weight(normal(24, 64)), Int4Linear.from_weight(normal(24, 64), 32)):
        gradient = jax.grad(lambda x, layer=layer: (layer(x) * y).sum())(x)
        np.testing.assert_allclose(gradient, y @ layer.dequantize(), rtol=1e-5, atol=1e-5)


def test_the_order_of_inputs() -> None:
    x, levels = normal(3, 32), RNG.integers(0, 16, (8, 32)).astype(np.uint8)
    scale, zero, order = np.abs(normal(8, 2)), np.full((8, 2), 7), RNG.permutation(32)
    layer = Int4Linear.from_levels(levels, scale, zero, None, order)
    groups = np.empty(32, int)
    groups[order] = np.arange(32) // 16
    matrix = (levels.astype(np.float32) - 7) * scale[:, groups]
    np.testing.assert_array_equal(layer.levels(), levels)
    np.testing.assert_array_equal(layer.groups(), groups)
    np.testing.assert_allclose(layer.dequantize(), matrix, rtol=1e-6)
    with platform_scope("other"):
        np.testing.assert_allclose(layer(jnp.asarray(x)), x @ matrix.T, rtol=1e-4, atol=1e-4)


def test_an_embedding_in_8_bits() -> None:
    table = normal(11, 16)
    layer, x = Int8Embedding.from_weight(table), normal(1, 16)
    np.testing.assert_allclose(layer(jnp.asarray([[3, 10]])), layer.dequantize()[[3, 10]][None])
    np.testing.assert_allclose(layer.table(), layer.dequantize())
    expected = rounded_rows(x) @ layer.dequantize().T
    np.testing.assert_allclose(layer.attend(jnp.asarray(x)), expected, rtol=1e-5, atol=1e-5)
    plain = nn.Embedding(11, 16)
    np.testing.assert_allclose(
        plain.attend(jnp.asarray(x)), x @ np.asarray(plain.table()).T, rtol=1e-5, atol=1e-5
    )


class Block(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 32)
        self.up = nn.Linear(32, 64)
        self.layers = nn.LayerList([nn.Linear(64, 64), nn.Linear(64, 10, bias_attr=False)])
        self.odd = nn.Linear(9, 8)
        self.lm_head = nn.Linear(10, 10)


def test_quantize_linears() -> None:
    model = Block().eval()
    weight = np.asarray(model.layers[0].weight)
    order = list(model.state_dict())
    names = quantize_linears(model, WeightScheme(4, 32), embeddings=("embed",))
    assert names == ["embed", "up", "odd", "layers.0", "layers.1"] or set(names) == {
        *("embed", "up", "odd", "layers.0", "layers.1"),
    }
    kinds = [type(layer) for layer in (model.embed, model.up, model.layers[0], model.odd, model.lm_head)]
    assert kinds == [Int8Embedding, Int4Linear, Int4Linear, Int8Linear, nn.Linear]  # 9 inputs make no groups
    assert not model.up.training
    assert [key for key in model.state_dict() if key in order] == order
    np.testing.assert_allclose(model.layers[0].dequantize(), weight.T, atol=0.1)
    assert not any(parameter.trainable for name, parameter in model.named_parameters() if "scale" in name)
    state = model.state_dict()
    assert state["up.weight"].dtype == jnp.uint8 and state["up.weight"].shape == (1, 64, 16)


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="weights are not kept in this form"):
        quantize_linears(Block(), "int3")
    with pytest.raises(ConfigError, match="weights cannot be rounded like this"):
        WeightScheme(4, 8)
    with pytest.raises(ShapeError, match="linear_int8"):
        F.linear_int8(jnp.ones((2, 3)), jnp.ones((4, 5), jnp.int8), jnp.ones(4))
    with pytest.raises(ShapeError, match="linear_int4"):
        F.linear_int4(jnp.ones((2, 3)), jnp.ones((1, 4, 2), jnp.uint8), jnp.ones((1, 4)), jnp.ones((1, 4)))


def test_rows_of_zeros_and_large_numbers() -> None:
    levels, scale = quantize_rows(jnp.asarray([[0.0, 0.0], [1e30, -2e30]]))
    np.testing.assert_array_equal(levels, [[0, 0], [64, -127]])
    assert float(scale[0]) == 0
    assert bool(jnp.isfinite(Int8Linear.from_weight(np.zeros((3, 16), np.float32))(jnp.zeros((1, 16)))).all())
