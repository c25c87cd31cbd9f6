"""Head of differentiable binarization: a probability map and, in training, a threshold map.

Paper: DB, https://arxiv.org/abs/1911.08947
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/heads/det_db_head.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.reparam import Arrays, deploy_state, fuse_conv_bn, prefixed
from ocr.layers.pyramid import Pyramid

AUXILIARY = (("p4", 4), ("p3", 2), ("p2", 1))  # level and its upsampling to stride 4


@dataclass(frozen=True)
class DBHeadConfig:
    """`steepness` is k of the paper's equation 3; `auxiliary` trains heads on three levels of the pyramid too."""

    steepness: float = 50.0
    auxiliary: bool = False


class DBMaps(NamedTuple):
    """What a detector gives; all maps [N, H, W], 0 to 1, at the size of the input.

    Attributes:
        probability: Of being inside a shrunk text region.
        threshold, binary: In training only; the binary map is soft, `sigmoid(k * (probability - threshold))`.
        auxiliary: In training with auxiliary heads: the maps of levels p4, p3 and p2.
    """

    probability: jax.Array
    threshold: jax.Array | None = None
    binary: jax.Array | None = None
    auxiliary: tuple[DBMaps, ...] = ()


class MapHead(nn.Layer):
    """[N, H/4, W/4, C] -> [N, H, W] in 0 to 1: a 3x3 convolution and two transposed ones that double the size."""

    def __init__(self, in_channels: int, deploy: bool = False) -> None:
        super().__init__()
        mid = in_channels // 4
        bound = mid**-0.5
        up = {"weight_attr": I.KaimingUniform(), "bias_attr": I.Uniform(-bound, bound)}
        self.deploy = deploy
        self.conv1 = nn.Conv2D(in_channels, mid, 3, padding=1, bias_attr=None if deploy else False)
        self.conv2 = nn.Conv2DTranspose(mid, mid, 2, 2, **up)
        self.conv3 = nn.Conv2DTranspose(mid, 1, 2, 2, **up)
        if not deploy:
            self.conv_bn1 = nn.BatchNorm2D(mid, bias_attr=I.Constant(1e-4))
            self.conv_bn2 = nn.BatchNorm2D(mid, bias_attr=I.Constant(1e-4))

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.conv1(x)
        x = F.relu(x if self.deploy else self.conv_bn1(x))
        x = self.conv2(x)  # [N, H/2, W/2, C/4]
        x = F.relu(x if self.deploy else self.conv_bn2(x))
        return F.sigmoid(self.conv3(x))[..., 0]  # [N, H, W]

    def deploy_state(self) -> Arrays:
        weight1, bias1 = fuse_conv_bn(self.conv1.weight, None, self.conv_bn1)
        weight2, bias2 = fuse_conv_bn(self.conv2.weight, self.conv2.bias, self.conv_bn2, out_axis=1)
        first = {"conv1.weight": weight1, "conv1.bias": bias1, "conv2.weight": weight2, "conv2.bias": bias2}
        return {**first, **prefixed("conv3", deploy_state(self.conv3))}


class DBHead(nn.Layer):
    """The maps of a pyramid. The deploy form has the probability map alone."""

    def __init__(self, config: DBHeadConfig, in_channels: int, deploy: bool = False) -> None:
        super().__init__()
        self.steepness, self.deploy = config.steepness, deploy
        self.binarize = MapHead(in_channels, deploy)
        if deploy:
            return
        self.thresh = MapHead(in_channels)
        self.auxiliary = AUXILIARY if config.auxiliary else ()
        for level, _ in self.auxiliary:
            self.add_sublayer(f"aux_binarize_{level}", MapHead(in_channels))
            self.add_sublayer(f"aux_thresh_{level}", MapHead(in_channels))

    def forward(self, pyramid: Pyramid) -> DBMaps:
        if self.deploy or not self.training:
            return DBMaps(self.binarize(pyramid.fused))
        maps = self._maps(self.binarize, self.thresh, pyramid.fused)
        auxiliary = []
        for (level, scale), x in zip(self.auxiliary, reversed(pyramid.levels)):
            x = x if scale == 1 else F.interpolate(x, scale_factor=scale, mode="bilinear")
            binarize, thresh = (getattr(self, f"aux_{kind}_{level}") for kind in ("binarize", "thresh"))
            auxiliary.append(self._maps(binarize, thresh, x))
        return maps._replace(auxiliary=tuple(auxiliary))

    def _maps(self, binarize: nn.Layer, thresh: nn.Layer, x: jax.Array) -> DBMaps:
        probability, threshold = binarize(x), thresh(x)
        return DBMaps(probability, threshold, F.sigmoid(self.steepness * (probability - threshold)))

    def deploy_state(self) -> Arrays:
        return prefixed("binarize", self.binarize.deploy_state())
