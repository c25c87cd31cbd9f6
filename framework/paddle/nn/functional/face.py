"""Operations made from functions of the core: the same arguments, channels first, on Tensors.

relu = face(core.relu)                                    # (x, name)
pixel_shuffle = face(core.pixel_shuffle, data_format="NCHW")      # (x, upscale_factor, data_format, name)
conv1d = face(core.conv1d, convolve, data_format="NCL")           # convolve(core.conv1d, x=…, weight=…, …)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from framework.paddle._kernel.dispatch import operation
from framework.paddle.nn.functional.layout import from_last, to_last
from framework.paddle.nn.functional.requirements import REQUIREMENTS

if TYPE_CHECKING:
    from framework.paddle._kernel.tensor import Tensor

_PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD
_LEFT_OUT = ("key", "pad_value")  # what functions of the core take and Paddle's do not


def channels_first(
    function: Callable[..., Any], x: jax.Array, data_format: str = "NCHW", **settings: object
) -> jax.Array:
    """A function of channels-last images as one of images in this format."""
    return from_last(function(to_last(x, data_format), **settings), data_format)


def channels_first_text(text: str) -> str:
    """The shapes of a documentation with channels first: [N, H, W, C] -> [N, C, H, W]."""

    def turn(match: re.Match[str]) -> str:
        *axes, channels = match[1].split(", ")
        return f"[N, {', '.join([channels, *axes])}]"

    return re.sub(r"\[N, ([^]]*, (?:C|in|out|in_channels)\b[^],]*)\]", turn, text)


def face(
    function: Callable[..., Any],
    call: Callable[..., Any] | None = None,
    *,
    data_format: str | None = None,
    before: str = "",
    name: bool = True,
    **defaults: object,
) -> Callable[..., Tensor]:
    """The operation of Paddle that `function` of the core computes, under its name.

    Args:
        call: `call(function, **arguments)` computes the result, where it takes more than the call; with a
            `data_format` by default `channels_first`. What its documentation says is added to the function's.
        data_format: the default of the parameter of this name, which the function of the core has not.
        before: the parameter that `data_format` stands before; by default it is the last one but `name`.
        name: whether the operation takes a name, which changes nothing.
        defaults: where Paddle's differ from the core's.
    """
    parameters = [
        p.replace(
            kind=_PLAIN,
            annotation=str(p.annotation).replace("jax.Array", "Array"),
            default=defaults.get(p.name, p.default),
        )
        for p in inspect.signature(function).parameters.values()
        if p.name not in _LEFT_OUT and not (data_format and p.name == "data_format")
    ]
    if data_format is not None:
        index = next((i for i, p in enumerate(parameters) if p.name == before), len(parameters))
        parameters.insert(index, inspect.Parameter("data_format", _PLAIN, default=data_format))
        call = call or channels_first
    if name:
        parameters.append(inspect.Parameter("name", _PLAIN, default=None))

    requirement = REQUIREMENTS.get(function.__name__)

    def compute(**arguments: object) -> jax.Array:
        if requirement is not None:
            requirement(f"paddle.nn.functional.{function.__name__}", arguments)
        return function(**arguments) if call is None else call(function, **arguments)

    compute.__name__ = compute.__qualname__ = function.__name__
    compute.__module__ = "framework.paddle.nn.functional"
    texts = (function.__doc__, call.__doc__ if call not in (None, channels_first) else None)
    compute.__doc__ = "\n\n    ".join(channels_first_text(text) if call else text for text in texts if text)
    compute.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return operation(compute)
