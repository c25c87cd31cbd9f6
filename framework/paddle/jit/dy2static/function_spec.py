"""paddle.jit.dy2static.function_spec: the arguments of a function, and what is known of them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from framework.paddle._kernel.tensor import Tensor
from framework.paddle.jit.dy2static.utils import func_to_source_code
from framework.paddle.jit.spec import InputSpec
from framework.paddle.utils.structure import flatten, map_structure


class FunctionSpec:
    """A function with the shapes and types of its inputs.

    Args:
        function: A function of Python.
        input_spec: An InputSpec for each of its first arguments; None: nothing is known.
    """

    def __init__(self, function: Callable[..., object], input_spec: Sequence[object] | None = None) -> None:
        if input_spec is not None and not isinstance(input_spec, list | tuple):
            raise TypeError(
                f"The type(input_spec) should be one of (tuple, list), but received {type(input_spec).__name__}."
            )
        self.dygraph_function = function
        self.input_spec = None if input_spec is None else tuple(input_spec)
        self.flat_input_spec = None if input_spec is None else flatten(self.input_spec)
        parameters = inspect.signature(function).parameters.values()
        named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.args_name = [parameter.name for parameter in named]
        self._defaults = {p.name: p.default for p in named if p.default is not p.empty}

    @property
    def code(self) -> str:
        """The source of the function."""
        return func_to_source_code(self.dygraph_function)

    def unified_args_and_kwargs(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """All arguments by position, defaults too, and the named ones that remain.

        Raises:
            ValueError: there are too many, or one is missing.
            TypeError: the function has several decorators.
        """
        name = self.dygraph_function.__name__
        if len(self.args_name) < len(args):
            message = (
                f"The decorated function `{name}` requires {len(self.args_name)} arguments: {self.args_name}, but "
                f"received {len(args)} with {args}."
            )
            if inspect.isclass(args[0]):
                raise TypeError(f"{message} Maybe the function has more than one decorator.")
            raise ValueError(message)
        values, rest = list(args), dict(kwargs)
        for argument in self.args_name[len(args) :]:
            if argument not in rest and argument not in self._defaults:
                raise ValueError(
                    f"`{name}()` requires `{argument}` arguments, but not found in input `args`: {args} and "
                    f"`kwargs`: {rest}."
                )
            values.append(rest.pop(argument) if argument in rest else self._defaults[argument])
        return tuple(values), rest

    def args_to_input_spec(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[list[object], dict[str, object]]:
        """The arguments with Tensors and arrays as InputSpecs, which have the names of the arguments.

        Raises:
            ValueError: `input_spec` is set, and arguments have names or are too few.
        """
        specs = self.input_spec or ()
        if self.input_spec is not None and kwargs:
            raise ValueError(
                f"{self.dygraph_function.__name__} got unexpected keyword arguments: {dict(kwargs)}. Cannot trace the "
                "function when `input_spec` is specificed."
            )
        if len(args) < len(specs):
            raise ValueError(
                f"Requires len(arguments) >= len(input_spec), but received len(args):{len(args)} < len(InputSpec): "
                f"{len(specs)}"
            )
        names = [*self.args_name, *[f"args_{index}" for index in range(len(args))]]
        described = [
            _described(value, specs[index] if index < len(specs) else None, names[index])
            for index, value in enumerate(args)
        ]
        return described, {key: _described(value, None, f"kwargs.{key}") for key, value in kwargs.items()}

    def __repr__(self) -> str:
        arguments = ",".join(self.args_name)
        return f"function: {self.dygraph_function.__name__}({arguments}), input_spec: {self.input_spec}"


def _described(value: object, spec: object, name: str | None) -> object:
    """An InputSpec of an argument: its own sizes, or those that `spec` leaves open."""
    if isinstance(spec, list | tuple) and isinstance(value, list | tuple):
        specs = [*spec, *[None] * (len(value) - len(spec))]
        pairs = zip(value, specs, strict=False)
        return [_described(item, one, f"{name}_{index}") for index, (item, one) in enumerate(pairs)]
    if isinstance(spec, dict) and isinstance(value, Mapping):
        return {key: _described(item, spec.get(key), str(key)) for key, item in value.items()}
    described = _spec_of(value) if isinstance(spec, InputSpec) else map_structure(_spec_of, value)
    if isinstance(spec, InputSpec):
        if not isinstance(described, InputSpec):
            raise RuntimeError(f"Give input spec into a non-tensorable arguments `{value}`.")
        described.name = spec.name
        same = len(described.shape) == len(spec.shape) and all(
            wanted in (-1, size) for wanted, size in zip(spec.shape, described.shape, strict=True)
        )
        if same:
            described.shape = spec.shape
    if isinstance(described, InputSpec) and described.name is None:
        described.name = name
    return described


def _spec_of(value: object) -> object:
    if isinstance(value, Tensor):
        spec = InputSpec.from_tensor(value)
        spec.stop_gradient = value.stop_gradient
        return spec
    if isinstance(value, InputSpec):
        return copy.copy(value)
    return InputSpec.from_numpy(value) if isinstance(value, np.ndarray) else value
