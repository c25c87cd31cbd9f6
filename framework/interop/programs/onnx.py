"""ONNX models, read without the onnx package: `load` gives a Layer, `read_onnx` the program as it stands in the file.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3 (field numbers, data types, external data)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from framework.core.types import PyTree
from framework.interop.programs.onnx_tensors import TensorReader
from framework.interop.programs.onnx_types import DTYPES as DTYPES
from framework.interop.programs.onnx_types import TEXT
from framework.interop.programs.program import TEXT_NAME, Node, Program, Signature, TensorSpec
from framework.interop.source import Source, read_source
from framework.interop.wire import Message

if TYPE_CHECKING:
    from framework.interop.graph.layer import GraphLayer

_MAX_DEPTH = 16
_MAX_NODES = 200_000  # a small file with functions that call one another could ask for any number

_FunctionId = tuple[str, str, str]  # domain, name, overload


def read_onnx(path: str | Path | Source, opaque: Collection[str] = ()) -> Program:
    """Read an ONNX model: nodes, initializers, tensors of Constant nodes, inputs, outputs and metadata.

    External tensor data is read when it lies in the model's folder. A call of one of the model's own functions is
    replaced by the nodes of the function, but for those in `opaque` ("com.example.Scale"). Raises FormatError when the
    file is damaged, when a value is used that nothing makes, when functions call one another in a circle, for a tensor
    of text, and for external data elsewhere.
    """
    source = read_source(path)
    model = Message(source, "ModelProto")
    graph, opsets = model.message(7, "GraphProto"), model.messages(8, "OperatorSetIdProto")
    if graph is None or not opsets:
        raise source.error(
            "not a complete ONNX model",
            received=f"{'no graph' if graph is None else 'a graph'}, {len(opsets)} opsets",
            allowed="a graph and at least one opset",
        )
    functions = _read_functions(model, opaque)
    # Where a function and the model name different versions, ONNX demands that the operators are the same in both.
    inner = [opset for function in functions.values() for opset in function.messages(9, "OperatorSetIdProto")]
    versions = {_domain(opset.text(1)): opset.integer(2) for opset in (*inner, *opsets)}
    default = versions.get("")
    return Program(
        format="onnx",
        version=f"opset {default}",
        metadata={entry.text(1): entry.text(2) for entry in model.messages(14, "StringStringEntryProto")},
        name=source.name,
        domains=versions,
        **_Graph(source, functions).read(graph),
    )


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _read_functions(model: Message, opaque: Collection[str]) -> dict[_FunctionId, Message]:
    """The model's own functions by domain, name and overload."""
    functions = {}
    for function in model.messages(25, "FunctionProto"):
        identity = _domain(function.text(10)), function.text(1), function.text(13)
        if identity in functions:
            raise model.source.error(
                f"two functions of the model are called {identity[1]!r}",
                function.start,
                received=f"domain {identity[0]!r}, overload {identity[2]!r}",
                fix="export the model again",
            )
        functions[identity] = function
    return {i: f for i, f in functions.items() if ".".join(filter(None, i[:2])) not in opaque}


def load(
    path: str | Path | Source, operators: Mapping[str, Callable[..., PyTree]] | None = None
) -> GraphLayer:
    """An ONNX model as a Layer in eval mode; docs/graphs.md has its operators.

    Weights are parameters under their own names, running statistics are buffers. The layer is called with the inputs
    of the graph in their order or by name, and returns its output, or a tuple of several. It runs eagerly and under
    `jit.to_static`, trains after `train()`, and exports with symbolic sizes where the graph allows.

    `operators` adds operators, or replaces ours and functions of the model: {"com.example.Scale": function}, which is
    called with the inputs (None where one is absent) in the graph's layout and the attributes as keywords, and returns
    an array or a tuple.

    Raises:
        FormatError: the file is damaged, or has operators that are not known; the message names them and their nodes.
    """
    # Here, so that those who only read weights do not load the operators.
    from framework.interop.graph.build import build_layer
    from framework.interop.graph.onnx import NEWEST, OPERATORS

    return build_layer(read_onnx(path, operators or ()), OPERATORS, NEWEST, operators)


