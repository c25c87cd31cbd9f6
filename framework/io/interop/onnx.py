"""ONNX models, read without the onnx package: `load` gives a Layer, `read_onnx` the program as it stands in the file.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3 (field numbers, data types, external data)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from framework.io.interop.onnx_types import BITS, unpack
from framework.io.interop.onnx_types import DTYPES as DTYPES
from framework.io.interop.program import Node, Program, Signature, TensorSpec
from framework.io.interop.source import Source, read_source
from framework.io.interop.wire import Message

if TYPE_CHECKING:
    from framework.io.interop.graph.layer import GraphLayer

_MAX_DEPTH = 16


def read_onnx(path: str | Path | Source) -> Program:
    """Read an ONNX model: nodes, initializers, tensors of Constant nodes, inputs, outputs and metadata.

    External tensor data is read when it lies in the model's folder. Raises FormatError when the file is damaged, when
    a value is used before it is made, for a tensor of text, and for external data elsewhere.
    """
    source = path if isinstance(path, Source) else read_source(path)
    model = Message(source, "ModelProto")
    graph, opsets = model.message(7, "GraphProto"), model.messages(8, "OperatorSetIdProto")
    if graph is None or not opsets:
        raise source.error(
            "not a complete ONNX model",
            received=f"{'no graph' if graph is None else 'a graph'}, {len(opsets)} opsets",
            allowed="a graph and at least one opset",
        )
    versions = {opset.text(1): opset.integer(2) for opset in opsets}
    default = versions.get("", versions.get("ai.onnx"))
    return Program(
        format="onnx",
        version=f"opset {default}",
        metadata={entry.text(1): entry.text(2) for entry in model.messages(14, "StringStringEntryProto")},
        name=source.name,
        domains={"" if domain == "ai.onnx" else domain: version for domain, version in versions.items()},
        **_Graph(source).read(graph),
    )


def load(path: str | Path | Source, operators: Mapping[str, Callable[..., Any]] | None = None) -> GraphLayer:
    """An ONNX model as a Layer in eval mode; docs/graphs.md has its operators.

    Weights are parameters under their own names, running statistics are buffers. The layer is called with the inputs
    of the graph in their order or by name, and returns its output, or a tuple of several. It runs eagerly and under
    `jit.to_static`, trains after `train()`, and exports with symbolic sizes where the graph allows.

    `operators` adds operators, or replaces ours: {"com.example.Scale": function}, which is called with the inputs (None
    where one is absent) in the graph's layout and the attributes as keywords, and returns an array or a tuple.

    Raises:
        FormatError: the file is damaged, or has operators that are not known; the message names them and their nodes.
    """
    # Here, so that those who only read weights do not load the operators.
    from framework.io.interop.graph.build import build_layer
    from framework.io.interop.graph.onnx import NEWEST, OPERATORS

    return build_layer(read_onnx(path), OPERATORS, NEWEST, operators)


class _Graph:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.parameters: dict[str, np.ndarray] = {}
        self._files: dict[str, Source] = {}
        self._bodies = 0

    def read(self, graph: Message) -> dict[str, Any]:
        nodes, inputs, outputs = self._body(graph, {}, 0)
        return {
            "nodes": nodes,
            "parameters": self.parameters,
            "inputs": tuple(spec for spec in inputs if spec.name not in self.parameters),
            "outputs": tuple(outputs),
        }

    def _body(
        self, graph: Message, outer: dict[str, str], depth: int
    ) -> tuple[tuple[Node, ...], list[TensorSpec], list[TensorSpec]]:
        if depth > _MAX_DEPTH:
            raise self.source.error(
                "graphs are nested too deeply", graph.start, allowed=f"at most {_MAX_DEPTH} levels"
            )
        if 15 in graph:
            raise self.source.error(
                "sparse initializers are not read",
                graph.start,
                fix="store the weights densely: onnx.numpy_helper.from_array(dense_array, name)",
            )
        inputs = [_value(entry) for entry in graph.messages(11, "ValueInfoProto")]
        # Name in the file -> name in the program. Bodies side by side may use one name for different constants.
        known = outer | {spec.name: spec.name for spec in inputs} | {"": ""}
        self._bodies += 1
        suffix = f"@{self._bodies}" if depth else ""
        for tensor in graph.messages(5, "TensorProto"):
            self._keep(tensor.text(8), suffix, known, tensor.start, self._tensor(tensor))
        nodes = []
        for number, entry in enumerate(graph.messages(1, "NodeProto")):
            node = self._node(entry, number, known, depth)
            known.update((name, name) for name in node.outputs)
            if node.op == "Constant" and node.outputs and (value := _constant(node)) is not None:
                self._keep(node.outputs[0], suffix, known, entry.start, value)
            else:
                nodes.append(node)
        outputs = [_value(entry) for entry in graph.messages(12, "ValueInfoProto")]
        return tuple(nodes), inputs, [replace(spec, name=known.get(spec.name, spec.name)) for spec in outputs]

    def _keep(self, name: str, suffix: str, known: dict[str, str], at: int, value: np.ndarray) -> None:
        unique = name + suffix if name in self.parameters else name
        if unique in self.parameters:
            raise self.source.error(f"two tensors are called {name!r}", at, fix="export the model again")
        self.parameters[unique] = value
        known[name] = unique

    def _node(self, entry: Message, number: int, known: dict[str, str], depth: int) -> Node:
        op, domain = entry.text(4), entry.text(7)
        name = entry.text(3) or f"{op}#{number}"
        missing = [name for name in entry.texts(1) if name not in known]
        if missing:
            raise self.source.error(
                f"node {name!r} uses a value before anything makes it",
                entry.start,
                received=missing[0],
                fix="export the model again, or check it with onnx.checker.check_model",
            )
        attrs: dict[str, Any] = {}
        blocks: list[tuple[Node, ...]] = []
        signatures: list[Signature] = []
        for attribute in entry.messages(5, "AttributeProto"):
            bodies = attribute.messages(6, "GraphProto") + attribute.messages(11, "GraphProto")
            for body in bodies:
                nodes, inputs, outputs = self._body(body, known, depth + 1)
                blocks.append(nodes)
                names = (tuple(spec.name for spec in specs) for specs in (inputs, outputs))
                signatures.append(Signature(attribute.text(1), *names))
            if not bodies:
                attrs[attribute.text(1)] = self._attribute(attribute)
        return Node(
            op=op if domain in ("", "ai.onnx") else f"{domain}.{op}",
            name=name,
            inputs=tuple(known[name] for name in entry.texts(1)),
            outputs=entry.texts(2),
            attrs=attrs,
            blocks=tuple(blocks),
            signatures=tuple(signatures),
        )

    def _attribute(self, attribute: Message) -> Any:
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
                return None if tensor is None else self._tensor(tensor)
            case 6:
                return tuple(attribute.reals(7).tolist())
            case 7:
                return attribute.integers(8)
            case 8:
                return tuple(_text(value) for value in attribute.blobs(9))
            case 9:
                return tuple(self._tensor(tensor) for tensor in attribute.messages(10, "TensorProto"))
        return None

    def _tensor(self, tensor: Message) -> np.ndarray:
        what = f"the tensor {tensor.text(8)!r}"
        code, shape = tensor.integer(2), tensor.integers(1)
        if code not in DTYPES or 3 in tensor:
            raise self.source.error(
                f"{what} is of a kind that is not read",
                tensor.start,
                received="a segment of a tensor" if 3 in tensor else f"data type {code}",
                allowed=f"data types {sorted(DTYPES)}",
                fix="convert the model to float32, float16 or bfloat16 weights",
            )
        dtype = DTYPES[code]
        if dtype in BITS and tensor.integer(14) != 1:
            return self._packed(tensor, what, dtype, shape)
        if tensor.integer(14) == 1:
            return self._external(tensor, what, dtype, shape)
        if (raw := tensor.span(9)) is not None:
            return self.source.array(raw[0], raw[1], dtype, shape, what)
        return self.source.array(
            tensor.start, memoryview(_read_typed_values(tensor, dtype).tobytes()), dtype, shape, what
        )

    def _packed(self, tensor: Message, what: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        raw = tensor.span(9)
        packed = np.frombuffer(raw[1], np.uint8) if raw else np.array(tensor.integers(5), np.uint8)
        size = math.prod(shape)
        if not 0 <= -(-size * BITS[dtype] // 8) <= len(packed):
            raise self.source.error(
                f"{what} is cut short",
                tensor.start,
                received=f"{len(packed)} bytes",
                allowed=f"{size} values of {BITS[dtype]} bits",
            )
        values = unpack(packed, dtype, size).reshape(shape)
        values.flags.writeable = False
        return values

    def _external(self, tensor: Message, what: str, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        entries = {entry.text(1): entry.text(2) for entry in tensor.messages(13, "StringStringEntryProto")}
        location = entries.get("location", "")
        folder = Path(self.source.name).parent.resolve()
        # Another system's separators and drive letters count too: what is refused must not depend on the reader.
        foreign = location.startswith("/") or any(mark in location for mark in ("\\", ":", "\0"))
        inside = 0 < len(location) < 256 and not foreign and ".." not in location.split("/")
        if not inside or folder not in (folder / location).resolve().parents:
            raise self.source.error(
                f"{what} points outside of the model's folder",
                tensor.start,
                received=location[:200],
                allowed=f"a file below {folder}",
                fix="put the data file itself, not a link, beside the model, or save the model in one file",
            )
        if location not in self._files:
            if not (folder / location).is_file():
                raise self.source.error(
                    f"{what} is in a file that is not there",
                    tensor.start,
                    received=str(folder / location),
                    fix="copy the model together with its data file",
                )
            self._files[location] = read_source(folder / location)
        if dtype in BITS:
            raise self.source.error(f"{what} of {BITS[dtype]} bits is in a file of its own", tensor.start)
        data = self._files[location]
        offset = _parse_decimal(entries.get("offset", "0"))
        length = _parse_decimal(entries.get("length", str(len(data.data) - offset)))
        return data.array(offset, data.view(offset, length, what), dtype, shape, what)


def _parse_decimal(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1


def _read_typed_values(tensor: Message, dtype: np.dtype) -> np.ndarray:
    """The values of a tensor that is written in typed fields instead of raw bytes."""
    if dtype in (np.float32, np.complex64):
        return tensor.reals(4)
    if dtype in (np.float64, np.complex128):
        return tensor.reals(10, "<f8")
    if dtype == np.int64:
        return np.array(tensor.integers(7), np.int64)
    if dtype in (np.uint32, np.uint64):
        return np.array(tensor.integers(11), np.int64).astype(dtype)
    # int32_data holds everything narrower, 16- and 8-bit floats as their bits
    bits = np.dtype(f"u{dtype.itemsize}") if dtype.kind not in "iu" else dtype
    return np.array(tensor.integers(5), np.int64).astype(bits)


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value


def _constant(node: Node) -> np.ndarray | None:
    for key, dtype in (("value", None), ("value_float", "f4"), ("value_floats", "f4"), ("value_int", "i8")):
        if node.attrs.get(key) is not None:
            return np.asarray(node.attrs[key], dtype)
    values = node.attrs.get("value_ints")
    return None if values is None else np.asarray(values, np.int64)


def _value(entry: Message) -> TensorSpec:
    kind = entry.message(2, "TypeProto")
    tensor = kind.message(1, "TypeProto.Tensor") if kind else None
    if tensor is None:
        return TensorSpec(entry.text(1), (), "")
    dtype = DTYPES.get(tensor.integer(1))
    shape = tensor.message(2, "TensorShapeProto")
    dims: list[int | str | None] = []
    for dim in shape.messages(1, "Dimension") if shape else ():
        dims.append(dim.text(2) or None if dim.integer(1, -1) < 0 else dim.integer(1))
    return TensorSpec(entry.text(1), tuple(dims), dtype.name if dtype is not None else "")
