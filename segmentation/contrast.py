"""Pixel contrast: pixels of one class are drawn together over the images of a batch, those of others pushed apart.

Paper: Wang et al. 2021, https://arxiv.org/abs/2101.11939
Reference: PaddlePaddle/PaddleSeg paddleseg/models/losses/pixel_contrast_cross_entropy_loss.py
Differs: anchors stand in a buffer of `max_samples` rows, filled as far as upstream's lists would be long; the others
    weigh nothing. Upstream fails where no class has enough pixels (here the loss is 0), and where there are more
    classes and images than `max_samples` (here each gives one anchor, up to that number). Under data parallelism
    upstream samples on each device, here `max_samples` are those of the global batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from framework.config import register
from framework.core.errors import ConfigError, ShapeError
from framework.core.rng import next_key
from framework.nn import functional as F
from segmentation.contracts import Embedded, Output


class Anchors(NamedTuple):
    """Pixels in a buffer of fixed length A."""

    pixels: jax.Array
    """[A] int32, counted over the whole batch"""
    classes: jax.Array
    """[A] int32"""
    valid: jax.Array
    """[A] bool"""


@register("loss")
@dataclass(frozen=True)
class PixelContrast:
    """InfoNCE between sampled pixels, for an output that is `segmentation.contracts.Embedded`.

    The anchors are drawn anew at each call, with a key of the surrounding `rng_scope`.

    Attributes:
        temperature: Divides the cosines of two embeddings.
        base_temperature: The loss is scaled by `temperature / base_temperature`.
        max_samples: Anchors of the whole batch.
        max_views: Anchors of one class in one image; classes with no more pixels than that are left out of it.

    Raises:
        ConfigError: a temperature is not positive, or a count is below 1.
        ShapeError: when called, the output has no embedding, or the labels do not fit it.

    Source: equation 7; anchors are half hard, that is wrongly classified, and half easy pixels where a class has
    enough of both, as in section 3.4.
    """

    temperature: float = 0.1
    base_temperature: float = 0.07
    ignore_index: int = 255
    max_samples: int = 1024
    max_views: int = 100

    def __post_init__(self) -> None:
        for name, least, allowed in (
            ("temperature", 0.0, "above 0"),
            ("base_temperature", 0.0, "above 0"),
            ("max_samples", 0, "1 or more"),
            ("max_views", 0, "1 or more"),
        ):
            if getattr(self, name) <= least:
                raise ConfigError(
                    f"{name} is too small",
                    where=f"PixelContrast.{name}",
                    received=getattr(self, name),
                    allowed=allowed,
                )

    def __call__(self, output: Output, labels: jax.Array) -> jax.Array:
        """`labels` are [N, H, W] int32 of any size; those nearest to the embeddings count."""
        if not isinstance(output, Embedded) or labels.ndim != 3 or len(output.embedding) != len(labels):
            received = [list(x.shape) for x in jax.tree.leaves((output, labels))]
            raise ShapeError(
                "the contrast is between embeddings of pixels",
                where="PixelContrast",
                received=f"{type(output).__name__} and labels, of shapes {', '.join(map(str, received))}",
                allowed="Embedded with logits [N, h, w, C] and embedding [N, h, w, D], labels [N, H, W]",
                fix="give this loss the place of the output that HRNetW48Contrast has for it",
            )
        return self.compute(output, labels, jax.random.bits(next_key(), output.logits.shape[:3]))

    def compute(self, output: Embedded, labels: jax.Array, order: jax.Array) -> jax.Array:
        """The loss where, of equal pixels, those come first whose `order` [N, h, w] is least."""
        logits, embedding = output
        size_hw = logits.shape[1:3]
        labels = F.interpolate(labels[..., None].astype(jnp.float32), size_hw)[..., 0].astype(jnp.int32)
        labels = jnp.where(labels == self.ignore_index, -1, labels)
        hard = jnp.argmax(logits, axis=-1).astype(jnp.int32) != labels
        anchors = self.sample(labels, hard, order, logits.shape[-1])
        rows = embedding.reshape(-1, embedding.shape[-1])[anchors.pixels]
        return self._contrast(rows.astype(jnp.float32), anchors)

    def sample(self, labels: jax.Array, hard: jax.Array, order: jax.Array, num_classes: int) -> Anchors:
        """Anchors of `labels` [N, h, w] (those outside of 0 to num_classes are no class), `hard` or easy."""
        n = labels.shape[0]
        groups = 2 * n * num_classes  # hard and easy of each class of each image
        group = (jnp.arange(n)[:, None, None] * num_classes + labels) * 2 + jnp.where(hard, 0, 1)
        group = jnp.where((labels >= 0) & (labels < num_classes), group, groups).reshape(-1)
        pixels = jnp.arange(group.size, dtype=jnp.int32)
        _, _, pixels = lax.sort((group, order.reshape(-1), pixels), num_keys=2)  # stable: group by group
        counts = jnp.zeros(groups + 1, jnp.int32).at[group].add(1)[:-1]
        starts = jnp.cumsum(counts) - counts

        quota = self._quotas(counts.reshape(-1, 2)).reshape(-1)
        ends = jnp.cumsum(quota)
        slots = jnp.arange(min(self.max_samples, group.size))
        owner = jnp.minimum(jnp.searchsorted(ends, slots, side="right"), groups - 1)
        valid = slots < ends[-1]
        index = jnp.where(valid, starts[owner] + slots - (ends - quota)[owner], 0)
        return Anchors(pixels[index], owner // 2 % num_classes, valid)

    def _quotas(self, counts: jax.Array) -> jax.Array:
        """How many anchors each pair of `counts` [G, 2], hard and easy pixels, gives."""
        hard, easy = counts[:, 0], counts[:, 1]
        enough = hard + easy > self.max_views
        views = jnp.clip(self.max_samples // jnp.maximum(enough.sum(), 1), 1, self.max_views)
        of_hard = jnp.where(2 * easy < views, views - easy, views // 2)
        of_hard = jnp.where(2 * hard < views, hard, of_hard)
        return jnp.where(enough[:, None], jnp.stack([of_hard, views - of_hard], axis=1), 0)

    def _contrast(self, rows: jax.Array, anchors: Anchors) -> jax.Array:
        """The mean over the anchors that have another of their class; `rows` [A, D] are their embeddings."""
        cosines = jnp.matmul(rows, rows.T, precision=lax.Precision.HIGHEST) / self.temperature
        pairs = anchors.valid[:, None] & anchors.valid
        same = anchors.classes[:, None] == anchors.classes
        positive = pairs & same & ~jnp.eye(len(rows), dtype=bool)
        # Not infinite: where there is nothing to push away, the gradient would be.
        pushed = jax.nn.logsumexp(jnp.where(pairs & ~same, cosines, -1e9), axis=1, keepdims=True)
        losses = jnp.where(positive, jax.nn.softplus(pushed - cosines), 0.0)
        number = positive.astype(jnp.float32).sum(1)
        means = losses.sum(1) / jnp.maximum(number, 1)
        total = jnp.maximum((number > 0).astype(jnp.float32).sum(), 1)
        return self.temperature / self.base_temperature * means.sum() / total
