"""DINO: a detector of queries over four levels, trained with pairs of denoising queries.

Paper: https://arxiv.org/abs/2203.03605
Reference: PaddlePaddle/PaddleDetection release/2.8 ppdet/modeling/transformers/dino_transformer.py, configs/dino
Differs: images have no padding mask. The number of denoising queries is fixed, see detection/layers/denoising.py.
Weights: those of PaddleDetection load with 0 missing and 0 extra. `state_dict()` has its names, those of the backbone
    being PaddleClas's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from detection.contracts import DetectorContract
from detection.layers.backbone import set_param_groups
from detection.layers.deformable_attention import MSDeformableAttention, ShapesHW
from detection.layers.detr import MLP, DecoderLayer
from detection.layers.query_transformer import (
    Decoder,
    QueryTransformer,
    Selection,
    flatten_levels,
    pixel_centres,
)
from detection.models.query_detector import QueryDetector, QueryDetectorConfig
from framework import nn
from framework.config import register
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.layers.variants import check_variant
from zoo.vision.resnet import ResNetConfig

CHANNELS, HIDDEN, HEADS, POINTS, LEVELS, GROUPS = 256, 2048, 8, 4, 4, 32
_IMAGE_TEMPERATURE, _QUERY_TEMPERATURE = 20.0, 10000.0


class Size(NamedTuple):
    """Layers of encoder and decoder; `frozen` are starts of the names of the backbone's first layers.

    `entries` are those of the published state, and `params` its numbers without running statistics.
    """

    backbone: ResNetConfig
    encoder: int
    decoder: int
    frozen: tuple[str, ...]
    entries: int
    params: int


# configs/dino/_base_/dino_r50.yml of the reference: stem and first stage do not learn
VARIANTS: dict[str, Size] = {
    "r50_4scale": Size(
        ResNetConfig("resnet50"), 6, 6, ("stem", "blocks.0.", "blocks.1.", "blocks.2."), 578, 47_703_436
    ),
}
_BACKBONE_RATE = 0.1


@dataclass(frozen=True)
class DINOConfig(QueryDetectorConfig):
    """Attributes: see QueryDetectorConfig."""

    variant: str = "r50_4scale"
    num_queries: int = 900


class EncoderLayer(nn.Layer):
    """Every pixel attends to places around itself in all levels, and passes a feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        self.self_attn = MSDeformableAttention(CHANNELS, HEADS, LEVELS, POINTS)
        self.norm1 = nn.LayerNorm(CHANNELS)
        self.linear1, self.linear2 = nn.Linear(CHANNELS, HIDDEN), nn.Linear(HIDDEN, CHANNELS)
        self.norm2 = nn.LayerNorm(CHANNELS)

    def forward(self, x: jax.Array, position: jax.Array, points: jax.Array, shapes_hw: ShapesHW) -> jax.Array:
        """x [N, S, C], position [S, C], places [1, S, 1, 2] xy -> [N, S, C]."""
        x = self.norm1(x + self.self_attn(x + position, points, x, shapes_hw))
        return self.norm2(x + self.linear2(F.relu(self.linear1(x))))


