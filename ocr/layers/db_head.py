"""Head of differentiable binarization: a probability map and, in training, a threshold map; in the PP-OCR server models
with a second probability map, which sees the first.

Paper: DB, https://arxiv.org/abs/1911.08947
Reference: PaddlePaddle/PaddleOCR ppocr/modeling/heads/det_db_head.py (DBHead, PFHeadLocal)
Differs: a NaN in training is not replaced by 0, as upstream's `fix_nan` does: the Trainer stops at it and names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.reparam import Arrays, deploy_state, fuse_conv_bn, prefixed
from ocr.layers.pyramid import Pyramid, upsample
from zoo.layers.conv_bn import ConvBN, ConvBNOptions

AUXILIARY = (("p4", 4), ("p3", 2), ("p2", 1))  # level and its upsampling to stride 4


@dataclass(frozen=True)
class DBHeadConfig:
    """`steepness` is k of the paper's equation 3; `auxiliary` trains heads on three levels of the pyramid too.

    `local` adds the second map of upstream's PFHeadLocal; "large" and "small" are its modes.
    """

    steepness: float = 50.0
    auxiliary: bool = False
    local: Literal["large", "small"] | None = None


class DBMaps(NamedTuple):
    """What a detector gives; all maps [N, H, W], 0 to 1, at the size of the input.

    Attributes:
        probability: Of being inside a shrunk text region. With a local map: in training that alone, in eval the mean of
            it and the base map.
        threshold, binary: In training only; the binary map is soft, `sigmoid(k * (probability - threshold))`, where
            the probability is the base map's.
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
        return self.classify(self.features(x))

    def features(self, x: jax.Array) -> jax.Array:
        """[N, H/4, W/4, C] -> [N, H/2, W/2, C/4]"""
        x = self.conv1(x)
        x = F.relu(x if self.deploy else self.conv_bn1(x))
        x = self.conv2(x)
        return F.relu(x if self.deploy else self.conv_bn2(x))

    def classify(self, features: jax.Array) -> jax.Array:
        """[N, H/2, W/2, C/4] -> [N, H, W] in 0 to 1."""
        return F.sigmoid(self.conv3(features))[..., 0]

    def deploy_state(self) -> Arrays:
        weight1, bias1 = fuse_conv_bn(self.conv1.weight, None, self.conv_bn1)
        weight2, bias2 = fuse_conv_bn(self.conv2.weight, self.conv2.bias, self.conv_bn2, out_axis=1)
        first = {"conv1.weight": weight1, "conv1.bias": bias1, "conv2.weight": weight2, "conv2.bias": bias2}
        return {**first, **prefixed("conv3", deploy_state(self.conv3))}


class LocalModule(nn.Layer):
    """A map [N, H, W] in 0 to 1 from another and features [N, H/2, W/2, C], by a 3x3 and a 1x1 convolution."""

    def __init__(self, in_channels: int, mid_channels: int, deploy: bool = False) -> None:
        super().__init__()
        options = ConvBNOptions(deploy=deploy)
        self.last_3 = ConvBN(in_channels + 1, mid_channels, 3, act=F.relu, options=options)
        self.last_1 = nn.Conv2D(mid_channels, 1, 1)

    def forward(self, base: jax.Array, features: jax.Array) -> jax.Array:
        x = jnp.concatenate([base[..., None], upsample(features, 2)], axis=-1)  # [N, H, W, 1 + C]
        return F.sigmoid(self.last_1(self.last_3(x)))[..., 0]


class DBHead(nn.Layer):
    """The maps of a pyramid. The deploy form has the probability map alone."""

    def __init__(self, config: DBHeadConfig, in_channels: int, deploy: bool = False) -> None:
        super().__init__()
        self.steepness, self.deploy = config.steepness, deploy
        self.binarize = MapHead(in_channels, deploy)
        self.local = config.local is not None
        if config.local is not None:
            width = in_channels // 4
            self.cbn_layer = LocalModule(width, width if config.local == "large" else width // 2, deploy)
        if deploy:
            return
        self.thresh = MapHead(in_channels)
        self.auxiliary = AUXILIARY if config.auxiliary else ()
        for level, _ in self.auxiliary:
            self.add_sublayer(f"aux_binarize_{level}", MapHead(in_channels))
            self.add_sublayer(f"aux_thresh_{level}", MapHead(in_channels))

    def forward(self, pyramid: Pyramid) -> DBMaps:
        fused = pyramid.fused
        if self.local:
            features = self.binarize.features(fused)
            base = self.binarize.classify(features)
            local = self.cbn_layer(base, features)
        else:
            base, local = self.binarize(fused), None
        if self.deploy or not self.training:
            return DBMaps(base if local is None else 0.5 * (base + local))
        maps = self._maps(base, self.thresh(fused))
        if local is not None:
            maps = maps._replace(probability=local)
        auxiliary = []
        for (level, scale), x in zip(self.auxiliary, reversed(pyramid.levels)):
            x = x if scale == 1 else F.interpolate(x, scale_factor=scale, mode="bilinear")
            binarize, thresh = (getattr(self, f"aux_{kind}_{level}") for kind in ("binarize", "thresh"))
            auxiliary.append(self._maps(binarize(x), thresh(x)))
        return maps._replace(auxiliary=tuple(auxiliary))

    def _maps(self, probability: jax.Array, threshold: jax.Array) -> DBMaps:
        return DBMaps(probability, threshold, F.sigmoid(self.steepness * (probability - threshold)))

    def deploy_state(self) -> Arrays:
        state = prefixed("binarize", self.binarize.deploy_state())
        return state | (prefixed("cbn_layer", deploy_state(self.cbn_layer)) if self.local else {})
