from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framework
import zoo
from framework.core.errors import ConfigError, HubError, InputError, WeightError
from framework.hub import entries, plain_name
from framework.workflow.open.models import create_model, list_models
from zoo.contracts import Backbone
from zoo.vision.resnet import ResNet, ResNetConfig

SHIPPED = "pp_lcnet_x0_25_clothing"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OAR_OFFLINE", "1")
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))


# -- names -------------------------------------------------------------------------------------------------------------


def test_names_lead_to_one_model_each() -> None:
    variants, weights = list_models(), list_models(pretrained=True)
    names = [*variants, *weights]
    assert len({plain_name(name) for name in variants}) == len(variants) > 150
    assert len({plain_name(name) for name in weights}) == len(weights) > 200
    both = {name for name in weights if plain_name(name) in {plain_name(variant) for variant in variants}}
    assert both  # names of weights that are those of variants, such as bert_base_chinese, mean the same model
    assert {entries()[name].model["variant"] for name in both} <= set(variants)
    assert all(plain_name(entries()[name].model["variant"]) == plain_name(name) for name in both)
    assert {"resnet50", "pplcnet_x0_25", "hrnet_w18", "csp_resnet_s", "lenet", "ernie-3.0-base-zh"} <= set(
        names
    )
    assert {SHIPPED, "resnet50_imagenet", "picodet_s_320_bccd"} <= set(names)
    assert not {"s", "w18"} & set(names)


def test_patterns() -> None:
    assert list_models("*lcnet_x0_2*") == ["pplcnet_x0_25"]
    assert list_models("PP_LCNet_x0_25*", pretrained=True) == [
        SHIPPED,
        "pp_lcnet_x0_25_doc_ori",
        "pplcnet_x0_25_imagenet",
    ]
    assert list_models("no such*") == []


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("resnet50", "resnet50"),
        ("ResNet50_vd", "resnet50_vd"),
        ("pp_lcnet_x0_25", "pplcnet_x0_25"),
        ("HRNet_W18", "w18"),
        ("resnet50_vd_ssld_imagenet", "resnet50_vd"),
    ],
)
def test_spellings(name: str, variant: str) -> None:
    net = create_model(name)
    assert net.config.variant == variant and net.config.num_classes == 1000 and net.training


def test_models_of_domains_by_the_name_of_their_weights() -> None:
    net = create_model("picodet_s_320_bccd")
    assert type(net).__name__ == "PicoDet" and net.config.num_classes == 3


def test_an_unknown_name() -> None:
    with pytest.raises(InputError, match=r"'resnet5O'[\s\S]*list_models\(pretrained=True\)[\s\S]*resnet50"):
        create_model("resnet5O")


# -- configs -----------------------------------------------------------------------------------------------------------


def test_the_config_alone_gives_a_classifier_and_without_classes_a_backbone() -> None:
    """As docs/extending.md says."""
    classifier = ResNet(ResNetConfig(variant="resnet18"))
    assert classifier.state_shapes()["fc.weight"] == (512, 1000)
    backbone = create_model("resnet18", features_only=True)
    assert isinstance(backbone, Backbone) and "fc.weight" not in backbone.state_shapes()
    assert [feature.stride for feature in backbone.features] == [4, 8, 16, 32]


def test_options_are_fields_of_the_config() -> None:
    net = create_model("resnet18", num_classes=7, in_channels=1, output_stride=8)
    assert net.state_shapes()["stem.0.conv.weight"] == (64, 1, 7, 7)
    assert net.state_shapes()["fc.bias"] == (7,) and net.features[-1].stride == 8
    with pytest.raises(ConfigError, match=r"no such option[\s\S]*num_clases=3[\s\S]*'num_classes'"):
        create_model("resnet18", num_clases=3)
    with pytest.raises(ConfigError, match=r"only backbones have features[\s\S]*LeNet[\s\S]*ResNet"):
        create_model("lenet", features_only=True)


