"""Layers made from the core's: the same settings and the same parameters, around the operation of Paddle.

    ReLU = face(core.ReLU)                                    # the row of the core's layer and functional.relu
    Linear = parametric_face(core.Linear, F.linear, ...)      # the constructor and parameters of the core's layer

What Paddle adds is in its operations (`name`, `data_format`, other defaults), in the names of attributes and in how a
layer prints.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import jax

from framework import nn as core
from framework.core.foreign_names import constructor_arguments
from framework.core.rng import uncounted_initializers
from framework.nn.leaf import LeafLayer, Row, leading_inputs, leaf_class, make_row
from framework.paddle._kernel.dtypes import get_default_dtype
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.settings import name_results
from framework.paddle._kernel.tensor import Parameter
from framework.paddle.nn import functional as F
from framework.paddle.nn.functional.face import channels_first_text
from framework.paddle.nn.initializer import Initializer
from framework.paddle.nn.layer import Layer

if TYPE_CHECKING:
    pass

_ATTRIBUTES = ("weight_attr", "bias_attr")


def _name_outputs(name: str, layer: Layer, inputs: tuple[object, ...], outputs: object) -> None:
    """In a static program the results of a layer with a name have it, as in Paddle."""
    if mode.recorder is not None and not any(outputs is one for one in inputs):
        name_results(outputs, name)


class Face(Layer):
    """Base of the layers that `face` makes. The settings are attributes."""

    _row: ClassVar[Row]
    _own_forward: ClassVar[bool] = False
    _shown: ClassVar[str | None] = None
    _quiet: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(dtype=self._parameter_type())
        settings = self._settled(self._row.bind(args, kwargs))
        for name, value in settings.items():
            setattr(self, self._row.attributes[name], value)
        self._create(settings)
        if settings.get("name"):
            self.register_forward_post_hook(functools.partial(_name_outputs, str(settings["name"])))

    def _parameter_type(self) -> str:
        return "float32"

    def _settled(self, settings: dict[str, object]) -> dict[str, object]:
        """The settings, checked and in one form."""
        return settings

    def _create(self, settings: Mapping[str, object]) -> None:
        """Parameters, if there are any."""

    def extra_repr(self) -> str:
        values = {setting: getattr(self, attribute) for setting, attribute in self._row.attributes.items()}
        name = values.pop("name", None)
        named = f", name={name}" if name else ""
        if self._shown is not None:
            return self._shown.format(**values, named=named, training=self.training, dtype=self._dtype)
        defaults = {p.name: p.default for p in self._row.signature.parameters.values()}
        parts = [
            f"{setting}={value}"
            for setting, value in values.items()
            if setting not in self._quiet or value != defaults[setting]
        ]
        return ", ".join(parts) + (named if parts else named[2:])


class ParametricFace(Face):
    """Base of the layers with parameters: these have the names, shapes and first values that the core's layer has."""

    _pattern: ClassVar[type[core.Layer]]
    _takes_name: ClassVar[bool] = True  # whether the constructor takes a name

    @staticmethod
    def _reader(names: Sequence[str]) -> Callable[[Layer], Sequence[Parameter | None]]:
        """Parameters are looked for where they are: `getattr` finds them last."""

        def read(layer: Layer) -> list[Parameter | None]:
            parameters = layer._parameters
            return [
                getattr(layer, name) if (value := parameters.get(name)) is None else value for name in names
            ]

        return read

    def _parameter_type(self) -> str:
        return get_default_dtype()

    def _create(self, settings: Mapping[str, Any]) -> None:
        told = {name: value for name, value in settings.items() if name not in ("data_format", "name")}
        told |= {name: False if told[name] is False else None for name in _ATTRIBUTES if name in told}
        with uncounted_initializers():
            made = self._pattern(**told)
        held = {*self._row.attributes.values(), *self._row.constants, "training"}
        for name in (attribute for attribute in self._row.read if attribute not in held):
            parameter = made._parameters.get(name)
            setattr(self, name, parameter and self._like(parameter, name == "bias", settings))

    def _like(
        self, parameter: core.Parameter, is_bias: bool, settings: Mapping[str, Any]
    ) -> Parameter | None:
        """A parameter of this shape that starts so. Biases, and weights that start as XavierUniform, start as
        `set_global_initializer` says."""
        start = None
        if not is_bias and not isinstance(parameter.initializer, core.initializer.XavierUniform):
            start = Initializer()
            start.core = parameter.initializer
        attr = settings["bias_attr" if is_bias else "weight_attr"]
        return self.create_parameter(parameter.shape, attr, is_bias=is_bias, default_initializer=start)


