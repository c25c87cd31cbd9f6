import numpy as np

from ocr.layers.pyramid import RSEFPN, RSEFPNConfig

WIDTHS = (4, 6, 8, 10)


def features(height: int, width: int) -> list[np.ndarray]:
    rng = np.random.RandomState(0)
    shapes = [(1, height // s, width // s, c) for s, c in zip((4, 8, 16, 32), WIDTHS)]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def test_one_map_at_stride_four_and_the_levels() -> None:
    neck = RSEFPN(RSEFPNConfig(out_channels=16), WIDTHS).eval()
    out = neck(features(64, 96))
    assert neck.out_channels == 16 and out.fused.shape == (1, 16, 24, 16)
    assert [level.shape for level in out.levels] == [(1, 16, 24, 16), (1, 8, 12, 16), (1, 4, 6, 16)]
    assert neck(features(32, 32)).fused.shape == (1, 8, 8, 16)
    deployed = RSEFPN(RSEFPNConfig(out_channels=16), WIDTHS, deploy=True)
    assert deployed.state_shapes() == neck.state_shapes()
    assert {"ins_conv.0.in_conv.weight", "inp_conv.3.se_block.conv2.bias"} <= set(neck.state_shapes())


def test_levels_and_their_order_by_hand() -> None:
    """Kernels that pass their first channel on; every gate is 1/2, so that a layer multiplies by 3/2."""
    neck = RSEFPN(RSEFPNConfig(out_channels=16), (1, 1, 1, 1)).eval()
    state = {name: np.zeros(shape) for name, shape in neck.state_shapes().items()}
    for level in range(4):
        state[f"ins_conv.{level}.in_conv.weight"][:] = 1
        state[f"inp_conv.{level}.in_conv.weight"][:, 0, 1, 1] = 1
    neck.set_state_dict(state)
    maps = [np.full((1, 8 >> i, 8 >> i, 1), 10.0**i, np.float32) for i in range(4)]
    laterals = [1.5, 15.0, 150.0, 1500.0]
    sums = np.cumsum(laterals[::-1])  # 1500, 1650, 1665, 1666.5: from the coarsest level down
    fused = np.asarray(neck(maps).fused)
    np.testing.assert_allclose(fused, np.broadcast_to(np.repeat(1.5 * sums, 4), (1, 8, 8, 16)), rtol=1e-6)
