import jax
import numpy as np
import pytest

from framework import hub, nn
from framework.core.errors import ConfigError
from framework.interop.weights.match import from_torch
from tests.family import eval_shapes, family
from zoo.contracts import Feature, build_backbone
from zoo.vision.resnet import VARIANTS, Block, ResNet, ResNetConfig, Size


def count(model: nn.Layer) -> int:
    return sum(int(np.prod(parameter.shape)) for parameter in model.parameters())


def test_without_the_first_projection_the_count_is_torchvision_s() -> None:
    assert count(ResNet(ResNetConfig("resnet18", project_first=False))) == 11_689_512
    assert count(ResNet(ResNetConfig("resnet34", project_first=False))) == 21_797_672
    # A bottleneck has to project: 64 channels become 256.
    assert count(ResNet(ResNetConfig("resnet50", project_first=False))) == 25_557_032


@pytest.mark.parametrize("variant", family(VARIANTS))
def test_shapes_of_every_variant(variant: str) -> None:
    assert eval_shapes(ResNet(ResNetConfig(variant)), (1, 224, 224, 3)) == [(1, 1000)]
    model = build_backbone(ResNetConfig(variant))
    assert [feature.stride for feature in model.features] == [4, 8, 16, 32]
    assert eval_shapes(model, (2, 97, 64, 3)) == [(2, -(-97 // s), 64 // s, c) for c, s in model.features]


def test_output_stride_dilates() -> None:
    def dilations(output_stride: int, grid: tuple[int, ...] = (1, 1, 1)) -> tuple[list[int], list[int]]:
        model = ResNet(ResNetConfig("resnet50_vd", 0, output_stride, grid))
        strides = [feature.stride for feature in model.features]
        return strides, [block.conv1.conv.dilation for block in model.blocks]  # type: ignore[attr-defined]

    assert dilations(32) == ([4, 8, 16, 32], [1] * 16)
    assert dilations(16) == ([4, 8, 16, 16], [1] * 13 + [2] * 3)
    assert dilations(8, (1, 2, 4)) == ([4, 8, 8, 8], [1] * 7 + [2] * 6 + [4, 8, 16])
    model = ResNet(ResNetConfig("resnet18", 0, output_stride=8))
    assert model.features == (Feature(64, 4), Feature(128, 8), Feature(256, 8), Feature(512, 8))
    assert eval_shapes(model, (1, 33, 64, 3)) == [
        (1, 9, 16, 64),
        (1, 5, 8, 128),
        (1, 5, 8, 256),
        (1, 5, 8, 512),
    ]


@pytest.mark.parametrize(("variant", "width"), [("resnet18", 64), ("resnet18_vd", 32)])
def test_any_number_of_channels(variant: str, width: int) -> None:
    model = ResNet(ResNetConfig(variant, num_classes=0, in_channels=5))
    assert model.state_shapes()["stem.0.conv.weight"][:2] == (width, 5)
    assert eval_shapes(model, (1, 64, 64, 5))[-1] == (1, 2, 2, 512)


def test_every_variant_has_weights() -> None:
    models = [item.model for item in hub.entries().values() if item.family == "ResNet"]
    assert {model["type"] for model in models} == {"ResNet"}
    assert {model["variant"] for model in models} == set(VARIANTS)


def test_one_pixel() -> None:
    graphdef, params, buffers = nn.split(ResNet(ResNetConfig("resnet18", num_classes=3)).eval())
    out = jax.jit(lambda x: nn.apply(graphdef, params, buffers, None, x)[0])(
        np.ones((1, 1, 1, 3), np.float32)
    )
    assert out.shape == (1, 3) and np.isfinite(out).all()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ResNetConfig("resnet50vd"), r"unknown variant of ResNet[\s\S]*resnext50_32x4d[\s\S]*resnet50_vd"),
        (ResNetConfig(output_stride=4), r"no such output stride[\s\S]*received: 4[\s\S]*8, 16, 32"),
        (ResNetConfig(multi_grid=(1, 2)), r"multi_grid has too few[\s\S]*\(1, 2\)[\s\S]*3 blocks"),
    ],
)
def test_errors(config: ResNetConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ResNet(config)


def block(size: Size, stride: int, projects: bool) -> Block:
    """A block of one channel whose branch gives 0 and whose projection is the identity."""
    layer = Block(size, 1, 1, stride, 1, projects)
    state = {name: np.zeros(shape, np.float32) for name, shape in layer.state_shapes().items()}
    state |= {name: np.full(1, 1 - 1e-5, np.float32) for name in state if name.endswith("_variance")}
    if projects:
        state |= {"short.conv.weight": np.ones((1, 1, 1, 1)), "short.bn.weight": np.ones(1)}
    layer.set_state_dict(state)
    layer.eval()
    return layer


def test_shortcuts_by_hand() -> None:
    x = np.arange(1.0, 10.0, dtype=np.float32).reshape(1, 3, 3, 1)
    plain, vd = (Size((1, 1, 1, 1), 0, bottleneck=False, vd=vd) for vd in (False, True))
    np.testing.assert_allclose(block(plain, 1, False)(x), x)
    np.testing.assert_allclose(block(plain, 1, False)(-x), 0 * x)  # the ReLU stands behind the sum
    np.testing.assert_allclose(block(plain, 2, True)(x)[0, ..., 0], [[1, 3], [7, 9]], rtol=1e-6)
    # vd: means of 2x2, and of what is there at the odd edges
    np.testing.assert_allclose(block(vd, 2, True)(x)[0, ..., 0], [[3, 4.5], [7.5, 9]], rtol=1e-6)


def test_official_names_of_others_lead_to_ours() -> None:
    aliases = ResNet(ResNetConfig("resnet152", 0)).state_aliases()
    assert set(aliases.values()) == set(ResNet(ResNetConfig("resnet152", 0)).state_shapes())
    assert aliases["conv1.weight"] == "stem.0.conv.weight"
    assert aliases["conv1.conv1.norm._mean"] == "stem.0.bn._mean"
    assert aliases["layer2.0.downsample.1.bias"] == "blocks.3.short.bn.bias"
    assert aliases["res3.res3h.branch2b.norm.weight"] == "blocks.10.conv1.bn.weight"
    assert aliases["res4.res4a.short.conv.weight"] == "blocks.11.short.conv.weight"
    assert aliases["res4.res4b35.branch2c.conv.weight"] == "blocks.46.conv2.conv.weight"
    assert aliases["layer4.2.bn3._variance"] == "blocks.49.conv2.bn._variance"


def test_official_names_of_vd() -> None:
    aliases = ResNet(ResNetConfig("resnet200_vd")).state_aliases()
    assert aliases["conv1.3.weight"] == aliases["conv1_2._conv.weight"] == "stem.1.conv.weight"
    assert aliases["bn1.weight"] == aliases["conv1.conv1_3.norm.weight"] == "stem.2.bn.weight"
    assert aliases["layer1.0.downsample.2.weight"] == aliases["bb_0_0.short._batch_norm.weight"]
    assert aliases["res2.res2a.short.conv.weight"] == "blocks.0.short.conv.weight"
    assert aliases["res3.res3a.short.conv.conv.weight"] == "blocks.3.short.conv.weight"
    assert (
        aliases["res3.res3l.branch2a.conv.weight"] == "blocks.14.conv0.conv.weight"
    )  # only stage 4 is numbered


def test_a_torchvision_state_dict_loads() -> None:
    model = ResNet(ResNetConfig("resnet18", num_classes=512, project_first=False))
    theirs = {
        ours: alias for alias, ours in model.state_aliases().items() if alias.startswith(("conv1.w", "bn1"))
    }
    theirs |= {ours: alias for alias, ours in model.state_aliases().items() if alias.startswith("layer")}
    state = {}
    for number, (name, shape) in enumerate(model.state_shapes().items()):
        name = theirs.get(name, name).replace("_mean", "running_mean").replace("_variance", "running_var")
        state[name] = np.full(shape, number, np.float32)
    state["bn1.num_batches_tracked"] = np.array(7)
    state["fc.weight"] = np.arange(512 * 512, dtype=np.float32).reshape(512, 512)
    assert "layer2.0.downsample.1.running_mean" in state
    model.set_state_dict(from_torch(state, model))
    np.testing.assert_array_equal(model.fc.weight, state["fc.weight"].T)
    np.testing.assert_array_equal(model.stem[0].bn._mean, state["bn1.running_mean"])
    np.testing.assert_array_equal(model.blocks[7].conv1.conv.weight, state["layer4.1.conv2.weight"])
