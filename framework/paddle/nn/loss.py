"""Losses as layers."""

from __future__ import annotations

import functools
from typing import Any

from framework.paddle._kernel.dtypes import get_default_dtype
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.nn.functional_layer import functional_layer
from framework.paddle.nn.layer import Layer

_layer = functools.partial(functional_layer, module=__name__, inputs="input label", prefix="", shown="")

BCELoss = _layer("BCELoss", F.binary_cross_entropy)
BCEWithLogitsLoss = _layer("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, inputs="logit label")
CosineEmbeddingLoss = _layer("CosineEmbeddingLoss", F.cosine_embedding_loss, inputs="input1 input2 label")
CrossEntropyLoss = _layer("CrossEntropyLoss", F.cross_entropy)
GaussianNLLLoss = _layer("GaussianNLLLoss", F.gaussian_nll_loss, inputs="input label variance")
HingeEmbeddingLoss = _layer("HingeEmbeddingLoss", F.hinge_embedding_loss)
KLDivLoss = _layer("KLDivLoss", F.kl_div)
L1Loss = _layer("L1Loss", F.l1_loss)
MSELoss = _layer("MSELoss", F.mse_loss)
MarginRankingLoss = _layer("MarginRankingLoss", F.margin_ranking_loss, inputs="input other label")
MultiLabelSoftMarginLoss = _layer("MultiLabelSoftMarginLoss", F.multi_label_soft_margin_loss)
MultiMarginLoss = _layer("MultiMarginLoss", F.multi_margin_loss)
NLLLoss = _layer("NLLLoss", F.nll_loss, prefix="_")
PoissonNLLLoss = _layer("PoissonNLLLoss", F.poisson_nll_loss, prefix="_")
RNNTLoss = _layer("RNNTLoss", F.rnnt_loss, inputs="input label input_lengths label_lengths")
SmoothL1Loss = _layer("SmoothL1Loss", F.smooth_l1_loss)
SoftMarginLoss = _layer("SoftMarginLoss", F.soft_margin_loss)
_TRIPLET = "input positive negative"
TripletMarginLoss = _layer("TripletMarginLoss", F.triplet_margin_loss, inputs=_TRIPLET)
TripletMarginWithDistanceLoss = _layer(
    "TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss, inputs=_TRIPLET
)


class CTCLoss(Layer):
    """-log p(labels) of logits [T, N, C]."""

    def __init__(self, blank: int = 0, reduction: str = "mean") -> None:
        super().__init__()
        self.blank, self.reduction = blank, reduction

    def forward(
        self,
        log_probs: Tensor,
        labels: Tensor,
        input_lengths: Tensor,
        label_lengths: Tensor,
        norm_by_times: bool = False,
    ) -> Tensor:
        lengths = (input_lengths, label_lengths)
        return F.ctc_loss(log_probs, labels, *lengths, self.blank, self.reduction, norm_by_times)


class HSigmoidLoss(Layer):
    """-log p(label) by the sigmoids along a path through a tree of classes, whose nodes have the weights."""

    def __init__(
        self,
        feature_size: int,
        num_classes: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        is_custom: bool = False,
        is_sparse: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if num_classes < 2 and not is_custom:
            raise ValueError(f"HSigmoidLoss takes 2 or more classes, received {num_classes}")
        self._feature_size, self._num_classes = feature_size, num_classes
        self._is_custom, self._is_sparse = is_custom, is_sparse and is_custom
        self._weight_attr, self._bias_attr, self._name = weight_attr, bias_attr, name
        nodes, kind = num_classes if is_custom else num_classes - 1, get_default_dtype()
        self.weight = self.create_parameter([nodes, feature_size], weight_attr, kind)
        self.bias = self.create_parameter([nodes, 1], bias_attr, kind, is_bias=True)

    def forward(
        self, input: Tensor, label: Tensor, path_table: Tensor | None = None, path_code: Tensor | None = None
    ) -> Tensor:
        tree = (self.weight, self.bias, path_table, path_code)
        return F.hsigmoid_loss(input, label, self._num_classes, *tree)
