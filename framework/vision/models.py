"""paddle.vision.models by Paddle's names: `models.resnet50(pretrained=True)`, `models.vgg16(batch_norm=True)`.

They make what `create_model` makes, found in the registry: the networks are Paddle's, images are [N, H, W, 3].
Pretrained weights are those of the index, which for ResNet of 50 layers and more and MobileNetV1 are PaddleClas's.
GoogLeNet gives its three logits in training, and one in evaluation, where Paddle's gives three.

This module stands above the rest of the framework; nothing there imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from framework import nn
from framework.core.errors import ConfigError, InputError, did_you_mean
from framework.workflow.open.models import Weights, create_model


@dataclass(frozen=True)
class ModelFunction:
    """What makes one of Paddle's models; call it as there.

    Attributes:
        variant: A name of `create_model`; `{scale}` in it is the width such as 0_5, `{norm}` is _bn where asked for.
        options: Of the config, where Paddle's form is another than its default.
    """

    variant: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(
        self,
        pretrained: Weights = False,
        *,
        scale: float = 1.0,
        batch_norm: bool = False,
        with_pool: bool = True,
        num_classes: int | None = None,
    ) -> nn.Layer:
        """The model in training mode.

        Args:
            pretrained: As of `create_model`.
            scale: The width, of MobileNet alone; ShuffleNetV2's is part of its functions' names.
            batch_norm: Of VGG alone.
            with_pool, num_classes: A model without pooling or without classes is `create_model` with `features_only`.

        Raises:
            InputError: an argument that this model does not have. Others: as `create_model`.
        """
        taken = {"scale": "{scale}" in self.variant, "batch_norm": "{norm}" in self.variant}
        refused = {
            "scale": scale != 1.0 and not taken["scale"],
            "batch_norm": batch_norm and not taken["batch_norm"],
            "with_pool": not with_pool,
            "num_classes": num_classes is not None and num_classes <= 0,
        }
        if any(refused.values()):
            name = self.variant.partition("{")[0].rstrip("_x")
            raise InputError(
                "this model is not made with these arguments",
                where=f"vision.models.{name}",
                received=", ".join(key for key, wrong in refused.items() if wrong),
                allowed=", ".join(
                    ["pretrained", "num_classes", *(key for key, fits in taken.items() if fits)]
                ),
                fix="zoo.create_model(name, features_only=True) gives the maps without pooling and classifier",
            )
        variant = self.variant.format(
            scale=str(float(scale)).replace(".", "_"), norm="_bn" if batch_norm else ""
        )
        return create_model(variant, pretrained, num_classes=num_classes, **self.options)


_NO_PROJECTION = {"project_first": False}
_FUNCTIONS = {
    "LeNet": ModelFunction("lenet"),
    **dict.fromkeys(("AlexNet", "alexnet"), ModelFunction("alexnet")),
    **{f"densenet{depth}": ModelFunction(f"densenet{depth}") for depth in (121, 161, 169, 201, 264)},
    **dict.fromkeys(("GoogLeNet", "googlenet"), ModelFunction("googlenet")),
    **dict.fromkeys(("InceptionV3", "inception_v3"), ModelFunction("inception_v3")),
    **dict.fromkeys(("MobileNetV1", "mobilenet_v1"), ModelFunction("mobilenetv1_x{scale}")),
    **dict.fromkeys(("MobileNetV2", "mobilenet_v2"), ModelFunction("mobilenetv2_x{scale}")),
    **{
        name: ModelFunction(f"mobilenetv3_{size}_x{{scale}}", {"original": True})
        for size in ("small", "large")
        for name in (f"MobileNetV3{size.capitalize()}", f"mobilenet_v3_{size}")
    },
    **{f"resnet{depth}": ModelFunction(f"resnet{depth}", _NO_PROJECTION) for depth in (18, 34)},
    **{f"resnet{depth}": ModelFunction(f"resnet{depth}") for depth in (50, 101, 152)},
    **{
        name: ModelFunction(name)
        for name in (
            *(f"resnext{depth}_{groups}x4d" for depth in (50, 101, 152) for groups in (32, 64)),
            "wide_resnet50_2",
            "wide_resnet101_2",
        )
    },
    **{
        f"shufflenet_v2_{size}": ModelFunction(f"shufflenet_v2_{size}")
        for size in ("swish", "x0_25", "x0_33", "x0_5", "x1_0", "x1_5", "x2_0")
    },
    **{name: ModelFunction(name) for name in ("squeezenet1_0", "squeezenet1_1")},
    **{f"vgg{depth}": ModelFunction(f"vgg{depth}{{norm}}") for depth in (11, 13, 16, 19)},
}
_BY_CLASS = {
    "DenseNet": "densenet121",
    "ResNet": "resnet50",
    "ShuffleNetV2": "shufflenet_v2_x1_0",
    "SqueezeNet": "squeezenet1_0",
    "VGG": "vgg16",
}


def __getattr__(name: str) -> ModelFunction:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in _BY_CLASS:
        raise ConfigError(
            "the class has another constructor here",
            where="framework.vision.models",
            received=name,
            allowed=", ".join(sorted(_FUNCTIONS)),
            fix=f"models.{_BY_CLASS[name]}() makes one",
        )
    hint = did_you_mean(name, _FUNCTIONS)
    raise AttributeError(
        f"module 'framework.vision.models' has no attribute {name!r}{f'; {hint}' if hint else ''}"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *_FUNCTIONS})
