"""TableMaster: a residual network with global context, and a transformer that reads the structure of a table from it.

Paper: TableMASTER, https://arxiv.org/abs/2105.01848; MASTER, https://arxiv.org/abs/1910.02562, section 3.2 (context)
Reference: PaddlePaddle/PaddleOCR configs/table/table_master.yml, ppocr/modeling/backbones/table_master_resnet.py,
    heads/table_master_head.py
Differs: channels last; forward gives logits, where upstream gives probabilities in eval.
Weights: official `.pdparams` by name.

    backbone   four groups of residual blocks, max-pooling before the first three: a map at stride 8
    head       two transformer layers, then one for the tokens and one for the boxes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax

from framework import nn
from framework.config import register
from framework.nn import functional as F
from ocr.layers.sla_head import Structure, read_structure
from ocr.layers.table_master_head import TableMasterHead, TableMasterHeadConfig
from zoo.contracts import Contract
from zoo.layers.variants import VariantConfig

_RATIO = 16  # of a block's channels to those that its context is pressed into


class Size(NamedTuple):
    """Channels of the two convolutions of the stem and of the four groups, blocks of each group; attention heads and
    hidden width of the decoder, tokens and numbers of a box; `params` without statistics and positions."""

    channels: tuple[int, ...]
    blocks: tuple[int, ...]
    attention_heads: int
    feed_forward: int
    tokens: int
    coordinates: int
    params: int


# Upstream's configuration.
VARIANTS: dict[str, Size] = {
    "table_master": Size((64, 128, 256, 256, 512, 512), (1, 2, 5, 3), 8, 2024, 43, 4, 62_816_514),
}


@dataclass(frozen=True)
class TableMasterConfig(VariantConfig[Size], table=VARIANTS):
    """`num_tokens` counts unknown, start, end and padding; None takes the variant's, where no task's dictionary says.

    `max_text_length` is the most tokens of a table. The others, see Size, are the variant's where they are None.
    """

    variant: str = "table_master"
    num_tokens: int | None = None
    max_text_length: int = 500
    channels: tuple[int, ...] | None = None
    blocks: tuple[int, ...] | None = None
    attention_heads: int | None = None
    feed_forward: int | None = None


class GlobalContext(nn.Layer):
    """Adds to each place of [N, H, W, C] a function of the weighted mean of all places."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        pressed = channels // _RATIO
        self.conv_mask = nn.Conv2D(channels, 1, 1)
        self.channel_add_conv = nn.Sequential(
            nn.Conv2D(channels, pressed, 1), nn.LayerNorm(pressed), nn.ReLU(), nn.Conv2D(pressed, channels, 1)
        )

    def forward(self, x: jax.Array) -> jax.Array:
        n, h, w, c = x.shape
        weights = F.softmax(self.conv_mask(x).reshape(n, h * w, 1), axis=1)
        context = (x.reshape(n, h * w, c) * weights).sum(axis=1)  # [N, C]
        return x + self.channel_add_conv(context[:, None, None])


class BasicBlock(nn.Layer):
    """Two 3x3 convolutions with a residual; the first block of a group widens it, and in all groups but one has
    context."""

    def __init__(self, in_channels: int, channels: int, context: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2D(in_channels, channels, 3, padding=1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(channels)
        self.conv2 = nn.Conv2D(channels, channels, 3, padding=1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(channels)
        self.context_block = GlobalContext(channels) if context else None
        self.downsample = None
        if in_channels != channels:
            self.downsample = nn.Sequential(
                nn.Conv2D(in_channels, channels, 1, bias_attr=False), nn.BatchNorm2D(channels)
            )

    def forward(self, x: jax.Array) -> jax.Array:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.context_block is not None:
            out = self.context_block(out)
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class TableResNetExtra(nn.Layer):
    """[N, H, W, 3] -> [N, H/8, W/8, C]."""

    def __init__(self, channels: tuple[int, ...], blocks: tuple[int, ...]) -> None:
        super().__init__()
        before = 3
        # The stem's two convolutions, then one behind each group: conv1 to conv6.
        for number, width in enumerate(channels[:2], 1):
            self._add_conv(number, before, width)
            before = width
        for group, (width, count) in enumerate(zip(channels[2:], blocks), 1):
            first = [BasicBlock(before, width, context=group > 1)]
            rest = [BasicBlock(width, width, context=False) for _ in range(count - 1)]
            self.add_sublayer(f"layer{group}", nn.Sequential(*first, *rest))
            self._add_conv(group + 2, width, width)
            before = width
        self.out_channels = before

    def _add_conv(self, number: int, in_channels: int, channels: int) -> None:
        self.add_sublayer(f"conv{number}", nn.Conv2D(in_channels, channels, 3, padding=1, bias_attr=False))
        self.add_sublayer(f"bn{number}", nn.BatchNorm2D(channels))

    def forward(self, x: jax.Array) -> jax.Array:
        x = self._convolve(2, self._convolve(1, x))
        for group in (1, 2, 3, 4):
            if group < 4:
                x = F.max_pool2d(x, 2, 2)
            x = self._convolve(group + 2, getattr(self, f"layer{group}")(x))
        return x

    def _convolve(self, number: int, x: jax.Array) -> jax.Array:
        return F.relu(getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(x)))


@register("model", config=TableMasterConfig)
class TableMaster(nn.Model[TableMasterConfig]):
    """[N, H, W, 3] -> logits [N, T, tokens] and boxes [N, T, 4], T = max_text_length + 1.

    Boxes are centre x, centre y, width and height, in 0 to 1 of the padded image. H * W is at most 320,000.
    """

    example_shape = (1, 64, 64, 3)
    contract = Contract(
        small={
            "max_text_length": 20,
            "channels": (8, 16, 32, 64, 64, 64),
            "blocks": (1, 1, 2, 1),
            "attention_heads": 2,
            "feed_forward": 32,
        },
        inputs=("n", 64, 96, 3),
        outputs=lambda layer, n, h, w: [(n, layer.head.steps, count) for count in (43, 4)],
    )

    def __init__(self, config: TableMasterConfig) -> None:
        super().__init__(config)
        size = config.parts
        tokens = size.tokens if config.num_tokens is None else config.num_tokens
        self.backbone = TableResNetExtra(size.channels, size.blocks)
        self.head = TableMasterHead(
            TableMasterHeadConfig(
                self.backbone.out_channels,
                size.attention_heads,
                size.feed_forward,
                tokens,
                size.coordinates,
                config.max_text_length,
            )
        )

    def forward(self, x: jax.Array, tokens: jax.Array | None = None) -> Structure:
        """After the given tokens [N, T] int32, or after those that it says itself; see TableMasterHead."""
        return self.head(self.encode(x), tokens)

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """As SLANet's: tokens, their probabilities, boxes and the steps that all tables took."""
        return read_structure(self.head, self.encode(x))

    def encode(self, x: jax.Array) -> jax.Array:
        """The map's places, row by row: [N, H/8 * W/8, C]."""
        x = self.backbone(x)
        return x.reshape(x.shape[0], -1, x.shape[-1])
