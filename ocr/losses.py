"""Losses of text detection and recognition: pure functions of arrays.

Source: DB, Liao et al. 2020, https://arxiv.org/abs/1911.08947, equations 4 to 8; CTC, Graves et al. 2006;
PaddleOCR ppocr/losses/{det_db_loss,det_basic_loss,rec_ctc_loss,rec_nrtr_loss}.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.nn import functional as F

_EPS = 1e-6


def dice_loss(prediction: jax.Array, target: jax.Array, mask: jax.Array) -> jax.Array:
    """1 - 2 |P T| / (|P| + |T|) over all pixels of a batch where `mask` is 1; arrays [N, H, W] of 0 to 1 -> []."""
    shared = (prediction * target * mask).sum()
    return 1 - 2 * shared / ((prediction * mask).sum() + (target * mask).sum() + _EPS)


def masked_l1(prediction: jax.Array, target: jax.Array, mask: jax.Array) -> jax.Array:
    """The mean |P - T| over the pixels of a batch where `mask` is 1; arrays [N, H, W] -> []."""
    return (jnp.abs(prediction - target) * mask).sum() / (mask.sum() + _EPS)


def balanced_cross_entropy(
    prediction: jax.Array, target: jax.Array, mask: jax.Array, negative_ratio: float = 3.0
) -> jax.Array:
    """Binary cross-entropy with hard negatives: of the pixels that are no text only the worst count, at most
    `negative_ratio` times as many as text has; arrays [N, H, W], predictions 0 to 1 -> [].
    """
    p = jnp.clip(prediction, _EPS, 1 - _EPS)
    losses = -(target * jnp.log(p) + (1 - target) * jnp.log(1 - p))
    positive, negative = target * mask, (1 - target) * mask
    count = positive.sum()
    most = jnp.minimum(negative.sum(), jnp.floor(count * negative_ratio))
    # Those above the `most`-th loss count; a sort of all has a fixed shape, a choice of `most` has none.
    ranked = jnp.sort((negative * losses).reshape(-1))[::-1]
    hard = jnp.where(jnp.arange(ranked.size, dtype=jnp.float32) < most, ranked, 0.0).sum()
    return ((positive * losses).sum() + hard) / (count + most + _EPS)


def focal_loss(
    prediction: jax.Array, target: jax.Array, mask: jax.Array, alpha: float = 0.25, gamma: float = 2.0
) -> jax.Array:
    """Binary focal loss, the mean over the pixels where `mask` is 1; arrays [N, H, W], predictions 0 to 1 -> [].

    Source: Lin et al. 2017, https://arxiv.org/abs/1708.02002; `alpha` is the share of text.
    """
    p = jnp.clip(prediction, _EPS, 1 - _EPS)
    right = jnp.where(target > 0.5, p, 1 - p)
    share = jnp.where(target > 0.5, alpha, 1 - alpha)
    losses = -share * (1 - right) ** gamma * jnp.log(right)
    return (losses * mask).sum() / (mask.sum() + _EPS)


def ctc_line_losses(logits: jax.Array, labels: jax.Array, label_lengths: jax.Array) -> jax.Array:
    """The negative log-likelihood [N] of labels [N, L] under logits [N, T, C]; class 0 is the blank.

    It is not divided by the length. A label that does not fit into T columns costs 0 and has no gradient.
    """
    steps = jnp.full(logits.shape[:1], logits.shape[1], jnp.int32)
    return F.ctc_loss(logits.transpose(1, 0, 2), labels, steps, label_lengths, reduction="none")


def smoothed_cross_entropy(
    logits: jax.Array, targets: jax.Array, weight: jax.Array, smoothing: float = 0.1
) -> jax.Array:
    """Cross-entropy of logits [N, L, C] and targets int [N, L], the mean over tokens by `weight` [N, L] -> [].

    The target's share is 1 - smoothing, and each other class has smoothing / (C - 1).
    """
    scores = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
    right = jnp.take_along_axis(scores, targets[..., None], axis=-1)[..., 0]
    others = (scores.sum(-1) - right) / (logits.shape[-1] - 1)
    losses = -((1 - smoothing) * right + smoothing * others)
    return (losses * weight).sum() / jnp.maximum(weight.sum(), 1.0)
