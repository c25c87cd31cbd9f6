"""What of a graph can be compiled once for given shapes, and what has results whose sizes depend on values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from framework.interop.graph.operator import Operator
from framework.interop.programs.program import TEXT_NAME, Node, Program

# How weights that are stored in another form or order become what others compute with.
STORING = frozenset(("DequantizeLinear", "Transpose", "Cast", "QuantizeLinear"))
# Operators that hand integers on as they are.
_KEEPING_INTEGERS = frozenset(
    (
        *("Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten"),
        *("assign", "unsqueeze2", "squeeze2", "reshape2", "flatten_contiguous_range"),
    )
)
_WHOLE = (6, 7)  # int32 and int64 of TensorProto.DataType
_PADDLE_WHOLE = (2, 3, "int32", "int64")  # of VarType.Type, and in PIR
_FLOATS = (1, 10, 16)  # of TensorProto.DataType: float32, float16, bfloat16


@dataclass(frozen=True)
class SplitProgram:
    """The nodes of a graph by number, in order.

    Attributes:
        fixed: Those that compute with weights alone, such as what is stored in 8 bits: once for all calls.
        prepared: The values that these make and others, or who calls the graph, read.
        head: Those whose sizes follow from the sizes of the inputs.
        tail: Those that grow or make text, and what reads their results.
        handed: The values that the head makes and the tail, or who calls the graph, reads.
    """

    fixed: tuple[int, ...]
    prepared: tuple[str, ...]
    head: tuple[int, ...]
    tail: tuple[int, ...]
    handed: tuple[str, ...]


def split_program(
    program: Program,
    operators: Mapping[str, Operator],
    weights: Collection[str] = (),
    growing: Collection[int] = (),
) -> SplitProgram:
    """The parts of a program; the tail is empty where all sizes follow from the sizes of the inputs.

    Args:
        weights: The initializers that are no constants of the program.
        growing: Nodes whose sizes turned out to depend on values.
    """
    grown = {spec.name for spec in program.inputs if spec.dtype == TEXT_NAME}
    fixed, stored = [], set(weights)  # constants stay what is known before a program runs
    steady = set(program.parameters) - {spec.name for spec in program.inputs}
    head, tail = [], []
    for number, node in enumerate(program.nodes):
        inside = _names(node)
        if (
            node.op in STORING
            and inside <= steady | stored
            and inside & stored
            and node.attrs.get("to", 1) in _FLOATS
        ):
            fixed.append(number)
            stored.update(node.outputs)
        elif (
            number in growing
            or grown & inside
            or any(
                operators[each.op].grows or _has_text(each) for each in _walk(node) if each.op in operators
            )
        ):
            tail.append(number)
            grown.update(node.outputs)
        else:
            head.append(number)
            grown.difference_update(node.outputs)
    returned = {spec.name for spec in program.outputs}
    read = returned | names_read(program, tail)
    handed = _produced_names(program, head) & read
    prepared = _produced_names(program, fixed) & (read | names_read(program, head))
    return SplitProgram(
        tuple(fixed), tuple(sorted(prepared)), tuple(head), tuple(tail), tuple(sorted(handed))
    )


def index_bounds(program: Program) -> dict[str, tuple[int, int]]:
    """The inputs whose integers are rows of a weight, such as tokens, with the least and the largest that it has.

    A compiled program cannot refuse one outside: it would give the row at the edge.
    """
    origins = {spec.name: spec.name for spec in program.inputs}
    bounds: dict[str, tuple[int, int]] = {}
    for node in program.nodes:
        slots = dict(zip(node.input_slots, node.inputs))  # of Paddle's
        if node.op in _KEEPING_INTEGERS or _casts_to_integers(node):
            first = slots.get("X", "") if slots else node.inputs[0]
            if first in origins:
                origins[node.outputs[0]] = origins[first]
        elif node.op in ("Gather", "lookup_table_v2"):
            table, index = (slots["W"], slots["Ids"]) if slots else node.inputs[:2]
            weight, axis = program.parameters.get(table), int(node.attrs.get("axis", 0))
            if index not in origins or weight is None or not -len(weight.shape) <= axis < len(weight.shape):
                continue
            size = weight.shape[axis]
            if isinstance(size, int):
                low, high = bounds.get(origins[index], (-size, size - 1))
                least = -size if node.op == "Gather" else 0
                bounds[origins[index]] = max(low, least), min(high, size - 1)
    return bounds


def _casts_to_integers(node: Node) -> bool:
    if node.op == "cast":
        return node.attrs.get("out_dtype") in _PADDLE_WHOLE
    return node.op == "Cast" and node.attrs.get("to") in _WHOLE


def names_read(program: Program, numbers: Collection[int]) -> set[str]:
    """What these nodes read, or one of a body in them."""
    return {name for number in numbers for name in _names(program.nodes[number])}


def _produced_names(program: Program, numbers: Collection[int]) -> set[str]:
    return {name for number in numbers for name in program.nodes[number].outputs if name}


def nodes_like(program: Program, text: str) -> set[int]:
    """The node of which an error speaks, by number, and those of its operator; empty where it names none."""
    for node in program.nodes:
        if any(f"node {each.name!r} ({each.op}," in text for each in _walk(node)):
            return {number for number, other in enumerate(program.nodes) if other.op == node.op}
    return set()


def _names(node: Node) -> set[str]:
    """What the node reads, or one of a body in it."""
    inputs = {name for each in _walk(node) for name in each.inputs if name}
    return inputs | {name for each in _walk(node) for body in each.signatures for name in body.outputs}


def _has_text(node: Node) -> bool:
    """Whether text comes out of the node, or decides what does: of class labels, categories and tables."""
    return any(name.endswith("_strings") and values for name, values in node.attrs.items())


def _walk(node: Node) -> list[Node]:
    return list(Program("", "", (node,), {}, (), ()).walk())
