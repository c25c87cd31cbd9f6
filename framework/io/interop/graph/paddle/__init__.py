"""Paddle's programs as Layers: the operators of ProgramDesc; PIR programs are brought into its form first."""

from __future__ import annotations

import numpy as np

from framework.io.interop.graph.layer import (
    Graph,
    GraphLayer,
    Role,
    check_operators,
    find_last_uses,
    valid_names,
)
from framework.io.interop.graph.operator import Table
from framework.io.interop.graph.paddle import elementwise, network, shapes
from framework.io.interop.graph.paddle.pir import in_program_desc_form
from framework.io.interop.program import Program

OPERATORS: Table = {**elementwise.OPERATORS, **shapes.OPERATORS, **network.OPERATORS}
_KERNELS = frozenset({("conv2d", "Filter"), ("depthwise_conv2d", "Filter")})


def build_paddle_layer(program: Program) -> GraphLayer:
    """A program of Paddle with its parameters as a layer in eval mode, with Paddle's names of parameters.

    Raises:
        FormatError: operators that are not known, or a program without its parameters.
    """
    if program.format == "pir":
        program = in_program_desc_form(program)
    check_operators(program, OPERATORS, {})
    readers: dict[str, set[tuple[str, str]]] = {}
    for node in program.walk():
        for slot, name in zip(node.input_slots, node.inputs, strict=True):
            readers.setdefault(name, set()).add((node.op, slot))
    names = valid_names(list(program.parameters))
    roles = {}
    for name, array in program.parameters.items():
        if name in readers and isinstance(array, np.ndarray):
            statistic = any(slot in ("Mean", "Variance") for _, slot in readers[name])
            trained = np.issubdtype(array.dtype, np.floating) and not statistic
            roles[name] = Role(names[name], "parameter" if trained else "buffer")
    kernels = [
        role.name
        for name, role in roles.items()
        if readers[name] <= _KERNELS and role.kind == "parameter" and np.ndim(program.parameters[name]) == 4
    ]
    layer = GraphLayer(Graph(program, OPERATORS, roles, {}, find_last_uses(program)), kernels)
    layer.eval()
    return layer
