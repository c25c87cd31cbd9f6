import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from zoo.layers.attention import Attention

PACKED = ("qkv", "proj")


def rows(n: int, length: int, dims: int) -> np.ndarray:
    return np.random.RandomState(0).standard_normal((n, length, dims)).astype(np.float32)


def test_attention_by_the_equations() -> None:
    layer = Attention(6, 2).eval()
    state = named_weights(layer.state_shapes())
    layer.set_state_dict(state)
    x = rows(1, 4, 6)
    qkv = x[0] @ state["qkv.weight"] + state["qkv.bias"]
    heads = []
    for h in range(2):
        q, k, v = (qkv[:, 6 * part + 3 * h : 6 * part + 3 * h + 3] for part in range(3))
        scores = q @ k.T / np.sqrt(3)
        weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        heads.append(weights @ v)
    want = np.concatenate(heads, 1) @ state["proj.weight"] + state["proj.bias"]
    np.testing.assert_allclose(layer(x)[0], want, atol=1e-5)


def test_one_column_attends_to_itself() -> None:
    layer = Attention(4, 2).eval()
    state = named_weights(layer.state_shapes())
    layer.set_state_dict(state)
    x = rows(2, 1, 4)
    value = x @ state["qkv.weight"][:, 8:] + state["qkv.bias"][8:]
    np.testing.assert_allclose(layer(x), value @ state["proj.weight"] + state["proj.bias"], atol=1e-5)


@pytest.mark.parametrize("names", (("q", "kv", "out"), ("q", "k", "v", "out")))
def test_layers_of_their_own_say_what_the_packed_one_says(names: tuple[str, ...]) -> None:
    packed = Attention(6, 2).eval()
    state = named_weights(packed.state_shapes())
    packed.set_state_dict(state)
    apart = Attention(6, 2, names, linear=nn.Linear).eval()
    widths = [6 * len(name) for name in names[:-1]]
    parts = {"out": (state["proj.weight"], state["proj.bias"])}
    stops = np.cumsum(widths)[:-1]
    weights, biases = np.split(state["qkv.weight"], stops, 1), np.split(state["qkv.bias"], stops)
    parts |= {name: pair for name, *pair in zip(names, weights, biases)}
    assert list(apart.state_shapes()) == [f"{name}.{kind}" for name in names for kind in ("weight", "bias")]
    apart.set_state_dict(
        {f"{n}.{kind}": a for n, p in parts.items() for kind, a in zip(("weight", "bias"), p)}
    )
    x = rows(2, 5, 6)
    np.testing.assert_allclose(apart(x), packed(x), atol=1e-5)
    np.testing.assert_allclose(apart(x[:, 1:3], apart.keys_values(x)), packed(x)[:, 1:3], atol=1e-5)
    past = jnp.tril(jnp.ones((5, 5), bool))
    np.testing.assert_allclose(apart(x, causal=True), packed(x, visible=past), atol=1e-5)
    np.testing.assert_allclose(packed(x, visible=past)[:, :1], packed(x[:, :1]), atol=1e-5)


def test_dropout_in_training_alone() -> None:
    layer, x = Attention(4, 2, PACKED, dropout=0.5), rows(1, 6, 4)
    layer.set_state_dict(named_weights(layer.state_shapes()))
    assert not np.array_equal(layer(x), layer(x))
    np.testing.assert_array_equal(layer.eval()(x), layer(x))
