"""Sequential, lists and dicts: layers that register layers or parameters under a number or a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Self

import jax

from framework.core.errors import ShapeError
from framework.core.types import PyTree
from framework.nn.layer import Layer, Parameter


def _position(index: int, size: int, where: str) -> int:
    if not -size <= index < size:
        raise IndexError(f"{where}: index {index} of {size} entries")
    return index % size


Entry = Layer | tuple[str, Layer] | list


class _Numbered(Layer):
    """Shared by the containers whose sublayers are named 0, 1, 2, ..."""

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def __getitem__(self, index: int | slice | str) -> Layer:
        if isinstance(index, str):
            return self._sub_layers[index]
        layers = list(self._sub_layers.values())
        if isinstance(index, slice):
            part = type(self)()
            part._renumber(layers[index])
            return part
        return layers[_position(index, len(layers), type(self).__name__)]

    def __setitem__(self, index: int | str, layer: Layer) -> None:
        if not isinstance(index, str):
            index = list(self._sub_layers)[_position(index, len(self), type(self).__name__)]
        self._sub_layers[index] = _check_layer(layer, type(self).__name__)

    def _renumber(self, layers: Iterable[Layer]) -> None:
        self.__dict__["_sub_layers"] = {str(i): layer for i, layer in enumerate(layers)}

    def append(self, sublayer: Layer) -> Self:
        """Add a layer at the end, named by its number; returns self."""
        self._sub_layers[str(len(self))] = _check_layer(sublayer, type(self).__name__)
        return self


def _check_layer(layer: object, where: str) -> Layer:
    if not isinstance(layer, Layer):
        raise TypeError(f"{where} holds layers, received {type(layer).__name__}")
    return layer


class Sequential(_Numbered):
    """Layers called one after the other: `Sequential(a, b)`, `Sequential(('name', a), ...)` or one list of either."""

    def __init__(self, *layers: Entry | list[Entry]) -> None:
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], list):
            layers = tuple(layers[0])
        for number, layer in enumerate(layers):
            name, layer = layer if isinstance(layer, (tuple, list)) else (str(number), layer)
            self._sub_layers[str(name)] = _check_layer(layer, "Sequential")

    def forward(self, x: PyTree) -> PyTree:
        for layer in self._sub_layers.values():
            x = layer(x)
        return x


class LayerList(_Numbered):
    """A list of layers, named by their position."""

    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        self.extend(sublayers or ())

    def extend(self, sublayers: Iterable[Layer]) -> LayerList:
        for layer in sublayers:
            self.append(layer)
        return self

    def insert(self, index: int, sublayer: Layer) -> None:
        """Put a layer before `index`; the layers after it are renamed."""
        layers = list(self)
        layers.insert(index, _check_layer(sublayer, "LayerList"))
        self._renumber(layers)

    def pop(self, index: int = -1) -> Layer:
        """Take out the layer at `index`; the layers after it are renamed."""
        layers = list(self)
        taken = layers.pop(_position(index, len(layers), "LayerList"))
        self._renumber(layers)
        return taken

    def __delitem__(self, index: int) -> None:
        self.pop(index)


class LayerDict(Layer, MutableMapping[str, Layer]):
    """A dict of layers, named by their keys in the order of insertion."""

    def __init__(self, sublayers: Mapping[str, Layer] | Iterable[tuple[str, Layer]] | None = None) -> None:
        super().__init__()
        self.update(sublayers or ())

    def __eq__(self, other: object) -> bool:
        return self is other  # as every layer is; a mapping compares its entries

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sub_layers)

    def __getitem__(self, key: str) -> Layer:
        return self._sub_layers[key]

    def __setitem__(self, key: str, layer: Layer) -> None:
        self._sub_layers[key] = _check_layer(layer, "LayerDict")

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]


class ParameterList(Layer):
    """A list of parameters, named by their position. Indexing returns the array."""

    def __init__(self, parameters: Iterable[Parameter] | None = None) -> None:
        super().__init__()
        for parameter in parameters or ():
            self.append(parameter)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[jax.Array]:
        return (getattr(self, name) for name in self._parameters)

    def __getitem__(self, index: int) -> jax.Array:
        return getattr(self, str(_position(index, len(self), "ParameterList")))

    def append(self, parameter: Parameter) -> ParameterList:
        if not isinstance(parameter, Parameter):
            raise ShapeError(
                "ParameterList holds parameters",
                received=type(parameter).__name__,
                allowed="what create_parameter returns",
            )
        self._parameters[str(len(self))] = parameter
        return self


class ParameterDict(Layer):
    """A dict of parameters, named by their keys in the order of insertion. Indexing returns the array."""

    def __init__(
        self, parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]] | None = None
    ) -> None:
        super().__init__()
        self.update(parameters or ())

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __getitem__(self, key: str) -> jax.Array:
        if key not in self._parameters:
            raise KeyError(key)
        return Layer.__getattr__(self, key)  # not an attribute of the dict that has the name

    def __setitem__(self, key: str, parameter: Parameter) -> None:
        if not isinstance(parameter, Parameter):
            raise ShapeError(
                "ParameterDict holds parameters",
                received=type(parameter).__name__,
                allowed="what create_parameter returns",
            )
        self._parameters[key] = parameter

    def update(self, parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]]) -> None:
        """Set every parameter of a mapping, or of pairs of a key and a parameter."""
        for key, parameter in dict(parameters).items():
            self[key] = parameter
