"""What an operator of a graph is, and what it sees of its node while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack

import jax
import numpy as np
from jax.core import Tracer

from framework.core.axes import normalize_axis
from framework.core.errors import FormatError, OarError, ShapeError, TraceError
from framework.interop.graph.values import Dim, Item, Static, Value, as_dims
from framework.interop.programs.program import Node

Style = Literal["logical", "elementwise", "values"]
Run = Callable[..., Any]
RunT = TypeVar("RunT", bound=Run)
_FIX = "export the model again, or check it with onnx.checker.check_model"


@dataclass(frozen=True)
class Operator:
    """One operator: the function that runs it, and what it takes.

    style: what `run(call, *inputs)` receives. "logical": arrays in the graph's order of axes. "elementwise": arrays in
    one common layout, which the results have too. "values": the items themselves.
    folds: whether `run` takes numpy arrays where all inputs are known; otherwise it always gets jax arrays.
    static: the inputs (numbers from 0) that must be known before the program runs, such as shapes; they stay numpy.
    weights: the inputs whose initializers are weights and can be trained.
    since: the first version of the operator set whose form is understood.
    grows: whether the sizes of its results depend on values; in a compiled program they have the greatest sizes then.
    """

    name: str
    run: Run
    style: Style = "logical"
    folds: bool = False
    static: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    since: int = 1
    grows: bool = False


class _Options(TypedDict, total=False):
    style: Style
    folds: bool
    static: tuple[int, ...]
    weights: tuple[int, ...]
    since: int
    grows: bool


Table = dict[str, Operator]


def registrar(table: Table) -> Callable[..., Callable[[RunT], RunT]]:
    """A decorator that enters functions into `table` by the names of their operators."""

    def operator(*names: str, **options: Unpack[_Options]) -> Callable[[RunT], RunT]:
        def enter(run: RunT) -> RunT:
            for name in names:
                if name in table:
                    raise KeyError(f"two functions run the operator {name}")
                table[name] = Operator(name, run, **options)
            return run

        return enter

    return operator


class Runner(Protocol):
    """What runs the nodes of a graph; operators with bodies call it back."""

    training: bool

    def run_body(self, call: Call, body: int, inputs: Sequence[Item]) -> list[Item]: ...

    def copy_for_trace(self) -> Runner: ...

    def set_buffer(self, name: str, value: jax.Array) -> None: ...


@dataclass(frozen=True, eq=False)
class Call:
    """One node while it runs: its attributes, the version of its operator set, and how to speak of it in errors."""

    node: Node
    version: int
    runner: Runner
    scope: Mapping[str, Item]
    domains: Mapping[str, int] = field(default_factory=dict)

    def attr(self, name: str, default: object = None) -> Any:
        """An attribute, or the default where the node has none."""
        value = self.node.attrs.get(name)
        return default if value is None else value

    def ints(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...] | None:
        """An attribute that is a list of integers."""
        value = self.attr(name)
        if value is None:
            return None if default is None else tuple(default)
        return tuple(int(item) for item in value)

    def required(self, name: str) -> Any:
        """An attribute that the node must have. Raises: FormatError."""
        value = self.attr(name)
        if value is None:
            raise self.error(f"the attribute {name!r} is missing", allowed=f"{self.node.op} with {name}")
        return value

    def wants(self, output: int) -> bool:
        """Whether the graph reads this output."""
        return output < len(self.node.outputs) and bool(self.node.outputs[output])

    @property
    def where(self) -> str:
        return f"node {self.node.name!r} ({self.node.op}, opset {self.version})"

    def error(
        self,
        problem: str,
        kind: type[OarError] = FormatError,
        *,
        received: object = None,
        allowed: object = None,
        fix: str | None = _FIX,
    ) -> OarError:
        """An error about this node."""
        return kind(problem, where=self.where, received=received, allowed=allowed, fix=fix)

    def axis(self, axis: int, rank: int) -> int:
        """The axis counted from the front. Raises: ShapeError."""
        if 0 <= axis < rank:
            return axis
        return normalize_axis(axis, rank, self.where, _FIX)

    def static(self, value: Item, what: str) -> Static:
        """The numbers of an input that decides about shapes.

        Raises:
            TraceError: they are computed from the inputs of a program that is being compiled.
        """
        if isinstance(value, Value):
            if isinstance(value.data, Tracer):
                raise self.error(
                    f"{what} must be known before the program runs",
                    TraceError,
                    received="a value that is computed from the inputs",
                    allowed="constants, and what is computed from shapes",
                    fix="run the layer eagerly, or export the model with fixed sizes there",
                )
            return np.asarray(value.logical())
        if value is None or isinstance(value, list):
            raise self.error(f"{what} is missing", ShapeError)
        return value

    def dims(self, value: Item, what: str) -> list[Dim]:
        """The sizes in an input, as Python integers and symbolic dimensions."""
        return as_dims(self.static(value, what))

    def number(self, value: Item, what: str) -> Any:
        """The one number in an input."""
        array = self.static(value, what)
        if array.size != 1:
            raise self.error(f"{what} is one number", ShapeError, received=f"shape {array.shape}")
        return array.ravel().tolist()[0]
