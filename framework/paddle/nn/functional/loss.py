"""Losses of labels and logits: cross entropy and its kin, sequence losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.nn import functional as core
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError, require
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.functional.face import face
from framework.paddle.nn.functional.labels import check_labels

if TYPE_CHECKING:
    from framework.paddle.distributed.collective import Group


@operation(name="cross_entropy")
def _cross_entropy(
    input: Array,
    label: Array,
    weight: Array | None,
    ignore_index: int,
    reduction: str,
    soft_label: bool,
    axis: int,
    use_softmax: bool,
    label_smoothing: float,
) -> Array:
    soft_label = soft_label or (label_smoothing > 0 and label.shape == input.shape)
    label = lax.stop_gradient(label)  # as in Paddle soft labels get no gradient
    loss = core.cross_entropy(
        input, label, weight, ignore_index, reduction, soft_label, axis, use_softmax, label_smoothing
    )
    if label_smoothing and reduction == "none" and loss.ndim < input.ndim:
        loss = jnp.expand_dims(loss, axis)  # smoothed labels are soft ones
    return loss.astype(input.dtype)


@checked
def cross_entropy(
    input: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    label_smoothing: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """-log p(label) of logits [..., C], or of probabilities without `use_softmax`.

    label: [...] or [..., 1] classes, or [..., C] probabilities with `soft_label`. The mean divides by the weights of
    the labels that are not `ignore_index`.

    Raises:
        LabelError: a label is no class (up to 8192 labels on a CPU; else the loss is NaN).
    """
    where = "paddle.nn.functional.cross_entropy"
    require(input.ndim > 0, "the input has axes", where, "none")
    require(not (soft_label and ignore_index > 0), "soft labels are not ignored", where, f"{ignore_index=}")
    if not soft_label:
        check_labels("paddle.nn.functional.cross_entropy", label, input.shape[axis], ignore_index)
    return _cross_entropy(
        input, label, weight, ignore_index, reduction, soft_label, axis, use_softmax, label_smoothing
    )


@operation(name="softmax_with_cross_entropy")
def _softmax_with_cross_entropy(
    logits: Array, label: Array, soft_label: bool, ignore_index: int, return_softmax: bool, axis: int
) -> Any:
    losses = core.softmax_with_cross_entropy(
        logits, lax.stop_gradient(label), soft_label, ignore_index, True, return_softmax, axis
    )
    if not return_softmax:
        return losses
    loss, probabilities = losses
    return loss, lax.stop_gradient(probabilities)  # as in Paddle, whose gradient knows the loss alone


def softmax_with_cross_entropy(
    logits: Tensor,
    label: Tensor,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    """The unreduced cross entropy with the class axis kept as 1; with `return_softmax` also the probabilities."""
    require(logits.ndim > 0, "logits have axes", "paddle.nn.functional.softmax_with_cross_entropy", "none")
    if not soft_label:
        check_labels(
            "paddle.nn.functional.softmax_with_cross_entropy", label, logits.shape[axis], ignore_index
        )
    return _softmax_with_cross_entropy(logits, label, soft_label, ignore_index, return_softmax, axis)


@operation(name="nll_loss")
def _nll_loss(input: Array, label: Array, weight: Array | None, ignore_index: int, reduction: str) -> Array:
    if input.ndim == 2 and label.ndim > 1 and len(label) == len(input):
        label = label.reshape(-1)[: len(input)]  # Paddle's kernel reads as many labels as there are rows
    weight = lax.stop_gradient(weight)  # as in Paddle, unlike that of cross_entropy
    return core.nll_loss(jnp.moveaxis(input, 1, -1), label, weight, ignore_index, reduction)


@checked
def nll_loss(
    input: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """-input[label] of log-probabilities [N, C, ...] with labels [N, ...]."""
    if len(input.shape) < 2:
        raise ValueError(f"nll_loss takes [N, C, ...], received {input.shape}")
    check_labels("paddle.nn.functional.nll_loss", label, input.shape[1], ignore_index)
    return _nll_loss(input, label, weight, ignore_index, reduction)


@operation(name="hsigmoid_loss")
def _hsigmoid_loss(
    input: Array,
    label: Array,
    weight: Array,
    bias: Array | None,
    path_table: Array | None,
    path_code: Array | None,
    num_classes: int,
) -> Array:
    loss = core.hsigmoid_loss(input, label, num_classes, weight, bias, path_table, path_code)
    # Paddle counts log 2 for every step that a path is shorter than the longest.
    if path_table is not None:
        missing = (path_table < 0).sum(1, keepdims=True)
    else:
        nodes = label.reshape(-1, 1) + num_classes
        steps = jnp.floor(jnp.log2(nodes.astype(jnp.float32) + 0.5)).astype(jnp.int32)
        missing = (2 * num_classes - 1).bit_length() - 1 - steps
    return loss + missing.astype(loss.dtype) * float(np.log(2.0))


@checked
def hsigmoid_loss(
    input: Tensor,
    label: Tensor,
    num_classes: int,
    weight: Tensor | None,
    bias: Tensor | None = None,
    path_table: Tensor | None = None,
    path_code: Tensor | None = None,
    is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """-log p(label) [N, 1], the sigmoids along the label's path through a binary tree of classes."""
    if num_classes < 2:
        raise ValueError(f"hsigmoid_loss takes 2 or more classes, received {num_classes}")
    return _hsigmoid_loss(input, label, weight, bias, path_table, path_code, num_classes)


@operation
def margin_cross_entropy(
    logits: Array,
    label: Array,
    margin1: float = 1.0,
    margin2: float = 0.5,
    margin3: float = 0.0,
    scale: float = 64.0,
    group: Group | bool | None = None,
    return_softmax: bool = False,
    reduction: str | None = "mean",
) -> Array | tuple[Array, Array]:
    """Cross entropy of scale * cos with a margin at the label: cos(margin1 * angle + margin2) - margin3."""
    if group not in (None, False):
        raise ShapeError(
            "margin_cross_entropy runs on one device", received=f"group={group!r}", allowed="None"
        )
    return core.margin_cross_entropy(
        logits, label, margin1, margin2, margin3, scale, return_softmax, reduction
    )


def _flat_lengths(
    function: Callable[..., jax.Array],
    log_probs: jax.Array,
    labels: jax.Array,
    input_lengths: jax.Array,
    label_lengths: jax.Array,
    **settings: object,
) -> jax.Array:
    loss = function(log_probs, labels, input_lengths.reshape(-1), label_lengths.reshape(-1), **settings)
    return loss.astype(log_probs.dtype)


def _of_its_type(function: Callable[..., jax.Array], input: jax.Array, **arguments: object) -> jax.Array:
    return function(input, **arguments).astype(input.dtype)


def _fixed_label(function: Callable[..., jax.Array], label: jax.Array, **arguments: object) -> jax.Array:
    """As in Paddle the label gets no gradient: a teacher learns nothing from its students."""
    return function(label=lax.stop_gradient(label), **arguments)


binary_cross_entropy = face(core.binary_cross_entropy, _fixed_label)
binary_cross_entropy_with_logits = face(core.binary_cross_entropy_with_logits, _fixed_label)
ctc_loss = face(core.ctc_loss, _flat_lengths, name=False)
dice_loss = face(core.dice_loss)
log_loss = face(core.log_loss, _fixed_label)
npair_loss = face(core.npair_loss, name=False)
rnnt_loss = face(core.rnnt_loss, _of_its_type)
sigmoid_focal_loss = face(core.sigmoid_focal_loss)

_complete(__name__)
