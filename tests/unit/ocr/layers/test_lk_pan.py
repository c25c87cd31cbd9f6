import numpy as np
import pytest

from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from ocr.layers.lk_pan import LKPAN, LKPANConfig

WIDTHS = (4, 6, 8, 10)


def features(height: int = 64, width: int = 96) -> list[np.ndarray]:
    rng = np.random.RandomState(0)
    shapes = [(1, height // s, width // s, c) for s, c in zip((4, 8, 16, 32), WIDTHS)]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("intracl", [True, False])
def test_one_map_at_stride_four_and_the_levels_in_both_forms(intracl: bool) -> None:
    neck, deployed = (LKPAN(LKPANConfig("LKPAN", 16, intracl), WIDTHS, deploy) for deploy in (False, True))
    neck.eval().set_state_dict(named_weights(neck.state_shapes()))
    deployed.eval().set_state_dict(deploy_state(neck))
    out = neck(features())
    assert neck.out_channels == 16 and out.fused.shape == (1, 16, 24, 16)
    assert [level.shape for level in out.levels] == [(1, 16, 24, 16), (1, 8, 12, 16), (1, 4, 6, 16)]
    np.testing.assert_allclose(deployed(features()).fused, out.fused, atol=1e-5 * np.abs(out.fused).max())
    assert any(name.startswith("incl4.") for name in neck.state_shapes()) == intracl
    assert neck.state_shapes()["inp_conv.0.weight"] == (4, 16, 9, 9)


def test_a_level_sees_coarser_and_finer_ones() -> None:
    """The coarsest map alone is 0: its level then holds what the finer ones give upwards, and theirs are unchanged."""
    neck = LKPAN(LKPANConfig("LKPAN", 8, False), WIDTHS).eval()
    neck.set_state_dict(named_weights(neck.state_shapes()))
    maps = features(32, 32)
    fused = np.asarray(neck([*maps[:3], np.zeros_like(maps[3])]).fused)
    coarsest = fused[..., :2]  # joined from the coarsest to the finest
    assert np.abs(coarsest).max() > 0.01
    np.testing.assert_allclose(coarsest, np.broadcast_to(coarsest[:, :1, :1], coarsest.shape))
    silent = np.asarray(neck([np.zeros_like(x) for x in maps]).fused)
    assert not silent.any()
