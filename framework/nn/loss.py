"""Losses as layers; see the functions of the same kind in `functional`. Classes are the last axis."""

from __future__ import annotations

import jax

from framework.nn import functional as F
from framework.nn.common import FunctionLayer
from framework.nn.layer import Layer


class CrossEntropyLoss(FunctionLayer, function=F.cross_entropy, inputs=2):
    """`functional.cross_entropy`: logits [..., C], labels [...] or [..., 1], or [..., C] when soft."""


class NLLLoss(FunctionLayer, function=F.nll_loss, inputs=2):
    """`functional.nll_loss` of log-probabilities [..., C]."""


class MSELoss(FunctionLayer, function=F.mse_loss, inputs=2):
    """(input - label)^2."""


class L1Loss(FunctionLayer, function=F.l1_loss, inputs=2):
    """|input - label|."""


class SmoothL1Loss(FunctionLayer, function=F.smooth_l1_loss, inputs=2):
    """Huber's loss with the corner at `delta`."""


class BCELoss(FunctionLayer, function=F.binary_cross_entropy, inputs=2):
    """Binary cross entropy of probabilities."""


class BCEWithLogitsLoss(FunctionLayer, function=F.binary_cross_entropy_with_logits, inputs=2):
    """Binary cross entropy of logits."""


class KLDivLoss(FunctionLayer, function=F.kl_div, inputs=2):
    """label (log label - input) of log-probabilities."""


class MarginRankingLoss(FunctionLayer, function=F.margin_ranking_loss, inputs=3):
    """max(0, -label (input - other) + margin)."""


class TripletMarginLoss(FunctionLayer, function=F.triplet_margin_loss, inputs=3):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""


class CosineEmbeddingLoss(FunctionLayer, function=F.cosine_embedding_loss, inputs=3):
    """1 - cos for label 1, max(0, cos - margin) for label -1."""


class CTCLoss(Layer):
    """`functional.ctc_loss`: logits [T, N, C], labels [N, L], lengths of both [N]."""

    def __init__(self, blank: int = 0, reduction: str = "mean") -> None:
        super().__init__()
        self.blank, self.reduction = blank, reduction

    def forward(
        self,
        log_probs: jax.Array,
        labels: jax.Array,
        input_lengths: jax.Array,
        label_lengths: jax.Array,
        norm_by_times: bool = False,
    ) -> jax.Array:
        numbers = (self.blank, self.reduction, norm_by_times)
        return F.ctc_loss(log_probs, labels, input_lengths, label_lengths, *numbers)

    def extra_repr(self) -> str:
        return f"blank={self.blank}, reduction={self.reduction}"
