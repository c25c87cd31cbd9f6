"""Negative log-likelihoods: Gaussian, Poisson, and of many classes by a tree or by clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from framework.core.dtypes import wide_type
from framework.core.errors import ShapeError
from framework.nn.functional.losses import _check as check_same_shapes
from framework.nn.functional.losses import _pick as pick
from framework.nn.functional.losses import check_reduction, reduce_loss
from framework.nn.functional.lowering import jitted


@jitted("full", "epsilon", "reduction")
def gaussian_nll_loss(
    input: jax.Array,
    label: jax.Array,
    variance: jax.Array,
    full: bool = False,
    epsilon: float = 1e-6,
    reduction: str = "mean",
) -> jax.Array:
    """(log v + (input - label)^2 / v) / 2 with v = max(variance, epsilon), and log(2 pi) / 2 more when `full`.

    variance is [...] as the input, [..., 1] or without the last axis. It is trained, as in the paper; Paddle 2.6 and
    3.3 give it no gradient. Source: Nix and Weigend 1994.
    """
    check_reduction(reduction, "gaussian_nll_loss")
    if variance.shape == input.shape[:-1] and input.ndim:
        variance = variance[..., None]
    if variance.shape not in (input.shape, (*input.shape[:-1], 1)):
        raise ShapeError(
            "gaussian_nll_loss: the variance does not fit",
            received=f"input {input.shape}, variance {variance.shape}",
            allowed=f"{input.shape}, or one for each row",
        )
    check_same_shapes("gaussian_nll_loss", reduction, input, label)
    variance = jnp.maximum(variance, float(epsilon))
    loss = 0.5 * (jnp.log(variance) + jnp.square(input - label) / variance)
    return reduce_loss(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@jitted("log_input", "full", "epsilon", "reduction")
def poisson_nll_loss(
    input: jax.Array,
    label: jax.Array,
    log_input: bool = True,
    full: bool = False,
    epsilon: float = 1e-8,
    reduction: str = "mean",
) -> jax.Array:
    """exp(input) - label * input, or input - label * log(input + epsilon) when `input` is no logarithm.

    `full` adds Stirling's log(label!) where the label is above 1.
    """
    check_same_shapes("poisson_nll_loss", reduction, input, label)
    if epsilon <= 0:
        raise ShapeError("poisson_nll_loss: epsilon is positive", received=epsilon, allowed="above 0")
    label = label.astype(input.dtype)
    loss = jnp.exp(input) - label * input if log_input else input - label * jnp.log(input + float(epsilon))
    if full:
        known = jnp.where(label > 1, label, 1)
        stirling = known * jnp.log(known) - known + 0.5 * jnp.log(2 * math.pi * known)
        loss = loss + jnp.where(label > 1, stirling, 0)
    return reduce_loss(loss, reduction)


# -- hierarchical sigmoid ----------------------------------------------------------------------------------------------


@jitted("num_classes")
def hsigmoid_loss(
    input: jax.Array,
    label: jax.Array,
    num_classes: int,
    weight: jax.Array,
    bias: jax.Array | None = None,
    path_table: jax.Array | None = None,
    path_code: jax.Array | None = None,
) -> jax.Array:
    """-log p(label) [N, 1], p being the product of the sigmoids on the label's path through a binary tree.

    input [N, D], label [N] or [N, 1]; weight [nodes, D] and bias [nodes] or [nodes, 1], where the default tree, which
    is complete, has num_classes - 1 nodes. A tree of one's own: `path_table` [N, L] are the nodes of each label's path,
    -1 behind its end, and `path_code` [N, L] the turns, 0 or 1. Paddle's value is log 2 larger for every step that a
    path is shorter than the longest, which changes no gradient. Source: Morin and Bengio 2005.
    """
    flat = label.reshape(-1)
    if (path_table is None) != (path_code is None):
        raise ShapeError(
            "hsigmoid_loss: a tree of one's own has paths and turns",
            received="one of path_table and path_code",
            allowed="both or neither",
        )
    if (
        input.ndim != 2
        or weight.ndim != 2
        or flat.size != input.shape[0]
        or weight.shape[1] != input.shape[1]
    ):
        raise ShapeError(
            "hsigmoid_loss: input, label and weight do not agree",
            received=f"input {input.shape}, label {label.shape}, weight {weight.shape}",
            allowed="[N, D], [N] or [N, 1], [nodes, D]",
        )
    if path_table is None or path_code is None:
        # Class c is the leaf c + num_classes of a heap; the bits below its first one are the turns to it.
        leaf = flat[:, None] + num_classes
        bit = jnp.arange((2 * num_classes - 1).bit_length() - 1, dtype=leaf.dtype)[None]
        nodes, turns = (leaf >> (bit + 1)) - 1, (leaf >> bit) & 1
    else:
        nodes, turns = path_table, path_code
    at = jnp.maximum(nodes, 0)
    score = jnp.einsum("nd,nld->nl", input, jnp.take(weight, at, 0, mode="clip"))
    if bias is not None:
        score = score + jnp.take(bias.reshape(-1), at, mode="clip")
    score = jnp.clip(score, -40.0, 40.0)
    loss = jax.nn.softplus(score) - turns.astype(score.dtype) * score
    return jnp.where(nodes >= 0, loss, 0).sum(1, keepdims=True)


# -- adaptive softmax --------------------------------------------------------------------------------------------------


def adaptive_log_softmax(
    input: jax.Array,
    head_weight: jax.Array,
    tail_weights: Sequence[Sequence[jax.Array]],
    cutoffs: Sequence[int],
    head_bias: jax.Array | None = None,
) -> jax.Array:
    """The log-probabilities [N, classes] that `adaptive_log_softmax_with_loss` picks from."""
    head = input @ head_weight
    logs = jax.nn.log_softmax(head if head_bias is None else head + head_bias, -1)
    first = cutoffs[0]
    parts = [logs[:, :first]]
    for number, (down, up) in enumerate(tail_weights):
        parts.append(logs[:, first + number, None] + jax.nn.log_softmax((input @ down) @ up, -1))
    return jnp.concatenate(parts, 1)


def adaptive_log_softmax_with_loss(
    input: jax.Array,
    label: jax.Array,
    head_weight: jax.Array,
    tail_weights: Sequence[Sequence[jax.Array]],
    cutoffs: Sequence[int],
    head_bias: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """(log p(label) [N], its negative mean) of a softmax whose rare classes stand in clusters of small dimension.

    input [N, D], label [N]; head_weight [D, cutoffs[0] + clusters]; tail_weights: [D, d] and [d, size] of each cluster;
    cutoffs: the first class of each cluster, and the number of classes. Source: Grave et al. 2017.
    """
    clusters = len(tail_weights)
    if input.ndim != 2 or label.shape != input.shape[:1] or len(cutoffs) != clusters + 1:
        raise ShapeError(
            "adaptive_log_softmax_with_loss: input, label and clusters do not agree",
            received=f"input {input.shape}, label {label.shape}, {clusters} clusters, cutoffs {list(cutoffs)}",
            allowed="[N, D], [N], and one cutoff more than clusters",
        )
    if head_weight.shape != (input.shape[1], cutoffs[0] + clusters):
        raise ShapeError(
            "adaptive_log_softmax_with_loss: the head does not fit",
            received=head_weight.shape,
            allowed=(input.shape[1], cutoffs[0] + clusters),
        )
    output = pick(adaptive_log_softmax(input, head_weight, tail_weights, cutoffs, head_bias), label)
    return output, -output.mean()


# -- transducer --------------------------------------------------------------------------------------------------------


@jitted("blank", "fastemit_lambda", "reduction")
def rnnt_loss(
    input: jax.Array,
    label: jax.Array,
    input_lengths: jax.Array,
    label_lengths: jax.Array,
    blank: int = 0,
    fastemit_lambda: float = 0.001,
    reduction: str = "mean",
) -> jax.Array:
    """-log p(label) of a transducer's logits or log-probabilities [N, T, U + 1, V].

    label [N, U], both lengths [N], those of the input 1 or more. The mean is over the batch.
    `fastemit_lambda` strengthens the gradient of emissions and leaves the value.
    Source: Graves 2012 (arXiv 1211.3711), equation 16; FastEmit: Yu et al. 2021 (arXiv 2010.11148), section 3.2.
    """
    check_reduction(reduction, "rnnt_loss")
    if (
        input.ndim != 4
        or label.shape != (input.shape[0], input.shape[2] - 1)
        or input_lengths.shape != label_lengths.shape
        or input_lengths.shape != input.shape[:1]
    ):
        raise ShapeError(
            "rnnt_loss: logits, labels and lengths do not agree",
            received=f"input {input.shape}, label {label.shape}, lengths {input_lengths.shape}, {label_lengths.shape}",
            allowed="[N, T, U + 1, V], [N, U], [N], [N]",
        )
    logs = jax.nn.log_softmax(input.astype(wide_type(input.dtype)), -1)
    skip = logs[..., blank].transpose(1, 0, 2)  # [T, N, U + 1]
    words = jnp.broadcast_to(label[:, None], (*logs.shape[:2], label.shape[1]))
    emit = pick(logs[:, :, :-1], words).transpose(1, 0, 2)  # [T, N, U]
    # FastEmit: (1 + lambda) times the gradient of an emission, and the same value.
    extra = float(fastemit_lambda)
    emit = emit * (1 + extra) - lax.stop_gradient(emit * extra)

    def along(start: jax.Array, emits: jax.Array) -> jax.Array:
        """What reaches each number of labels [N, U + 1] at one time, from what came from the time before."""

        def step(below: jax.Array, both: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            reached = jnp.logaddexp(both[0], below + both[1])
            return reached, reached

        _, rest = lax.scan(step, start[:, 0], (start[:, 1:].T, emits.T))
        return jnp.concatenate([start[:, :1], rest.T], 1)

    far = jnp.full(skip.shape[1:], -1e30, skip.dtype)
    first = along(far.at[:, 0].set(0.0), emit[0])

    def advance(before: jax.Array, both: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        now = along(before + both[0], both[1])
        return now, now

    _, later = lax.scan(advance, first, (skip[:-1], emit[1:]))
    reached = jnp.concatenate([first[None], later])  # [T, N, U + 1]
    last, batch = input_lengths.astype(jnp.int32) - 1, jnp.arange(input.shape[0])
    ends = label_lengths.astype(jnp.int32)
    loss = -(reached[last, batch, ends] + skip[last, batch, ends])
    return reduce_loss(loss, reduction)
