"""paddle.metric: accuracy, precision, recall and the area under the ROC curve; the counting is the core's."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.metric import classification as core
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.tensor import Tensor


class Metric(abc.ABC):
    """Base: `compute` prepares the outputs and labels of a batch, on Tensors; `update` takes in what it gave."""

    def __init__(self) -> None:
        return

    @abc.abstractmethod
    def reset(self) -> None:
        """Forget all batches."""

    @abc.abstractmethod
    def update(self, *args: Any) -> Any:
        """Take in a batch; may return the metric of this batch alone."""

    @abc.abstractmethod
    def accumulate(self) -> Any:
        """The metric of all batches since `reset`."""

    @abc.abstractmethod
    def name(self) -> Any:
        """The name, or a list of names where `accumulate` gives several numbers."""

    def compute(self, *args: Any) -> Any:
        return args


def _best(scores: jax.Array, k: int) -> jax.Array:
    """The k best classes (int64), best first; ties go to the lower class."""
    return jax.lax.top_k(scores, k)[1].astype(jnp.int64)


@operation(differentiable=False)
def _correct(pred: Array, label: Array, k: int) -> Array:
    if label.ndim == 1:
        label = label[:, None]
    elif label.ndim != 2 or label.shape[-1] != 1:
        label = label if label.shape[-1] == 1 else jnp.argmax(label, -1, keepdims=True)
    return (_best(pred, k) == label.astype(jnp.int64)).astype(jnp.float32)


@operation(name="accuracy", differentiable=False)
def _accuracy(input: Array, label: Array, k: int) -> Array:
    hits = (_best(input, k) == label.reshape(-1, 1).astype(jnp.int64)).any(-1)
    return jnp.mean(hits.astype(jnp.float32))


def accuracy(
    input: Tensor,
    label: Tensor,
    k: int = 1,
    correct: Tensor | None = None,
    total: Tensor | None = None,
    name: str | None = None,
) -> Tensor:
    """The share of rows of `input` [N, C] whose label [N, 1] is among the k best classes, [] float32."""
    return _accuracy(input, label, k)


class Accuracy(Metric):
    """Top-k accuracy, for one or several k."""

    def __init__(
        self, topk: Sequence[int] = (1,), name: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.topk, self.maxk = topk, max(topk)
        base = name or "acc"
        self._name = [f"{base}_top{k}" for k in topk] if self.maxk != 1 else [base]
        self.reset()

    def compute(self, pred: Tensor, label: Tensor, *args: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """[…, maxk] float32: whether the i-th best class of `pred` is the label ([N], [N, 1], or one-hot)."""
        return _correct(pred, label, self.maxk)

    def update(self, correct: Any, *args: Any) -> float | list[float]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take in what `compute` gave; returns the accuracies of this batch."""
        hits, rows = core.count_hits(correct, self.topk)
        self.total = [total + hit for total, hit in zip(self.total, hits, strict=True)]
        self.count = [count + rows for count in self.count]
        shares = [hit / rows for hit in hits]
        return shares[0] if len(shares) == 1 else shares

    def reset(self) -> None:
        self.total, self.count = [0.0] * len(self.topk), [0] * len(self.topk)

    def accumulate(self) -> float | list[float]:
        shares = [
            float(total) / count if count else 0.0
            for total, count in zip(self.total, self.count, strict=True)
        ]
        return shares[0] if len(shares) == 1 else shares

    def name(self) -> list[str]:
        return self._name


class _Counted(Metric):
    """A metric whose counts the core keeps."""

    _core: core.Metric

    def __init__(self, counts: core.Metric, name: str) -> None:
        super().__init__()
        self._core, self._name = counts, name

    def update(self, preds: Any, labels: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take in predictions and labels of a batch."""
        for what, value in (("preds", preds), ("labels", labels)):
            if not isinstance(value, Tensor | np.ndarray | np.generic):
                raise ValueError(f"{what} must be a Tensor or an array, received {type(value).__name__}")
        self._core.update(np.asarray(preds), np.asarray(labels))

    def reset(self) -> None:
        self._core.reset()

    def accumulate(self) -> float:
        return self._core.accumulate()

    def name(self) -> str:
        return self._name


class Precision(_Counted):
    """The share of the positive predictions (from 0.5 up) that are right."""

    def __init__(self, name: str = "precision", *args: Any, **kwargs: Any) -> None:
        super().__init__(core.Precision(name), name)


class Recall(_Counted):
    """The share of the positives that were found; a prediction is positive from 0.5 up."""

    def __init__(self, name: str = "recall", *args: Any, **kwargs: Any) -> None:
        super().__init__(core.Recall(name), name)


class Auc(_Counted):
    """The area under the ROC curve over `num_thresholds` bins of the probability, preds [N, 2] of the second class."""

    def __init__(
        self, curve: str = "ROC", num_thresholds: int = 4095, name: str = "auc", *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(core.Auc("ROC", num_thresholds, name), name)
        self._curve, self._num_thresholds = curve, num_thresholds

    @staticmethod
    def trapezoid_area(x1: float, x2: float, y1: float, y2: float) -> float:
        """The area of a trapezoid between x1 and x2 with the heights y1 and y2."""
        return abs(x1 - x2) * (y1 + y2) / 2.0


__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]
