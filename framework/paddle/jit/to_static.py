"""to_static: functions, methods, layers and whole training steps as compiled programs."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from framework.core.errors import OarError, TraceError, UnknownValueError
from framework.core.process_state import state
from framework.core.trace import explain_trace_errors, user_line
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.jit.ast_transform import CONVERSION_OPTIONS, ConversionOptions, transformed
from framework.paddle.jit.concrete import ConcreteProgram, ProgramCache, expect_dynamic_mode, tensors_of
from framework.paddle.jit.dy2static.function_spec import FunctionSpec
from framework.paddle.jit.program import StaticProgram, trace
from framework.paddle.jit.recording import shape_and_type
from framework.paddle.jit.spec import InputSpec
from framework.paddle.jit.structure import flatten_arguments, with_tensors
from framework.paddle.nn.layer import Layer
from framework.paddle.utils.environments import BooleanEnvironmentVariable

if TYPE_CHECKING:
    from framework.paddle.static.program import Program

log = logging.getLogger("oar")
# Whether functions that cannot be one program run as Python; of the environment in Paddle, too.
ENV_ENABLE_SOT = BooleanEnvironmentVariable("ENABLE_FALL_BACK", True)


def enable_to_static(enable_to_static_bool: bool) -> None:
    """Whether to_static functions are compiled; False: they run as they are written."""
    if not isinstance(enable_to_static_bool, bool):
        raise TypeError(f"enable_to_static takes a bool, received {enable_to_static_bool!r}")
    state.to_static = enable_to_static_bool


class StaticFunction:
    """A function that is compiled once for each kind of arguments, and bound like a method where it is one.

    Tensors and arrays among the arguments are data; everything else is a part of the program, which is compiled anew
    for other values. Parameters, buffers, gradients and the optimizer's state are read and changed as in eager mode.
    """

    def __init__(
        self,
        function: Callable[..., object],
        input_spec: Sequence[InputSpec | Tensor] | None = None,
        *,
        owner: object = None,
        convert: bool = True,
        full_graph: bool = True,
    ) -> None:
        functools.update_wrapper(self, function)
        self.name = getattr(function, "__name__", type(function).__name__)
        self.dygraph_function = function
        self.input_spec = input_spec
        self._owner = owner
        self._convert, self._full_graph = convert, full_graph
        self._runs_as_python = False
        self._bound: dict[int, tuple[Any, StaticFunction]] = {}
        self._programs: dict[Any, list[StaticProgram]] = {}

    def __get__(self, owner: object, kind: type | None = None) -> StaticFunction:
        if owner is None:
            return self
        known = self._bound.get(id(owner))
        if known is None or known[0] is not owner:
            bound = StaticFunction(
                self.dygraph_function,
                self.input_spec,
                owner=owner,
                convert=self._convert,
                full_graph=self._full_graph,
            )
            known = self._bound[id(owner)] = (owner, bound)
        return known[1]

    @functools.cached_property
    def python_function(self) -> Callable[..., object]:
        """The function with control flow over Tensors converted, bound to its owner."""
        function = transformed(self.dygraph_function) if self._convert else self.dygraph_function
        return function if self._owner is None else types.MethodType(function, self._owner)

    @property
    def code(self) -> str:
        """The source of the converted function."""
        source = getattr(transformed(self.dygraph_function), "__converted_source__", None)
        return source or inspect.getsource(self.dygraph_function)

    @functools.cached_property
    def program_cache(self) -> ProgramCache:
        """Static programs of the arguments that it was called with."""
        return ProgramCache(self)

    @property
    def concrete_program(self) -> ConcreteProgram:
        """The static program for `input_spec`, else for the arguments that came last.

        Raises:
            RuntimeError: the mode is static, or the function runs as Python.
            ValueError: there is neither.
        """
        expect_dynamic_mode("concrete_program")
        if self._runs_as_python:
            raise RuntimeError(f"{self.name} is not one program: it runs as Python")
        if self.input_spec is not None:
            return self.program_cache.program(self.program_cache.note(self.input_spec, {}))
        if not len(self.program_cache):
            raise ValueError(
                f"No valid transformed program for {self.name}. Please specific `input_spec` in "
                "`@paddle.jit.to_static` or feed input tensor to call the decorated function at once."
            )
        return self.program_cache.last()[1][0]

    def get_concrete_program(self, *args: object, **kwargs: object) -> tuple[ConcreteProgram, StaticFunction]:
        """The static program for such arguments, InputSpecs or values, and this function, which runs it."""
        FunctionSpec(self.rollback()).unified_args_and_kwargs(args, kwargs)
        return self.program_cache.program(self.program_cache.note(args, kwargs)), self

    def get_traced_count(self) -> int:
        """How many kinds of arguments it was compiled for."""
        return len(self.program_cache)

    @property
    def main_program(self) -> Program:
        """That of `concrete_program`, and raises as it does."""
        return self.concrete_program.main_program

    @property
    def inputs(self) -> list[Tensor]:
        """The variables that `main_program` is fed."""
        return tensors_of(self.concrete_program.inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """The variables that `main_program` gives."""
        return tensors_of(self.concrete_program.outputs)

    @property
    def class_instance(self) -> object:
        """The object whose method this is."""
        return self._owner

    def train(self) -> None:
        """Accepted where the layer whose method this is trains, or where there is none: `training` of what the function
        calls decides.

        Raises:
            RuntimeError: the layer evaluates.
        """
        self._expect(training=True)

    def eval(self) -> None:
        """As `train`, for evaluation."""
        self._expect(training=False)

    def _expect(self, training: bool) -> None:
        if isinstance(self._owner, Layer) and self._owner.training != training:
            way = "train" if training else "eval"
            raise RuntimeError(
                f"{self.name} is a method of a Layer, whose own {way}() switches to {way} mode"
            )

    def rollback(self) -> Callable[..., object]:
        """The function as it was written."""
        function = self.dygraph_function
        return function if self._owner is None else types.MethodType(function, self._owner)

    @functools.cached_property
    def _names(self) -> list[str] | None:
        """The names of its arguments; None: it takes others, too."""
        parameters = inspect.signature(self.rollback()).parameters.values()
        open_ended = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
        return None if open_ended else [parameter.name for parameter in parameters]

    def _check_names(self, kwargs: Mapping[str, object]) -> None:
        """Raises: ValueError: an argument has a name that is none of the function's, or there are more InputSpecs than
        arguments."""
        names, specs = self._names, self.input_spec or ()
        if names is None:
            return
        unknown = [name for name in kwargs if name not in names]
        if unknown:
            raise ValueError(f"{self.name} got unexpected keyword arguments: {unknown}; it takes {names}")
        if len(names) < len(specs):
            raise ValueError(
                f"Requires len(arguments) >= len(input_spec), but received len(args):{len(names)} < len(InputSpec): "
                f"{len(specs)}"
            )

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if not state.to_static or (self._runs_as_python and mode.watcher is None):
            return self.rollback()(*args, **kwargs)
        if mode.watcher is not None:  # inside of another program, which takes it in
            return self.python_function(*args, **kwargs)
        if self.input_spec is not None:
            self._check_names(kwargs)
        tensors: list[Tensor] = []
        structure = flatten_arguments((args, kwargs), tensors)
        places: dict[int, int] = {}
        key = (
            structure,
            mode.grad_enabled,
            mode.amp,
            mode.default_dtype,
            tuple(
                [
                    (*shape_and_type(t._value), t.stop_gradient, places.setdefault(id(t), len(places)))
                    for t in tensors
                ]
            ),
        )
        programs = self._programs.setdefault(key, [])
        for program in programs:
            found = program.fits(tensors)
            if found is not None:
                return program(found, tensors)
        try:
            program = self._trace(args, kwargs, tensors, programs)
        except Exception as error:
            if self._full_graph:
                raise
            return self._run_as_python(error, args, kwargs)
        programs.append(program)
        self.program_cache.note(args, kwargs)
        found = program.fits(tensors)
        if found is None:
            raise TraceError(
                "the Tensors that this function uses change while it is traced",
                where=self.name,
                fix="mark what changes them with @paddle.jit.not_to_static, or do it outside",
            )
        return program(found, tensors)

    def _run_as_python(self, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]) -> object:
        """The result of the function as it was written, from here on; what is wrong with it is raised from there."""
        try:
            result = self.rollback()(*args, **kwargs)
        except Exception as python_error:
            raise python_error from error
        self._runs_as_python = True
        log.warning("%s is not one program and runs as Python, operation by operation: %s", self.name, error)
        return result

    def _trace(
        self, args: object, kwargs: object, tensors: Sequence[Tensor], programs: Sequence[StaticProgram]
    ) -> StaticProgram:
        arguments, named = with_tensors((args, kwargs), tensors)
        layers = list(layers_of(self._owner, self.dygraph_function, args, kwargs))
        known = programs[-1].slots if programs else ()
        with explained(self.name), converted_layers(layers if self._convert else ()):
            return trace(lambda: self.python_function(*arguments, **named), tensors, layers, known)

    @contextlib.contextmanager
    def conversion(self, args: object, kwargs: object) -> Iterator[None]:
        """Within the block layers that the function reaches run with their control flow converted, and errors of
        tracing name its line."""
        layers = list(layers_of(self._owner, self.dygraph_function, args, kwargs))
        with explained(self.name), converted_layers(layers if self._convert else ()):
            yield

    def concrete_programs(self) -> list[StaticProgram]:
        """All programs that were compiled."""
        return [program for programs in self._programs.values() for program in programs]


@contextlib.contextmanager
def converted_layers(layers: Iterable[Layer]) -> Iterator[None]:
    """Within the block the user's own layers run with their control flow converted, in containers too."""
    changed: list[Layer] = []
    for layer in layers:
        if "forward" not in layer.__dict__:
            made = transformed(layer.forward)
            if made is not layer.forward and getattr(made, "__func__", None) is not type(layer).forward:
                object.__setattr__(layer, "forward", made)
                changed.append(layer)
    try:
        yield
    finally:
        for layer in changed:
            layer.__dict__.pop("forward", None)


