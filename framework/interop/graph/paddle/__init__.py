"""Paddle's programs as Layers: the operators of ProgramDesc; PIR programs are brought into its form first."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from framework.core.errors import FormatError
from framework.interop import load_program
from framework.interop.graph.layer import (
    Graph,
    GraphLayer,
    Role,
    check_outputs,
    find_last_uses,
    valid_names,
)
from framework.interop.graph.operator import Table
from framework.interop.graph.paddle import control, detection, elementwise, indexed, network, rois, shapes
from framework.interop.graph.paddle.algebra import OPERATORS as _ALGEBRA
from framework.interop.graph.paddle.bodies import convert_bodies
from framework.interop.graph.paddle.older import OPERATORS as _OLDER
from framework.interop.graph.paddle.pir import in_program_desc_form
from framework.interop.graph.wide import find_double_values, find_wide_values
from framework.interop.programs.program import Program

MODULES = (elementwise, shapes, indexed, network, detection, rois, control)
OPERATORS: Table = {name: entry for module in MODULES for name, entry in module.OPERATORS.items()}
OPERATORS |= _ALGEBRA | _OLDER
_KERNELS = frozenset((name, "Filter") for name in ("conv2d", "depthwise_conv2d", "conv3d"))


def load(path: str | Path, params: str | Path | None = None) -> GraphLayer:
    """Paddle's program (`inference.pdmodel`, or PIR's `inference.json`) with its parameters as a layer in eval mode.

    Without `params` the parameter file of the same stem beside the program is read. Parameters have Paddle's names; the
    layer is called with the inputs of the program in their order or by name, in Paddle's layout, and returns its
    output, or a tuple of several. It runs under `jit.to_static`, trains, and exports with symbolic sizes.

    Raises:
        FormatError: a file is damaged or missing, or the program has operators that are not known.
    """
    return build_paddle_layer(load_program(path, params))


def build_paddle_layer(program: Program) -> GraphLayer:
    """A program of Paddle with its parameters as a layer in eval mode, with Paddle's names of parameters.

    Raises:
        FormatError: operators that are not known, or a program without its parameters.
    """
    if program.format == "pir":
        program = in_program_desc_form(program)
    program = convert_bodies(program)
    _check_operators(program)
    check_outputs(program)
    readers: dict[str, set[tuple[str, str]]] = {}
    for node in program.walk():
        for slot, name in zip(node.input_slots, node.inputs, strict=True):
            readers.setdefault(name, set()).add((node.op, slot))
    names = valid_names(list(program.parameters))
    roles, kernels = {}, []
    for name, array in program.parameters.items():
        if name not in readers or not isinstance(array, np.ndarray):
            continue
        statistic = any(slot in ("Mean", "Variance") for _, slot in readers[name])
        trained = np.issubdtype(array.dtype, np.floating) and not statistic
        roles[name] = Role(names[name], "parameter" if trained else "buffer")
        if trained and readers[name] <= _KERNELS and array.ndim in (4, 5):
            kernels.append(names[name])
    wide, doubles = find_wide_values(program), find_double_values(program)
    graph = Graph(program, OPERATORS, roles, {}, find_last_uses(program), wide, doubles)
    layer = GraphLayer(graph, kernels)
    layer.eval()
    return layer


def _check_operators(program: Program) -> None:
    unknown: dict[str, str] = {}
    for node in program.walk():
        # An operator of PIR that bears a ProgramDesc's name has none of its slots.
        if node.op not in OPERATORS or len(node.input_slots) != len(node.inputs):
            unknown.setdefault(node.op, node.name)
    if unknown:
        raise FormatError(
            f"the program has {'an operator that is' if len(unknown) == 1 else f'{len(unknown)} operators that are'} "
            "not known here",
            where=program.name,
            received="; ".join(f"{op} at {name}" for op, name in list(unknown.items())[:20]),
            allowed="the operators of Paddle listed in docs/graphs.md",
            fix="export the model without it, or as ONNX with paddle2onnx",
        )
    missing = [name for name, value in program.parameters.items() if not isinstance(value, np.ndarray)]
    if missing:
        raise FormatError(
            "the program was read without its parameters",
            where=program.name,
            received=f"no values of {len(missing)} parameters",
            fix="put the .pdiparams file beside it, under the same name, or say where it is: load(program, params)",
        )