class _Names(dict[str, str]):
    """Name in the file -> name in the program, in one graph or one call of a function."""

    def __init__(self, names: Mapping[str, str], prefix: str = "", results: Mapping[str, str] | None = None):
        super().__init__(names)
        self.prefix, self.results = prefix, results or {}

    def make(self, name: str) -> str:
        """Enter a value that a node makes; -> its name in the program."""
        self[name] = new = self.results.get(name, self.prefix + name) if name else ""
        return new


_Subgraph = tuple[tuple[Node, ...], Signature]


class _Body(TypedDict):
    """What a program has of its graph."""

    nodes: tuple[Node, ...]
    parameters: dict[str, np.ndarray | TensorSpec]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class _Attributes:
    values: dict[str, object]
    bodies: dict[str, list[_Subgraph]]


@dataclass(frozen=True)
class _Context:
    """Where a node stands: how deep in graphs and functions, in calls of which functions, with which attributes."""

    depth: int = 0
    calls: tuple[_FunctionId, ...] = ()
    given: _Attributes = field(default_factory=lambda: _Attributes({}, {}))
    path: str = ""  # of calls, before the names of nodes


class _Graph:
    def __init__(self, source: Source, functions: Mapping[_FunctionId, Message]) -> None:
        self.source, self.functions = source, functions
        self.parameters: dict[str, np.ndarray] = {}
        self.tensors = TensorReader(source)
        self._bodies = self._calls = self._count = 0

    def read(self, graph: Message) -> _Body:
        nodes, inputs, outputs = self._body(graph, _Names({}), _Context())
        return {
            "nodes": nodes,
            "parameters": {**self.parameters},
            "inputs": tuple(spec for spec in inputs if spec.name not in self.parameters),
            "outputs": tuple(outputs),
        }

    def _body(
        self, graph: Message, outer: _Names, context: _Context
    ) -> tuple[tuple[Node, ...], list[TensorSpec], list[TensorSpec]]:
        self._check_depth(context, graph)
        if 15 in graph:
            raise self.source.error(
                "sparse initializers are not read",
                graph.start,
                fix="store the weights densely: onnx.numpy_helper.from_array(dense_array, name)",
            )
        # Bodies side by side may use one name for different constants; those of functions for all values.
        names = _Names({**outer, "": ""}, outer.prefix)
        inputs = [
            replace(spec, name=names.make(spec.name))
            for spec in map(_value, graph.messages(11, "ValueInfoProto"))
        ]
        self._bodies += 1
        suffix = f"@{self._bodies}" if context.depth else ""
        for tensor in graph.messages(5, "TensorProto"):
            self._keep(tensor.text(8), suffix, names, tensor.start, self.tensors.read(tensor))
        nodes = self._nodes(graph.messages(1, "NodeProto"), suffix, names, context)
        outputs = [_value(entry) for entry in graph.messages(12, "ValueInfoProto")]
        return nodes, inputs, [replace(spec, name=names.get(spec.name, spec.name)) for spec in outputs]

    def _check_depth(self, context: _Context, at: Message) -> None:
        if context.depth > _MAX_DEPTH:
            raise self.source.error(
                "graphs are nested too deeply", at.start, allowed=f"at most {_MAX_DEPTH} levels"
            )

    def _nodes(
        self, entries: Sequence[Message], suffix: str, names: _Names, context: _Context
    ) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for number, entry in enumerate(_order(entries)):
            converted = self._node(entry, number, names, context)
            node = converted[0] if len(converted) == 1 else None
            if node and node.op == "Constant" and entry.texts(2) and (value := _constant(node)) is not None:
                self._keep(entry.texts(2)[0], suffix, names, entry.start, value)
            else:
                nodes.extend(converted)
        return tuple(nodes)

    def _keep(self, name: str, suffix: str, names: _Names, at: int, value: np.ndarray) -> None:
        plain = names.prefix + name
        unique = plain + suffix if plain in self.parameters else plain
        if unique in self.parameters:
            raise self.source.error(f"two tensors are called {name!r}", at, fix="export the model again")
        self.parameters[unique] = value
        names[name] = unique

    def _node(self, entry: Message, number: int, names: _Names, context: _Context) -> Sequence[Node]:
        op, domain = entry.text(4), _domain(entry.text(7))
        name = context.path + (entry.text(3) or f"{op}#{number}")
        missing = [name for name in entry.texts(1) if name not in names]
        if missing:
            raise self.source.error(
                f"node {name!r} uses a value before anything makes it",
                entry.start,
                received=missing[0],
                fix="export the model again, or check it with onnx.checker.check_model",
            )
        self._count += 1
        if self._count > _MAX_NODES:
            raise self.source.error("the model has too many nodes", entry.start, allowed=f"{_MAX_NODES:,}")
        attributes = self._attributes(entry.messages(5, "AttributeProto"), names, context)
        inputs = tuple(names[name] for name in entry.texts(1))
        outputs = tuple(names.make(name) for name in entry.texts(2))
        identity = (domain, op, entry.text(8))
        if identity in self.functions:
            call = Node(op, name, inputs, outputs)
            return self._call(identity, call, attributes, context, entry)
        bodies = [body for found in attributes.bodies.values() for body in found]
        return [
            Node(
                op=f"{domain}.{op}" if domain else op,
                name=name,
                inputs=inputs,
                outputs=outputs,
                attrs=attributes.values,
                blocks=tuple(nodes for nodes, _ in bodies),
                signatures=tuple(signature for _, signature in bodies),
            )
        ]

    def _call(
        self,
        identity: _FunctionId,
        call: Node,
        call_attributes: _Attributes,
        context: _Context,
        entry: Message,
    ) -> Sequence[Node]:
        """The nodes of a function in place of a call of it."""
        function = self.functions[identity]
        self._check_depth(context, entry)
        formal, results = function.texts(4), function.texts(5)
        too_many = len(call.inputs) > len(formal) or len(call.outputs) > len(results)
        if identity in context.calls or too_many:
            raise self.source.error(
                f"the call {call.name!r} does not fit the function {identity[1]!r} of the model"
                if too_many
                else f"the function {identity[1]!r} of the model calls itself",
                entry.start,
                received=f"{len(call.inputs)} inputs, {len(call.outputs)} outputs" if too_many else call.name,
                allowed=f"up to {len(formal)} inputs and {len(results)} outputs" if too_many else None,
                fix="export the model again, or check it with onnx.checker.check_model",
            )
        self._calls += 1
        prefix = f"{identity[1]}@{self._calls}/"
        absent = ("",) * (len(formal) - len(call.inputs))
        renamed = {name: outer for name, outer in zip(results, call.outputs) if outer}
        names = _Names({**dict(zip(formal, call.inputs + absent)), "": ""}, prefix, renamed)
        inner = replace(context, depth=context.depth + 1, calls=(*context.calls, identity))
        standard = self._attributes(function.messages(11, "AttributeProto"), names, inner)
        attributes = _Attributes(
            standard.values | call_attributes.values, standard.bodies | call_attributes.bodies
        )
        inner = replace(inner, given=attributes, path=f"{call.name}/")
        nodes = list(self._nodes(function.messages(7, "NodeProto"), "", names, inner))
        for name, outer in renamed.items():
            if name not in names:
                raise self.source.error(
                    f"nothing makes the output {name!r} of the function {identity[1]!r}", function.start
                )
            if names[name] != outer:  # an input or a constant, handed on
                nodes.append(Node("Identity", f"{call.name}/{name}", (names[name],), (outer,)))
        return nodes

    def _attributes(self, entries: Sequence[Message], scope: _Names, context: _Context) -> _Attributes:
        attributes = _Attributes({}, {})
        for entry in entries:
            name, reference = entry.text(1), entry.text(21)
            if reference:  # to an attribute of the function around the node; absent there, absent here
                if reference in context.given.values:
                    attributes.values[name] = context.given.values[reference]
                elif reference in context.given.bodies:
                    bodies = context.given.bodies[reference]
                    attributes.bodies[name] = [
                        (nodes, replace(form, attribute=name)) for nodes, form in bodies
                    ]
                continue
            graphs = entry.messages(6, "GraphProto") + entry.messages(11, "GraphProto")
            for graph in graphs:
                nodes, *specs = self._body(graph, scope, replace(context, depth=context.depth + 1))
                names = (tuple(spec.name for spec in side) for side in specs)
                attributes.bodies.setdefault(name, []).append((nodes, Signature(name, *names)))
            if not graphs:
                attributes.values[name] = self._attribute(entry)
        return attributes

    def _attribute(self, attribute: Message) -> object:
        """Text comes back as str where it is UTF-8, tensors as arrays, repeated fields as tuples."""
        match attribute.integer(20):
            case 1:
                return attribute.real(2)
            case 2:
                return attribute.integer(3)
            case 3:
                return _text((attribute.blobs(4) or [b""])[-1])
            case 4:
                tensor = attribute.message(5, "TensorProto")
                return None if tensor is None else self.tensors.read(tensor)
            case 6:
                return tuple(attribute.reals(7).tolist())
            case 7:
                return attribute.integers(8)
            case 8:
                return tuple(_text(value) for value in attribute.blobs(9))
            case 9:
                return tuple(self.tensors.read(tensor) for tensor in attribute.messages(10, "TensorProto"))
        return None