class explained:
    """Errors of tracing inside the block say which line of the user asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._scope = explain_trace_errors()

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool | None:
        if isinstance(error, TraceError) and error.where is None:
            line = user_line(error)
            raised = UnknownValueError if isinstance(error, UnknownValueError) else TraceError
            raise raised(
                error.problem,
                where=self.name if line == "an unknown line" else f"{self.name}, {line}",
                received=error.received,
                allowed=error.allowed,
                fix=error.fix,
            ) from error
        if isinstance(error, OarError):
            return None
        return self._scope.__exit__(kind, error, traceback)


def layers_of(*roots: object) -> Iterator[Layer]:
    """The layers that can be reached from these objects: a method's owner, a function's closure and globals,
    arguments; each with all layers below."""
    seen: set[int] = set()
    for root in roots:
        for layer in _reached(root, 3):
            for below in layer.sublayers(include_self=True):
                if id(below) not in seen:
                    seen.add(id(below))
                    yield below


def _reached(value: object, depth: int) -> Iterable[Layer]:
    if isinstance(value, Layer):
        yield value
    elif depth == 0 or isinstance(value, Tensor | str | bytes | int | float | type | types.ModuleType):
        return
    elif isinstance(value, StaticFunction):
        yield from _reached(value.class_instance, depth)
        yield from _reached(value.dygraph_function, depth)
    elif isinstance(value, types.MethodType):
        yield from _reached(value.__self__, depth)
    elif isinstance(value, types.FunctionType):
        for cell in value.__closure__ or ():
            try:
                yield from _reached(cell.cell_contents, depth - 1)
            except ValueError:  # a name that is not bound yet
                continue
        for name in value.__code__.co_names:
            yield from _reached(value.__globals__.get(name), depth - 1)
    elif isinstance(value, list | tuple | set):
        for part in value:
            yield from _reached(part, depth - 1)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _reached(part, depth - 1)
    elif isinstance(getattr(value, "__dict__", None), dict):
        for part in list(vars(value).values()):
            yield from _reached(part, depth - 1)


def to_static(
    function: object = None,
    input_spec: Sequence[InputSpec | Tensor] | None = None,
    build_strategy: object = None,
    backend: object = None,
    **kwargs: object,
) -> Any:
    """Compile a function, a method or a Layer (its `forward`); also a decorator.

    A whole training step can be one such function: `loss.backward()`, `opt.step()` and `opt.clear_grad()` inside become
    a part of the program. `if`, `while` and `for` over Tensors are converted. A function that cannot be one program
    runs as Python, with a warning; with `full_graph=True` it is an error (TraceError), as where a model is saved.
    `backend` is accepted and means nothing here.
    """
    full_graph = kwargs.get("full_graph")
    if full_graph is None:
        full_graph = not ENV_ENABLE_SOT.get()
    whole = bool(full_graph) and not getattr(build_strategy, "build_cinn_pass", False)

    def decorate(target: object) -> Layer | StaticFunction:
        if isinstance(target, Layer):
            if not isinstance(target.forward, StaticFunction):
                forward = target.forward
                plain = forward.__func__ if isinstance(forward, types.MethodType) else forward
                owner = target if isinstance(forward, types.MethodType) else None
                object.__setattr__(
                    target, "forward", StaticFunction(plain, input_spec, owner=owner, full_graph=whole)
                )
            elif input_spec is not None:
                target.forward.input_spec = input_spec
            return target
        if isinstance(target, StaticFunction):
            return target
        if isinstance(target, types.MethodType):
            return StaticFunction(target.__func__, input_spec, owner=target.__self__, full_graph=whole)
        if not callable(target):
            raise TypeError(
                f"to_static takes a function, a method or a Layer, received {type(target).__name__}"
            )
        return StaticFunction(target, input_spec, full_graph=whole)

    return decorate if function is None else decorate(function)


def not_to_static(func: Any = None) -> Any:
    """Leave the control flow of this function as it is written when a to_static function calls it; also a
    decorator."""
    if func is None:
        return not_to_static
    setattr(getattr(func, "__func__", func), CONVERSION_OPTIONS, ConversionOptions(not_convert=True))
    return func
