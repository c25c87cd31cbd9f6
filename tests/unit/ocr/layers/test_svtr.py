import jax
import jax.numpy as jnp
import numpy as np

from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from ocr.layers.svtr import LightSVTR, LightSVTRConfig, SVTRBlock


def rows(n: int, length: int, dims: int) -> np.ndarray:
    return np.random.RandomState(0).standard_normal((n, length, dims)).astype(np.float32)


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
