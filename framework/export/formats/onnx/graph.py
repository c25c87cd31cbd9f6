"""An ONNX graph under construction: nodes, constants, and the arithmetic of symbolic sizes."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from jax import export
from jax.core import ShapedArray
from jax.extend.core import Literal, Var
from jax.typing import ArrayLike, DTypeLike

from framework.core.errors import ShapeError

Size = Any  # an int, or a symbolic size of jax.export such as 32*h
Atom = Var | Literal  # what an equation of a jaxpr reads
_SMALL = 1024  # elements up to which equal constants become one


class Aval(Protocol):
    """Shape and type of an array that is not there yet."""

    @property
    def shape(self) -> Sequence[Size]: ...
    @property
    def dtype(self) -> DTypeLike: ...


def aval_of(atom: Atom) -> ShapedArray:
    """Shape and type of a variable or constant of a program."""
    assert isinstance(atom.aval, ShapedArray), f"{atom.aval} is no array"
    return atom.aval


def avals_of(atoms: Sequence[Atom]) -> list[ShapedArray]:
    """Shapes and types."""
    return [aval_of(atom) for atom in atoms]


@dataclass(eq=False)
class Node:
    """One operator. The values of `attributes` are numbers, texts, sequences of them, and graphs."""

    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)

    def bodies(self) -> Iterator[Graph]:
        """The graphs among its attributes."""
        return (value for value in self.attributes.values() if isinstance(value, Graph))


def is_symbolic(size: Size) -> bool:
    """Whether a size is only known when the program runs."""
    return bool(export.is_symbolic_dim(size))


_FUNCTIONS = ("mod", "floordiv", "max", "min")  # in the text of a size


class Graph:
    """The nodes of the program, or of the body of a loop or a branch, which also sees the names of its `parent`.

    Large constants and sizes stand in the outermost graph, where every body sees them; but for the sizes of a Scan's
    inputs, which its body reads of them: OpenVINO takes nothing else from around a Scan than constants.

    Attributes:
        inputs, outputs: Names with the type and shape that the file says.
        constants: The arrays that the file holds, by name.
    """

    def __init__(self, parent: Graph | None = None) -> None:
        self.parent, self.root = parent, self if parent is None else parent.root
        self.nodes: list[Node] = []
        self.inputs: list[tuple[str, np.dtype, tuple[Size, ...]]] = []
        self.outputs: list[tuple[str, np.dtype, tuple[Size, ...]]] = []
        self.constants: dict[str, np.ndarray] = {}
        self._initializers: dict[tuple[object, ...], str] = {}
        self._sizes: dict[str, tuple[str, int | None]] = {}
        self._sources: dict[str, tuple[str, int, int, int]] = {}
        self._counter = itertools.count(1)

    def unique(self, stem: str) -> str:
        """A name that no other tensor has."""
        return f"{stem}_{next(self.root._counter)}"

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        """The name of the output of a new node; attributes that are None are left out."""
        return self.add_many(op, 1, *inputs, **attributes)[0]

    def add_many(self, op: str, outputs: int, *inputs: str, **attributes: object) -> list[str]:
        """The names of several outputs of a new node."""
        names = [self.unique(op.lower()) for _ in range(outputs)]
        present = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(Node(op, list(inputs), names, present))
        return names

    def constant(self, array: ArrayLike, name: str | None = None) -> str:
        """The name of a constant; one without a name of its own is shared by all that are equal to it."""
        array, owner = np.asarray(array), self.root
        if name is not None:
            owner.constants[name] = array
            return name
        if array.size > _SMALL:
            key: tuple[object, ...] = (id(array),)
        else:  # in the body itself, where those who infer its shapes see it
            key, owner = (array.dtype.str, array.shape, array.tobytes()), self
        if key not in owner._initializers:
            owner._initializers[key] = owner.unique("constant")
            owner.constants[owner._initializers[key]] = array  # which also keeps the id from being used again
        return owner._initializers[key]

    def integers(self, *values: int) -> str:
        """A constant int64 vector."""
        return self.constant(np.array(values, np.int64))

    # -- symbolic sizes -------------------------------------------------------------------------------------------

    def define_sizes(self, tensor: str, shape: Sequence[Size], axes: Sequence[int]) -> None:
        """Make the symbols in the shape of an input known: axis i of the program is axis axes[i] of the tensor."""
        for size, axis in zip(shape, axes):
            if is_symbolic(size):
                factor, name, offset = linear_form(str(size))
                if name is not None and (name not in self._sources or factor == 1):
                    self._sources[name] = (tensor, axis, factor, offset)

    def size(self, size: Size) -> str:
        """An int64 tensor [1] that holds a size."""
        if not is_symbolic(size):
            return self.integers(int(size))
        return self._owner([size])._evaluate(size)[0]

    def sizes(self, sizes: Sequence[Size]) -> str:
        """An int64 vector of sizes."""
        if not any(map(is_symbolic, sizes)):
            return self.integers(*map(int, sizes))
        owner = self._owner(sizes)
        if self is not owner:
            return owner.sizes(sizes)
        tensors: list[str] = []
        for symbolic, run in ((key, list(run)) for key, run in itertools.groupby(sizes, is_symbolic)):
            tensors += [self.size(size) for size in run] if symbolic else [self.integers(*map(int, run))]
        return tensors[0] if len(tensors) == 1 else self.add("Concat", *tensors, axis=0)

    def scalar(self, size: Size) -> str:
        """An int64 tensor [] that holds a size."""
        if not is_symbolic(size):
            return self.constant(np.int64(size))
        owner = self._owner([size])
        return owner.add("Squeeze", owner.size(size), owner.integers(0))

    def _owner(self, sizes: Sequence[Size]) -> Graph:
        """Where sizes are computed: in a body that has them on its own inputs, else once, in the outermost graph."""
        text = " ".join(str(size) for size in sizes if is_symbolic(size))
        names = {word for word in re.findall(r"[A-Za-z_]\w*", text) if word not in _FUNCTIONS}
        return self if names <= self._sources.keys() else self.root

    def _evaluate(self, size: Size) -> tuple[str, int | None]:
        """The tensor of a size and the least value that it can have, if one is known."""
        if not is_symbolic(size):
            return self.integers(int(size)), int(size)
        text = str(size)
        if text not in self._sizes:
            self._sizes[text] = self._visit(ast.parse(text.replace("^", "**"), mode="eval").body, text)
        return self._sizes[text]

    def _visit(self, node: ast.expr, text: str) -> tuple[str, int | None]:
        key = ast.unparse(node)
        if key not in self._sizes:
            self._sizes[key] = self._compute(node, text)
        return self._sizes[key]

    def _compute(self, node: ast.expr, text: str) -> tuple[str, int | None]:
        match node:
            case ast.Constant(value=int(value)):
                return self.integers(value), value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return self.integers(-value), -value
            case ast.Name(id=name):
                return self._symbol(name, text), 1
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.add("Neg", self._visit(operand, text)[0]), None
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(type(op), self._visit(left, text), self._visit(right, text))
            case ast.Call(func=ast.Name(id=function), args=[left, right]):
                return self._call(function, self._visit(left, text), self._visit(right, text))
        raise ShapeError(
            "a size cannot be computed in ONNX",
            received=text,
            allowed="sums, products, differences, powers, floordiv, mod, max and min of symbols",
        )

    def _symbol(self, name: str, text: str) -> str:
        if name not in self._sources:
            raise ShapeError(
                "a symbol of a size is on no axis of an input by itself",
                received=f"{name} in {text}",
                allowed='an input with an axis such as "h", "32*h" or "2*h + 1"',
                fix="give one of the inputs such an axis, or a number",
            )
        tensor, axis, factor, offset = self._sources[name]
        size = self.add("Shape", tensor, start=axis, end=axis + 1)
        if offset:
            size = self.add("Sub", size, self.integers(offset))
        return size if factor == 1 else self.add("Div", size, self.integers(factor))

    def _binary(
        self, op: type, left: tuple[str, int | None], right: tuple[str, int | None]
    ) -> tuple[str, int | None]:
        (a, low_a), (b, low_b) = left, right
        bounded = low_a is not None and low_b is not None and low_a >= 0 and low_b >= 0
        if op is ast.Sub:
            return self.add("Sub", a, b), None
        if op is ast.Add:
            return self.add("Add", a, b), None if low_a is None or low_b is None else low_a + low_b
        assert low_a is not None or not bounded
        if op is ast.Mult:
            return self.add("Mul", a, b), low_a * low_b if bounded else None  # type: ignore[operator]
        return self.add("Pow", a, b), 0 if bounded else None

    def _call(
        self, function: str, left: tuple[str, int | None], right: tuple[str, int | None]
    ) -> tuple[str, int | None]:
        (a, low_a), (b, low_b) = left, right
        if function == "mod":
            return self.add("Mod", a, b), 0
        if function == "floordiv":
            if low_a is not None and low_a >= 0:
                return self.add("Div", a, b), 0
            # Div truncates; what is left of a multiple is rounded down as Python does.
            return self.add("Div", self.add("Sub", a, self.add("Mod", a, b)), b), None
        lows = [low for low in (low_a, low_b) if low is not None]
        if function == "max":
            return self.add("Max", a, b), max(lows) if lows else None
        return self.add("Min", a, b), min(lows) if len(lows) == 2 else None


def linear_form(text: str) -> tuple[int, str | None, int]:
    """(factor, symbol, offset) of "32*h + 1"; no symbol where a size is of another form."""
    factor, name, offset = 1, None, 0
    for sign, term in _terms(text.replace(" ", "")):
        number, _, symbol = term.rpartition("*")
        if term.lstrip("-").isdecimal():
            offset += sign * int(term)
        elif symbol.isidentifier() and name is None and (not number or number.isdecimal()):
            factor, name = sign * int(number or 1), symbol
        else:
            return 1, None, 0
    return factor, name, offset


def _terms(text: str) -> Iterator[tuple[int, str]]:
    if "(" in text:
        yield 1, text
        return
    for term in text.replace("-", "+-").split("+"):
        if term:
            yield (-1, term[1:]) if term[0] == "-" else (1, term)
