"""Layers from rows: a function, and what of its arguments is fixed when the layer is made.

`leaf_layers.py` has the rows of the core. `framework.paddle.nn` makes its layers from them: the same machinery around
functions of Tensors (framework/paddle/nn/faces.py).
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, cast

from framework.core.types import PyTree
from framework.nn.functional.common import check_data_format
from framework.nn.layer import Layer

_DATA = ("jax.Array", "Array", "Tensor")  # annotations of what forward takes
_SUPPLIED = (
    "training",
    "key",
    "data_format",
    "name",
)  # parameters of functions that are no settings of the core's
_ARRAYS = ("weight", "pos_weight")  # settings that are buffers
_FORMATS = ("", "NLC", "NHWC", "NDHWC")
_PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD
_SELF = inspect.Parameter("self", _PLAIN)
LayerT = TypeVar("LayerT")
Parameters = Mapping[str, inspect.Parameter]


@dataclass(frozen=True)
class Row:
    """How a layer calls a function.

    Attributes:
        function: (inputs, settings) -> output.
        inputs: names of what `forward` takes.
        signature: of the constructor.
        attributes: argument of the constructor -> attribute of the layer that holds it.
        sources: parameter of the function -> attribute that it is read from.
        read: attributes of all parameters behind the inputs, in the function's order.
        constants: class attributes among these.
    """

    function: Callable[..., PyTree]
    inputs: tuple[str, ...]
    signature: inspect.Signature
    attributes: Mapping[str, str]
    sources: Mapping[str, str]
    read: tuple[str, ...]
    constants: Mapping[str, object]

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, Any]:
        """The constructor's arguments by name, with defaults. Raises: TypeError."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments


def leading_inputs(parameters: Parameters) -> tuple[str, ...]:
    """The first parameters of a function that are data and have no default."""
    first = itertools.takewhile(lambda p: p.default is p.empty and p.annotation in _DATA, parameters.values())
    return tuple(p.name for p in first)


def make_row(
    function: Callable[..., PyTree],
    parameters: Parameters,
    inputs: Sequence[str],
    constructor: Iterable[inspect.Parameter],
    attributes: Mapping[str, str],
    sources: Mapping[str, str],
    constants: Mapping[str, object],
) -> Row:
    """The row of a function.

    Args:
        parameters: of the function.
        inputs: names of what `forward` takes, as many as its first parameters.
        constructor: parameters of the constructor.
        attributes: argument of the constructor -> attribute.
        sources: parameter of the function -> attribute that it is read from; what is not in it has its default.
        constants: attributes that all layers of the class share.
    """
    behind = list(parameters.values())[len(inputs) :]
    while behind and behind[-1].name not in sources:
        behind.pop()
    defaults = {f"_default_{p.name}": p.default for p in behind if p.name not in sources}
    read = tuple(sources.get(p.name, f"_default_{p.name}") for p in behind)
    signature = inspect.Signature([p.replace(kind=_PLAIN) for p in constructor])
    return Row(function, tuple(inputs), signature, attributes, sources, read, {**constants, **defaults})


def attribute_reader(names: Sequence[str]) -> Callable[[object], Sequence[object]]:
    """The function layer -> values of these attributes."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda layer: [getattr(layer, name) for name in names]


def _forward(row: Row, settings: Callable[[object], Sequence[object]]) -> Callable[..., PyTree]:
    """The method `forward` of a row."""
    function, words, plain = row.function, row.inputs, not row.read

    def forward(self: object, *inputs: object, **named: object) -> PyTree:
        if named:
            inputs = (*inputs, *(named.pop(word) for word in words[len(inputs) :] if word in named))
            return function(*inputs, *settings(self), **named)
        return function(*inputs) if plain else function(*inputs, *settings(self))

    parameters = [inspect.Parameter(word, _PLAIN) for word in words]
    forward.__signature__ = inspect.Signature([_SELF, *parameters])  # type: ignore[attr-defined]
    return forward


def leaf_class(name: str, base: type[LayerT], row: Row, module: str, doc: str | None = None) -> type[LayerT]:
    """The class of a row. `base` takes the arguments that `row.bind` reads; a base that has a `forward` of its own,
    and says so by `_own_forward`, keeps it."""

    def __init__(self: LayerT, *args: object, **kwargs: object) -> None:
        base.__init__(self, *args, **kwargs)

    __init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_SELF, *row.signature.parameters.values()]
    )
    members: dict[str, object] = {
        "__init__": __init__,
        "__module__": module,
        "__doc__": doc or row.function.__doc__,
        "_row": row,
        **row.constants,
    }
    if not getattr(base, "_own_forward", False):
        members["forward"] = _forward(row, getattr(base, "_reader", attribute_reader)(row.read))
    return cast(type[LayerT], type(name, (base,), members))


class LeafLayer(Layer):
    """Base of the layers that `leaf` makes. Settings are attributes; weights of classes are buffers that are not
    saved."""

    _row: ClassVar[Row]

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()
        for name, value in self._row.bind(args, kwargs).items():
            if name == "data_format":
                check_data_format(value, type(self).__name__)
            elif name in _ARRAYS and value is not None:
                self.register_buffer(name, value, persistable=False)
            else:
                setattr(self, name, value)

    def extra_repr(self) -> str:
        defaults = {p.name: p.default for p in self._row.signature.parameters.values()}
        values = {name: getattr(self, name) for name in self._row.attributes if name not in self._buffers}
        return ", ".join(f"{name}={value}" for name, value in values.items() if value != defaults[name])


def leaf(
    name: str,
    function: Callable[..., PyTree],
    axes: int = 0,
    settings: str = "",
    inputs: str = "",
    *,
    module: str,
    **fixed: object,
) -> type[LeafLayer]:
    """The class of layers `name(settings)` that call `function(inputs, settings)`.

    Args:
        axes: spatial axes of images; with any the constructor takes `data_format`, which has to be channels-last.
        settings: names of what the constructor takes, in its order; `argument:parameter` where the function has another
            name. By default all parameters of the function behind the inputs, and `data_format`.
        inputs: names of what `forward` takes; by default the function's first parameters that are arrays.
        fixed: parameters of the function that the layer decides.
    """
    parameters = inspect.signature(function).parameters
    words = tuple(inputs.split()) or leading_inputs(parameters)
    every = [n for n in list(parameters)[len(words) :] if n not in _SUPPLIED and n not in fixed]
    chosen = settings.split() or [*every, *(["data_format"] if axes else [])]
    sources, constructor = {"training": "training", **{n: n for n in fixed}}, []
    for argument, _, parameter in (word.partition(":") for word in chosen):
        if argument == "data_format":
            constructor.append(inspect.Parameter(argument, _PLAIN, default=_FORMATS[axes]))
            continue
        sources[parameter or argument] = argument
        constructor.append(parameters[parameter or argument].replace(name=argument))
    attributes = {p.name: p.name for p in constructor if p.name != "data_format"}
    row = make_row(function, parameters, words, constructor, attributes, sources, fixed)
    return leaf_class(name, LeafLayer, row, module)
