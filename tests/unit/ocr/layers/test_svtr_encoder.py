import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from ocr.layers.svtr import SVTREncoder, SVTREncoderConfig


def row(length: int, channels: int = 16) -> np.ndarray:
    return np.random.RandomState(0).standard_normal((2, 1, length, channels)).astype(np.float32)


@pytest.mark.parametrize("kernel_size", [(1, 3), (3, 3)])
@pytest.mark.parametrize("length", [1, 7])
def test_both_forms(kernel_size: tuple[int, int], length: int) -> None:
    config = SVTREncoderConfig(dims=12, depth=1, hidden_dims=8, kernel_size=kernel_size)
    layer, deployed = SVTREncoder(config, 16).eval(), SVTREncoder(config, 16, deploy=True).eval()
    layer.set_state_dict(named_weights(layer.state_shapes()))
    deployed.set_state_dict(deploy_state(layer))
    out = np.asarray(layer(row(length)))
    assert layer.out_channels == 12 and out.shape == (2, 1, length, 12) and out.std() > 0.01
    np.testing.assert_allclose(deployed(row(length)), out, atol=1e-5)
    shapes = layer.state_shapes()
    assert shapes["conv4.conv.weight"] == (2, 32, *kernel_size)
    assert {"conv1.norm._mean", "svtr_block.0.mixer.qkv.weight", "conv1x1.conv.weight", "norm.bias"} <= set(
        shapes
    )


def test_the_input_stands_first_in_what_is_fused() -> None:
    """With the attention branch at 0 the result is swish(swish(sum of the input's first channel))."""
    layer = SVTREncoder(SVTREncoderConfig(dims=1, depth=1, hidden_dims=8), 8).eval()
    state = {name: np.zeros(shape) for name, shape in layer.state_shapes().items()}
    for name in ("conv4", "conv1x1"):
        state |= {f"{name}.norm._variance": np.full(1, 1 - 1e-5), f"{name}.norm.weight": np.ones(1)}
    state["conv4.conv.weight"][0, 0, 0] = [0, 1, 10]
    state["conv1x1.conv.weight"][:] = 1
    layer.set_state_dict(state)
    x = np.zeros((1, 1, 2, 8), np.float32)
    x[0, 0, :, 0] = [0.3, 0.2]
    fused = np.array([0.3 + 2.0, 0.2])
    for _ in range(2):
        fused = fused / (1 + np.exp(-fused))
    np.testing.assert_allclose(np.asarray(layer(x))[0, 0, :, 0], fused, rtol=1e-5)


def test_a_guided_encoder_sends_no_gradient_back() -> None:
    x = jnp.asarray(row(3))
    for guided in (False, True):
        layer = SVTREncoder(SVTREncoderConfig(dims=8, depth=1, hidden_dims=8, guided=guided), 16).eval()
        slope = jax.jit(jax.grad(lambda x, layer=layer: layer(x).sum()))(x)
        assert bool((slope == 0).all()) == guided