# -- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("offline")
def test_shipped_weights() -> None:
    net = create_model(SHIPPED, pretrained=True)
    assert net.config.num_classes == 10
    state = framework.load(Path(zoo.__path__[0]) / f"classification/weights/{SHIPPED}.safetensors")
    assert np.array_equal(net.fc.weight, state["fc.weight"])
    same = create_model("pplcnet_x0_25", pretrained=SHIPPED, num_classes=10)
    assert np.array_equal(same.conv1.conv.weight, net.conv1.conv.weight)


@pytest.mark.usefixtures("offline")
def test_another_head_begins_anew_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    whole = create_model(SHIPPED, pretrained=True)
    with caplog.at_level(logging.WARNING, "oar"):
        net = create_model(SHIPPED, pretrained=True, num_classes=3)
    assert net.state_shapes()["fc.weight"] == (1280, 3)
    assert np.array_equal(net.last_conv.weight, whole.last_conv.weight)
    assert [record.getMessage() for record in caplog.records] == [
        f"{SHIPPED}: the head begins with fresh values, the weights have another number of classes than 3: "
        "fc.weight, fc.bias"
    ]


@pytest.mark.usefixtures("offline")
def test_features_of_shipped_weights() -> None:
    net = create_model(SHIPPED, pretrained=True, features_only=True)
    whole = create_model(SHIPPED, pretrained=True).state_dict()
    assert [(f.channels, f.stride) for f in net.features] == [(16, 4), (32, 8), (64, 16), (128, 32)]
    assert set(whole) - set(net.state_dict()) == {"last_conv.weight", "fc.weight", "fc.bias"}
    assert all(np.array_equal(value, whole[name]) for name, value in net.state_dict().items())


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_another_number_of_channels(channels: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What a grey image gives in its three channels, it gives in any number of them."""
    whole = create_model("stdc1", num_classes=2, width=8)
    framework.save(whole.state_dict(), tmp_path / "w.safetensors")
    net = create_model("stdc1", tmp_path / "w.safetensors", num_classes=2, width=8, in_channels=channels)
    grey = np.random.RandomState(0).standard_normal((1, 32, 32, 1)).astype(np.float32)
    first, other = (dict(one.named_sublayers())["features.0.conv"] for one in (whole, net))
    wanted = first(np.repeat(grey, 3, axis=3))
    np.testing.assert_allclose(other(np.repeat(grey, channels, axis=3)), wanted, atol=1e-5)
    assert f"made for {channels} channels: features.0.conv.weight" in caplog.text


@pytest.mark.usefixtures("offline")
def test_weights_that_are_not_here() -> None:
    with pytest.raises(HubError, match=r"ResNet50_pretrained\.pdparams: not tried, OAR_OFFLINE is set"):
        create_model("resnet50", pretrained=True)
    with pytest.raises(HubError, match=r"no such file[\s\S]*resnet50\.pth"):
        create_model("resnet50", pretrained="resnet50.pth")
    with pytest.raises(InputError, match=r"pretrained must be[\s\S]*received: 3"):
        create_model("resnet50", 3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"no weights of this model[\s\S]*vgg16_imagenet[\s\S]*<a file>"):
        create_model("vgg11", pretrained=True)
    with pytest.raises(WeightError, match="do not fit PPLCNet"):
        create_model("pplcnet_x1_0", pretrained=SHIPPED)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("name", "options", "weights"),
    [
        ("mobilenet_v1_x0_25", {}, "mobilenetv1_x0_25_imagenet"),
        ("mobilenet_v1_x0_25", {"slope": 0.1}, "mobilenetv1_x0_25_imagenet_leaky"),
        ("resnet50", {"output_stride": 8, "num_classes": 3, "in_channels": 1}, "resnet50_imagenet"),
        ("resnet18", {}, "resnet18_imagenet"),
        ("resnet18", {"project_first": False, "output_stride": 8}, "resnet18_vision_imagenet"),
        ("resnet34", {"project_first": False}, "resnet34_vision_imagenet"),
        ("mobilenetv3_large_x1_0", {"original": True}, "mobilenetv3_large_x1_0_vision_imagenet"),
    ],
)
def test_the_default_weights_are_of_these_options(name: str, options: dict[str, Any], weights: str) -> None:
    with pytest.raises(HubError, match=rf"^{weights} \(weights\)"):
        create_model(name, pretrained=True, **options)
