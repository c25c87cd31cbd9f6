"""Prepare a model for quantisation and convert it: `QAT` before or in training, `PTQ` after it."""

from __future__ import annotations

import abc
import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn.layer import Layer
from framework.paddle.nn.quant.format import ConvertibleQuantedLayer, LinearQuanterDequanter
from framework.paddle.quantization.base_quanter import BaseQuanter
from framework.paddle.quantization.config import QuantConfig


class ObserveWrapper(Layer):
    """A layer with a quanter or observer before it, or with `observe_input=False` after it."""

    def __init__(self, observer: BaseQuanter, observed: Layer, observe_input: bool = True) -> None:
        super().__init__()
        self._observer, self._observed = observer, observed
        self._observe_input = observe_input

    def forward(self, *inputs: Tensor, **kwargs: object) -> object:
        first, second = self._observer, self._observed
        if not self._observe_input:
            first, second = second, first
        return second(first(*inputs, **kwargs), **kwargs)


class Quantization(metaclass=abc.ABCMeta):
    """What `QAT` and `PTQ` share.

    Args:
        config: Copied: later changes do not count.
    """

    def __init__(self, config: QuantConfig) -> None:
        self._config = copy.deepcopy(config)

    @abc.abstractmethod
    def quantize(self, model: Layer, inplace: bool = False) -> Layer:
        """The model with quanters in it."""

    def convert(self, model: Layer, inplace: bool = False, remain_weight: bool = False) -> Layer:
        """The model with what `paddle.jit.save` writes: integers as weights, and their scales.

        Args:
            inplace: Change the model itself, else a copy of it.
            remain_weight: Keep weights as floats that are rounded as they are used.
        """
        model = model if inplace else copy.deepcopy(model)
        for name, child in tuple(model.named_children()):
            if isinstance(child, ConvertibleQuantedLayer):
                quanter = getattr(child, "weight_quanter", None)
                if not child.converted and quanter is not None and quanter.scales() is not None:
                    child._convert(remain_weight)
            elif isinstance(child, BaseQuanter):
                model._sub_layers[name] = LinearQuanterDequanter.from_quanter(child)
            else:
                self.convert(child, True, remain_weight)
        return model

    def _prepare(self, model: Layer) -> Layer:
        self._config._specify(model)
        config, mappings = self._config, self._config.qat_layer_mappings
        _replace(
            model,
            lambda layer: config._is_quantifiable(layer) and type(layer) in mappings,
            config._get_qat_layer,
        )
        _replace(model, config._need_observe, self._observed)
        return model

    def _observed(self, layer: Layer) -> Layer:
        observer = self._config._get_observer(layer)
        assert observer is not None
        return ObserveWrapper(observer, layer)

    def __repr__(self) -> str:
        return self._config.details()


class QAT(Quantization):
    """Training in which weights and activations are rounded as their integers would be.

    Example:
        >>> quanter = paddle.quantization.quanters.FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
        >>> qat = QAT(QuantConfig(activation=quanter, weight=quanter))
        >>> model = qat.quantize(model)  # then train it
        >>> paddle.jit.save(qat.convert(model.eval()), "int8", [paddle.static.InputSpec([None, 3, 224, 224])])
    """

    def quantize(self, model: Layer, inplace: bool = False) -> Layer:
        """The model with quanters. Raises: AssertionError: it is not in training mode."""
        if not model.training:
            raise AssertionError("QAT.quantize: the model is in evaluation mode: call model.train() first")
        return self._prepare(model if inplace else copy.deepcopy(model))


class PTQ(Quantization):
    """Scales of a trained model, measured on inputs that it is fed with.

    Example:
        >>> observer = paddle.quantization.observers.AbsmaxObserver(quant_bits=8)
        >>> ptq = PTQ(QuantConfig(activation=observer, weight=observer))
        >>> model = ptq.quantize(model.eval())
        >>> for batch in batches:
        ...     model(batch)
        >>> paddle.jit.save(ptq.convert(model), "int8", [paddle.static.InputSpec([None, 3, 224, 224])])
    """

    def quantize(self, model: Layer, inplace: bool = False) -> Layer:
        """The model with observers. Raises: AssertionError: it is in training mode."""
        if model.training:
            raise AssertionError("PTQ.quantize: the model is in training mode: call model.eval() first")
        return self._prepare(model if inplace else copy.deepcopy(model))


def _replace(model: Layer, selects: Callable[[Layer], bool], replacement: Callable[[Layer], Layer]) -> None:
    """Put `replacement(layer)` for each layer of the model that is selected; what is in one is left alone."""
    for name, child in tuple(model.named_children()):
        if selects(child):
            model._sub_layers[name] = replacement(child)
        else:
            _replace(child, selects, replacement)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
