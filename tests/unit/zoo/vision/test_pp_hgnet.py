import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError
from zoo.vision.pp_hgnet import EffectiveSE, HGBlock, PPHGNet, PPHGNetConfig, Stage
from zoo.vision.pp_hgnet_v2 import PPHGNetV2, PPHGNetV2Config


def test_the_gate_by_hand() -> None:
    """The mean of 1 and 3 is 2; times 0.5, less 1, is 0; so all pixels are halved."""
    gate = EffectiveSE(1)
    gate.set_state_dict({"conv.weight": np.full((1, 1, 1, 1), 0.5), "conv.bias": np.array([-1.0])})
    x = np.array([1.0, 3.0], np.float32).reshape(1, 1, 2, 1)
    np.testing.assert_allclose(gate(x), x / 2, rtol=1e-6)


def test_a_block_by_hand() -> None:
    """One pixel, all kernels 1 at the centre: 1 -> layers give 2 and 4 (two channels), the sum of all inputs is 14."""
    block = HGBlock(2, Stage(2, 2, 1), 2, residual=True, deploy=False).eval()
    state = {name: np.zeros(shape) for name, shape in block.state_shapes().items()}
    for name, array in state.items():
        if name.endswith("_variance"):
            array += 1 - 1e-5
        elif name.endswith("bn.weight"):
            array += 1
        elif array.ndim == 4 and not name.startswith("att."):
            array[:, :, array.shape[2] // 2, array.shape[2] // 2] = 1
    block.set_state_dict(state)
    # joined 2 + 4 + 8 = 14 in both channels, halved by the sigmoid of 0, and x is added
    np.testing.assert_allclose(block(np.ones((1, 1, 1, 2), np.float32)), np.full((1, 1, 1, 2), 8), rtol=1e-4)


@pytest.mark.parametrize(
    ("model", "config"),
    [
        (PPHGNet, PPHGNetConfig("pphgnet_tiny", 0, "line")),
        (PPHGNetV2, PPHGNetV2Config("pphgnetv2_b0", 0, "line")),
    ],
)
def test_a_line_is_one_row_and_no_other_height_is_taken(model: type, config: PPHGNetConfig) -> None:
    net = model(config).eval()
    graphdef, params, buffers = nn.abstract(net)

    def row(height: int) -> tuple[int, ...]:
        x = jax.ShapeDtypeStruct((1, height, 56, 3), np.float32)
        maps, _ = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, None, x), params, buffers, x)
        return maps[0].shape

    (feature,) = net.features
    assert feature.stride == (48, 8) and row(48) == (1, 1, 7, feature.channels)
    with pytest.raises(ShapeError, match="resize the line to a height of 48"):
        row(32)
