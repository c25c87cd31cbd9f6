import jax
import numpy as np
import pytest

from framework import nn
from tests.family import eval_shapes, family
from zoo.contracts import Feature
from zoo.vision.csp_resnet import VARIANTS, CSPResNet, CSPResNetConfig, RepVGGBlock


def count(model: nn.Layer) -> int:
    return sum(int(np.prod(parameter.shape)) for parameter in model.parameters())


@pytest.mark.parametrize("variant", VARIANTS)
def test_strides(variant: str) -> None:
    model = CSPResNet(CSPResNetConfig(variant))
    assert [feature.stride for feature in model.features] == [4, 8, 16, 32]


@pytest.mark.parametrize("variant", family(VARIANTS))
def test_shapes(variant: str) -> None:
    model = CSPResNet(CSPResNetConfig(variant))
    assert eval_shapes(model, (1, 640, 416, 3)) == [(1, 640 // s, 416 // s, c) for c, s in model.features]


def test_widths_and_depths() -> None:
    model = CSPResNet(CSPResNetConfig("x", use_alpha=False))
    assert model.features == (Feature(160, 4), Feature(320, 8), Feature(640, 16), Feature(1280, 32))
    assert [len(stage.blocks) for stage in model.stages] == [4, 8, 8, 4]  # type: ignore[attr-defined]
    assert count(model) == VARIANTS["x"].params - 24


def test_classes() -> None:
    model = CSPResNet(CSPResNetConfig("s", num_classes=7))
    assert eval_shapes(model, (2, 33, 65, 3)) == [(2, 7)]
    assert count(model) == VARIANTS["s"].params + 7 * 512 + 7


def test_one_pixel() -> None:
    graphdef, params, buffers = nn.split(CSPResNet(CSPResNetConfig("s")).eval())
    maps = jax.jit(lambda x: nn.apply(graphdef, params, buffers, None, x)[0])(
        np.ones((1, 1, 1, 3), np.float32)
    )
    assert [m.shape for m in maps] == [(1, 1, 1, c) for c in (64, 128, 256, 512)]
    assert all(np.isfinite(m).all() for m in maps)


@pytest.mark.parametrize(("alpha", "weight"), [(0.5, 0.5), (0.0, 1.0), (-2.0, 1.0), (None, 1.0)])
def test_rep_vgg_block_by_hand_and_in_deploy_form(alpha: float | None, weight: float) -> None:
    """Kernels of ones: the sum of the neighbourhood and `weight` times the pixel."""
    layer, deployed = RepVGGBlock(1, alpha is not None).eval(), RepVGGBlock(1, False, deploy=True).eval()
    state = {name: np.ones(shape, np.float32) for name, shape in layer.state_shapes().items()}
    for name in state:
        if name.endswith((".bias", "_mean")):
            state[name] = np.zeros(1, np.float32)
        elif name.endswith("_variance"):
            state[name] = np.full(1, 1 - 1e-5, np.float32)
    state["conv2.bn.bias"] = np.full(1, 4.0, np.float32)
    if alpha is not None:
        state["alpha"] = np.full(1, alpha, np.float32)
    layer.set_state_dict(state)
    deployed.set_state_dict(layer.deploy_state())  # type: ignore[attr-defined]
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)[None, :, :, None]
    y = 10 + weight * (x + 4)
    want = y / (1 + np.exp(-y))
    np.testing.assert_allclose(layer(x), want, rtol=1e-6)
    np.testing.assert_allclose(deployed(x), want, rtol=1e-6)
