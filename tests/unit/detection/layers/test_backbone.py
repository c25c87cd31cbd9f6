"""Detectors on another backbone than their own."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import numpy as np
import pytest

from detection.models import picodet
from framework.config import Kind, bind, build
from framework.core.errors import ConfigError
from framework.nn.reparam import reparameterize
from zoo.vision.csp_resnet import CSPResNet, CSPResNetConfig
from zoo.vision.resnet import ResNetConfig


def test_another_backbone_by_config() -> None:
    text = {"type": "PicoDet", "num_classes": 3, "backbone": {"type": "CSPResNet", "variant": "s"}}
    config = bind(text, Annotated[Any, Kind("model")], ("detection", "zoo", "framework"))
    model = build(config)
    assert isinstance(model.backbone, CSPResNet) and not model.backbone.config.deploy
    assert [conv.conv.weight.shape[1] for conv in model.neck.conv_t.convs] == [
        feature.channels for feature in model.backbone.features[1:]
    ]
    assert build(dataclasses.replace(config, deploy=True)).backbone.config.deploy
    assert build(dataclasses.replace(config, backbone=CSPResNetConfig(deploy=True))).backbone.config.deploy


def test_a_backbone_of_one_form_stays_in_the_deploy_form() -> None:
    config = picodet.PicoDetConfig(num_classes=2, backbone=ResNetConfig("resnet18"))
    model = build(config).eval()
    deployed = reparameterize(model).state_dict()
    ours = model.state_dict()
    kept = {name for name in ours if name.startswith("backbone.")}
    assert kept == {name for name in deployed if name.startswith("backbone.")}
    assert all(np.array_equal(ours[name], deployed[name]) for name in kept)
    assert "head.conv_feat.cls_conv_dw0.0.norm.weight" in ours.keys() - deployed.keys()


def test_a_backbone_without_the_maps_that_are_read() -> None:
    with pytest.raises(ConfigError, match="does not give the maps") as caught:
        build(picodet.PicoDetConfig(backbone=ResNetConfig("resnet18", output_stride=16)))
    assert "ResNet with maps at the strides 4, 8, 16, 16" in str(caught.value)
    assert "end with the strides 8, 16, 32" in str(caught.value)
