import numpy as np
import pytest

from framework.interop.named_weights import named_weights
from ocr.layers.db_fpn import DBFPN, AdaptiveScaleFusion, DBFPNConfig

WIDTHS = (4, 6, 8, 10)


@pytest.mark.parametrize("asf", [False, True])
def test_one_map_at_stride_four_and_the_levels(asf: bool) -> None:
    neck = DBFPN(DBFPNConfig(out_channels=16, asf=asf), WIDTHS)
    neck.set_state_dict(named_weights(neck.state_shapes()))
    rng = np.random.RandomState(0)
    maps = [
        rng.standard_normal((1, 64 // s, 32 // s, c)).astype(np.float32)
        for s, c in zip((4, 8, 16, 32), WIDTHS)
    ]
    out = neck(maps)
    assert neck.out_channels == 16 and out.fused.shape == (1, 16, 8, 16)
    assert [level.shape for level in out.levels] == [(1, 16, 8, 16), (1, 8, 4, 16), (1, 4, 2, 16)]
    assert any(name.startswith("asf.") for name in neck.state_shapes()) == asf


def test_fusion_by_hand() -> None:
    """One pixel, two levels of two channels, of which the first is let through more."""
    fusion = AdaptiveScaleFusion(4, 2)
    state = {name: np.zeros(shape, np.float32) for name, shape in fusion.state_shapes().items()}
    state["conv.weight"][0, 0, 1, 1] = 1.0  # inner channels: 1 and 0
    state["spatial_scale.0.weight"][0, 0, 1, 1] = 2.0
    state["spatial_scale.2.weight"][0, 0] = 1.0
    state["channel_scale.0.weight"][:, 0, 0, 0] = (1.0, -1.0)
    fusion.set_state_dict(state)
    x = np.array([1.0, 2.0, 3.0, 4.0], np.float32).reshape(1, 1, 1, 4)
    score = 1 / (1 + np.exp(-1.0)) + 1.0  # the spatial gate and the inner channel
    gates = 1 / (1 + np.exp(-np.array([score, score, -score, -score])))
    np.testing.assert_allclose(np.asarray(fusion(x)).ravel(), x.ravel() * gates, rtol=1e-5)
