"""The classifier of the mobile networks: pooled features are widened by a 1x1 convolution before the linear layer.

Paper: MobileNetV3, https://arxiv.org/abs/1905.02244, section 5.1
"""

from __future__ import annotations

import jax

from framework import nn
from framework.nn import functional as F
from zoo.contracts import Backbone, ConfigT
from zoo.layers.conv_bn import Activation


class WideHead(Backbone[ConfigT]):
    """Base of networks with `last_conv` and `fc`: a base and no part, since upstream names these beside the stages."""

    def add_head(
        self,
        in_channels: int,
        width: int,
        num_classes: int,
        act: Activation,
        dropout: float = 0.2,
        initializer: nn.initializer.Initializer | None = None,
    ) -> None:
        """`width` channels before the linear layer, which is left out without classes."""
        self.last_conv = nn.Conv2D(in_channels, width, 1, weight_attr=initializer, bias_attr=False)
        self.act = act
        # In this mode inference multiplies by 1 - p: official weights expect it.
        self.dropout = nn.Dropout(dropout, mode="downscale_in_infer")
        if num_classes:
            self.fc = nn.Linear(width, num_classes)

    def widen(self, x: jax.Array) -> jax.Array:
        """[N, H, W, in_channels] -> [N, 1, 1, width]."""
        return self.dropout(self.act(self.last_conv(F.global_avg_pool2d(x))))

    def logits(self, x: jax.Array) -> jax.Array:
        """[N, H, W, in_channels] -> [N, num_classes]."""
        return self.fc(self.widen(x)[:, 0, 0])
