"""Losses of labels and logits, of distances and rankings, with Paddle's reductions. Classes are the last axis.

Labels may be int64 arrays or int32. A label that is no class is a LabelError in an eager call; values cannot raise in a
compiled program, so there its loss is NaN, which stops a Trainer. CTC stands in ctc.py.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from framework.core.dtypes import wide_type
from framework.core.errors import InputError, ShapeError
from framework.nn.functional import slopes
from framework.nn.functional.lowering import jitted

_REDUCTIONS = ("mean", "sum", "none")


def check_reduction(reduction: str, where: str, allowed: tuple[str, ...] = _REDUCTIONS) -> None:
    """Refuse a reduction that is not in `allowed`.

    Raises:
        ShapeError: naming `where` and what is allowed.
    """
    if reduction not in allowed:
        raise ShapeError(
            "unknown reduction", where=where, received=repr(reduction), allowed=", ".join(allowed)
        )


def reduce_loss(loss: jax.Array, reduction: str) -> jax.Array:
    """The mean, the sum or the array itself."""
    return {"mean": jnp.mean, "sum": jnp.sum, "none": lambda x: x}[reduction](loss)


# -- cross entropy ------------------------------------------------------------------------------------------------


class LabelError(InputError):
    """Labels that are no class. `rows` are the indices [K] of the wrong ones along the first axis of `shape`."""

    def __init__(
        self, where: str, label: np.ndarray, wrong: np.ndarray, classes: int, ignored: int | None
    ) -> None:
        self.rows = np.unique(np.nonzero(wrong)[0]) if label.ndim else np.zeros(1, np.int64)
        self.shape, self.classes, self.labels = label.shape, classes, np.unique(label[wrong])
        shown = ", ".join(map(str, self.labels[:5])) + (" …" if len(self.labels) > 5 else "")
        self.found = f"label {shown} of {classes} classes"
        super().__init__(
            "a label is out of range",
            where=where,
            received=f"{self.found}; {int(wrong.sum())} of {wrong.size} labels are out of range",
            allowed=f"0 to {classes - 1}" + ("" if ignored is None else f", or {ignored} to ignore a label"),
            fix="correct the labels, or give the model as many classes as the data have",
        )


def _check_labels(where: str, label: jax.Array, classes: int, ignored: int | None) -> None:
    """Raises: LabelError for labels outside of [0, classes), where their values are known."""
    if isinstance(label, Tracer) or not jnp.issubdtype(label.dtype, jnp.integer):
        return
    values = np.asarray(label)
    wrong = (values < 0) | (values >= classes)
    if ignored is not None:
        wrong &= values != ignored
    if wrong.any():
        raise LabelError(where, values, wrong, classes, ignored)


def _refuse_outside(loss: jax.Array, label: jax.Array, classes: int) -> jax.Array:
    """NaN for labels outside of [0, classes): one comparison a label, which XLA fuses into what computes the loss."""
    number = label.astype(jnp.int32)  # uint8 could not be compared with 256
    return jnp.where((number >= 0) & (number < classes), loss, jnp.nan)


def _pick(table: jax.Array, label: jax.Array) -> jax.Array:
    """table[..., label]: a masked sum, since the gradient of a gather is a serial scatter on a CPU."""
    classes = lax.broadcasted_iota(jnp.int32, table.shape, table.ndim - 1)
    return jnp.where(classes == label[..., None].astype(jnp.int32), table, 0).sum(-1)


def cross_entropy(
    input: jax.Array,
    label: jax.Array,
    weight: jax.Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    label_smoothing: float = 0.0,
) -> jax.Array:
    """-log p(label) of logits [..., C], or of probabilities when `use_softmax` is False.

    label is [...] or [..., 1] with integers, or [..., C] with probabilities when `soft_label`. Entries equal to
    `ignore_index` cost nothing and do not count in the mean, which divides by the sum of the class weights.
    `axis` names the class axis of input and soft labels. With reduction none the result has the label's shape
    (a soft label's class axis is 1).

    Raises:
        ShapeError: label or weight do not fit the logits.
        LabelError: a label is neither a class nor `ignore_index`; in a compiled program its loss is NaN.
    """
    if not soft_label:
        _check_labels("cross_entropy", label, input.shape[axis % input.ndim], ignore_index)
    return _cross_entropy(
        input, label, weight, ignore_index, reduction, soft_label, axis, use_softmax, label_smoothing
    )


@jitted("ignore_index", "reduction", "soft_label", "axis", "use_softmax", "label_smoothing")
def _cross_entropy(
    input: jax.Array,
    label: jax.Array,
    weight: jax.Array | None,
    ignore_index: int,
    reduction: str,
    soft_label: bool,
    axis: int,
    use_softmax: bool,
    label_smoothing: float,
) -> jax.Array:
    check_reduction(reduction, "cross_entropy")
    if axis % input.ndim != input.ndim - 1:
        input = jnp.moveaxis(input, axis, -1)
        if label.ndim == input.ndim:
            label = jnp.moveaxis(label, axis, -1)
    batch, classes = input.shape[:-1], input.shape[-1]
    column = not soft_label and label.ndim == input.ndim and label.shape[-1] == 1
    if column:
        label = label[..., 0]
    if label.shape != (input.shape if soft_label else batch):
        raise ShapeError(
            "cross_entropy: labels do not fit the logits",
            received=f"logits {input.shape}, label {label.shape}, soft_label={soft_label}",
            allowed=f"label {input.shape if soft_label else f'{batch} or {(*batch, 1)}'}",
        )
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(
            "cross_entropy: one weight for each class", received=weight.shape, allowed=(classes,)
        )
    if not soft_label and not jnp.issubdtype(label.dtype, jnp.integer):
        raise ShapeError(
            "cross_entropy: hard labels are integers", received=str(label.dtype), allowed="an integer array"
        )
    smoothing, kind = float(label_smoothing), wide_type(input.dtype)
    wide = input.astype(kind)
    logs = jax.nn.log_softmax(wide, -1) if use_softmax else jnp.log(jnp.maximum(wide, 1e-38))
    if soft_label:
        target = label.astype(kind)
        if smoothing:
            target = (1 - smoothing) * target + smoothing / classes
        kept = jnp.ones(logs.shape[:-1], kind)
        loss = -(target * logs).sum(-1)
        weights = kept if weight is None else target @ weight.astype(kind)
    else:
        kept = (label != ignore_index).astype(kind)
        safe = jnp.where(label != ignore_index, label, 0)
        picked = _pick(logs, safe)
        loss = -((1 - smoothing) * picked + smoothing * logs.mean(-1)) if smoothing else -picked
        loss = _refuse_outside(loss, safe, classes) * kept
        if weight is None:
            weights = kept
        else:
            weight = weight.astype(kind)
            weights = jnp.take(weight, safe, mode="clip")
            if smoothing:
                weights = (1 - smoothing) * weights + smoothing * weight.mean()
            weights = weights * kept
    loss = loss * weights
    if reduction == "mean":
        total = weights.sum()
        return loss.sum() / jnp.where(total == 0, 1, total)
    if reduction == "none" and (column or soft_label):
        loss = loss[..., None]
        return loss if axis % input.ndim == input.ndim - 1 else jnp.moveaxis(loss, -1, axis)
    return reduce_loss(loss, reduction)


def softmax_with_cross_entropy(
    logits: jax.Array,
    label: jax.Array,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """The unreduced cross entropy with the class axis kept as 1: logits [..., C], label [..., 1] -> [..., 1].

    It is always computed in the stable way; `numeric_stable_mode` is accepted for Paddle's sake.
    """
    if label.ndim != logits.ndim:
        label = jnp.expand_dims(label, axis)
    loss = cross_entropy(logits, label, None, ignore_index, "none", soft_label, axis)
    return (loss, jax.nn.softmax(logits, axis)) if return_softmax else loss


def nll_loss(
    input: jax.Array,
    label: jax.Array,
    weight: jax.Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> jax.Array:
    """-input[label] of log-probabilities [..., C] with labels [...]; Paddle has the classes on axis 1.

    Raises:
        ShapeError: the labels do not fit the log-probabilities.
        LabelError: a label is neither a class nor `ignore_index`; in a compiled program its loss is NaN.
    """
    _check_labels("nll_loss", label, input.shape[-1], ignore_index)
    return _nll_loss(input, label, weight, ignore_index, reduction)


@jitted("ignore_index", "reduction")
def _nll_loss(
    input: jax.Array, label: jax.Array, weight: jax.Array | None, ignore_index: int, reduction: str
) -> jax.Array:
    check_reduction(reduction, "nll_loss")
    if label.shape != input.shape[:-1]:
        raise ShapeError(
            "nll_loss: labels do not fit the log-probabilities",
            received=f"input {input.shape}, label {label.shape}",
            allowed=f"label {input.shape[:-1]}; classes are the last axis",
        )
    kept = (label != ignore_index).astype(input.dtype)
    safe = jnp.where(label != ignore_index, label, 0)
    weights = kept if weight is None else jnp.take(weight, safe, mode="clip") * kept
    loss = _refuse_outside(-_pick(input, safe), safe, input.shape[-1]) * weights
    return loss.sum() / weights.sum() if reduction == "mean" else reduce_loss(loss, reduction)


# -- binary cross entropy -----------------------------------------------------------------------------------------


def _reduce_weighted(loss: jax.Array, weight: jax.Array | None, reduction: str) -> jax.Array:
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def _same_shapes(where: str, first: jax.Array, second: jax.Array) -> None:
    if first.shape != second.shape:
        raise ShapeError(
            f"{where}: input and label have one shape",
            received=f"input {first.shape}, label {second.shape}",
            allowed="equal shapes",
        )


@jitted("reduction")
def binary_cross_entropy(
    input: jax.Array, label: jax.Array, weight: jax.Array | None = None, reduction: str = "mean"
) -> jax.Array:
    """-(y log p + (1 - y) log(1 - p)) of probabilities; logarithms stop at -100."""
    check_reduction(reduction, "binary_cross_entropy")
    _same_shapes("binary_cross_entropy", input, label)
    label = label.astype(input.dtype)

    def log(value: jax.Array) -> jax.Array:
        # -100 at zero as in Paddle; the inner maximum keeps the gradient there zero instead of infinite.
        return jnp.where(value > 0, jnp.log(jnp.maximum(value, jnp.finfo(value.dtype).tiny)), -100.0)

    return _reduce_weighted(-(label * log(input) + (1 - label) * log(1 - input)), weight, reduction)


def entropy_of_logits(
    logit: jax.Array, label: jax.Array | float, pos_weight: jax.Array | float = 1.0
) -> jax.Array:
    """-(w y log p + (1 - y) log(1 - p)) of p = sigmoid(logit) and w = `pos_weight`; shapes broadcast.

    Value and gradient keep their digits on both sides: x - x y + log(1 + exp(-x)) has neither for a confident logit,
    and with |x| in the exponent jax's gradient at a logit of 0 is off by one half.
    """
    negative = logit < 0
    rest = jnp.log1p(jnp.exp(jnp.where(negative, logit, -logit)))
    up, down = jnp.where(negative, 0, logit), jnp.where(negative, -logit, 0)
    return (1 - label) * (up + rest) + pos_weight * label * (down + rest)


@jitted("reduction")
def binary_cross_entropy_with_logits(
    logit: jax.Array,
    label: jax.Array,
    weight: jax.Array | None = None,
    reduction: str = "mean",
    pos_weight: jax.Array | None = None,
) -> jax.Array:
    """Binary cross entropy of sigmoid(logit); `pos_weight` multiplies the term of the positive labels."""
    check_reduction(reduction, "binary_cross_entropy_with_logits")
    _same_shapes("binary_cross_entropy_with_logits", logit, label)
    label = label.astype(logit.dtype)
    entropy = entropy_of_logits(logit, label, 1.0 if pos_weight is None else pos_weight)
    return _reduce_weighted(entropy, weight, reduction)


@jitted("alpha", "gamma", "reduction")
def sigmoid_focal_loss(
    logit: jax.Array,
    label: jax.Array,
    normalizer: jax.Array | None = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
) -> jax.Array:
    """alpha_t (1 - p_t)^gamma times binary cross entropy, divided by `normalizer`. Source: Lin et al. 2017."""
    check_reduction(reduction, "sigmoid_focal_loss")
    _same_shapes("sigmoid_focal_loss", logit, label)
    label, alpha = label.astype(logit.dtype), float(alpha)
    loss = entropy_of_logits(logit, label)
    # 1 - p_t is the sigmoid of the logit of the wrong side: no cancellation for well classified examples.
    wrong = label * jax.nn.sigmoid(-logit) + (1 - label) * jax.nn.sigmoid(logit)
    balance = alpha * label + (1 - alpha) * (1 - label)
    loss = balance * wrong ** float(gamma) * loss
    return reduce_loss(loss if normalizer is None else loss / normalizer, reduction)


@jitted("epsilon")
def log_loss(input: jax.Array, label: jax.Array, epsilon: float = 1e-4) -> jax.Array:
    """Binary cross entropy of probabilities with `epsilon` inside the logarithms, unreduced."""
    _same_shapes("log_loss", input, label)
    label, epsilon = label.astype(input.dtype), float(epsilon)
    return -label * jnp.log(input + epsilon) - (1 - label) * jnp.log(1 - input + epsilon)


def dice_loss(input: jax.Array, label: jax.Array, epsilon: float = 1e-5) -> jax.Array:
    """1 - 2 |p y| / (|p| + |y|), the mean over samples. input [N, ..., C] probabilities, label [N, ..., 1] integers.

    Source: Milletari et al. 2016.

    Raises:
        ShapeError: the labels do not fit the probabilities.
        LabelError: a label is no class; in a compiled program the loss is NaN.
    """
    _check_labels("dice_loss", label, input.shape[-1], None)
    return _dice_loss(input, label, epsilon)


@jitted("epsilon")
def _dice_loss(input: jax.Array, label: jax.Array, epsilon: float) -> jax.Array:
    if label.shape != (*input.shape[:-1], 1):
        raise ShapeError(
            "dice_loss: labels do not fit the probabilities",
            received=f"input {input.shape}, label {label.shape}",
            allowed=f"label {(*input.shape[:-1], 1)}",
        )
    target = jax.nn.one_hot(label[..., 0], input.shape[-1], dtype=input.dtype)
    target = _refuse_outside(target, label, input.shape[-1])
    axes = tuple(range(1, input.ndim))
    overlap, total = (input * target).sum(axes), input.sum(axes) + target.sum(axes)
    return (1 - 2 * overlap / (total + float(epsilon))).mean()


# -- distances, divergences, rankings -----------------------------------------------------------------------------


def _check(where: str, reduction: str, *arrays: jax.Array) -> None:
    check_reduction(reduction, where)
    if len({a.shape for a in arrays}) > 1:
        raise ShapeError(
            f"{where}: the arrays have one shape",
            received=", ".join(str(a.shape) for a in arrays),
            allowed="equal shapes; nothing is broadcast",
        )


@jitted("reduction")
def mse_loss(input: jax.Array, label: jax.Array, reduction: str = "mean") -> jax.Array:
    """(input - label)^2."""
    _check("mse_loss", reduction, input, label)
    return reduce_loss(jnp.square(input - label), reduction)


def square_error_cost(input: jax.Array, label: jax.Array) -> jax.Array:
    """(input - label)^2, unreduced."""
    return mse_loss(input, label, "none")


@jitted("reduction")
def l1_loss(input: jax.Array, label: jax.Array, reduction: str = "mean") -> jax.Array:
    """|input - label|."""
    _check("l1_loss", reduction, input, label)
    return reduce_loss(slopes.absolute(input - label), reduction)


@jitted("reduction", "delta")
def smooth_l1_loss(
    input: jax.Array, label: jax.Array, reduction: str = "mean", delta: float = 1.0
) -> jax.Array:
    """d^2 / 2 up to `delta`, delta (d - delta / 2) beyond: Huber's form, as in Paddle, not divided by delta."""
    _check("smooth_l1_loss", reduction, input, label)
    distance = jnp.abs(input - label)
    near, beyond = jnp.minimum(distance, float(delta)), jnp.maximum(distance - float(delta), 0)
    # Not near * (distance - near / 2), whose gradient at an infinite distance is NaN.
    return reduce_loss(0.5 * near * near + float(delta) * beyond, reduction)


@jitted("reduction")
def kl_div(input: jax.Array, label: jax.Array, reduction: str = "mean") -> jax.Array:
    """label (log label - input) of log-probabilities `input`; batchmean divides the sum by the batch."""
    check_reduction(reduction, "kl_div", ("mean", "batchmean", "sum", "none"))
    _check("kl_div", "none", input, label)
    known = jnp.log(jnp.where(label <= 0, 1, label))  # NaN stays NaN
    loss = jnp.where(label <= 0, 0, label * (known - input))
    return loss.sum() / loss.shape[0] if reduction == "batchmean" else reduce_loss(loss, reduction)


@jitted("margin", "reduction")
def margin_ranking_loss(
    input: jax.Array, other: jax.Array, label: jax.Array, margin: float = 0.0, reduction: str = "mean"
) -> jax.Array:
    """max(0, -label (input - other) + margin) with labels 1 or -1."""
    _check("margin_ranking_loss", reduction, input, other, label)
    return reduce_loss(jax.nn.relu(label.astype(input.dtype) * (other - input) + float(margin)), reduction)


def _distance(x: jax.Array, y: jax.Array, p: float, epsilon: float) -> jax.Array:
    gap = jnp.abs(x - y + epsilon)
    if p == float("inf"):
        return gap.max(-1)
    return jnp.sqrt(jnp.square(gap).sum(-1)) if p == 2 else (gap**p).sum(-1) ** (1 / p)


@jitted("margin", "p", "epsilon", "swap", "reduction")
def triplet_margin_loss(
    input: jax.Array,
    positive: jax.Array,
    negative: jax.Array,
    margin: float = 1.0,
    p: float = 2,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> jax.Array:
    """max(0, d(input, positive) - d(input, negative) + margin) over [N, D]. Source: Balntas et al. 2016 (swap)."""
    _check("triplet_margin_loss", reduction, input, positive, negative)
    p, epsilon = float(p), float(epsilon)
    near, far = _distance(input, positive, p, epsilon), _distance(input, negative, p, epsilon)
    if swap:
        far = jnp.minimum(far, _distance(positive, negative, p, epsilon))
    return reduce_loss(jax.nn.relu(near - far + float(margin)), reduction)


@jitted("margin", "reduction")
def cosine_embedding_loss(
    input1: jax.Array, input2: jax.Array, label: jax.Array, margin: float = 0.0, reduction: str = "mean"
) -> jax.Array:
    """1 - cos for label 1 and max(0, cos - margin) for label -1. input [N, D] or [D], label [N] or []."""
    _check("cosine_embedding_loss", reduction, input1, input2)
    if label.shape != input1.shape[:-1]:
        raise ShapeError(
            "cosine_embedding_loss: one label for each pair",
            received=label.shape,
            allowed=input1.shape[:-1],
        )
    squares = [jnp.square(a).sum(-1) + 1e-11 for a in (input1, input2)]
    cosine = (input1 * input2).sum(-1) / jnp.sqrt(squares[0] * squares[1])
    apart = jnp.where(label == -1, jax.nn.relu(cosine - float(margin)), 0)
    return reduce_loss(jnp.where(label == 1, 1 - cosine, apart), reduction)
