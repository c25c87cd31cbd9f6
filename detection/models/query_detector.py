"""What RT-DETR and DINO share as detectors: raw outputs, losses with denoising, and detections without suppression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from detection.assigners.hungarian import match, matching_costs
from detection.contracts import Detections, Detector, Targets
from detection.layers.deformable_attention import ShapesHW
from detection.layers.denoising import DenoisingQueries, denoising_queries, draw_noise
from detection.layers.detr import to_centers, to_corners
from detection.layers.query_transformer import QueryTransformer, Selection
from detection.set_losses import QueryTargets, build_targets, loss_parts, set_losses
from framework.config import Kind
from framework.core.rng import next_key
from framework.engine.task import Losses
from zoo.contracts import BackboneConfig


class QueryOutputs(NamedTuple):
    """Boxes are cxcywh in 0 to 1 of the input."""

    boxes: jax.Array
    """[1 + layers, N, Q, 4]: the selected places, then each decoder layer's"""
    logits: jax.Array
    """[1 + layers, N, Q, num_classes]"""


@dataclass(frozen=True)
class QueryDetectorConfig:
    """`num_denoising`: about how many objects with noise train the decoder beside the queries; `top_k` detections.

    The backbone is that of the variant where None.
    """

    variant: str
    num_classes: int = 80
    backbone: Annotated[BackboneConfig, Kind("backbone")] | None = None
    num_queries: int = 300
    num_denoising: int = 100
    top_k: int = 300


ConfigT = TypeVar("ConfigT", bound=QueryDetectorConfig)


class QueryDetector(Detector[ConfigT]):
    """Subclasses set `transformer`, and `memory` gives what it decodes."""

    transformer: QueryTransformer

    def __init__(
        self, config: ConfigT, backbone: BackboneConfig, varifocal: bool, deploy: bool = False
    ) -> None:
        super().__init__(config, config.backbone or backbone, deploy)
        self.varifocal = varifocal

    def memory(self, images: jax.Array) -> tuple[jax.Array, ShapesHW]:
        """(memory [N, S, C], sizes of the levels)."""
        raise NotImplementedError

    def forward(self, images: jax.Array) -> QueryOutputs:
        memory, shapes = self.memory(images)
        selection = self.transformer.select(memory, shapes)
        start = jax.lax.stop_gradient(selection.box_logits)
        queries = self.transformer.queries(selection)
        return _concat_outputs(selection, *self.transformer.decode(queries, start, memory, shapes, None))

    def loss(self, images: jax.Array, targets: Targets) -> Losses:
        """Sum of the losses of the selection and of all layers, and of the denoising queries of all layers.

        Source: DINO, sections 3.3 and 3.4.
        """
        height, width = images.shape[1:3]
        objects = to_centers(targets.boxes / jnp.asarray([width, height, width, height], jnp.float32))
        noised = self._make_denoising(objects, targets)
        memory, shapes = self.memory(images)
        selection = self.transformer.select(memory, shapes)
        extra = noised.box_logits.shape[1]
        queries = jnp.concatenate(
            [self.transformer.label_features(noised.labels), self.transformer.queries(selection)], axis=1
        )
        start = jnp.concatenate([noised.box_logits, selection.box_logits], axis=1)
        mask = _visibility(noised, self.transformer.num_queries)
        boxes, logits = self.transformer.decode(queries, jax.lax.stop_gradient(start), memory, shapes, mask)
        count = jnp.maximum(targets.valid.sum(), 1).astype(jnp.float32)

        outputs = _concat_outputs(selection, boxes[:, :, extra:], logits[:, :, extra:])
        layers, batch, number = outputs.boxes.shape[:3]
        costs = matching_costs(*outputs, objects[None], targets.labels[None])
        valid = jnp.broadcast_to(targets.valid, (layers, *targets.valid.shape))
        assigned = match(costs.reshape(layers * batch, number, -1), valid.reshape(layers * batch, -1))
        matches = jax.tree.map(lambda x: x.reshape(valid.shape), assigned)
        learned = build_targets(matches, number, count)
        terms = loss_parts(set_losses(*outputs, objects, targets.labels, learned, self.varifocal))

        count *= jnp.maximum(noised.groups, 1).astype(jnp.float32)
        learned = QueryTargets(noised.index[None], noised.positive[None], noised.live, count)
        losses = set_losses(
            boxes[:, :, :extra], logits[:, :, :extra], objects, targets.labels, learned, self.varifocal
        )
        terms |= loss_parts(losses, "_dn")
        return Losses(sum(terms.values(), jnp.zeros(())), terms)

    def _make_denoising(self, objects: jax.Array, targets: Targets) -> DenoisingQueries:
        batch, most = targets.labels.shape
        classes = self.transformer.num_classes
        noise = draw_noise(next_key(), batch, 2 * max(self.config.num_denoising, most), classes)
        return denoising_queries(
            objects, targets.labels, targets.valid, noise, self.config.num_denoising, classes
        )

    def detect(self, images: jax.Array) -> Detections:
        """The best pairs of a query and a class; a query may give several."""
        outputs = self.forward(images)
        scores = jax.nn.sigmoid(outputs.logits[-1].astype(jnp.float32))
        classes = scores.shape[-1]
        flat = scores.reshape(scores.shape[0], -1)
        best, index = jax.lax.top_k(flat, min(self.config.top_k, self.transformer.num_queries * classes))
        boxes = jnp.take_along_axis(outputs.boxes[-1], (index // classes)[..., None], axis=1)
        height, width = images.shape[1:3]
        scale = jnp.stack([jnp.asarray(side, jnp.float32) for side in (width, height, width, height)])
        return Detections(to_corners(boxes) * scale, best, (index % classes).astype(jnp.int32))


def _concat_outputs(selection: Selection, boxes: jax.Array, logits: jax.Array) -> QueryOutputs:
    first = jax.nn.sigmoid(selection.box_logits)[None]
    return QueryOutputs(jnp.concatenate([first, boxes]), jnp.concatenate([selection.logits[None], logits]))


def _visibility(noised: DenoisingQueries, queries: int) -> jax.Array:
    """[D + Q, D + Q] bool: the denoising queries see their group and the others; those see only themselves."""
    extra = noised.visible.shape[0]
    mask = jnp.ones((extra + queries, extra + queries), bool).at[:extra, :extra].set(noised.visible)
    return mask.at[extra:, :extra].set(False)
