"""Sequential, LayerList, LayerDict and ParameterList: layers and parameters that hold others."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, overload

from framework.paddle._kernel.tensor import Parameter
from framework.paddle.nn.layer import Layer


def _place(index: int, count: int, last: int = 0) -> int:
    """A counted index among `count` members; `last` more are allowed.

    Raises:
        IndexError: there is no such member.
    """
    if not isinstance(index, int) or not -count <= index < count + last:
        raise IndexError(
            f"index {index} is out of range, should be an integer in range [{-count}, {count + last})"
        )
    return index + count if index < 0 else index


def _renumber(members: dict[str, Any], values: Iterable[object]) -> None:
    found = list(values)
    members.clear()
    members.update((str(number), value) for number, value in enumerate(found))


class Sequential(Layer):
    """Layers called one after the other: `Sequential(a, b)` or `Sequential(("name", a), ("other", b))`."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        named = bool(layers) and isinstance(layers[0], list | tuple)
        for index, layer in enumerate(layers):
            name, layer = layer if named else (str(index), layer)
            self.add_sublayer(name, layer)

    def _key(self, name: int | str) -> str:
        if isinstance(name, str):
            return name
        names = list(self._sub_layers)
        if not -len(names) <= name < len(names):
            raise IndexError(f"index {name} is out of range")
        return names[name]

    @overload
    def __getitem__(self, name: slice) -> Sequential: ...
    @overload
    def __getitem__(self, name: int | str) -> Any: ...
    def __getitem__(self, name: int | str | slice) -> Any:
        if isinstance(name, slice):
            return type(self)(*list(self._sub_layers.values())[name])
        return self._sub_layers[self._key(name)]

    def __setitem__(self, name: int | str, layer: Layer) -> None:
        setattr(self, self._key(name), layer)

    def __delitem__(self, name: int | str) -> None:
        del self._sub_layers[self._key(name)]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def forward(self, input: object) -> Any:
        for layer in self._sub_layers.values():
            assert layer is not None
            input = layer(input)
        return input


class LayerList(Layer):
    """A list of layers; the forward of the layer that holds it calls them."""

    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        for layer in sublayers or ():
            self.append(layer)

    @overload
    def __getitem__(self, idx: slice) -> LayerList: ...
    @overload
    def __getitem__(self, idx: int) -> Any: ...
    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return LayerList(list(self)[idx])
        return self._sub_layers[str(_place(idx, len(self)))]

    def __setitem__(self, idx: int, sublayer: Layer) -> None:
        setattr(self, str(_place(idx, len(self))), sublayer)

    def __delitem__(self, idx: int | slice) -> None:
        kept = list(self)
        del kept[idx if isinstance(idx, slice) else _place(idx, len(self))]
        _renumber(self._sub_layers, kept)

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._sub_layers.values())

    def append(self, sublayer: Layer) -> LayerList:
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def insert(self, index: int, sublayer: Layer) -> None:
        layers = list(self)
        layers.insert(_place(index, len(self), last=1), sublayer)
        _renumber(self._sub_layers, layers)

    def extend(self, sublayers: Iterable[Layer]) -> LayerList:
        for layer in sublayers:
            self.append(layer)
        return self


class LayerDict(Layer):
    """Layers by name, in the order in which they came."""

    def __init__(
        self, sublayers: LayerDict | Mapping[str, Layer] | Iterable[tuple[str, Layer]] | None = None
    ) -> None:
        super().__init__()
        if sublayers is not None:
            self.update(sublayers)

    def __getitem__(self, key: str) -> Any:
        return self._sub_layers[key]

    def __setitem__(self, key: str, sublayer: Layer) -> Layer:
        return self.add_sublayer(key, sublayer)

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sub_layers)

    def __contains__(self, key: object) -> bool:
        return key in self._sub_layers

    def clear(self) -> None:
        self._sub_layers.clear()

    def pop(self, key: str) -> Any:
        """Remove a layer and return it."""
        return self._sub_layers.pop(key)

    def keys(self) -> KeysView[str]:
        return self._sub_layers.keys()

    def items(self) -> ItemsView[str, Layer | None]:
        return self._sub_layers.items()

    def values(self) -> ValuesView[Layer | None]:
        return self._sub_layers.values()

    def update(self, sublayers: LayerDict | Mapping[str, Layer] | Iterable[tuple[str, Layer]] | None) -> None:
        """Take layers from a dict, a LayerDict or (name, layer) pairs.

        Raises:
            AssertionError: there are no entries to go through.
            ValueError: an entry is no pair.
        """
        assert isinstance(sublayers, Iterable), (
            f"LayerDict takes layers by name, or pairs of a name and a layer, received {type(sublayers).__name__}"
        )
        pairs: Any = sublayers.items() if isinstance(sublayers, Mapping | LayerDict) else sublayers
        for pair in pairs:
            if len(pair) != 2:
                raise ValueError(f"LayerDict takes (name, layer) pairs, received {pair!r}")
            self.add_sublayer(pair[0], pair[1])


class ParameterList(Layer):
    """A list of parameters."""

    def __init__(self, parameters: Iterable[Parameter] | None = None) -> None:
        super().__init__()
        for parameter in parameters or ():
            self.append(parameter)

    def __getitem__(self, idx: int) -> Any:
        return self._parameters[str(_place(idx, len(self)))]

    def __setitem__(self, idx: int, param: Parameter) -> None:
        setattr(self, str(_place(idx, len(self))), param)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parameters.values())

    def append(self, parameter: Parameter) -> ParameterList:
        self.add_parameter(str(len(self)), parameter)
        return self
