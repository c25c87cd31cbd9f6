"""The visual branch of LayoutXLM: ResNeXt-101 32x8d with a feature pyramid, whose finest map becomes 7 x 7 vectors.

Paper: ResNeXt, https://arxiv.org/abs/1611.05431; feature pyramid, https://arxiv.org/abs/1612.03144
Reference: PaddleNLP 2.6 paddlenlp/transformers/layoutxlm/visual_backbone.{py,yaml}, a port of Detectron2's
Differs: the pyramid's coarser outputs are not computed; their weights are there, as the files have them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F

GROUPS, CHANNELS, POOL_HW = 32, 256, (7, 7)
PIXEL_MEAN = (103.53, 116.28, 123.675)
PIXEL_STD = (57.375, 57.12, 58.395)
FROZEN_STAGES = 1  # and the stem, which start from weights and stay
_FROZEN = nn.ParamAttr(learning_rate=0.0, trainable=False)


class NormedConv(nn.Conv2D):
    """A convolution without bias and its normalisation by fixed statistics, under the name `norm` within it.

    `trained` is False of the layers that upstream never trains.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        kernel: int,
        stride: int = 1,
        groups: int = 1,
        trained: bool = True,
    ) -> None:
        super().__init__(
            in_channels,
            channels,
            kernel,
            stride,
            padding=kernel // 2,
            groups=groups,
            weight_attr=None if trained else _FROZEN,
            bias_attr=False,
        )
        self.norm = nn.BatchNorm2D(channels, weight_attr=_FROZEN, bias_attr=_FROZEN, use_global_stats=True)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.norm(super().forward(x))


class Bottleneck(nn.Layer):
    """1x1, grouped 3x3 and 1x1 convolutions, added to their input: [N, H, W, C] -> [N, H/stride, W/stride, C']."""

    def __init__(self, in_channels: int, channels: int, stride: int, trained: bool) -> None:
        super().__init__()
        self.shortcut = None
        if in_channels != channels:
            self.shortcut = NormedConv(in_channels, channels, 1, stride, trained=trained)
        self.conv1 = NormedConv(in_channels, channels, 1, trained=trained)
        self.conv2 = NormedConv(channels, channels, 3, stride, GROUPS, trained)
        self.conv3 = NormedConv(channels, channels, 1, trained=trained)

    def forward(self, x: jax.Array) -> jax.Array:
        out = self.conv3(F.relu(self.conv2(F.relu(self.conv1(x)))))
        return F.relu(out + (x if self.shortcut is None else self.shortcut(x)))


class Stem(nn.Layer):
    """A 7x7 convolution of stride 2 and a pooling of stride 2."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = NormedConv(3, channels, 7, 2, trained=False)

    def forward(self, x: jax.Array) -> jax.Array:
        return F.max_pool2d(F.relu(self.conv1(x)), 3, 2, 1)


class BottomUp(nn.Layer):
    """[N, H, W, 3] -> maps of strides 4, 8, 16, 32."""

    def __init__(self, depths: tuple[int, int, int, int], width: int) -> None:
        super().__init__()
        self.stem = Stem(width)
        self.channels = tuple(4 * width << stage for stage in range(4))
        before = width
        for stage, (depth, channels) in enumerate(zip(depths, self.channels)):
            blocks = []
            for place in range(depth):
                stride = 2 if stage and not place else 1
                blocks.append(Bottleneck(before, channels, stride, trained=stage >= FROZEN_STAGES))
                before = channels
            self.add_sublayer(f"res{stage + 2}", nn.Sequential(*blocks))

    def forward(self, x: jax.Array) -> list[jax.Array]:
        x, found = self.stem(x), []
        for stage in range(2, 6):
            x = getattr(self, f"res{stage}")(x)
            found.append(x)
        return found


class FeaturePyramid(nn.Layer):
    """The finest map of the pyramid: [N, H, W, 3] -> [N, H/4, W/4, 256]."""

    def __init__(self, depths: tuple[int, int, int, int], width: int) -> None:
        super().__init__()
        bottom_up = BottomUp(depths, width)
        for stage, channels in enumerate(bottom_up.channels, 2):
            self.add_sublayer(f"fpn_lateral{stage}", nn.Conv2D(channels, CHANNELS, 1))
            self.add_sublayer(f"fpn_output{stage}", nn.Conv2D(CHANNELS, CHANNELS, 3, padding=1))
        self.bottom_up = bottom_up

    def forward(self, x: jax.Array) -> jax.Array:
        maps = self.bottom_up(x)
        found = self.fpn_lateral5(maps[3])
        for stage in (4, 3, 2):
            finer = getattr(self, f"fpn_lateral{stage}")(maps[stage - 2])
            found = finer + F.interpolate(found, size=finer.shape[1:3], mode="nearest")
        return self.fpn_output2(found)


class VisualBackbone(nn.Layer):
    """A page [N, 224, 224, 3] -> [N, 49, 256]. Its own constants are subtracted and divided by, in the order B, G,
    R."""

    def __init__(self, depths: tuple[int, int, int, int], width: int) -> None:
        super().__init__()
        self.backbone = FeaturePyramid(depths, width)
        self.register_buffer("pixel_mean", jnp.asarray(PIXEL_MEAN, jnp.float32).reshape(3, 1, 1))
        self.register_buffer("pixel_std", jnp.asarray(PIXEL_STD, jnp.float32).reshape(3, 1, 1))

    def forward(self, image: jax.Array) -> jax.Array:
        x = (image - self.pixel_mean.reshape(3)) / self.pixel_std.reshape(3)
        found = F.adaptive_avg_pool2d(self.backbone(x), POOL_HW)  # [N, 7, 7, 256]
        return found.reshape(found.shape[0], POOL_HW[0] * POOL_HW[1], CHANNELS)
