"""What the detection necks share: the top-down pathway, the joining of its levels, and the layers on the way; and the
neck of PP-OCRv3 to v5 mobile, a small pyramid with squeeze-and-excitation on every level.

Reference: PaddlePaddle/PaddleOCR ppocr/modeling/necks/{db_fpn,intracl}.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F
from framework.nn.reparam import Arrays, deploy_state, fuse_conv_bn, prefixed
from zoo.layers.squeeze_excite import SqueezeExcite


class Pyramid(NamedTuple):
    """What a neck gives to the head.

    Attributes:
        fused: [N, H/4, W/4, C], all levels together.
        levels: The top-down maps at strides 4, 8 and 16, which auxiliary heads are trained on.
    """

    fused: jax.Array
    levels: tuple[jax.Array, jax.Array, jax.Array]


def upsample(x: jax.Array, scale: int) -> jax.Array:
    """Every pixel of [N, H, W, C] as `scale` x `scale` equal ones."""
    return F.interpolate(x, scale_factor=scale, mode="nearest")


def top_down(laterals: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Add each level, upsampled, to the finer one below it. Levels and result run from stride 4 to stride 32."""
    in2, in3, in4, in5 = laterals
    out4 = in4 + upsample(in5, 2)
    out3 = in3 + upsample(out4, 2)
    out2 = in2 + upsample(out3, 2)
    return out2, out3, out4, in5


def bottom_up(
    levels: Sequence[jax.Array], convs: Sequence[nn.Layer]
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Add each level, strided by a convolution, to the coarser one above it. Levels run from stride 4 to stride 32."""
    f2, f3, f4, f5 = levels
    pan3 = f3 + convs[0](f2)
    pan4 = f4 + convs[1](pan3)
    return f2, pan3, pan4, f5 + convs[2](pan4)


def join(levels: Sequence[jax.Array]) -> jax.Array:
    """All levels at stride 4, concatenated from the coarsest to the finest."""
    p2, p3, p4, p5 = levels
    return jnp.concatenate([upsample(p5, 8), upsample(p4, 4), upsample(p3, 2), p2], axis=-1)


def coarse_first(layers: Iterable[nn.Layer], maps: Sequence[jax.Array]) -> list[jax.Array]:
    """Each layer on its map; called from the coarsest level on, as the operations stand in upstream's programs."""
    return [layer(x) for layer, x in reversed(list(zip(layers, maps)))][::-1]


class RSELayer(nn.Layer):
    """A convolution without bias and squeeze-and-excitation with a residual around it."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.in_conv = nn.Conv2D(
            in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias_attr=False
        )
        self.se_block = SqueezeExcite(out_channels, slope=0.2, shortcut=True)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.se_block(self.in_conv(x))


class IntraCLBlock(nn.Layer):
    """Square, vertical and horizontal kernels of 7, 5 and 3 on fewer channels, added to the input."""

    def __init__(self, channels: int, reduction: int = 2, deploy: bool = False) -> None:
        super().__init__()
        self.deploy = deploy
        mid = channels // reduction
        self.conv1x1_reduce_channel = nn.Conv2D(channels, mid, 1)
        self.conv1x1_return_channel = nn.Conv2D(mid, channels, 1)
        for prefix, shape in (("v_layer", (1, 0)), ("q_layer", (0, 1)), ("c_layer", (1, 1))):
            for size in (7, 5, 3):
                kernel = (size if shape[0] else 1, size if shape[1] else 1)
                padding = (kernel[0] // 2, kernel[1] // 2)
                name = f"{prefix}_{kernel[0]}x{kernel[1]}"
                self.add_sublayer(name, nn.Conv2D(mid, mid, kernel, padding=padding))
        if not deploy:
            self.bn = nn.BatchNorm2D(channels)

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.conv1x1_reduce_channel(x)
        y = self.c_layer_7x7(y) + self.v_layer_7x1(y) + self.q_layer_1x7(y)
        y = self.c_layer_5x5(y) + self.v_layer_5x1(y) + self.q_layer_1x5(y)
        y = self.c_layer_3x3(y) + self.v_layer_3x1(y) + self.q_layer_1x3(y)
        y = self.conv1x1_return_channel(y)
        if not self.deploy:
            y = self.bn(y)
        return x + F.relu(y)

    def deploy_state(self) -> Arrays:
        last = self.conv1x1_return_channel
        state: Arrays = {}
        for name, child in self.named_children():
            if name not in ("conv1x1_return_channel", "bn"):
                state.update(prefixed(name, deploy_state(child)))
        weight, bias = fuse_conv_bn(last.weight, last.bias, self.bn)
        return {
            **state,
            "conv1x1_return_channel.weight": weight,
            "conv1x1_return_channel.bias": bias,
        }


@dataclass(frozen=True)
class RSEFPNConfig:
    """`out_channels` in the laterals and in the joined result."""

    kind: Literal["RSEFPN"] = "RSEFPN"
    out_channels: int = 96


class RSEFPN(nn.Layer):
    """Top-down pyramid of 1x1 convolutions, then a 3x3 on each level.

    Takes the four maps at strides 4 to 32 and gives `out_channels` at stride 4. It has no normalisation, so its deploy
    form is the same.
    """

    def __init__(self, config: RSEFPNConfig, in_channels: Sequence[int], deploy: bool = False) -> None:
        super().__init__()
        width = self.out_channels = config.out_channels
        self.ins_conv = nn.LayerList([RSELayer(channels, width, 1) for channels in in_channels])
        self.inp_conv = nn.LayerList([RSELayer(width, width // 4, 3) for _ in in_channels])

    def forward(self, maps: Sequence[jax.Array]) -> Pyramid:
        outs = top_down(coarse_first(self.ins_conv, maps))
        return Pyramid(join(coarse_first(self.inp_conv, outs)), outs[:3])
