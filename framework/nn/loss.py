"""Losses with weights of their own, and CTC. Classes are the last axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import jax

from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.containers import LayerList, ParameterList
from framework.nn.layer import AttrLike, Layer


class HSigmoidLoss(Layer):
    """`functional.hsigmoid_loss` with its weight [nodes, feature_size] and bias [nodes, 1].

    There are num_classes - 1 nodes; num_classes with a tree of one's own (`is_custom`), whose paths `forward` takes.
    `is_sparse` is accepted for Paddle's sake and changes nothing.
    """

    def __init__(
        self,
        feature_size: int,
        num_classes: int,
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        is_custom: bool = False,
        is_sparse: bool = False,
    ) -> None:
        super().__init__()
        if num_classes < 2:
            raise ShapeError("HSigmoidLoss: two classes or more", received=num_classes, allowed="2 or more")
        self.num_classes, self.is_custom = num_classes, is_custom
        nodes = num_classes if is_custom else num_classes - 1
        self.weight = self.create_parameter((nodes, feature_size), weight_attr)
        self.bias = self.create_parameter((nodes, 1), bias_attr, is_bias=True)

    def forward(
        self,
        input: jax.Array,
        label: jax.Array,
        path_table: jax.Array | None = None,
        path_code: jax.Array | None = None,
    ) -> jax.Array:
        if self.is_custom and path_table is None:
            raise ShapeError(
                "HSigmoidLoss: is_custom needs the paths of the labels",
                received="no path_table",
                allowed="forward(input, label, path_table, path_code)",
            )
        return F.hsigmoid_loss(input, label, self.num_classes, self.weight, self.bias, path_table, path_code)


class AdaptiveLogSoftmaxWithLoss(Layer):
    """`functional.adaptive_log_softmax_with_loss` with its weights; cluster i has in_features / div_value**(i + 1)
    dimensions. The weights are `head_weight`, `head_bias` and `tail_weights.<i>.<0 or 1>`, which Paddle does not save.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        weight_attr: AttrLike = None,
        bias_attr: AttrLike = None,
        div_value: float = 4.0,
        head_bias: bool = False,
    ) -> None:
        super().__init__()
        ends = [int(n) for n in cutoffs]
        if not ends or ends != sorted(set(ends)) or not 0 < ends[0] <= ends[-1] < n_classes:
            raise ShapeError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs are classes in rising order",
                received=list(cutoffs),
                allowed=f"different numbers from 1 to {n_classes - 1}",
            )
        self.cutoffs = (*ends, n_classes)
        clusters = len(ends)
        self.head_weight = self.create_parameter((in_features, ends[0] + clusters), weight_attr)
        self.head_bias = self.create_parameter(
            (ends[0] + clusters,), bias_attr if head_bias else False, is_bias=True
        )
        self.tail_weights = LayerList()
        for number, (start, stop) in enumerate(pairwise(self.cutoffs), start=1):
            width = int(in_features // div_value**number)
            shapes = ((in_features, width), (width, stop - start))
            self.tail_weights.append(ParameterList([self.create_parameter(s, weight_attr) for s in shapes]))

    def _tails(self) -> list[list[jax.Array]]:
        return [list(cluster) for cluster in self.tail_weights]  # pyright: ignore[reportArgumentType]

    def forward(self, input: jax.Array, label: jax.Array) -> tuple[jax.Array, jax.Array]:
        weights = (self.head_weight, self._tails(), self.cutoffs, self.head_bias)
        return F.adaptive_log_softmax_with_loss(input, label, *weights)

    def log_prob(self, input: jax.Array) -> jax.Array:
        """The log-probabilities of all classes, [N, n_classes]."""
        return F.adaptive_log_softmax(input, self.head_weight, self._tails(), self.cutoffs, self.head_bias)

    def predict(self, input: jax.Array) -> jax.Array:
        """The most probable classes, [N] int32."""
        return F.argmax_last(self.log_prob(input))


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
