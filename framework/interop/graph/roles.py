"""Which initializers of a program its layer holds as parameters and buffers; the others are its constants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from framework.core.errors import FormatError
from framework.interop.graph.layer import Role, valid_names
from framework.interop.graph.operator import Operator
from framework.interop.programs.dataflow import INVENTED_NAME
from framework.interop.programs.program import Program

# What only moves, converts or joins values: weights stay weights behind it.
MOVING = frozenset(
    (
        *(
            "Identity",
            "Transpose",
            "Reshape",
            "Unsqueeze",
            "Squeeze",
            "Cast",
            "Slice",
            "Split",
            "Concat",
            "Flatten",
        ),
        *("Expand", "Tile", "DequantizeLinear"),
    )
)
# A weight by name alone: what is added or multiplied may as well be a constant of the exporter.
BY_NAME = frozenset(("Add", "Mul", "Sub", "Div", "Pow"))
STATISTICS = {"BatchNormalization": (3, 4)}
SMALL = 256
"""Elements up to which an array that nobody trains is a constant of the program."""


def assign_roles(program: Program, operators: Mapping[str, Operator]) -> dict[str, Role]:
    """Initializer -> its role.

    A parameter is what a weighted input of an operator reads, directly or behind operators that only move values. The
    running statistics of BatchNormalization and large arrays that nobody trains are buffers. Shapes, scales, bounds and
    small constants stay with the program, and so does all that an operator must know before it runs.
    """
    arrays = {name: array for name, array in program.parameters.items() if isinstance(array, np.ndarray)}
    if len(arrays) < len(program.parameters):
        raise FormatError(
            "the program was read without its parameters",
            where=program.name,
            fix="give the parameter file: load_program(path, params)",
        )
    uses: dict[str, list[tuple[str, int]]] = defaultdict(list)
    sources: dict[str, set[str]] = {name: {name} for name in arrays}
    for node in program.walk():
        behind: set[str] = set()
        for slot, name in enumerate(node.inputs):
            for source in sources.get(name, ()):
                uses[source].append((node.op, slot))
                behind.add(source)
        if node.op in MOVING and behind:
            for name in node.outputs:
                sources[name] = sources.get(name, set()) | set(sorted(behind)[:64])
    returned = {spec.name for spec in program.outputs}
    names = valid_names(list(arrays))
    roles: dict[str, Role] = {}
    for name, array in arrays.items():
        if array.dtype.kind not in "fV" or not _is_real(array) or (name in returned and array.size <= SMALL):
            if (
                array.dtype.kind != "U"
                and array.size > SMALL
                and not _is_static(uses[name], operators)
                and array.dtype.itemsize <= 4
            ):
                roles[name] = Role(names[name], "buffer")
            continue
        if _is_static(uses[name], operators):
            continue
        statistic = any(slot in STATISTICS.get(op, ()) for op, slot in uses[name])
        weighted = {op for op, slot in uses[name] if op in operators and slot in operators[op].weights}
        strong = weighted - BY_NAME
        named = bool(weighted) and array.size > 1 and INVENTED_NAME.search(name) is None
        if statistic or (array.size > SMALL and not (strong or named)):
            roles[name] = Role(names[name], "buffer")
        elif (strong and array.ndim) or named:
            roles[name] = Role(names[name], "parameter")
    return roles


def _is_real(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or (
        array.dtype.itemsize <= 2 and array.dtype.name.startswith(("bfloat", "float"))
    )


def _is_static(uses: list[tuple[str, int]], operators: Mapping[str, Operator]) -> bool:
    return any(op in operators and slot in operators[op].static for op, slot in uses)


def find_conv_kernels(program: Program, roles: Mapping[str, Role]) -> list[str]:
    """The parameters that 2-D and 3-D convolutions alone read: programs take them in the layout that they read."""
    kernels = kernel_values(program)
    return [
        role.name
        for name, role in roles.items()
        if name in kernels
        and role.kind == "parameter"
        and program.parameters[name].shape
        and len(program.parameters[name].shape) in (4, 5)
    ]


def kernel_values(program: Program) -> set[str]:
    """The values that convolutions alone read, as their kernels.

    An Identity on the way changes nothing: exporters write one for an initializer that equals another.
    """
    readers: dict[str, set[tuple[str, int]]] = defaultdict(set)
    sources: dict[str, str] = {}
    for node in program.walk():
        if node.op == "Identity" and node.outputs[0]:
            sources[node.outputs[0]] = sources.get(node.inputs[0], node.inputs[0])
            continue
        for slot, name in enumerate(node.inputs):
            readers[sources.get(name, name)].add((node.op, slot))
    for spec in program.outputs:
        readers[sources.get(spec.name, spec.name)].add(("", 0))
    return {name for name, uses in readers.items() if uses == {("Conv", 1)}}
