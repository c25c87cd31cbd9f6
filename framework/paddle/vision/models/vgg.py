"""VGG. Source: Simonyan and Zisserman 2014."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from framework.paddle import nn
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.vision.models.parts import named, with_weights, zoo_table


class VGG(nn.Layer):
    """`features` and a classifier of three layers; images [N, 3, H, W] -> [N, num_classes]."""

    def __init__(self, features: nn.Layer, num_classes: int = 1000, with_pool: bool = True) -> None:
        super().__init__()
        self.features, self.num_classes, self.with_pool = features, num_classes, with_pool
        if with_pool:
            self.avgpool = nn.AdaptiveAvgPool2D((7, 7))
        if num_classes > 0:
            self.classifier = nn.Sequential(
                nn.Linear(512 * 7 * 7, 4096),
                nn.ReLU(),
                nn.Dropout(),
                nn.Linear(4096, 4096),
                nn.ReLU(),
                nn.Dropout(),
                nn.Linear(4096, num_classes),
            )

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        if self.with_pool:
            x = self.avgpool(x)
        return self.classifier(x.flatten(1)) if self.num_classes > 0 else x


def make_layers(cfg: Sequence[int | str], batch_norm: bool = False) -> nn.Sequential:
    """Convolutions of these widths with ReLU, and a pooling for each "M"."""
    layers: list[nn.Layer] = []
    channels = 3
    for width in cfg:
        if isinstance(width, str):
            layers.append(nn.MaxPool2D(2, 2))
            continue
        layers.append(nn.Conv2D(channels, width, 3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2D(width))
        layers.append(nn.ReLU())
        channels = width
    return nn.Sequential(*layers)


def _vgg(depth: int) -> Callable[..., VGG]:
    """Paddle's function of this depth: VGG(features, ...) with the features made of the zoo's table."""

    def build(pretrained: bool = False, batch_norm: bool = False, **kwargs: Any) -> VGG:
        name = f"vgg{depth}_bn" if batch_norm else f"vgg{depth}"
        cfg: list[int | str] = []
        for width, count in zip(zoo_table("VGG", "WIDTHS"), zoo_table("VGG")[name].depths, strict=True):
            cfg += [*[width] * count, "M"]
        return with_weights(VGG(make_layers(cfg, batch_norm), **kwargs), pretrained, f"{name}_imagenet")

    return named(build, f"vgg{depth}")


vgg11, vgg13, vgg16, vgg19 = _vgg(11), _vgg(13), _vgg(16), _vgg(19)
