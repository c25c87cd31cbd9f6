"""Non-maximum suppression in fixed shapes: it runs in the exported program, on any accelerator, in any batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import jax
import jax.numpy as jnp
from jax import lax

from detection.contracts import Detections
from framework.config import Kind
from framework.core.errors import ConfigError
from framework.nn.functional.boxes import suppress_boxes
from zoo.contracts import BackboneConfig
from zoo.layers.variants import Row, VariantConfig


@dataclass(frozen=True)
class NMS:
    """How raw boxes become detections.

    Attributes:
        score_threshold: Boxes that do not score more are dropped.
        iou_threshold: Of two boxes of a class that overlap more, the better one stays.
        nms_top_k: The best pairs of box and class of an image that are compared. Upstream takes as many of each class,
            which differs only where an image has more pairs than this above the score threshold.
        keep_top_k: Detections of an image, K.
        class_agnostic: Boxes of different classes suppress one another too.
    """

    score_threshold: float = 0.025
    iou_threshold: float = 0.6
    nms_top_k: int = 1000
    keep_top_k: int = 100
    class_agnostic: bool = False

    def __post_init__(self) -> None:
        if (
            not 0 <= self.score_threshold < 1
            or not 0 < self.iou_threshold <= 1
            or not 1 <= self.keep_top_k <= self.nms_top_k
        ):
            raise ConfigError(
                "a setting of the suppression is out of range",
                received=f"score_threshold {self.score_threshold}, iou_threshold {self.iou_threshold}, "
                f"nms_top_k {self.nms_top_k}, keep_top_k {self.keep_top_k}",
                allowed="0 <= score_threshold < 1, 0 < iou_threshold <= 1, 1 <= keep_top_k <= nms_top_k",
            )


@dataclass(frozen=True)
class DenseDetectorConfig(VariantConfig[Row]):
    """Of a detector that suppresses. The backbone is that of the variant where None.

    `deploy` folds branches and normalisations into convolutions, those of the backbone too.
    """

    num_classes: int = 80
    backbone: Annotated[BackboneConfig, Kind("backbone")] | None = None
    nms: NMS = field(default_factory=NMS)
    deploy: bool = False


def multiclass_nms(boxes: jax.Array, scores: jax.Array, config: NMS) -> Detections:
    """The best detections of each image.

    Args:
        boxes: [N, L, 4] xyxy.
        scores: [N, L, C]; a box may be detected as several classes.
    """
    return jax.vmap(lambda b, s: _one(b, s, config))(boxes, scores)


def _one(boxes: jax.Array, scores: jax.Array, config: NMS) -> Detections:
    """Of one image: boxes [L, 4], scores [L, C]."""
    # The filling makes top_k work for any number of boxes, unknown at export too.
    flat = jnp.concatenate([scores.astype(jnp.float32).reshape(-1), jnp.zeros(config.nms_top_k)])
    best, index = lax.top_k(jnp.where(flat > config.score_threshold, flat, 0), config.nms_top_k)
    valid = best > 0
    index = jnp.where(valid, index, 0)
    cell, label = index // scores.shape[1], index % scores.shape[1]
    candidates = boxes.astype(jnp.float32)[cell]
    labels = None if config.class_agnostic else label
    retained = suppress_boxes(candidates, valid, config.iou_threshold, labels, scores.shape[1])
    score, rank = lax.top_k(jnp.where(retained, best, 0), config.keep_top_k)
    real = score > 0
    return Detections(
        jnp.where(real[:, None], candidates[rank], 0),
        score,
        jnp.where(real, label[rank], 0).astype(jnp.int32),
    )
