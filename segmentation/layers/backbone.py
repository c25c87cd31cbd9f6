"""The backbones of segmenters: their config, how they are built, and models on HRNet, whose maps are concatenated."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import Kind
from framework.core.errors import ConfigError
from framework.nn import functional as F
from zoo import contracts
from zoo.contracts import Backbone, BackboneConfig
from zoo.layers.variants import Row, VariantConfig
from zoo.vision.hrnet import HRNetConfig


@dataclass(frozen=True)
class SegmenterConfig(VariantConfig[Row]):
    """`backbone` takes the place of the variant's."""

    num_classes: int = 19
    in_channels: int = 3
    backbone: Annotated[BackboneConfig, Kind("backbone")] | None = None


class HRNetSize(NamedTuple):
    """Backbone, and trained parameters with 19 classes."""

    backbone: HRNetConfig
    params: int


@dataclass(frozen=True)
class HRNetSegmenterConfig(SegmenterConfig[HRNetSize]):
    """`variant` names the backbone; `backbone` takes its place. `align_corners` belongs to sides such as 769."""

    align_corners: bool = False


def hrnet_sizes(**params: int) -> dict[str, HRNetSize]:
    """A table `VARIANTS` of the parameters by variant of HRNet; the backbones are as PaddleSeg has them."""
    return {
        f"hrnet_{variant}": HRNetSize(HRNetConfig(variant, upsample="bilinear", same_padding=True), count)
        for variant, count in params.items()
    }


def build_backbone(config: BackboneConfig, in_channels: int) -> Backbone:
    """The backbone of a config, without its classifier, on images of `in_channels`.

    Raises:
        ConfigError: it takes images of 3 channels alone, and others are asked for.
    """
    if in_channels != 3:
        if "in_channels" not in config.__dataclass_fields__:
            raise ConfigError(
                "the backbone takes images of 3 channels alone",
                where="model.in_channels",
                received=in_channels,
                allowed=f"3 for {type(config).__name__}",
            )
        config = dataclasses.replace(config, in_channels=in_channels)
    return contracts.build_backbone(config)


def find_strides(backbone: Backbone, strides: Sequence[int]) -> tuple[int, ...]:
    """The places of the maps at these strides among `backbone.features`.

    Raises:
        ConfigError: there is none of one of the strides.
    """
    index_of = {feature.stride: place for place, feature in enumerate(backbone.features)}
    if missing := [stride for stride in strides if stride not in index_of]:
        raise ConfigError(
            f"the backbone has no map at stride {missing[0]}",
            where="model.backbone",
            received=f"{type(backbone).__name__}, strides {', '.join(map(str, index_of))}",
            allowed=f"maps at strides {', '.join(map(str, strides))}",
        )
    return tuple(index_of[stride] for stride in strides)


def build_hrnet(
    backbone: BackboneConfig | None, size: HRNetSize, in_channels: int, align_corners: bool
) -> Backbone:
    """The backbone that a config gives, else that of `size`."""
    return build_backbone(
        backbone or dataclasses.replace(size.backbone, align_corners=align_corners), in_channels
    )


def count_channels(backbone: Backbone) -> int:
    """Of what `concat_maps` makes of its maps."""
    return sum(feature.channels for feature in backbone.features)


def concat_maps(maps: Sequence[jax.Array], align_corners: bool) -> jax.Array:
    """Maps [N, h, w, C_i], resized to the first: [N, h, w, sum of C_i].

    Source: HRNetV2 of https://arxiv.org/abs/1908.07919, figure 3 (b), before its 1x1 convolution
    """
    first, *others = maps
    size_hw = first.shape[1:3]
    resized = [F.interpolate(x, size_hw, mode="bilinear", align_corners=align_corners) for x in others]
    return jnp.concatenate([first, *resized], axis=-1)


ConfigT = TypeVar("ConfigT", bound=HRNetSegmenterConfig)


class HRNetSegmenter(nn.Model[ConfigT]):
    """Base of the models on `concat_maps` of a backbone, which have `channels` channels."""

    def __init__(self, config: ConfigT) -> None:
        super().__init__(config)
        self.backbone = build_hrnet(config.backbone, config.parts, config.in_channels, config.align_corners)
        self.channels = count_channels(self.backbone)

    def extract(self, images: jax.Array) -> jax.Array:
        """[N, H / 4, W / 4, channels]"""
        return concat_maps(self.backbone.forward_features(images), self.config.align_corners)

    def resize(self, logits: jax.Array, images: jax.Array) -> jax.Array:
        """Logits at the size of the images."""
        align = self.config.align_corners
        return F.interpolate(logits, images.shape[1:3], mode="bilinear", align_corners=align)
