"""Losses of pixels, for the outputs of a model one by one: `loss(logits [N, H, W, C], labels [N, H, W] int32)`.

Each gives a float32 scalar over the whole batch, of fixed shapes: a pixel of `ignore_index` counts nowhere, and a batch
of such pixels alone costs 0, with gradients of 0. Logits of any float dtype are taken as float32. The numbers are
PaddleSeg's; under data parallelism the batch is the global one.

Raises, each when it is called:
    ShapeError: logits and labels are no such arrays, or do not fit.
    ConfigError: there is not one weight for each class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import jax
import jax.numpy as jnp
from jax import lax

from framework.config import Kind, register
from framework.core.errors import ConfigError, ShapeError
from framework.engine.class_weights import ClassWeights, check_class_weights, weight_array
from framework.nn import functional as F
from framework.nn.functional.slopes import absolute
from segmentation.contracts import DEFAULT_IGNORED, Loss, Output, PixelMean


@register("loss")
@dataclass(frozen=True)
class CrossEntropy:
    """The mean of the pixels' cross entropies, each weighed by its class.

    With `hardest` below 1 only that share of all pixels counts, the ones that cost most.

    Attributes:
        weight: One weight a class, or balanced, by how many pixels of the training masks each class has; None stands
            for equal ones.
        hardest: A share above 0, up to 1; upstream's `top_k_percent_pixels`.

    Raises:
        ConfigError: `hardest` is out of range, or these are no weights.
    """

    ignore_index: int = DEFAULT_IGNORED
    weight: ClassWeights = None
    hardest: float = 1.0

    def __post_init__(self) -> None:
        check_class_weights(self.weight, "CrossEntropy.weight")
        _check_range(0 < self.hardest <= 1, "CrossEntropy.hardest", self.hardest, "above 0, up to 1")

    def __call__(self, output: Output, labels: jax.Array) -> jax.Array:
        losses, weights = self._weigh(output, labels)
        return losses.mean() / (weights.mean() + 1e-8)

    def count(self, output: Output, labels: jax.Array) -> jax.Array:
        """Of how much the loss is the mean, see `PixelMean`."""
        return self._weigh(output, labels)[1].sum()

    def _weigh(self, output: Output, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The losses of the pixels [N, H, W], weighed, and their weights; both 0 where a pixel does not count."""
        logits, valid = _check_shapes(output, labels, self.ignore_index)
        losses = _entropies(logits, labels, self.ignore_index)
        weights = jnp.ones_like(losses)
        weight = weight_array(self.weight, logits.shape[-1], "CrossEntropy.weight")
        if weight is not None:
            # That of an ignored pixel only `hardest` can see.
            weights = weight[jnp.where(valid > 0, labels, 0)]
        losses, counted = losses * weights, valid
        if self.hardest < 1:
            counted = _largest(lax.stop_gradient(losses), max(1, int(self.hardest * losses.size)))
        return losses * counted, weights * counted


