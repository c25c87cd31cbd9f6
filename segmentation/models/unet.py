"""UNet: an encoder that halves four times, and a decoder that joins each of its maps with the encoder's of that size.

Paper: Ronneberger et al. 2015, https://arxiv.org/abs/1505.04597, figure 1
Reference: PaddlePaddle/PaddleSeg paddleseg/models/unet.py, configs/unet
Differs: nothing in the function computed. The paper pads no convolution, widens to 1024 and has no normalisation.
Weights: PaddleSeg's load with 0 missing and 0 extra; its classifier is there twice, as `cls` and as `conv`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from segmentation.layers.conv_bn import BIASED, conv_bn_relu

WIDTHS = (64, 128, 256, 512, 512)  # of the encoder's maps, at strides 1 to 16
PARAMS = 13_406_227  # counted on PaddleSeg 2.8 with 19 classes


@dataclass(frozen=True)
class UNetConfig:
    """`use_deconv` scales by transposed convolutions; sides are multiples of 16 then.

    `align_corners` belongs to images with sides such as 769.
    """

    num_classes: int = 19
    align_corners: bool = False
    use_deconv: bool = False
    in_channels: int = 3


def _double_conv(in_channels: int, out_channels: int) -> tuple[nn.Layer, nn.Layer]:
    return (
        conv_bn_relu(in_channels, out_channels, 3, options=BIASED),
        conv_bn_relu(out_channels, out_channels, 3, options=BIASED),
    )


class Encoder(nn.Layer):
    """[N, H, W, in_channels] -> maps of WIDTHS, finest first."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.double_conv = nn.Sequential(*_double_conv(in_channels, WIDTHS[0]))
        self.down_sample_list = nn.LayerList(
            nn.Sequential(nn.MaxPool2D(2, 2), *_double_conv(before, width))
            for before, width in pairwise(WIDTHS)
        )

    def forward(self, x: jax.Array) -> list[jax.Array]:
        maps = [self.double_conv(x)]
        for down in self.down_sample_list:
            maps.append(down(maps[-1]))
        return maps


class UpSampling(nn.Layer):
    """Scales a coarse map [N, h, w, C] to the size of the encoder's [N, H, W, D] and joins both: [N, H, W, out]."""

    def __init__(self, config: UNetConfig, in_channels: int, short_cut: int, out_channels: int) -> None:
        super().__init__()
        self.config, joined = config, in_channels + short_cut
        if config.use_deconv:
            self.deconv = nn.Conv2DTranspose(in_channels, out_channels // 2, 2, stride=2)
            joined = out_channels // 2 + short_cut
        self.double_conv = nn.Sequential(*_double_conv(joined, out_channels))

    def forward(self, x: jax.Array, short_cut: jax.Array) -> jax.Array:
        if self.config.use_deconv:
            x = self.deconv(x)
        else:
            align = self.config.align_corners
            x = F.interpolate(x, short_cut.shape[1:3], mode="bilinear", align_corners=align)
        return self.double_conv(jnp.concatenate([x, short_cut], axis=-1))


class Decoder(nn.Layer):
    """The encoder's maps -> [N, H, W, 64]."""

    def __init__(self, config: UNetConfig) -> None:
        super().__init__()
        self.up_sample_list, channels = nn.LayerList(), WIDTHS[-1]
        for short_cut, width in zip(WIDTHS[-2::-1], (256, 128, 64, 64), strict=True):
            self.up_sample_list.append(UpSampling(config, channels, short_cut, width))
            channels = width

    def forward(self, maps: list[jax.Array]) -> jax.Array:
        x, *short_cuts = reversed(maps)
        for up, short_cut in zip(self.up_sample_list, short_cuts, strict=True):
            x = up(x, short_cut)
        return x


@register("model", config=UNetConfig)
class UNet(nn.Model[UNetConfig]):
    """Segmenter of segmentation/contracts.py, with one output."""

    def __init__(self, config: UNetConfig) -> None:
        super().__init__(config)
        self.encode = Encoder(config.in_channels)
        self.decode = Decoder(config)
        self.cls = nn.Conv2D(WIDTHS[0], config.num_classes, 3, padding=1)

    def forward(self, images: jax.Array) -> tuple[jax.Array, ...]:
        x = self.decode(self.encode(images))
        return (self.cls(x).astype(jnp.float32),)

    def state_aliases(self) -> dict[str, str]:
        return {"conv.weight": "cls.weight", "conv.bias": "cls.bias"}
