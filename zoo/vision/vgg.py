"""VGG: stages of plain 3x3 convolutions, each halved by pooling, and three linear layers.

Paper: Simonyan and Zisserman 2014, https://arxiv.org/abs/1409.1556, table 1
Reference: paddle.vision.models.vgg; batch normalisation as there and in torchvision, the paper has none
Differs: nothing in the function computed.
Weights: `state_dict()` has the names of paddle.vision, which are torchvision's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.nn import functional as F
from zoo.contracts import Backbone, Contract, Feature
from zoo.layers.variants import VariantConfig

WIDTHS = (64, 128, 256, 512, 512)
_POOLED = 7  # side of the map that the linear layers see


class Size(NamedTuple):
    """`depths` are the convolutions of each stage; `params` the number of parameters with 1000 classes."""

    depths: tuple[int, int, int, int, int]
    params: int
    norm: bool = False


# Paper, table 1, columns A, B, D and E; parameters as in torchvision's table of weights
VARIANTS: dict[str, Size] = {
    "vgg11": Size((1, 1, 2, 2, 2), 132_863_336),
    "vgg13": Size((2, 2, 2, 2, 2), 133_047_848),
    "vgg16": Size((2, 2, 3, 3, 3), 138_357_544),
    "vgg19": Size((2, 2, 4, 4, 4), 143_667_240),
    "vgg11_bn": Size((1, 1, 2, 2, 2), 132_868_840, norm=True),
    "vgg13_bn": Size((2, 2, 2, 2, 2), 133_053_736, norm=True),
    "vgg16_bn": Size((2, 2, 3, 3, 3), 138_365_992, norm=True),
    "vgg19_bn": Size((2, 2, 4, 4, 4), 143_678_248, norm=True),
}


@dataclass(frozen=True)
class VGGConfig(VariantConfig[Size], table=VARIANTS):
    """`hidden_size` is the width of the linear layers before the last; weights have 4096."""

    variant: str = "vgg16"
    num_classes: int = 1000
    hidden_size: int = 4096
    dropout: float = 0.5
    in_channels: int = 3


@register("model", config=VGGConfig)
@register("backbone", config=VGGConfig)
class VGG(Backbone[VGGConfig]):
    """[N, H, W, in_channels] -> logits [N, num_classes], or the pooled maps at strides 2 to 32.

    Pooling rounds down, so as a backbone it takes sides that are multiples of 32.
    """

    contract = Contract(small={"variant": "vgg11_bn", "hidden_size": 16})

    def __init__(self, config: VGGConfig) -> None:
        super().__init__(config)
        size = VARIANTS[config.variant]
        channels, layers = config.in_channels, []
        for width, depth in zip(WIDTHS, size.depths, strict=True):
            for _ in range(depth):
                layers.append(nn.Conv2D(channels, width, 3, padding=1))
                layers += [nn.BatchNorm2D(width), nn.ReLU()] if size.norm else [nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2D(2, 2))
        self.add_sublayer("features", nn.Sequential(*layers))
        if config.num_classes:
            self.classifier = nn.Sequential(
                nn.Linear(channels * _POOLED**2, config.hidden_size),
                nn.ReLU(),
                nn.Dropout(config.dropout),
                nn.Linear(config.hidden_size, config.hidden_size),
                nn.ReLU(),
                nn.Dropout(config.dropout),
                nn.Linear(config.hidden_size, config.num_classes),
            )

    @property
    def features(self) -> tuple[Feature, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Upstream's sublayer of the same name is reached through `named_children()`."""
        return tuple(Feature(width, 2 << i) for i, width in enumerate(WIDTHS))

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        layers, maps = dict(self.named_children())["features"], []
        assert isinstance(layers, nn.Sequential)
        for layer in layers:
            x = layer(x)
            if isinstance(layer, nn.MaxPool2D):
                maps.append(x)
        return tuple(maps)

    def logits(self, x: jax.Array) -> jax.Array:
        x = F.adaptive_avg_pool2d(x, _POOLED)  # [N, 7, 7, 512]
        return self.classifier(x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1))  # in the order [C, H, W]
