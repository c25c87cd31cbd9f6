"""What makes a graph smaller without changing a result: equal nodes once, norms folded, nothing that is not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from framework.export.formats.onnx.graph import Graph, Node


def optimize(graph: Graph) -> None:
    """Simplify a graph and the bodies in it, in place."""
    merge_equal(graph)
    fold_affine(graph)
    skip_moves(graph)
    merge_equal(graph)
    drop_unread(graph)


def reads(graph: Graph) -> Iterator[str]:
    """The names that a graph reads, of its own tensors and of those around it."""
    for node in graph.nodes:
        yield from node.inputs
        for body in node.bodies():
            yield from reads(body)
    for name, *_ in graph.outputs:
        yield name


def drop_unread(graph: Graph) -> None:
    """Drop nodes whose outputs nothing reads, and constants likewise."""
    _drop_nodes(graph)
    _drop_constants(graph)


def _drop_constants(graph: Graph) -> None:
    used = set(reads(graph))
    graph.constants = {name: array for name, array in graph.constants.items() if name in used}
    for node in graph.nodes:
        for body in node.bodies():
            _drop_constants(body)


def _drop_nodes(graph: Graph) -> None:
    needed = {name for name, *_ in graph.outputs}
    used = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        for body in node.bodies():
            _drop_nodes(body)
            needed |= set(reads(body))
        needed |= set(node.inputs)
        used.append(node)
    graph.nodes = used[::-1]


def _rename(graph: Graph, names: dict[str, str]) -> None:
    for node in graph.nodes:
        node.inputs = [names.get(name, name) for name in node.inputs]
        for body in node.bodies():
            _rename(body, names)
    graph.outputs = [(names.get(name, name), *rest) for name, *rest in graph.outputs]  # type: ignore[misc]


def merge_equal(graph: Graph) -> None:
    """Keep one of the nodes of a graph that compute the same."""
    names: dict[str, str] = {}
    first_of: dict[object, Node] = {}
    nodes, outputs = [], {name for name, *_ in graph.outputs}
    for node in graph.nodes:
        node.inputs = [names.get(name, name) for name in node.inputs]
        bodies = list(node.bodies())
        for body in bodies:
            _rename(body, names)
            merge_equal(body)
        key = (node.op, tuple(node.inputs), len(node.outputs), repr(sorted(node.attributes.items(), key=str)))
        unique = bodies or not outputs.isdisjoint(node.outputs)
        twin = None if unique else first_of.setdefault(key, node)
        if twin is None or twin is node:
            nodes.append(node)
        else:
            names.update(zip(node.outputs, twin.outputs))
    graph.nodes = nodes
    graph.outputs = [(names.get(name, name), *rest) for name, *rest in graph.outputs]  # type: ignore[misc]


def skip_moves(graph: Graph) -> None:
    """A transposition of a transposition is one, or none."""
    producers = {name: node for node in graph.nodes for name in node.outputs}
    names: dict[str, str] = {}
    for node in graph.nodes:
        node.inputs = [names.get(name, name) for name in node.inputs]
        if node.op != "Transpose":
            continue
        before = producers.get(node.inputs[0])
        perm = node.attributes["perm"]
        if before is not None and before.op == "Transpose":
            first = before.attributes["perm"]
            perm = [first[axis] for axis in perm]
            node.inputs, node.attributes = [before.inputs[0]], {"perm": perm}
        if perm == sorted(perm):
            names[node.outputs[0]] = node.inputs[0]
    if names:
        _rename(graph, names)


# -- convolutions and what scales their channels ----------------------------------------------------------------------


def fold_affine(graph: Graph) -> None:
    """A factor and a summand for each channel behind a convolution go into its weight and bias: norms in eval mode."""
    counts = Counter(reads(graph))
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    gone: set[int] = set()
    for conv in graph.nodes:
        if conv.op not in ("Conv", "ConvTranspose") or id(conv) in gone:
            continue
        while counts[conv.outputs[0]] == 1 and readers.get(conv.outputs[0]):
            (node,) = readers[conv.outputs[0]]
            if not _fold_into(graph, conv, node, counts):
                break
            gone.add(id(node))
            conv.outputs = list(node.outputs)
    graph.nodes = [node for node in graph.nodes if id(node) not in gone]


def _fold_into(graph: Graph, conv: Node, node: Node, counts: Counter[str]) -> bool:
    """Take a node that scales or shifts the channels of a convolution into it."""
    constants = graph.root.constants
    if node.op not in ("Mul", "Div", "Add", "Sub") or any(name not in constants for name in conv.inputs[1:]):
        return False
    other = [name for name in node.inputs if name != conv.outputs[0]]
    if len(other) != 1 or other[0] not in constants:
        return False
    if node.op in ("Sub", "Div") and node.inputs[0] != conv.outputs[0]:
        return False
    weight = constants[conv.inputs[1]]
    axis = 0 if conv.op == "Conv" else 1
    groups = conv.attributes.get("group", 1)
    if axis == 1 and groups != 1:
        return False
    channels, rank, array = weight.shape[axis], weight.ndim, constants[other[0]]
    if array.size != 1 and not (
        array.size == channels and array.ndim >= rank - 1 and array.shape[1 - rank] == channels
    ):
        return False
    line = np.broadcast_to(array.reshape(-1), (channels,)).astype(np.float64)
    bias = constants[conv.inputs[2]] if len(conv.inputs) > 2 else np.zeros(channels, weight.dtype)
    shape = [-1 if i == axis else 1 for i in range(rank)]
    if node.op in ("Mul", "Div"):
        line = line if node.op == "Mul" else 1 / line
        weight, bias = weight * line.reshape(shape), bias * line
        conv.inputs[1] = _replaced(graph, conv.inputs[1], weight.astype(array.dtype), counts)
    else:
        bias = bias + (line if node.op == "Add" else -line)
    name = conv.inputs[2] if len(conv.inputs) > 2 else None
    folded = _replaced(graph, name, bias.astype(array.dtype), counts)
    conv.inputs = [*conv.inputs[:2], folded]
    return True


def _replaced(graph: Graph, name: str | None, array: np.ndarray, counts: Counter[str]) -> str:
    """A constant with new elements: under its name, if it is read once."""
    array = np.ascontiguousarray(array)
    if name is not None and counts[name] == 1:
        graph.root.constants[name] = array
        return name
    constant = graph.constant(array, graph.unique("folded"))
    counts[constant] = 1
    return constant
