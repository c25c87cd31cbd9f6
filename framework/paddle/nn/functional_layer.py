"""Layers without parameters: a function of `functional` whose settings are fixed when the layer is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from framework.paddle.nn.layer import Layer


class FunctionalLayer(Layer):
    """Base of the layers that `functional_layer` makes. The settings are attributes."""

    _function: ClassVar[Callable[..., Any]]
    _signature: ClassVar[inspect.Signature]
    _inputs: ClassVar[tuple[str, ...]]
    _attributes: ClassVar[dict[str, str]]  # setting -> attribute
    _trains: ClassVar[bool]  # the function asks whether it is training
    _shown: ClassVar[str | None]
    _quiet: ClassVar[tuple[str, ...]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for setting, value in bound.arguments.items():
            setattr(self, self._attributes[setting], value)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        if named:
            inputs = (*inputs, *(named.pop(name) for name in self._inputs[len(inputs) :] if name in named))
        for setting, attribute in self._attributes.items():
            if setting != "name":
                named[setting] = getattr(self, attribute)
        if self._trains:
            named["training"] = self.training
        return type(self)._function(*inputs, **named)

    def extra_repr(self) -> str:
        values = {setting: getattr(self, attribute) for setting, attribute in self._attributes.items()}
        if self._shown is not None:
            return self._shown.format(**values)
        name = values.pop("name", None)
        defaults = {p.name: p.default for p in self._signature.parameters.values()}
        parts = [
            f"{setting}={value}"
            for setting, value in values.items()
            if setting not in self._quiet or value != defaults[setting]
        ]
        return ", ".join([*parts, f"name={name}"] if name else parts)


def functional_layer(
    name: str,
    function: Callable[..., Any],
    *,
    module: str,
    inputs: str = "x",
    settings: Sequence[str] | None = None,
    prefix: str = "_",
    attributes: Mapping[str, str] | None = None,
    shown: str | None = None,
    quiet: Sequence[str] = (),
) -> type[FunctionalLayer]:
    """The class of layers `name(*settings)` that call `function(*inputs, *settings)`.

    Args:
        inputs: names of what `forward` takes, as many as the function's first parameters.
        settings: parameters of the function that the constructor takes, in its order; all by default.
        prefix: before the names of settings, as attributes; `attributes` names single ones.
        shown: how the layer prints its settings, as a format; by default all of them, without those in `quiet` that
            have their default.
    """
    words = tuple(inputs.split())
    parameters = dict(list(inspect.signature(function).parameters.items())[len(words) :])
    trains = parameters.pop("training", None) is not None
    chosen = (
        list(parameters) if settings is None else [*settings, *(["name"] if "name" in parameters else [])]
    )
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([parameters[s].replace(kind=plain) for s in chosen])
    self_ = inspect.Parameter("self", plain)

    def forward(self: FunctionalLayer, *inputs: Any, **named: Any) -> Any:
        return FunctionalLayer.forward(self, *inputs, **named)

    forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [self_, *(inspect.Parameter(word, plain) for word in words)]
    )
    body = {
        "__module__": module,
        "__doc__": f"`functional.{getattr(function, '__name__', name)}` as a layer. {function.__doc__}",
        "__signature__": signature,
        "forward": forward,
        "_function": staticmethod(function),
        "_signature": signature,
        "_inputs": words,
        "_attributes": {s: (attributes or {}).get(s, f"{prefix}{s}") for s in chosen},
        "_trains": trains,
        "_shown": shown,
        "_quiet": tuple(quiet),
    }
    return type(name, (FunctionalLayer,), body)