def _order(entries: Sequence[Message]) -> Sequence[Message]:
    """Nodes so that each follows what it uses: as they stand, or sorted as ONNX Runtime does.

    Converters to float16 append the casts of the inputs behind all nodes. What no order mends stays as it is.
    """
    makers = {name: number for number, entry in enumerate(entries) for name in entry.texts(2) if name}
    before = {
        number: {makers[name] for name in _used_names(entry) if name in makers}
        for number, entry in enumerate(entries)
    }
    if all(other < number for number, others in before.items() for other in others):
        return entries
    try:
        return [entries[number] for number in TopologicalSorter(before).static_order()]
    except CycleError:
        return entries


def _used_names(node: Message) -> set[str]:
    """The inputs of a node, and all names in its bodies: they may use what the graph around makes."""
    names, pending = set(node.texts(1)), [node]
    while pending:
        for attribute in pending.pop().messages(5, "AttributeProto"):
            for graph in attribute.messages(6, "GraphProto") + attribute.messages(11, "GraphProto"):
                bodies = graph.messages(1, "NodeProto")
                names.update(name for inner in bodies for name in inner.texts(1))
                names.update(output.text(1) for output in graph.messages(12, "ValueInfoProto"))
                pending.extend(bodies)
    return names


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value


def _constant(node: Node) -> np.ndarray | None:
    for key, dtype in (("value", None), ("value_float", "f4"), ("value_floats", "f4"), ("value_int", "i8")):
        if node.attrs.get(key) is not None:
            return np.asarray(node.attrs[key], dtype)
    for key, kind in (("value_ints", np.int64), ("value_string", np.str_), ("value_strings", np.str_)):
        if node.attrs.get(key) is not None:
            return np.asarray(node.attrs[key], kind)
    return None


def _value(entry: Message) -> TensorSpec:
    kind = entry.message(2, "TypeProto")
    tensor = kind.message(1, "TypeProto.Tensor") if kind else None
    if tensor is None:
        return TensorSpec(entry.text(1), (), "")
    dtype = np.dtype(np.str_) if tensor.integer(1) == TEXT else DTYPES.get(tensor.integer(1))
    shape = tensor.message(2, "TensorShapeProto")
    dims: list[int | str | None] = []
    for dim in shape.messages(1, "Dimension") if shape else ():
        dims.append(dim.text(2) or None if dim.integer(1, -1) < 0 else dim.integer(1))
    return TensorSpec(
        entry.text(1), tuple(dims), "" if dtype is None else TEXT_NAME if dtype.kind == "U" else dtype.name
    )