FaceT = TypeVar("FaceT", bound=Face)


def _made(name: str, base: type[FaceT], row: Row, module: str, doc: str, **members: object) -> type[FaceT]:
    made = leaf_class(name, base, row, module, doc)
    for member, value in members.items():
        if value is not None:
            setattr(made, member, value)
    return made


def _operation(name: str) -> Callable[..., jax.Array]:
    return getattr(F, name)


def face(
    layer: type[LeafLayer],
    function: Callable[..., object] | None = None,
    *,
    module: str,
    base: type[Face] = Face,
    data_format: str | None = None,
    settings: str | None = None,
    inputs: str = "",
    prefix: str = "_",
    attributes: Mapping[str, str] | None = None,
    shown: str | None = None,
    quiet: tuple[str, ...] = (),
) -> type[Face]:
    """Paddle's layer of the name of `layer`: the operation of the same function with the same settings.

    Args:
        function: the operation, where its name is not that of the layer's function.
        data_format: the default, where it is not the operation's.
        settings: names of what the constructor takes, where it is not all that the operation takes.
        inputs: names of what `forward` takes, where they are not the operation's.
        prefix: before the names of settings, as attributes; `attributes` names single ones.
        shown: how the layer prints its settings, as a format of these, `dtype`, `training` and `named`; by default all,
            without those in `quiet` that have their default.
    """
    own = layer._row
    function = function or _operation(own.function.__name__)
    parameters = inspect.signature(function).parameters
    words = tuple(inputs.split()) or leading_inputs(parameters)
    arguments = {attribute: parameter for parameter, attribute in own.sources.items()}
    fixed = {n: own.constants[n] for n in own.sources.values() if n in own.constants}
    behind = [n for n in list(parameters)[len(words) :] if n != "training" and n not in fixed]
    spelled = [n for n in own.signature.parameters if arguments.get(n, n) in behind]
    spelled += [n for n in ("data_format", "name") if n in behind and n not in spelled]
    if settings is not None:
        spelled = [n for n in spelled if n in (*settings.split(), "name")]
    held = {n: (attributes or {}).get(n, prefix + n) for n in spelled}
    constants = {prefix + n: value for n, value in fixed.items()}
    sources = {arguments.get(n, n): attribute for n, attribute in held.items() if n != "name"}
    sources |= {"training": "training", **{n: prefix + n for n in fixed}}
    constructor = [parameters[arguments.get(n, n)].replace(name=n) for n in spelled]
    if data_format is not None:
        constructor = [p.replace(default=data_format) if p.name == "data_format" else p for p in constructor]
    row = make_row(function, parameters, words, constructor, held, sources, constants)
    doc = f"`functional.{function.__name__}` as a layer. {function.__doc__}"
    return _made(layer.__name__, base, row, module, doc, _shown=shown, _quiet=quiet)


def parametric_face(
    layer: type[core.Layer],
    function: Callable[..., object],
    base: type[ParametricFace] = ParametricFace,
    *,
    module: str,
    inputs: str = "x",
    sources: Mapping[str, str] | None = None,
    attributes: Mapping[str, str] | None = None,
    shown: str | None = None,
    data_format: str | None = None,
    without: str = "",
) -> type[ParametricFace]:
    """Paddle's layer of the name of `layer`, which takes what that takes: `function` with the layer's parameters.

    Args:
        inputs: names of what `forward` takes.
        sources: parameters of the function that are attributes of another name.
        attributes: settings that are attributes of another name than with an underscore before it.
        shown: see `face`.
        data_format: the default, where it is not the function's.
        without: a setting that Paddle's constructor has not.
    """
    parameters = inspect.signature(function).parameters
    constructor = [p for p in constructor_arguments(layer).values() if p.name != without]
    if base._takes_name:
        constructor.append(parameters["name"])
    if "data_format" in parameters:
        default = data_format or parameters["data_format"].default
        constructor = [p.replace(default=default) if p.name == "data_format" else p for p in constructor]
    held = {p.name: (attributes or {}).get(p.name, f"_{p.name}") for p in constructor}
    read = {
        n: held.get(n, n) for n in parameters if n in ("weight", "bias", "training", *held) and n != "name"
    }
    row = make_row(function, parameters, inputs.split(), constructor, held, {**read, **(sources or {})}, {})
    doc = channels_first_text(layer.__doc__ or "")
    return _made(layer.__name__, base, row, module, doc, _pattern=layer, _shown=shown)
