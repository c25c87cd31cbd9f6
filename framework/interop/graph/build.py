"""A program and the operators of its format as a Layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from framework.core.types import PyTree
from framework.interop.graph.layer import Graph, GraphLayer, check_operators, check_outputs, find_last_uses
from framework.interop.graph.operator import Call, Operator, Run
from framework.interop.graph.roles import assign_roles, find_conv_kernels
from framework.interop.graph.wide import find_double_values, find_wide_values
from framework.interop.programs.program import Program


def build_layer(
    program: Program,
    operators: Mapping[str, Operator],
    newest: Mapping[str, int],
    own: Mapping[str, Callable[..., PyTree]] | None = None,
) -> GraphLayer:
    """The program as a layer in eval mode. `own` are functions of the user by operator: see `onnx.load`.

    Raises:
        FormatError: operators that are not known, outputs that nothing makes, a program without its parameters.
    """
    table = {
        **operators,
        **{name: Operator(name, _user_run(function)) for name, function in (own or {}).items()},
    }
    check_operators(program, table, newest)
    check_outputs(program)
    roles = assign_roles(program, table)
    constants = {
        name: array
        for name, array in program.parameters.items()
        if name not in roles and isinstance(array, np.ndarray)
    }
    wide, doubles = find_wide_values(program), find_double_values(program)
    graph = Graph(program, table, roles, constants, find_last_uses(program), wide, doubles)
    layer = GraphLayer(graph, find_conv_kernels(program, roles))
    layer.eval()
    return layer


def _user_run(function: Callable[..., PyTree]) -> Run:
    def run(call: Call, *arrays: PyTree) -> PyTree:
        return function(*arrays, **call.node.attrs)

    return run
