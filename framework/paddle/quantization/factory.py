"""Factories: a class of quanters and its arguments, of which each layer gets one of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.nn.layer import Layer
from framework.paddle.quantization.base_quanter import BaseQuanter

Quanter = TypeVar("Quanter", bound=type[BaseQuanter])


class QuanterFactory:
    """The arguments of a quanter. Derived classes say which one: `_get_class`."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        self.args, self.kwargs = args, kwargs

    def _get_class(self) -> type[BaseQuanter]:
        raise NotImplementedError(f"{type(self).__name__} does not say which quanter it makes: _get_class")

    def _instance(self, layer: Layer) -> BaseQuanter:
        """The quanter of a layer."""
        return self._get_class()(layer, *self.args, **self.kwargs)  # type: ignore[arg-type]

    def __str__(self) -> str:
        named = (f"{name}={value}" for name, value in self.kwargs.items())
        return f"{type(self).__name__}({','.join([*map(str, self.args), *named])})"

    __repr__ = __str__


ClassWithArguments = ObserverFactory = QuanterFactory


def quanter(class_name: str) -> Callable[[Quanter], Quanter]:
    """Decorate a quanter: a factory of it, called `class_name`, comes into its module.

    Example:
        >>> @quanter("Halves")
        ... class HalvesLayer(BaseQuanter): ...
        >>> config = QuantConfig(activation=Halves(), weight=None)
    """

    def register(target: Quanter) -> Quanter:
        module = sys.modules[target.__module__]
        members = {"_get_class": lambda self: target, "__module__": target.__module__}
        setattr(module, class_name, type(class_name, (QuanterFactory,), members))
        if "__all__" in vars(module):
            module.__all__.append(class_name)
        return target

    return register


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
