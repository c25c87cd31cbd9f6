"""ExponentialFamily: distributions that are known by natural parameters and a log-normalizer."""

from __future__ import annotations

from typing import Any

from framework.paddle._kernel.tape import enable_grad, grad
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import Distribution
from framework.paddle.static.backward import gradients
from framework.paddle.static.program import in_dynamic_mode


class ExponentialFamily(Distribution):
    """The base of distributions exp(<natural parameters, statistics> - log normalizer + carrier measure)."""

    _mean_carrier_measure: float | Tensor | None = None

    @property
    def _natural_parameters(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} has no natural parameters")

    def _log_normalizer(self, *natural: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no log-normalizer")

    def entropy(self) -> Tensor:
        """By the gradient of the log-normalizer, which is the mean of the statistics."""
        carrier = self._mean_carrier_measure
        if carrier is None:
            raise NotImplementedError(f"{type(self).__name__} has no mean of its carrier measure")
        normalizer, slopes, natural = normalizer_and_slopes(self)
        total = normalizer - carrier
        for parameter, slope in zip(natural, slopes, strict=True):
            total = total - (parameter * slope).reshape([*total.shape, -1]).sum(-1)
        return total


def normalizer_and_slopes(p: ExponentialFamily) -> tuple[Tensor, list[Any], list[Tensor]]:
    """(log-normalizer, its gradient for each natural parameter, these parameters)."""
    with enable_grad():
        natural = [parameter.detach() for parameter in p._natural_parameters]
        for parameter in natural:
            parameter.stop_gradient = False
        normalizer = p._log_normalizer(*natural)
        total = normalizer.sum()
        slopes = grad(total, natural, create_graph=True) if in_dynamic_mode() else gradients(total, natural)
    return normalizer, slopes, natural