@register("loss")
@dataclass(frozen=True)
class OhemCrossEntropy:
    """The mean cross entropy of the hard pixels: those whose label has a probability below `thresh`.

    Where that are fewer than `min_kept` of the batch, the probability of the `min_kept`-th hardest pixel takes the
    place of `thresh`; a batch with up to `min_kept` valid pixels is taken whole.

    Raises:
        ConfigError: `thresh` is not between 0 and 1, or `min_kept` is below 1.

    Source: online hard example mining, Shrivastava et al. 2016, https://arxiv.org/abs/1604.03540
    """

    thresh: float = 0.7
    min_kept: int = 10000
    ignore_index: int = DEFAULT_IGNORED

    def __post_init__(self) -> None:
        _check_range(0 < self.thresh < 1, "OhemCrossEntropy.thresh", self.thresh, "between 0 and 1")
        _check_range(self.min_kept >= 1, "OhemCrossEntropy.min_kept", self.min_kept, "1 or more")

    def __call__(self, output: Output, labels: jax.Array) -> jax.Array:
        losses, hard = self._select(output, labels)
        return (losses * hard).mean() / (hard.mean() + 1e-5)

    def count(self, output: Output, labels: jax.Array) -> jax.Array:
        """Of how much the loss is the mean, see `PixelMean`."""
        return self._select(output, labels)[1].sum()

    def _select(self, output: Output, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The losses of the pixels [N, H, W], and 1 for the hard ones, 0 for the others."""
        logits, valid = _check_shapes(output, labels, self.ignore_index)
        losses = _entropies(logits, labels, self.ignore_index)
        # Pixels are told apart by their loss, which falls as the probability grows; ignored ones have 0, the least.
        costs = lax.stop_gradient(losses)
        limit = -jnp.log(jnp.float32(self.thresh))
        limit = lax.cond(
            (costs >= limit).sum() >= self.min_kept,
            lambda: limit,
            lambda: jnp.minimum(limit, _kth_largest(costs, self.min_kept)),
        )
        easy = (valid.sum() > self.min_kept) & (costs <= limit)
        return losses, jnp.where(easy, 0.0, valid)


@register("loss")
@dataclass(frozen=True)
class Focal:
    """The mean of (1 - p)^gamma times the cross entropy, p being the probability of the pixel's label; times alpha.

    Source: Lin et al. 2017, https://arxiv.org/abs/1708.02002; PaddleSeg's MultiClassFocalLoss
    """

    alpha: float = 1.0
    gamma: float = 2.0
    ignore_index: int = DEFAULT_IGNORED

    def __call__(self, output: Output, labels: jax.Array) -> jax.Array:
        logits, valid = _check_shapes(output, labels, self.ignore_index)
        losses = _entropies(logits, labels, self.ignore_index)
        # A root of 0 has no finite slope, which a gamma below 1 would ask for.
        missing = jnp.maximum(-jnp.expm1(-losses), 1e-30)
        return self.alpha * (missing**self.gamma * losses).mean() / (valid.mean() + 1e-10)

    def count(self, output: Output, labels: jax.Array) -> jax.Array:
        """Of how much the loss is the mean, see `PixelMean`."""
        return _check_shapes(output, labels, self.ignore_index)[1].sum()


@register("loss")
@dataclass(frozen=True)
class Dice:
    """1 - 2 |A B| / (|A| + |B|) of probabilities and labels, by image and class, `smooth` added above and below.

    The mean over the images and all classes, those without a pixel too; `weight`, as that of CrossEntropy, scales the
    classes before the mean.

    Source: Milletari et al. 2016, https://arxiv.org/abs/1606.04797
    """

    ignore_index: int = DEFAULT_IGNORED
    weight: ClassWeights = None
    smooth: float = 1.0

    def __post_init__(self) -> None:
        check_class_weights(self.weight, "Dice.weight")

    def __call__(self, output: Output, labels: jax.Array) -> jax.Array:
        logits, valid = _check_shapes(output, labels, self.ignore_index)
        scores = jax.nn.softmax(logits) * valid[..., None]
        truth = _one_hot(logits, labels) * valid[..., None]
        common, total = (scores * truth).sum((1, 2)), (scores + truth).sum((1, 2))
        losses = 1 - (2 * common + self.smooth) / (total + self.smooth + 1e-8)
        weight = weight_array(self.weight, logits.shape[-1], "Dice.weight")
        return (losses if weight is None else losses * weight).mean()


@register("loss")
@dataclass(frozen=True)
class LovaszSoftmax:
    """A convex bound of 1 - IoU, the mean over the classes that the batch has labels of.

    Source: Berman et al. 2018, https://arxiv.org/abs/1705.08790, algorithm 1
    """

    ignore_index: int = DEFAULT_IGNORED

    def __call__(self, output: Output, labels: jax.Array) -> jax.Array:
        logits, valid = _check_shapes(output, labels, self.ignore_index)
        # Ignored pixels have an error of 0: they come last and weigh nothing.
        truth = _one_hot(logits, labels) * valid[..., None]
        errors = absolute(truth - jax.nn.softmax(logits)) * valid[..., None]
        flat_truth, flat_errors = (jnp.moveaxis(x, -1, 0).reshape(x.shape[-1], -1) for x in (truth, errors))
        losses = lax.map(lambda one: _lovasz(*one), (flat_errors, flat_truth))
        present = (flat_truth.sum(1) > 0).astype(jnp.float32)
        return (losses * present).sum() / jnp.maximum(present.sum(), 1)


@register("loss")
@dataclass(frozen=True)
class Mixed:
    """Several losses of one output, added by weight.

    Raises:
        ConfigError: there is not one weight for each loss.
    """

    losses: tuple[Annotated[Loss, Kind("loss")], ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.losses or len(self.losses) != len(self.weights):
            raise ConfigError(
                "losses and weights do not fit",
                where="Mixed",
                received=f"{len(self.losses)} losses, {len(self.weights)} weights",
                allowed="one weight for each loss",
            )

    def __call__(self, output: Output, labels: jax.Array) -> jax.Array:
        terms = [weight * loss(output, labels) for loss, weight in zip(self.losses, self.weights)]
        return jnp.stack(terms).sum()

    def count(self, output: Output, labels: jax.Array) -> jax.Array | None:
        """That of the first loss that is a mean over pixels; None where there is none."""
        counts = (loss.count(output, labels) for loss in self.losses if isinstance(loss, PixelMean))
        return next((count for count in counts if count is not None), None)


def balance_loss(loss: Loss, weights: Callable[[], tuple[float, ...]]) -> Loss:
    """The loss with `weights()` in place of each "balanced" in it; asked for only where there is one."""
    if isinstance(loss, Mixed):
        return replace(loss, losses=tuple(balance_loss(one, weights) for one in loss.losses))
    if isinstance(loss, (CrossEntropy, Dice)) and loss.weight == "balanced":
        return replace(loss, weight=weights())
    return loss


def _check_range(holds: bool, where: str, received: float, allowed: str) -> None:
    if not holds:
        raise ConfigError("this is out of range", where=where, received=received, allowed=allowed)


def _check_shapes(output: Output, labels: jax.Array, ignore_index: int) -> tuple[jax.Array, jax.Array]:
    """Logits and whether a pixel counts, both float32."""
    shape = () if isinstance(output, tuple) else output.shape
    fits = len(shape) == 4 and shape[:-1] == labels.shape and jnp.issubdtype(labels.dtype, jnp.integer)
    if isinstance(output, tuple) or not fits:
        raise ShapeError(
            "the loss does not take these",
            where="output and labels",
            received=f"{list(shape) if shape else type(output).__name__}, {labels.dtype} {list(labels.shape)}",
            allowed="logits [N, H, W, C] and integer labels [N, H, W] of the same size",
        )
    classes = output.shape[-1]
    if ignore_index == DEFAULT_IGNORED < classes:  # another class is left out because a config says so
        raise ConfigError(
            "the loss would ignore a class",
            where="ignore_index",
            received=f"{ignore_index}, and logits of {classes} classes",
            allowed=f"{classes} to 65535",
            fix="set ignore_index: 65535 for the data sets, the losses, the metric and the transforms that have it",
        )
    return output.astype(jnp.float32), (labels != ignore_index).astype(jnp.float32)


def _entropies(logits: jax.Array, labels: jax.Array, ignore_index: int) -> jax.Array:
    """The cross entropy of each pixel, 0 where it is ignored."""
    return F.cross_entropy(logits, labels, ignore_index=ignore_index, reduction="none")


def _one_hot(logits: jax.Array, labels: jax.Array) -> jax.Array:
    return (labels[..., None] == jnp.arange(logits.shape[-1])).astype(jnp.float32)


def _kth_largest(values: jax.Array, k: int) -> jax.Array:
    """The k-th largest of non-negative float32 values of any shape.

    Their bit patterns are in the same order as they are: 31 counts find the answer bit by bit, 30 times as fast on a
    CPU as sorting 1.4 million values.
    """
    bits = lax.bitcast_convert_type(jnp.abs(values), jnp.int32)  # -0.0 would be the least pattern

    def next_bit(bit: jax.Array, prefix: jax.Array) -> jax.Array:
        higher = prefix | (1 << (30 - bit))
        return jnp.where((bits >= higher).sum() >= k, higher, prefix)

    return lax.bitcast_convert_type(lax.fori_loop(0, 31, next_bit, jnp.int32(0)), jnp.float32)


def _largest(values: jax.Array, k: int) -> jax.Array:
    """Weights that add up to k: 1 for what is larger than the k-th largest, equal parts of the rest for its equals."""
    limit = _kth_largest(values, k)
    above, equal = values > limit, values == limit
    return jnp.where(above, 1.0, jnp.where(equal, (k - above.sum()) / jnp.maximum(equal.sum(), 1), 0.0))


def _lovasz(errors: jax.Array, truth: jax.Array) -> jax.Array:
    """Of one class: the sum of the errors [P], each times what it adds to the Jaccard loss, from the largest on."""
    falling, truth = lax.sort((-errors, truth), num_keys=1)
    total = truth.sum()
    jaccard = 1 - (total - jnp.cumsum(truth)) / jnp.maximum(total + jnp.cumsum(1 - truth), 1)
    return -(falling * lax.stop_gradient(jnp.diff(jaccard, prepend=0))).sum()
