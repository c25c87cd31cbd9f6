"""What RT-DETR and DINO share of their transformers: the best places of the image become queries, and heads.

Paper: DINO, https://arxiv.org/abs/2203.03605, section 3.4; RT-DETR, https://arxiv.org/abs/2304.08069, section 4.3
Reference: PaddlePaddle/PaddleDetection ppdet/modeling/transformers/{dino,rtdetr}_transformer.py
Weights: the names of PaddleDetection
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from detection.layers.deformable_attention import ShapesHW
from detection.layers.detr import MLP, PRIOR_BIAS, DecoderLayer, logit, uniform_linear
from detection.layers.grid import flatten_maps
from framework import nn
from framework.core.errors import ShapeError
from framework.nn import initializer as I

_ANCHOR_SIZE = 0.05  # of the finest level, in 0 to 1 of the input; doubled level by level
_MARGIN = 0.01  # anchors nearer to 0 or 1 are no candidates


class Selection(NamedTuple):
    """The Q best places of an image."""

    features: jax.Array
    """[N, Q, C]"""
    box_logits: jax.Array
    """[N, Q, 4]"""
    logits: jax.Array
    """[N, Q, num_classes]"""


def anchors(shapes_hw: ShapesHW) -> tuple[np.ndarray, np.ndarray]:
    """(logits [S, 4] of a box around each pixel of the levels, [S, 1] whether it is a candidate).

    numpy: in a program a division by a constant may be rounded otherwise, and centres that lie on the margin change.
    """
    boxes = []
    for level, (height, width) in enumerate(shapes_hw):
        centres = pixel_centres(height, width)
        boxes.append(np.concatenate([centres, np.full_like(centres, _ANCHOR_SIZE * 2**level)], axis=-1))
    box = np.concatenate(boxes)
    valid = np.all((box > _MARGIN) & (box < 1 - _MARGIN), axis=-1)[:, None]
    return np.where(valid, np.log(box / (1 - box)), np.float32(np.inf)), valid


def pixel_centres(height: int, width: int) -> np.ndarray:
    """[height * width, 2] xy in 0 to 1, row by row."""
    x, y = (
        (np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(size) for size in (width, height)
    )
    return np.stack(np.meshgrid(x, y, indexing="xy"), axis=-1).reshape(-1, 2)


class Decoder(nn.Layer):
    """The layers, and DINO's norm behind each; the transformer that owns it runs them."""

    def __init__(self, layers: list[DecoderLayer], norm: nn.LayerNorm | None = None) -> None:
        super().__init__()
        self.layers = nn.LayerList(layers)
        self.norm = norm


