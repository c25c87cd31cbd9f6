from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framework
from detection.models.dino import DINOConfig
from detection.models.higher_hrnet import HigherHRNetConfig
from detection.models.picodet import PicoDetConfig
from framework import nn
from framework.config import build, load
from framework.core.errors import ConfigError, WeightError
from framework.interop.named_weights import named_weights
from framework.workflow.convert.pdparams import export_pdparams, official_names, official_state
from framework.workflow.domain.weights import load_state_into
from framework.workflow.open.models import create_model
from nlp.models.sequence_classification import SequenceClassifierConfig
from segmentation.models.fcn import FCNConfig
from segmentation.models.unet import UNetConfig
from zoo.text.ernie import ErnieConfig
from zoo.vision.hrnet import HRNetConfig
from zoo.vision.resnet import ResNetConfig

GOLDEN = Path(__file__).resolve().parents[4] / "golden" / "data"
CASES: dict[str, tuple[Any, str]] = {
    "resnet/resnet50": (ResNetConfig("resnet50"), "paddleclas"),
    "resnet/resnet18_vision": (ResNetConfig("resnet18", project_first=False), "paddle.vision"),
    "resnet/resnext50_32x4d": (ResNetConfig("resnext50_32x4d"), "paddle.vision"),
    "resnet/resnet50_det": (ResNetConfig("resnet50", 0), "paddledet"),
    "resnet/resnet50_vd_os8": (ResNetConfig("resnet50_vd", 0), "paddleseg"),
    "hrnet/paddleseg_w18": (HRNetConfig("w18", 0), "paddleseg"),
    "hrnet/ppdet_w32_pose": (HRNetConfig("w32", 0, multi_scale_output=False), "paddledet"),
    "picodet/picodet_s": (PicoDetConfig("picodet_s"), "paddledet"),
    "detr/dino_r50": (DINOConfig(), "paddledet"),
    "keypoint/higher_hrnet_w32": (HigherHRNetConfig("w32"), "paddledet"),
}


def official_shapes(case: str) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the official network's state dict."""
    with np.load(GOLDEN / f"{case}.npz") as data:
        lines = (line.split(" ") for line in bytes(data["keys"]).decode().splitlines())
        return {name: tuple(int(n) for n in shape.split("x")) for name, shape in lines}


@pytest.mark.parametrize("case", CASES)
def test_names_and_shapes_are_those_of_the_official_network(case: str) -> None:
    config, suite = CASES[case]
    net = build(config)
    shapes = net.state_shapes()
    assert {name: shapes[own] for name, own in official_names(net, suite).items()} == official_shapes(case)


@pytest.mark.parametrize(
    ("config", "golden"),
    [(UNetConfig(2), "unet/bilinear"), (FCNConfig("hrnet_w18", 2), "hrnet_segmenters/fcn_w18")],
)
def test_names_of_segmentation_networks(config: Any, golden: str) -> None:
    with np.load(GOLDEN / f"{golden}.npz") as data:
        names = bytes(data["keys"]).decode().split()[::2]
    assert sorted(official_names(build(config), "paddleseg")) == sorted(names)


def test_names_of_ernie() -> None:
    encoder = ErnieConfig(
        vocab_size=120,
        hidden_size=48,
        num_layers=3,
        num_heads=4,
        intermediate_size=96,
        max_positions=40,
        type_vocab_size=4,
        task_types=3,
    )
    with np.load(GOLDEN / "text_encoders" / "paddle_ernie_small.npz") as data:
        lines = [
            line.split(" ") for line in bytes(data["keys.ForSequenceClassification"]).decode().splitlines()
        ]
    official = {name: tuple(int(n) for n in shape.split("x")) for name, shape in lines}
    net = build(SequenceClassifierConfig(encoder, 5))
    shapes = net.state_shapes()
    assert {name: shapes[own] for name, own in official_names(net, "paddlenlp").items()} == official


def test_values_stand_under_the_official_names() -> None:
    shapes = official_shapes("resnet/resnet18_vision")
    weights = named_weights(shapes)
    net = load_state_into(build(ResNetConfig("resnet18")), weights)
    back = official_state(net, "paddle.vision")
    assert all(np.array_equal(back[name], value) for name, value in weights.items())
    assert len(back) == len(weights)


def test_names_of_an_official_file() -> None:
    shapes = official_shapes("picodet/picodet_s")
    net = build(PicoDetConfig("picodet_s"))
    state = official_state(net, list(shapes))
    assert list(state) == list(shapes)
    twice = state["head.head_cls_list.0.bias"], state["head.head_cls0.bias"]
    assert np.array_equal(*twice)
    with pytest.raises(
        WeightError, match=r"the names do not fit PicoDet[\s\S]*without 446 entries[\s\S]*1 more: other"
    ):
        official_names(net, ["head.head_cls0.bias", "other"])


class Counter(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("index", np.arange(3, dtype=np.int32))


def test_integers_are_paddles() -> None:
    assert official_state(Counter(), "paddleclas")["index"].dtype == np.int64


def test_what_cannot_be_written() -> None:
    with pytest.raises(ConfigError, match=r"deploy form[\s\S]*deploy=False"):
        official_names(create_model("pplcnet_x0_25", deploy=True), "paddleclas")
    with pytest.raises(
        ConfigError,
        match=r"unknown suite of Paddle[\s\S]*'paddledetection'[\s\S]*paddleseg[\s\S]*did you mean",
    ):
        official_names(create_model("pplcnet_x0_25"), "paddledetection")


def test_a_configs_weights(tmp_path: Path) -> None:
    path = export_pdparams("pp_lcnet_x0_25_clothing", tmp_path)
    assert path == tmp_path / "pp_lcnet_x0_25_clothing.pdparams"
    state = framework.load(path)
    net = create_model("pp_lcnet_x0_25_clothing", pretrained=True)
    assert {name: np.asarray(value).shape for name, value in net.state_dict().items()} == {
        name: value.shape for name, value in state.items()
    }
    assert np.array_equal(state["fc.weight"], net.fc.weight)
    assert load(path.with_suffix(".yml")).value["model"].value["num_classes"].value == 10
    again = export_pdparams("pp_lcnet_x0_25_clothing", tmp_path / "b", [f"weights={path}"], names=path)
    assert all(np.array_equal(value, state[name]) for name, value in framework.load(again).items())


def test_a_pipeline_has_no_weights(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a pipeline has no weights of its own"):
        export_pdparams("pp_ocrv6_tiny", tmp_path)
    assert not list(tmp_path.iterdir())
