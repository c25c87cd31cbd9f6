import numpy as np
import pytest

from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from ocr.layers.rep_lk import (
    BRANCHES,
    DilatedReparamBlock,
    DilatedReparamConv,
    RepLKFPN,
    RepLKFPNConfig,
    RepLKPAN,
    RepLKPANConfig,
)

WIDTHS = (4, 6, 8, 10)


def features(height: int = 64, width: int = 96) -> list[np.ndarray]:
    rng = np.random.RandomState(0)
    shapes = [(1, height // s, width // s, c) for s, c in zip((4, 8, 16, 32), WIDTHS)]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("size", sorted(BRANCHES))
def test_all_branches_fit_into_the_large_kernel_and_fold_into_it(size: int) -> None:
    assert all(d * (k - 1) + 1 <= size for k, d in BRANCHES[size])
    layer, deployed = DilatedReparamBlock(3, size).eval(), DilatedReparamBlock(3, size, deploy=True).eval()
    layer.set_state_dict(named_weights(layer.state_shapes()))
    deployed.set_state_dict(layer.deploy_state())  # type: ignore[attr-defined]
    x = np.random.RandomState(1).standard_normal((1, 11, 4, 3)).astype(np.float32)
    np.testing.assert_allclose(deployed(x), layer(x), atol=1e-5)


def test_a_dilated_branch_by_hand() -> None:
    layer = DilatedReparamBlock(1, 5).eval()
    state = {name: np.zeros(shape) for name, shape in layer.state_shapes().items()}
    state |= {name: np.full(1, 1 - 1e-5) for name in state if name.endswith("_variance")}
    state["dil_conv_k3_2.weight"] = np.arange(9.0).reshape(1, 1, 3, 3)
    state["dil_bn_k3_2.weight"] = np.ones(1)
    layer.set_state_dict(state)
    x = np.zeros((1, 5, 5, 1), np.float32)
    x[0, 0, 0, 0] = 1.0  # seen by the centre through the tap at the upper left, by itself through the middle
    out = np.asarray(layer(x))[0, :, :, 0]
    assert out[2, 2] == pytest.approx(0.0) and out[0, 0] == pytest.approx(4.0)
    assert out[0, 2] == pytest.approx(3.0) and out[2, 0] == pytest.approx(1.0) and out[1, 1] == 0.0


def test_dilated_reparam_conv_in_both_forms() -> None:
    layer, deployed = DilatedReparamConv(4, 2, 9).eval(), DilatedReparamConv(4, 2, 9, deploy=True).eval()
    layer.set_state_dict(named_weights(layer.state_shapes()))
    deployed.set_state_dict(layer.deploy_state())  # type: ignore[attr-defined]
    x = np.random.RandomState(1).standard_normal((1, 5, 6, 4)).astype(np.float32)
    np.testing.assert_allclose(deployed(x), layer(x), atol=1e-5)


@pytest.mark.parametrize("kind", ["RepLKFPN", "RepLKPAN", "RepLKPAN without intracl"])
def test_necks_give_one_map_at_stride_four_and_the_levels_in_both_forms(kind: str) -> None:
    def build(deploy: bool) -> RepLKFPN | RepLKPAN:
        if kind == "RepLKFPN":
            return RepLKFPN(RepLKFPNConfig(out_channels=16, kernel_size=5), WIDTHS, deploy)
        config = RepLKPANConfig(out_channels=16, intracl=not kind.endswith("intracl"))
        return RepLKPAN(config, WIDTHS, deploy)

    neck, deployed = build(False), build(True)
    neck.eval()
    neck.set_state_dict(named_weights(neck.state_shapes()))
    deployed.eval()
    deployed.set_state_dict(deploy_state(neck))
    out, small = neck(features()), deployed(features())
    assert neck.out_channels == 16 and out.fused.shape == (1, 16, 24, 16)
    assert [level.shape for level in out.levels] == [(1, 16, 24, 16), (1, 8, 12, 16), (1, 4, 6, 16)]
    scale = float(np.abs(out.fused).max())
    np.testing.assert_allclose(small.fused, out.fused, atol=1e-5 * scale)
    assert any(name.startswith("incl4.") for name in neck.state_shapes()) == (kind == "RepLKPAN")


def test_the_smallest_image() -> None:
    neck = RepLKFPN(RepLKFPNConfig(out_channels=16, kernel_size=7), WIDTHS).eval()
    assert neck(features(32, 32)).fused.shape == (1, 8, 8, 16)
