"""The nodes that compiled programs put on the tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from framework.paddle._kernel.dispatch import execute
from framework.paddle._kernel.tape import Cotangent, Edge, Node, attach, edge_of
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle.jit.recording import NoGradient

if TYPE_CHECKING:
    from framework.paddle.jit.program import StaticProgram


class StaticNode(Node):
    """One call of a StaticProgram on the tape."""

    __slots__ = ("kept", "outs", "passed", "place", "program", "values")

    def __init__(
        self,
        program: StaticProgram,
        values: Sequence[object],
        passed: Sequence[object],
        tensors: Sequence[Tensor],
    ) -> None:
        edges: list[Edge] = [edge_of(t) for t, wanted in zip(tensors, program.mask, strict=True) if wanted]
        super().__init__(edges, len(program.live))
        assert program.split is not None
        self.program = program
        self.place = {index: place for place, index in enumerate(program.live)}
        self.kept: list[Any] | None = [values[index] for index in program.split.kept]
        self.passed: Sequence[Any] = passed
        self.values: Sequence[Any] = values
        self.outs: list[Any] = []

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        program = self.program
        assert program.split is not None and program.whole is not None and self.kept is not None
        outs = [program.avals_out[index] for index in program.live]
        given: list[Any] = [
            np.zeros(shape, dtype) if c is None else c
            for c, (shape, dtype) in zip(cotangents, outs, strict=True)
        ]
        if create_graph:
            return list(execute(program.whole, [*self._tensors(), *given]))
        given = [
            c.astype(dtype) if c.dtype != dtype else c for c, (_, dtype) in zip(given, outs, strict=True)
        ]
        return program.split.backward(*self.kept, *self.passed, *given)

    def _tensors(self) -> list[Any]:
        """The inputs as they were, with their histories."""
        *values, key = self.values
        edges, inputs = iter(self.edges), [*values, wrap(key)]
        for index, wanted in enumerate(self.program.mask):
            if wanted:
                edge, tensor = next(edges), wrap(inputs[index])
                if isinstance(edge, tuple):
                    attach(tensor, *edge)
                elif edge._value is inputs[index]:
                    tensor = edge
                inputs[index] = tensor
        return inputs

    def release(self) -> None:
        self.kept = None
        self.passed, self.values = (), ()

    @property
    def released(self) -> bool:
        return self.kept is None


class Freed(Node):
    """The history of a result whose graph the function itself has gone back and freed."""

    __slots__ = ()

    @property
    def released(self) -> bool:
        return True


FREED = Freed((), 1)


class Failing(Node):
    """The history of a result that has no gradient."""

    __slots__ = ("error",)

    def __init__(self, error: NoGradient) -> None:
        super().__init__((), 1)
        self.error = error

    def pull(self, cotangents: Sequence[Cotangent | None], create_graph: bool) -> Sequence[Cotangent | None]:
        raise NoGradient(self.error.problem, received=self.error.received, fix=self.error.fix)
