"""TableGridNet: splits a table into rows and columns, then says which neighbours are one cell.

Paper: SPLERGE (Tensmeyer et al. 2019), https://doi.org/10.1109/ICDAR.2019.00027: what is split, projected and merged
Reference: none; the sizes are our own.
Differs: one small network with depthwise convolutions for all parts, dilated ones along the projections in place of
    iterated refinement, and a neighbour's merge in two directions. The head of the table is found beside the rows.
Weights: trained here from synthetic tables.

    stem, blocks    one map at stride 4
    rows, columns   the map squeezed along the other direction: what lies between rows, between columns, in the head
    merge           means over cells and over what lies between them -> which neighbours are one cell
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.reparam import Arrays, deploy_state, fuse_conv_bn, prefixed
from zoo.contracts import Contract
from zoo.layers.conv_bn import ConvBN, ConvBNOptions
from zoo.layers.variants import VariantConfig
from zoo.vision.pp_lcnet import Block, DepthwiseSeparable

BIN = 2  # pixels of the image that one place of a projection stands for


class Size(NamedTuple):
    """Width of the map, of the projections and of the merging layers; `params`."""

    width: int
    projection: int
    merge: int
    params: int


VARIANTS: dict[str, Size] = {"table_grid_s": Size(32, 64, 32, 320_776)}


@dataclass(frozen=True)
class TableGridNetConfig(VariantConfig[Size], table=VARIANTS):
    """`rows` and `columns` are the most that a table has; what is beyond them is not merged. They change no weights.

    `deploy` folds the normalisations into convolutions.
    """

    variant: str = "table_grid_s"
    rows: int = 40
    columns: int = 14
    deploy: bool = False


class Splits(NamedTuple):
    """Logits for each place [N, H/2] or [N, W/2] of a projection, and the map that they are of [N, H/4, W/4, C].

    `between_rows`, `between_columns`: nothing but the space between two of them, or outside of the table.
    `head`: part of the table's head.
    """

    between_rows: jax.Array
    head: jax.Array
    between_columns: jax.Array
    features: jax.Array


class GridLogits(NamedTuple):
    """Of splits, and of cells [N, rows, columns]: one with their right, with their lower neighbour."""

    between_rows: jax.Array
    head: jax.Array
    between_columns: jax.Array
    right: jax.Array
    down: jax.Array


class Along(nn.Layer):
    """Two 1-D convolutions along a projection [N, L, 1, C], the first dilated, beside a residual."""

    def __init__(self, channels: int, dilation: int, deploy: bool) -> None:
        super().__init__()
        self.deploy = deploy
        padding, bias = (2 * dilation, 0), None if deploy else False
        self.conv1 = nn.Conv2D(channels, channels, (5, 1), 1, padding, (dilation, 1), bias_attr=bias)
        if not deploy:
            self.bn = nn.BatchNorm2D(channels)
        self.conv2 = nn.Conv2D(channels, channels, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        y = self.conv1(x)
        return x + self.conv2(F.relu(y if self.deploy else self.bn(y)))

    def deploy_state(self) -> Arrays:
        weight, bias = fuse_conv_bn(self.conv1.weight, None, self.bn)
        return {"conv1.weight": weight, "conv1.bias": bias, **prefixed("conv2", deploy_state(self.conv2))}


class Projection(nn.Layer):
    """[N, L, M, C] -> logits [N, 2 * L, outputs]: along M it is pooled by 2 three times, then squeezed."""

    def __init__(self, width: int, channels: int, outputs: int, deploy: bool) -> None:
        super().__init__()
        self.outputs = outputs
        self.blocks = nn.LayerList(
            [DepthwiseSeparable(Block(5, width), width, width, deploy=deploy) for _ in range(3)]
        )
        self.squeeze = ConvBN(2 * width, channels, 1, act=F.relu, options=ConvBNOptions(deploy=deploy))
        self.along = nn.LayerList([Along(channels, dilation, deploy) for dilation in (1, 2, 4, 8, 16)])
        self.out = nn.Conv2D(channels, 2 * outputs, 1)

    def forward(self, x: jax.Array) -> jax.Array:
        for block in self.blocks:
            x = F.max_pool2d(x + block(x), (1, 2), (1, 2))
        x = jnp.concatenate([x.mean(axis=2, keepdims=True), x.max(axis=2, keepdims=True)], axis=-1)
        x = self.squeeze(x)  # [N, L, 1, C]
        for layer in self.along:
            x = layer(x)
        x = self.out(x)
        return x.reshape(x.shape[0], -1, self.outputs)


class Lines(NamedTuple):
    """Weights [N, K, L] that take the mean over each of K rows or columns, and over the gap behind each."""

    inside: jax.Array
    behind: jax.Array


class Merge(nn.Layer):
    """Means of the map over cells and the gaps behind them -> logits [N, R, C, 2]: right, down."""

    def __init__(self, width: int, channels: int, deploy: bool) -> None:
        super().__init__()
        conv = partial(ConvBN, act=F.relu, options=ConvBNOptions(deploy=deploy))
        self.narrow = conv(width, 32, 1)
        self.conv1 = conv(3 * 32, channels, 3)
        self.conv2, self.conv3 = conv(channels, channels, 3), conv(channels, channels, 3)
        self.out = nn.Conv2D(channels, 2, 1)

    def forward(self, x: jax.Array, rows: Lines, columns: Lines) -> jax.Array:
        x = self.narrow(x)
        along = jnp.einsum("nrh,nhwc->nrwc", rows.inside, x)
        below = jnp.einsum("nrh,nhwc->nrwc", rows.behind, x)
        cells = jnp.einsum("nrwc,nkw->nrkc", along, columns.inside)
        right = jnp.einsum("nrwc,nkw->nrkc", along, columns.behind)
        down = jnp.einsum("nrwc,nkw->nrkc", below, columns.inside)
        x = self.conv1(jnp.concatenate([cells, right, down], axis=-1))
        x = x + self.conv2(x)
        return self.out(x + self.conv3(x))


def make_lines(between: jax.Array, count: int) -> Lines:
    """From what lies between, bool [N, 2 * L], the weights for the first `count` runs of others, at half size."""
    inside = ~between
    starts = inside & ~jnp.pad(inside[:, :-1], ((0, 0), (1, 0)))
    number = jnp.cumsum(starts, axis=1)  # from 1
    places = number[:, None, :] == jnp.arange(1, count + 1)[None, :, None]

    def weigh(chosen: jax.Array) -> jax.Array:
        chosen = (places & chosen[:, None, :]).astype(jnp.float32)
        halves = chosen.reshape(*chosen.shape[:2], -1, 2).sum(axis=-1)
        return halves / jnp.maximum(halves.sum(axis=-1, keepdims=True), 1.0)

    return Lines(weigh(inside), weigh(between))


@register("model", config=TableGridNetConfig)
class TableGridNet(nn.Model[TableGridNetConfig]):
    """[N, H, W, 3] -> `GridLogits`; both sides are multiples of 32."""

    example_shape = (1, 64, 64, 3)
    contract = Contract(
        outputs=lambda layer, n, h, w: [(n, h // 2), (n, h // 2), (n, w // 2), (n, 40, 14), (n, 40, 14)]
    )

    def __init__(self, config: TableGridNetConfig) -> None:
        super().__init__(config)
        size, deploy = VARIANTS[config.variant], config.deploy
        self.conv1 = ConvBN(3, 16, 3, 2, act=F.hardswish, options=ConvBNOptions(deploy=deploy))
        self.conv2 = DepthwiseSeparable(Block(3, size.width), 16, size.width, (2, 2), deploy)
        self.blocks = nn.LayerList(
            [
                DepthwiseSeparable(Block(5, size.width), size.width, size.width, deploy=deploy)
                for _ in range(2)
            ]
        )
        self.rows = Projection(size.width, size.projection, 2, deploy)
        self.columns = Projection(size.width, size.projection, 1, deploy)
        self.merge = Merge(size.width, size.merge, deploy)

    def forward(self, x: jax.Array) -> GridLogits:
        """Merges are of the rows and columns that it finds itself."""
        splits = self.split(x)
        right, down = self.join(splits.features, splits.between_rows > 0, splits.between_columns > 0)
        return GridLogits(splits.between_rows, splits.head, splits.between_columns, right, down)

    def split(self, x: jax.Array) -> Splits:
        """Rows and columns."""
        if x.shape[1] % 32 or x.shape[2] % 32:
            raise ShapeError(
                "a table's image has other sides",
                received=x.shape,
                allowed="[N, 32*h, 32*w, 3]",
                fix="pad it",
            )
        x = self.conv2(self.conv1(x))  # [N, H/4, W/4, C]
        for block in self.blocks:
            x = x + block(x)
        rows = self.rows(x)
        columns = self.columns(jnp.swapaxes(x, 1, 2))
        return Splits(rows[..., 0], rows[..., 1], columns[..., 0], x)

    def join(
        self, features: jax.Array, between_rows: jax.Array, between_columns: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Logits of merges to the right and down, of the grid that is given as bool [N, H/2] and [N, W/2]."""
        rows = make_lines(between_rows, self.config.rows)
        columns = make_lines(between_columns, self.config.columns)
        found = self.merge(features, rows, columns)
        return found[..., 0], found[..., 1]
