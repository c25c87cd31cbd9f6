"""Losses of text detection and recognition: pure functions of arrays.

Source: DB, Liao et al. 2020, https://arxiv.org/abs/1911.08947, equations 4 to 8; CTC, Graves et al. 2006;
PARSeq, Bautista and Atienza 2022, https://arxiv.org/abs/2207.06966; centre loss, Wen et al. 2016,
https://doi.org/10.1007/978-3-319-46478-7_31; PaddleOCR ppocr/losses/{det_db_loss,det_basic_loss,rec_ctc_loss,
rec_nrtr_loss,rec_parseq_loss,center_loss,basic_loss,distillation_loss}.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from framework.nn import functional as F
from framework.nn.functional.slopes import absolute

_EPS = 1e-6


def dice_loss(prediction: jax.Array, target: jax.Array, mask: jax.Array) -> jax.Array:
    """1 - 2 |P T| / (|P| + |T|) over all pixels of a batch where `mask` is 1; arrays [N, H, W] of 0 to 1 -> []."""
    shared = (prediction * target * mask).sum()
    return 1 - 2 * shared / ((prediction * mask).sum() + (target * mask).sum() + _EPS)


def masked_l1(prediction: jax.Array, target: jax.Array, mask: jax.Array) -> jax.Array:
    """The mean |P - T| over the pixels of a batch where `mask` is 1; arrays [N, H, W] -> []."""
    return (absolute(prediction - target) * mask).sum() / (mask.sum() + _EPS)


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


def permuted_cross_entropy(
    logits: jax.Array, tokens: jax.Array, counts: jax.Array, *, end: int, padding: int
) -> jax.Array:
    """The mean cross-entropy over the tokens of all orders of reading; PARSeq's equation 4 -> [].

    The end counts in the first two orders alone, which are from left to right and back: in the others it would be
    predicted in the middle of the text.

    Args:
        logits: [K, N, L + 1, C]; entry t predicts tokens[:, t + 1].
        tokens: int [N, L + 2]: start, text, end, padding.
        counts: [N], 0 for texts that do not count.
    """
    wanted = tokens[:, 1:]
    scores = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
    classes = jnp.where(wanted == padding, 0, wanted)
    losses = -jnp.take_along_axis(scores, classes[None, ..., None], axis=-1)[..., 0]  # [K, N, L + 1]
    weight = permuted_weights(logits.shape[0], tokens, counts, end=end, padding=padding)
    return (losses * weight).sum() / jnp.maximum(weight.sum(), 1.0)


def permuted_weights(
    orders: int, tokens: jax.Array, counts: jax.Array, *, end: int, padding: int
) -> jax.Array:
    """How much each entry counts in `permuted_cross_entropy` of so many orders of reading -> [K, N, L + 1]."""
    targets = tokens[:, 1:]
    symbols = (targets != padding) & (targets != end)
    first = jnp.arange(orders)[:, None, None] < 2
    return jnp.where(symbols | ((targets == end) & first), counts[:, None], 0.0)


def center_loss(features: jax.Array, classes: jax.Array, centers: jax.Array, weight: jax.Array) -> jax.Array:
    """The mean squared distance of features [N, T, C] to the centres of their classes, int [N, T] -> [].

    Columns count by `weight` [N, T]. Centres [K, C] have no gradient.

    Source: Wen et al. 2016, equation 2 without its half, as PaddleOCR has it; there every entry of the one-hot matrix
    is at least 1e-12, which adds less than float32 resolves.
    """
    away = features.astype(jnp.float32) - jax.lax.stop_gradient(centers)[classes]
    distance = jnp.square(away).sum(-1)
    return (distance * weight).sum() / jnp.maximum(weight.sum(), 1.0)


def moved_centers(
    features: jax.Array, classes: jax.Array, centers: jax.Array, weight: jax.Array, rate: float
) -> jax.Array:
    """Centres [K, C] after one batch: each moves towards its features by rate * sum(feature - centre) / (1 + count).

    Source: Wen et al. 2016, equation 4, with its sign turned.
    """
    flat, index = features.reshape(-1, features.shape[-1]).astype(jnp.float32), classes.reshape(-1)
    share = weight.reshape(-1).astype(jnp.float32)
    toward = jnp.zeros_like(centers).at[index].add((flat - centers[index]) * share[:, None])
    count = jnp.zeros(centers.shape[0], jnp.float32).at[index].add(share)
    return centers + rate * toward / (1 + count)[:, None]


def mutual_divergence(first: jax.Array, second: jax.Array, weight: jax.Array) -> jax.Array:
    """Half of the two Kullback-Leibler divergences between softmaxes of logits [N, T, C], summed over the columns that
    count by `weight` [N, T], the mean over lines -> [].

    Source: Zhang et al. 2017, https://arxiv.org/abs/1706.00384; PaddleOCR's DMLLoss with act softmax and use_log.
    """
    one, other = (jax.nn.log_softmax(x.astype(jnp.float32), axis=-1) for x in (first, second))
    # KL(p | q) + KL(q | p) = sum((p - q) (log p - log q))
    both = ((jnp.exp(one) - jnp.exp(other)) * (one - other)).sum(-1)
    return 0.5 * (both * weight).sum() / first.shape[0]


def binary_divergence(target: jax.Array, prediction: jax.Array) -> jax.Array:
    """KL of yes and no for probabilities of one shape: 0 where both are equal, no gradient to `target`."""
    p = jnp.clip(jax.lax.stop_gradient(target), _EPS, 1 - _EPS)
    q = jnp.clip(prediction, _EPS, 1 - _EPS)
    return p * (jnp.log(p) - jnp.log(q)) + (1 - p) * (jnp.log(1 - p) - jnp.log(1 - q))


def map_divergence(first: jax.Array, second: jax.Array, mask: jax.Array) -> jax.Array:
    """Half of p2 log(p2 / p1) + p1 log(p1 / p2) of maps [N, H, W] of 0 to 1, the mean over the pixels that count.

    Source: PaddleOCR's KLJSLoss in mode kl, with its 1e-5; there all pixels count.
    """
    eps = 1e-5
    both = second * jnp.log((second + eps) / (first + eps) + eps)
    both = both + first * jnp.log((first + eps) / (second + eps) + eps)
    return 0.5 * (both * mask).sum() / (mask.sum() + _EPS)
