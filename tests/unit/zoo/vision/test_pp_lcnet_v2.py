import numpy as np
import pytest

from framework import nn
from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state
from zoo.vision.pp_lcnet_v2 import STAGES, DepthwiseSeparable, PPLCNetV2, PPLCNetV2Config, Stage


def count(model: nn.Layer) -> int:
    return sum(int(np.prod(shape)) for shape in model.state_shapes().values())


def test_the_deploy_form_has_the_size_of_the_documents() -> None:
    # PaddleClas docs/zh_CN/models/ImageNet1k/PP-LCNetV2.md: 6.6 M
    assert round(count(PPLCNetV2(PPLCNetV2Config("pplcnetv2_base", deploy=True))) / 1e6, 1) == 6.6


def test_branches_by_hand() -> None:
    """One pixel: 5x5, 3x3 and 1x1 with 1 at the centre sum to 3 x, ReLU, the last 1x1 passes it on, x is added."""
    block = DepthwiseSeparable(Stage(8, 5, branches=True, shortcut=True), 8, 8).eval()
    assert {n for n, p in block.named_parameters() if not p.trainable} == {"dw_conv.weight", "dw_conv.bias"}
    state = {name: np.zeros(shape) for name, shape in block.state_shapes().items()}
    for name, array in state.items():
        if name.endswith("_variance"):
            array += 1 - 1e-5
        elif name.endswith("bn.weight"):
            array += 1
        elif name.startswith("dw_conv_list") and array.ndim == 4:
            array[:, 0, array.shape[2] // 2, array.shape[2] // 2] = 1
    state["pw_conv.conv.weight"][:, :, 0, 0] = np.eye(8)
    state["dw_conv.bias"] += 99  # the deploy form's, which nothing uses
    block.set_state_dict(state)
    x = np.array([1.0, -1.0, 0, 0, 0, 0, 0, 0.5], np.float32).reshape(1, 1, 1, 8)
    np.testing.assert_allclose(block(x), 3 * np.maximum(x, 0) + x, rtol=1e-5)


def test_no_1x1_branch_and_no_shortcut_with_a_stride() -> None:
    strided = DepthwiseSeparable(Stage(8, 5, branches=True, shortcut=True), 8, 8, stride=2)
    assert len(strided.dw_conv_list) == 2 and not strided.shortcut
    assert not DepthwiseSeparable(Stage(16, 5, branches=True, shortcut=True), 8, 16).shortcut


@pytest.mark.parametrize(("stage", "stride"), [(STAGES[0], 2), (STAGES[2], 1), (STAGES[3], 2)])
def test_deploy_form(stage: Stage, stride: int) -> None:
    block, deployed = (DepthwiseSeparable(stage, 8, 16, stride, deploy).eval() for deploy in (False, True))
    block.set_state_dict(named_weights(block.state_shapes()))
    deployed.set_state_dict(deploy_state(block))
    x = np.random.RandomState(0).standard_normal((2, 7, 9, 8)).astype(np.float32)
    want = np.asarray(block(x))
    assert want.std() > 0.01
    np.testing.assert_allclose(deployed(x), want, atol=1e-6)
