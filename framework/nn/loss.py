"""Losses as layers; see the functions of the same kind in `functional`. Classes are the last axis."""

from __future__ import annotations

from collections.abc import Callable

import jax

from framework.nn import functional as F
from framework.nn.layer import Layer


class _Loss(Layer):
    """A layer around a loss function and the numbers it takes; arrays such as class weights are buffers."""

    _function: Callable[..., jax.Array]

    def __init__(self, arrays: dict[str, jax.Array | None] | None = None, **numbers: object) -> None:
        super().__init__()
        self._numbers = numbers
        given = {name: value for name, value in (arrays or {}).items() if value is not None}
        self._arrays = tuple(given)
        for name, value in given.items():
            self.register_buffer(name, value, persistable=False)

    def forward(self, *inputs: jax.Array) -> jax.Array:
        arrays = {name: getattr(self, name) for name in self._arrays}
        return type(self)._function(*inputs, **self._numbers, **arrays)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._numbers.items())


class CrossEntropyLoss(_Loss):
    """`functional.cross_entropy`: logits [..., C], labels [...] or [..., 1], or [..., C] when soft."""

    _function = staticmethod(F.cross_entropy)

    def __init__(
        self,
        weight: jax.Array | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        soft_label: bool = False,
        axis: int = -1,
        use_softmax: bool = True,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            {"weight": weight},
            ignore_index=ignore_index,
            reduction=reduction,
            soft_label=soft_label,
            axis=axis,
            use_softmax=use_softmax,
            label_smoothing=label_smoothing,
        )


class NLLLoss(_Loss):
    """`functional.nll_loss` of log-probabilities [..., C]."""

    _function = staticmethod(F.nll_loss)

    def __init__(
        self, weight: jax.Array | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__({"weight": weight}, ignore_index=ignore_index, reduction=reduction)


class MSELoss(_Loss):
    """(input - label)^2."""

    _function = staticmethod(F.mse_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class L1Loss(_Loss):
    """|input - label|."""

    _function = staticmethod(F.l1_loss)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class SmoothL1Loss(_Loss):
    """Huber's loss with the corner at `delta`."""

    _function = staticmethod(F.smooth_l1_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction, delta=delta)


class BCELoss(_Loss):
    """Binary cross entropy of probabilities."""

    _function = staticmethod(F.binary_cross_entropy)

    def __init__(self, weight: jax.Array | None = None, reduction: str = "mean") -> None:
        super().__init__({"weight": weight}, reduction=reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits."""

    _function = staticmethod(F.binary_cross_entropy_with_logits)

    def __init__(
        self,
        weight: jax.Array | None = None,
        reduction: str = "mean",
        pos_weight: jax.Array | None = None,
    ) -> None:
        super().__init__({"weight": weight, "pos_weight": pos_weight}, reduction=reduction)


class KLDivLoss(_Loss):
    """label (log label - input) of log-probabilities."""

    _function = staticmethod(F.kl_div)

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)


class MarginRankingLoss(_Loss):
    """max(0, -label (input - other) + margin)."""

    _function = staticmethod(F.margin_ranking_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""

    _function = staticmethod(F.triplet_margin_loss)

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        epsilon: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin=margin, p=p, epsilon=epsilon, swap=swap, reduction=reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cos for label 1, max(0, cos - margin) for label -1."""

    _function = staticmethod(F.cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin=margin, reduction=reduction)


class CTCLoss(_Loss):
    """`functional.ctc_loss`: logits [T, N, C], labels [N, L], lengths of both [N]."""

    _function = staticmethod(F.ctc_loss)

    def __init__(self, blank: int = 0, reduction: str = "mean") -> None:
        super().__init__(blank=blank, reduction=reduction)

    def forward(self, *inputs: jax.Array, norm_by_times: bool = False) -> jax.Array:
        return type(self)._function(*inputs, **self._numbers, norm_by_times=norm_by_times)