class Encoder(nn.Layer):
    """The encoder's layers."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.LayerList([EncoderLayer() for _ in range(layers)])

    def forward(self, x: jax.Array, position: jax.Array, shapes_hw: ShapesHW) -> jax.Array:
        points = jnp.asarray(np.concatenate([pixel_centres(height, width) for height, width in shapes_hw]))
        for layer in self.layers:
            x = layer(x, position, points[None, :, None], shapes_hw)
        return x


def projection(in_channels: int, kernel: int, stride: int) -> nn.Sequential:
    """A biased convolution and a group norm."""
    start = I.XavierUniform()
    conv = nn.Conv2D(in_channels, CHANNELS, kernel, stride, kernel // 2, weight_attr=start)
    return nn.Sequential(("conv", conv), ("norm", nn.GroupNorm(GROUPS, CHANNELS)))


class DINOTransformer(QueryTransformer):
    """Four levels of the backbone's maps, an encoder over all of them, and a decoder with learned queries."""

    def __init__(self, config: DINOConfig, in_channels: Sequence[int]) -> None:
        size, position = VARIANTS[config.variant], MLP(2 * CHANNELS, CHANNELS, CHANNELS, 2)
        super().__init__(CHANNELS, config.num_classes, config.num_queries, size.decoder, position)
        projections = [projection(number, 1, 1) for number in in_channels]
        self.input_proj = nn.LayerList([*projections, projection(in_channels[-1], 3, 2)])
        self.level_embed = nn.Embedding(LEVELS, CHANNELS, weight_attr=I.Normal())
        self.encoder = Encoder(size.encoder)
        layers = [DecoderLayer(CHANNELS, HEADS, HIDDEN, LEVELS, POINTS) for _ in range(size.decoder)]
        self.decoder = Decoder(layers, nn.LayerNorm(CHANNELS))
        self.tgt_embed = nn.Embedding(config.num_queries, CHANNELS)

    def encode(self, maps: tuple[jax.Array, ...]) -> tuple[jax.Array, ShapesHW]:
        levels = [project(x) for project, x in zip(self.input_proj, (*maps, maps[-1]), strict=True)]
        x, shapes = flatten_levels(levels)
        positions = [
            image_positions(height, width) + self.level_embed.weight[level]
            for level, (height, width) in enumerate(shapes)
        ]
        return self.encoder(x, jnp.concatenate(positions), shapes), shapes

    def queries(self, selection: Selection) -> jax.Array:
        learned = self.tgt_embed.weight[None]
        return jnp.broadcast_to(learned, (selection.features.shape[0], *learned.shape[1:]))

    def embed_boxes(self, boxes: jax.Array) -> jax.Array:
        return box_positions(boxes)


def _waves(x: jax.Array, count: int, temperature: float) -> jax.Array:
    """[..., count] of x [...]: sines and cosines in turn, slower from pair to pair."""
    pairs = jnp.arange(count // 2, dtype=jnp.float32)
    phase = x[..., None] / temperature ** (2 * pairs / count)
    return jnp.stack([jnp.sin(phase), jnp.cos(phase)], axis=-1).reshape(*x.shape, count)


def image_positions(height: int, width: int) -> jax.Array:
    """[height * width, CHANNELS]: half for the row, half for the column."""
    row, column = (
        _waves(
            (jnp.arange(size, dtype=jnp.float32) + 1) / (size + 1e-6) * (2 * math.pi),
            CHANNELS // 2,
            _IMAGE_TEMPERATURE,
        )
        for size in (height, width)
    )
    shape = (height, width, CHANNELS // 2)
    both = [jnp.broadcast_to(row[:, None], shape), jnp.broadcast_to(column[None], shape)]
    return jnp.concatenate(both, axis=-1).reshape(-1, CHANNELS)


def box_positions(boxes: jax.Array) -> jax.Array:
    """[N, Q, 2 * CHANNELS] of boxes [N, Q, 4] cxcywh, in the order y, x, width, height."""
    ordered = jnp.stack([boxes[..., 1], boxes[..., 0], boxes[..., 2], boxes[..., 3]], axis=-1)
    waves = _waves(ordered * (2 * math.pi), CHANNELS // 2, _QUERY_TEMPERATURE)
    return waves.reshape(*boxes.shape[:-1], 2 * CHANNELS)


@register("model", config=DINOConfig)
class DINO(QueryDetector[DINOConfig]):
    """Images [N, H, W, 3] of ImageNet's mean and deviation.

    Raises:
        ConfigError: the variant is unknown.
    """

    contract = DetectorContract(
        row=VARIANTS["r50_4scale"]._replace(backbone=ResNetConfig("resnet18"), encoder=1, decoder=2),
        published_hw=(800, 1333),
        bfloat16=0.15,
        selects=True,
    )

    def __init__(self, config: DINOConfig) -> None:
        check_variant("DINO", config.variant, VARIANTS)
        size = VARIANTS[config.variant]
        super().__init__(config, size.backbone, varifocal=False)
        set_param_groups(self, _BACKBONE_RATE, size.frozen, freeze_norms=True)
        self.transformer = DINOTransformer(config, self.in_channels)

    def memory(self, images: jax.Array) -> tuple[jax.Array, ShapesHW]:
        return self.transformer.encode(self.extract(images))
