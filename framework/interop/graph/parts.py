"""What of a graph can be compiled once for given shapes, and what has results whose sizes depend on values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from framework.interop.graph.operator import Operator
from framework.interop.programs.program import TEXT_NAME, Node, Program


@dataclass(frozen=True)
class SplitProgram:
    """The nodes of a graph by number, in order.

    Attributes:
        head: Those whose sizes follow from the sizes of the inputs.
        tail: Those that grow or make text, and what reads their results.
        handed: The values that the head makes and the tail, or who calls the graph, reads.
    """

    head: tuple[int, ...]
    tail: tuple[int, ...]
    handed: tuple[str, ...]


def split_program(
    program: Program, operators: Mapping[str, Operator], growing: Collection[int] = ()
) -> SplitProgram:
    """The two parts of a program; the tail is empty where all sizes follow from the sizes of the inputs.

    `growing` are nodes whose sizes turned out to depend on values.
    """
    grown = {spec.name for spec in program.inputs if spec.dtype == TEXT_NAME}
    head, tail = [], []
    for number, node in enumerate(program.nodes):
        inside = _names(node)
        if (
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
    defined = {name for number in head for name in program.nodes[number].outputs if name}
    read = {name for number in tail for name in _names(program.nodes[number])}
    read |= {spec.name for spec in program.outputs}
    return SplitProgram(tuple(head), tuple(tail), tuple(sorted(defined & read)))


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
