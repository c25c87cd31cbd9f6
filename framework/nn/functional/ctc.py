"""Connectionist temporal classification: the log-probability of all alignments of a label to a sequence.

Source: Graves et al. 2006. The forward variables of section 4.1 run in the log semiring in one `lax.scan` over time on
labels padded to one length, so one program serves every batch of the same padded shape.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.dtypes import wide_type
from framework.core.errors import ShapeError
from framework.nn.functional.losses import check_reduction, reduce_loss
from framework.nn.functional.lowering import jitted

# Stands for log 0: finite, so that sums and gradients stay finite on paths that no alignment takes.
_NEVER = -1e30


def _log_sum(*terms: jax.Array) -> jax.Array:
    top = lax.stop_gradient(functools.reduce(jnp.maximum, terms))
    return top + jnp.log(functools.reduce(jnp.add, [jnp.exp(term - top) for term in terms]))


def _shift(alpha: jax.Array, by: int) -> jax.Array:
    """alpha[:, s - by], log 0 for s < by."""
    return jnp.pad(alpha, ((0, 0), (by, 0)), constant_values=_NEVER)[:, : alpha.shape[1]]


def _pick(row: jax.Array, index: jax.Array) -> jax.Array:
    return jnp.take_along_axis(row, index, axis=-1, mode="clip")


@jitted("blank", "reduction", "norm_by_times")
def _ctc_loss(
    logits: jax.Array,
    labels: jax.Array,
    input_lengths: jax.Array,
    label_lengths: jax.Array,
    blank: int,
    reduction: str,
    norm_by_times: bool,
) -> jax.Array:
    steps, batch, _ = logits.shape
    length = labels.shape[1]
    # Of one type with positions and counts, whatever integers jax has by default.
    input_lengths, label_lengths = input_lengths.astype(jnp.int32), label_lengths.astype(jnp.int32)
    logs = jax.nn.log_softmax(logits.astype(wide_type(logits.dtype)), -1)

    # The states: blank, label 0, blank, label 1, ..., blank.
    states = jnp.full((batch, 2 * length + 1), blank, jnp.int32).at[:, 1::2].set(labels.astype(jnp.int32))
    position = jnp.arange(2 * length + 1)
    # A label follows another one directly unless they are equal.
    skips = (position % 2 == 1) & (position >= 3) & (states != jnp.roll(states, 2, 1))
    skip_cost = jnp.where(skips, 0.0, _NEVER)
    emitted = _pick(logs, jnp.broadcast_to(states, (steps, *states.shape)))  # [T, N, states]

    def step(alpha: jax.Array, inputs: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        emit, t = inputs
        moved = _log_sum(alpha, _shift(alpha, 1), _shift(alpha, 2) + skip_cost) + emit
        return jnp.where((t < input_lengths)[:, None], moved, alpha), None

    start = jnp.where(position < 2, emitted[0], _NEVER)
    alpha, _ = lax.scan(step, start, (emitted[1:], jnp.arange(1, steps, dtype=jnp.int32)))

    end = 2 * label_lengths[:, None]
    last_label = jnp.where(end > 0, _pick(alpha, jnp.maximum(end - 1, 0)), _NEVER)
    loss = -_log_sum(_pick(alpha, end), last_label)[:, 0]

    # A label that does not fit into its sequence (equal neighbours need a blank between them) has no alignment.
    inside = jnp.arange(1, length, dtype=jnp.int32)[None] < label_lengths[:, None]
    repeats = ((labels[:, 1:] == labels[:, :-1]) & inside).sum(1, dtype=jnp.int32)
    fits = (label_lengths + repeats <= input_lengths) & (input_lengths > 0)
    loss = jnp.where(fits, loss, 0.0)
    if norm_by_times:
        scaled = loss / jnp.maximum(input_lengths, 1).astype(loss.dtype)
        loss = scaled + lax.stop_gradient(loss - scaled)
    if reduction == "mean":
        return (loss / jnp.maximum(label_lengths, 1).astype(loss.dtype)).mean()
    return reduce_loss(loss, reduction)


def ctc_loss(
    log_probs: jax.Array,
    labels: jax.Array,
    input_lengths: jax.Array,
    label_lengths: jax.Array,
    blank: int = 0,
    reduction: str = "mean",
    norm_by_times: bool = False,
) -> jax.Array:
    """The negative log-likelihood of labels [N, L] under logits [T, N, C]; softmax is applied here.

    input_lengths and label_lengths are [N] integers, and what lies beyond them does not count. A label that fits into
    no alignment costs 0 and has no gradient, as in warp-ctc; an empty label is allowed. The mean first divides each
    sample by its label's length. `norm_by_times` divides the gradient, and not the value, by the input's length.
    With reduction none the result is [N]; Paddle has [N, 1].

    Raises:
        ShapeError: shapes do not agree, or the blank is not a class.
    """
    check_reduction(reduction, "ctc_loss")
    log_probs, labels = jnp.asarray(log_probs), jnp.asarray(labels)
    input_lengths, label_lengths = jnp.asarray(input_lengths), jnp.asarray(label_lengths)
    batch = log_probs.shape[1] if log_probs.ndim == 3 else None
    lengths_fit = input_lengths.shape == label_lengths.shape == (batch,)
    if batch is None or labels.ndim != 2 or labels.shape[0] != batch or not lengths_fit:
        raise ShapeError(
            "ctc_loss: logits, labels and lengths do not agree",
            received=f"logits {log_probs.shape}, labels {labels.shape}, "
            f"lengths {input_lengths.shape} and {label_lengths.shape}",
            allowed="logits [T, N, C], labels [N, L], lengths [N] each",
        )
    if not 0 <= blank < log_probs.shape[2]:
        raise ShapeError(
            "ctc_loss: the blank is one of the classes",
            received=blank,
            allowed=f"0 to {log_probs.shape[2] - 1}",
        )
    return _ctc_loss(log_probs, labels, input_lengths, label_lengths, int(blank), reduction, norm_by_times)
