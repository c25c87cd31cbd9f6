"""GoogLeNet: blocks of four branches, and two more classifiers inside, which training alone runs.

Paper: Szegedy et al. 2014, https://arxiv.org/abs/1409.4842, table 1 and section 5
Reference: paddle.vision.models.googlenet, which PaddleClas trains with ppcls/loss/googlenetloss.py
Differs: upstream computes the inner classifiers in inference too. As there, and not as in the paper, convolutions have
    no bias and no ReLU of their own, the responses are not normalised, and the second inner classifier has no ReLU.
Weights: `state_dict()` has the names of paddle.vision, which are PaddleClas's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Contract

PARAMS = 11_535_736  # with 1000 classes, counted in paddle.vision; the inner classifiers are among them


class Branches(NamedTuple):
    """Channels into a block, and of its convolutions: 1x1, 3x3 and what reduces for it, 5x5, behind the pooling."""

    in_channels: int
    one: int
    three_reduced: int
    three: int
    five_reduced: int
    five: int
    pooled: int


# Paper, table 1
BLOCKS: dict[str, Branches] = {
    "_ince3a": Branches(192, 64, 96, 128, 16, 32, 32),
    "_ince3b": Branches(256, 128, 128, 192, 32, 96, 64),
    "_ince4a": Branches(480, 192, 96, 208, 16, 48, 64),
    "_ince4b": Branches(512, 160, 112, 224, 24, 64, 64),
    "_ince4c": Branches(512, 128, 128, 256, 24, 64, 64),
    "_ince4d": Branches(512, 112, 144, 288, 32, 64, 64),
    "_ince4e": Branches(528, 256, 160, 320, 32, 128, 128),
    "_ince5a": Branches(832, 256, 160, 320, 32, 128, 128),
    "_ince5b": Branches(832, 384, 192, 384, 48, 128, 128),
}
WIDTH = 1024  # of the last map, and of the hidden layer of the inner classifiers
_INNER = (3 * 3, 128)  # pixels and channels that the inner classifiers see


@dataclass(frozen=True)
class GoogLeNetConfig:
    """The network has one size."""

    num_classes: int = 1000


def _uniform(fan: int) -> I.Uniform:
    return I.Uniform(-((3 / fan) ** 0.5), (3 / fan) ** 0.5)


class Conv(nn.Layer):
    """A convolution that keeps the size at stride 1."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1) -> None:
        super().__init__()
        self._conv = nn.Conv2D(
            in_channels, out_channels, kernel_size, stride, kernel_size // 2, bias_attr=False
        )

    def forward(self, x: jax.Array) -> jax.Array:
        return self._conv(x)


class Inception(nn.Layer):
    """1x1, 3x3 and 5x5 convolutions and a pooling side by side, joined along channels. Source: paper, figure 2b."""

    def __init__(self, size: Branches) -> None:
        super().__init__()
        self._conv1 = Conv(size.in_channels, size.one, 1)
        self._conv3r = Conv(size.in_channels, size.three_reduced, 1)
        self._conv3 = Conv(size.three_reduced, size.three, 3)
        self._conv5r = Conv(size.in_channels, size.five_reduced, 1)
        self._conv5 = Conv(size.five_reduced, size.five, 5)
        self._convprj = Conv(size.in_channels, size.pooled, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        branches = [
            self._conv1(x),
            self._conv3(self._conv3r(x)),
            self._conv5(self._conv5r(x)),
            self._convprj(F.max_pool2d(x, 3, 1, 1)),
        ]
        return F.relu(jnp.concatenate(branches, axis=-1))


@register("model", config=GoogLeNetConfig)
class GoogLeNet(nn.Model[GoogLeNetConfig]):
    """[N, H, W, 3], sides of 64 at least -> logits [N, num_classes].

    In training, where sides are 192 to 239: (logits, logits of the first inner classifier, of the second).
    """

    contract = Contract(
        # Its inner classifiers, which only training runs, take a map of 11 to 13 pixels.
        inputs=("n", 192, 192, 3),
        outputs=lambda layer, n, h, w: [(n, layer.config.num_classes)] * (3 if layer.training else 1),
    )

    def __init__(self, config: GoogLeNetConfig) -> None:
        super().__init__(config)
        classes = config.num_classes
        self._conv = Conv(3, 64, 7, 2)
        self._conv_1 = Conv(64, 64, 1)
        self._conv_2 = Conv(64, 192, 3)
        for name, size in BLOCKS.items():
            self.add_sublayer(name, Inception(size))
        # In this mode inference multiplies by 1 - p: official weights expect it.
        self._drop = nn.Dropout(0.4, mode="downscale_in_infer")
        self._fc_out = nn.Linear(WIDTH, classes, _uniform(WIDTH))
        pixels, channels = _INNER
        for number, after in ((1, "_ince4b"), (2, "_ince4e")):
            self.add_sublayer(f"_conv_o{number}", Conv(BLOCKS[after].in_channels, channels, 1))
            self.add_sublayer(f"_fc_o{number}", nn.Linear(pixels * channels, WIDTH, _uniform(2048)))
            self.add_sublayer(f"_drop_o{number}", nn.Dropout(0.7, mode="downscale_in_infer"))
            self.add_sublayer(f"_out{number}", nn.Linear(WIDTH, classes, _uniform(WIDTH)))

    def forward(self, x: jax.Array) -> jax.Array | tuple[jax.Array, jax.Array, jax.Array]:
        x = F.max_pool2d(self._conv(x), 3, 2)  # [N, 55, 55, 64] of 224 pixels
        x = F.max_pool2d(self._conv_2(self._conv_1(x)), 3, 2)  # [N, 27, 27, 192]
        x = F.max_pool2d(self._ince3b(self._ince3a(x)), 3, 2)  # [N, 13, 13, 480]
        first = self._ince4a(x)  # [N, 13, 13, 512]
        second = self._ince4d(self._ince4c(self._ince4b(first)))  # [N, 13, 13, 528]
        x = F.max_pool2d(self._ince4e(second), 3, 2)  # [N, 6, 6, 832]
        x = self._ince5b(self._ince5a(x))  # [N, 6, 6, 1024]
        logits = self._fc_out(self._drop(F.global_avg_pool2d(x))[:, 0, 0])
        return (logits, *self.inner_logits(first, second)) if self.training else logits

    def inner_logits(self, first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Of the maps of `_ince4a` and `_ince4d`, both [N, num_classes]."""
        x = F.relu(self._fc_o1(_inner_vector(self._conv_o1(_inner_pool(first)))))
        y = self._fc_o2(_inner_vector(self._conv_o2(_inner_pool(second))))
        return self._out1(self._drop_o1(x)), self._out2(self._drop_o2(y))


def _inner_pool(x: jax.Array) -> jax.Array:
    return F.avg_pool2d(x, 5, 3)


def _inner_vector(x: jax.Array) -> jax.Array:
    """[N, 3, 3, C] -> [N, 9 * C] in the order [C, H, W]."""
    return x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
