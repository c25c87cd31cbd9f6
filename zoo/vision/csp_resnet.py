"""CSPResNet: RepVGG blocks with residuals inside cross-stage partial stages, each with channel attention.

Paper: PP-YOLOE, https://arxiv.org/abs/2203.16250, section 2.2; the weight of the 1x1 branch is PP-YOLOE+'s
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/backbones/cspresnet.py with `use_large_stem`, as in all PP-YOLOE
Differs: nothing in the function computed; all four maps are returned. Upstream has no classifier: with `num_classes` a
    linear layer stands behind the mean over all pixels. The deploy form folds every normalisation.
Weights: `state_dict()` has upstream's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.reparam import Arrays, centred
from zoo.contracts import Backbone, Contract, Feature
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.stages import collect_maps
from zoo.layers.variants import VariantConfig

# At multipliers of 1
STEM_WIDTH, WIDTHS, DEPTHS = 64, (128, 256, 512, 1024), (3, 6, 6, 3)


class Size(NamedTuple):
    """Multipliers of blocks and channels.

    `params` with alphas and without a classifier: counted in ppdet 2.6, as upstream publishes those of whole detectors.
    """

    depth: float
    width: float
    params: int


# depth_mult and width_mult of configs/ppyoloe of PaddleDetection
VARIANTS: dict[str, Size] = {
    "s": Size(0.33, 0.5, 2_992_982),
    "m": Size(0.67, 0.75, 9_317_436),
    "l": Size(1.0, 1.0, 21_158_770),
    "x": Size(1.33, 1.25, 40_240_664),
}


@dataclass(frozen=True)
class CSPResNetConfig(VariantConfig[Size], table=VARIANTS):
    """`use_alpha` weighs the 1x1 branches with a learned number: PP-YOLOE+ has it, PP-YOLOE has not.

    `deploy` folds branches and normalisations into convolutions.
    """

    variant: str = "s"
    num_classes: int = 0
    use_alpha: bool = True
    deploy: bool = False


class RepVGGBlock(nn.Layer):
    """`silu(3x3 + alpha * 1x1)`, each branch normalised; one biased 3x3 in deploy form.

    An alpha of 0 or below counts as 1: upstream asks `if alpha`, which in Paddle means above 0, in training, in
    inference and when it folds the branches. Official weights are made with that.
    """

    def __init__(self, channels: int, use_alpha: bool, deploy: bool = False) -> None:
        super().__init__()
        self.use_alpha, self.deploy = use_alpha, deploy
        if deploy:
            self.conv = nn.Conv2D(channels, channels, 3, padding=1)
            return
        self.conv1 = ConvBN(channels, channels, 3)
        self.conv2 = ConvBN(channels, channels, 1)
        if use_alpha:
            self.alpha = self.create_parameter((1,), I.Constant(1.0))

    def forward(self, x: jax.Array) -> jax.Array:
        if self.deploy:
            return F.silu(self.conv(x))
        y = self.conv2(x)
        if self.use_alpha:
            y = y * jnp.where(self.alpha > 0, self.alpha, 1)
        return F.silu(self.conv1(x) + y)

    def deploy_state(self) -> Arrays:
        alpha = np.asarray(self.alpha) if self.use_alpha and self.alpha > 0 else np.ones(1, np.float32)
        (weight, bias), (point, point_bias) = self.conv1.fuse(), self.conv2.fuse()
        return {"conv.weight": weight + alpha * centred(point, 3), "conv.bias": bias + alpha * point_bias}


class BasicBlock(nn.Layer):
    """3x3 convolution and RepVGG block beside a residual."""

    def __init__(self, channels: int, use_alpha: bool, deploy: bool = False) -> None:
        super().__init__()
        self.conv1 = ConvBN(channels, channels, 3, act=F.silu, options=ConvBNOptions(deploy=deploy))
        self.conv2 = RepVGGBlock(channels, use_alpha, deploy)

    def forward(self, x: jax.Array) -> jax.Array:
        return x + self.conv2(self.conv1(x))


class EffectiveSE(nn.Layer):
    """`x * hardsigmoid(fc(mean of x))`: squeeze-and-excitation without the narrow middle.

    Paper: CenterMask, https://arxiv.org/abs/1911.06667
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Conv2D(channels, channels, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        return x * F.hardsigmoid(self.fc(F.global_avg_pool2d(x)))


class CSPResStage(nn.Layer):
    """Stride 2, then half of the channels around the blocks and half through them, attention, 1x1 convolution."""

    def __init__(
        self, in_channels: int, out_channels: int, depth: int, use_alpha: bool, deploy: bool = False
    ) -> None:
        super().__init__()
        middle = (in_channels + out_channels) // 2
        conv = partial(ConvBN, act=F.silu, options=ConvBNOptions(deploy=deploy))
        self.conv_down = conv(in_channels, middle, 3, 2)
        self.conv1 = conv(middle, middle // 2, 1)
        self.conv2 = conv(middle, middle // 2, 1)
        self.blocks = nn.Sequential(*(BasicBlock(middle // 2, use_alpha, deploy) for _ in range(depth)))
        self.attn = EffectiveSE(middle)
        self.conv3 = conv(middle, out_channels, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.conv_down(x)
        x = jnp.concatenate([self.conv1(x), self.blocks(self.conv2(x))], axis=-1)
        return self.conv3(self.attn(x))


@register("model", config=CSPResNetConfig)
@register("backbone", config=CSPResNetConfig)
class CSPResNet(Backbone[CSPResNetConfig]):
    """[N, H, W, 3] -> maps at strides 4, 8, 16 and 32, or logits [N, num_classes]."""

    contract = Contract(
        flat=(r"stages\.[023]\.blocks\.0\.conv2\.alpha", "below 0 with these weights, where upstream takes 1")
    )

    def __init__(self, config: CSPResNetConfig) -> None:
        super().__init__(config)
        size, deploy = VARIANTS[config.variant], config.deploy
        channels, *widths = (round(width * size.width) for width in (STEM_WIDTH, *WIDTHS))
        conv = partial(ConvBN, act=F.silu, options=ConvBNOptions(deploy=deploy))
        self.stem = nn.Sequential(
            ("conv1", conv(3, channels // 2, 3, 2)),
            ("conv2", conv(channels // 2, channels // 2, 3)),
            ("conv3", conv(channels // 2, channels, 3)),
        )
        self.stages = nn.Sequential()
        for width, depth in zip(widths, DEPTHS):
            depth = max(round(depth * size.depth), 1)
            self.stages.append(CSPResStage(channels, width, depth, config.use_alpha, deploy))
            channels = width
        self.features = tuple(Feature(width, 4 * 2**stage) for stage, width in enumerate(widths))
        if config.num_classes:
            self.fc = nn.Linear(channels, config.num_classes)

    def forward_features(self, x: jax.Array) -> tuple[jax.Array, ...]:
        return collect_maps(self.stem(x), self.stages)  # the stem has stride 2