class QueryTransformer(nn.Layer):
    """Selection of queries, and heads for it and each of `num_layers` layers. Subclasses set `decoder`."""

    decoder: Decoder

    def __init__(
        self, channels: int, num_classes: int, num_queries: int, num_layers: int, position: MLP
    ) -> None:
        super().__init__()
        self.channels, self.num_classes, self.num_queries = channels, num_classes, num_queries
        self.denoising_class_embed = nn.Embedding(num_classes, channels, weight_attr=I.Normal())
        self.query_pos_head = position
        self.enc_output = nn.Sequential(nn.Linear(channels, channels), nn.LayerNorm(channels))
        self.enc_score_head = uniform_linear(channels, num_classes, PRIOR_BIAS)
        self.enc_bbox_head = MLP(channels, channels, 4, 3, zero=True)
        numbers = range(num_layers)
        self.dec_score_head = nn.LayerList(
            [uniform_linear(channels, num_classes, PRIOR_BIAS) for _ in numbers]
        )
        self.dec_bbox_head = nn.LayerList([MLP(channels, channels, 4, 3, zero=True) for _ in numbers])

    def select(self, memory: jax.Array, shapes_hw: ShapesHW) -> Selection:
        """From memory [N, S, C]; a place is as good as its best class.

        Raises:
            ShapeError: the levels have fewer pixels than there are queries.
        """
        if memory.shape[1] < self.num_queries:
            raise ShapeError(
                "the image is too small for so many queries",
                received=f"{memory.shape[1]} places for {self.num_queries} queries",
                allowed="a place for each query",
                fix="larger images, or a smaller num_queries",
            )
        boxes, valid = anchors(shapes_hw)
        features = self.enc_output(jnp.where(valid, memory, 0))
        logits = self.enc_score_head(features)
        best = jax.lax.top_k(logits.max(axis=-1), self.num_queries)[1]
        at = best[..., None]
        selected = jnp.take_along_axis(features, at, axis=1)
        box_logits = self.enc_bbox_head(selected) + jnp.take(jnp.asarray(boxes), best, axis=0)
        return Selection(selected, box_logits, jnp.take_along_axis(logits, at, axis=1))

    def label_features(self, labels: jax.Array) -> jax.Array:
        """[N, D, C] of the labels [N, D] of denoising queries; zeros for the label num_classes."""
        is_label = labels < self.num_classes
        embedded = self.denoising_class_embed(jnp.where(is_label, labels, 0))
        return jnp.where(is_label[..., None], embedded, 0)

    def encode(self, maps: tuple[jax.Array, ...]) -> tuple[jax.Array, ShapesHW]:
        """(memory [N, S, C], sizes of the levels) from maps [N, H, W, C], finest first."""
        raise NotImplementedError

    def queries(self, selection: Selection) -> jax.Array:
        """What the decoder starts with, [N, Q, C]."""
        raise NotImplementedError

    def embed_boxes(self, boxes: jax.Array) -> jax.Array:
        """What `query_pos_head` reads of boxes [N, Q, 4] cxcywh: themselves, or their positions [N, Q, D]."""
        return boxes

    def decode(
        self,
        queries: jax.Array,
        box_logits: jax.Array,
        memory: jax.Array,
        shapes_hw: ShapesHW,
        mask: jax.Array | None,
    ) -> tuple[jax.Array, jax.Array]:
        """(boxes [layers, N, Q, 4] cxcywh in 0 to 1, logits [layers, N, Q, num_classes])."""
        boxes, logits, norm = [], [], self.decoder.norm
        x, before = queries, jax.nn.sigmoid(box_logits)
        # as upstream: RT-DETR's first ones are clipped
        before_logits = logit(before) if norm is None else box_logits
        for layer, box_head, score_head in zip(self.decoder.layers, self.dec_bbox_head, self.dec_score_head):
            start = jax.lax.stop_gradient(before)
            x = layer(x, self.query_pos_head(self.embed_boxes(start)), start, memory, shapes_hw, mask)
            out = x if norm is None else norm(x)
            step = box_head(out)
            # The loss of a layer reaches the layer before it too: "look forward twice" of DINO, section 3.5.
            boxes.append(jax.nn.sigmoid(step + before_logits))
            logits.append(score_head(out))
            before = jax.nn.sigmoid((step if norm is None else box_head(x)) + logit(start))
            before_logits = logit(before)
        return jnp.stack(boxes), jnp.stack(logits)


def flatten_levels(maps: list[jax.Array]) -> tuple[jax.Array, ShapesHW]:
    """(pixels of all maps [N, S, C], their sizes).

    Raises:
        ShapeError: a height or width is symbolic. The anchors are computed from the sizes, in numpy.
    """
    shapes = tuple((x.shape[1], x.shape[2]) for x in maps)
    if not all(isinstance(side, int) for shape in shapes for side in shape):
        raise ShapeError(
            "a detector with queries has one input size in a program",
            received=f"a map of {shapes[0][0]} x {shapes[0][1]}",
            allowed="numbers for height and width, such as [n, 640, 640, 3]; the batch may be symbolic",
            fix="write the size into export.inputs",
        )
    return flatten_maps(maps), shapes
