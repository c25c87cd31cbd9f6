import jax
import jax.numpy as jnp
import numpy as np

from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from ocr.layers.svtr import MLP, Attention, LightSVTR, LightSVTRConfig, SVTRBlock


def rows(n: int, length: int, dims: int) -> np.ndarray:
    return np.random.RandomState(0).standard_normal((n, length, dims)).astype(np.float32)


def test_attention_by_the_equations() -> None:
    layer = Attention(6, num_heads=2).eval()
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
    layer = Attention(4, num_heads=2).eval()
    state = named_weights(layer.state_shapes())
    layer.set_state_dict(state)
    x = rows(2, 1, 4)
    value = x @ state["qkv.weight"][:, 8:] + state["qkv.bias"][8:]
    np.testing.assert_allclose(layer(x), value @ state["proj.weight"] + state["proj.bias"], atol=1e-5)


def test_mlp_takes_its_activation() -> None:
    layer = MLP(1, 1, jax.nn.relu).eval()
    one, zero = np.ones((1, 1)), np.zeros(1)
    layer.set_state_dict({"fc1.weight": one, "fc1.bias": zero, "fc2.weight": 2 * one, "fc2.bias": zero + 1})
    assert np.asarray(layer(jnp.array([[3.0], [-3.0]]))).tolist() == [[7.0], [1.0]]


def test_block_starts_near_the_identity_and_drops_out_in_training() -> None:
    block = SVTRBlock(8, 2.0)
    x = rows(1, 5, 8)
    np.testing.assert_allclose(block.eval()(x), x, atol=0.05)
    block.set_state_dict(named_weights(block.state_shapes()))
    block.train()
    assert not np.array_equal(block(x), block(x))


def test_light_svtr_in_both_forms() -> None:
    config = LightSVTRConfig(dims=16, depth=1, local_kernel=5)
    layer, deployed = LightSVTR(config, 6).eval(), LightSVTR(config, 6, deploy=True).eval()
    layer.set_state_dict(named_weights(layer.state_shapes()))
    deployed.set_state_dict(deploy_state(layer))
    x = rows(2, 7, 6)[:, None]
    assert layer(x).shape == (2, 1, 7, 16)
    np.testing.assert_allclose(deployed(x), layer(x), atol=1e-5)
    assert {"local_conv.0.weight", "local_conv.1._mean", "skip_conv.norm.bias"} <= set(layer.state_shapes())


def test_a_guided_encoder_sends_no_gradient_back() -> None:
    x = jnp.asarray(rows(1, 3, 6)[:, None])
    for guided in (False, True):
        layer = LightSVTR(LightSVTRConfig(dims=8, depth=1, guided=guided), 6).eval()
        slope = jax.grad(lambda x, layer=layer: layer(x).sum())(x)
        assert bool((slope == 0).all()) == guided
