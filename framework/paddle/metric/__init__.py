"""paddle.metric: accuracy, precision, recall and the area under the ROC curve; the counting is the core's."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.metric import classification as core
from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor


class Metric(abc.ABC):
    """Base: `compute` prepares the outputs and labels of a batch, on Tensors; `update` takes in what it gave."""

    def __init__(self) -> None:
        return

    @abc.abstractmethod
    def reset(self) -> None:
        """Forget all batches."""

    @abc.abstractmethod
    def update(self, *args: object) -> Any:
        """Take in a batch; may return the metric of this batch alone."""

    @abc.abstractmethod
    def accumulate(self) -> Any:
        """The metric of all batches since `reset`."""

    @abc.abstractmethod
    def name(self) -> str | list[str]:
        """The name, or a list of names where `accumulate` gives several numbers."""

    def compute(self, *args: object) -> Any:
        return args


Metric.register(core.Metric)


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


@checked
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


class Accuracy(core.Accuracy):
    """Top-k accuracy, for one or several k."""

    def __init__(
        self, topk: Sequence[int] = (1,), name: str | None = None, *args: object, **kwargs: object
    ) -> None:
        super().__init__(topk, name)
        self.maxk = max(topk)

    def compute(self, pred: Tensor, label: Tensor, *args: object) -> Tensor:  # type: ignore[override]
        """[…, maxk] float32: whether the i-th best class of `pred` is the label ([N], [N, 1], or one-hot)."""
        return _correct(pred, label, self.maxk)

    def update(self, correct: Any, *args: object) -> float | list[float]:  # type: ignore[override]
        return super().update(correct)

    def name(self) -> list[str]:
        """As a list, of one k too."""
        names = super().name()
        return [names] if isinstance(names, str) else names


class _Checked:
    """Of the metrics that take predictions and labels: both are arrays or Tensors."""

    def update(self, preds: TensorLike, labels: TensorLike) -> None:
        """Take in predictions and labels of a batch. Raises: ValueError."""
        for what, value in (("preds", preds), ("labels", labels)):
            if not isinstance(value, Tensor | np.ndarray | np.generic):
                raise ValueError(f"{what} must be a Tensor or an array, received {type(value).__name__}")
        super().update(self._rounded(np.asarray(preds)), np.asarray(labels))  # type: ignore[misc]

    def _rounded(self, preds: np.ndarray) -> np.ndarray:
        return preds


class Precision(_Checked, core.Precision):
    """The share of the positive predictions (from 0.5 up) that are right."""

    def __init__(self, name: str = "precision", *args: object, **kwargs: object) -> None:
        super().__init__(name)


class Recall(_Checked, core.Recall):
    """The share of the positives that were found; a prediction is positive above 0.5, as in Paddle."""

    def __init__(self, name: str = "recall", *args: object, **kwargs: object) -> None:
        super().__init__(name)

    def _rounded(self, preds: np.ndarray) -> np.ndarray:
        return np.rint(preds)  # 0.5 to the even 0; Precision rounds it up


class Auc(_Checked, core.Auc):
    """The area under the ROC curve over `num_thresholds` bins of the probability, preds [N, 2] of the second class."""

    def __init__(
        self,
        curve: str = "ROC",
        num_thresholds: int = 4095,
        name: str = "auc",
        *args: object,
        **kwargs: object,
    ) -> None:
        super().__init__("ROC", num_thresholds, name)
        self._curve, self._num_thresholds = curve, num_thresholds

    @property
    def _stat_pos(self) -> np.ndarray:
        return self.positive

    @property
    def _stat_neg(self) -> np.ndarray:
        return self.negative


__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
