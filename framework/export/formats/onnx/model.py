"""An ONNX model of a pure function: `export_onnx` makes it, `write_onnx` writes it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from framework.core.disk import disk_errors
from framework.core.errors import ConfigError, MissingExtraError
from framework.core.trace import explain_trace_errors
from framework.core.whole_folder import fresh_folder
from framework.export.formats.onnx import rules as _rules  # noqa: F401  fills the tables of rules
from framework.export.formats.onnx.convert import Converter
from framework.export.formats.onnx.graph import Graph, Node, Size, is_symbolic
from framework.export.formats.onnx.optimize import optimize
from framework.export.formats.onnx.values import Value
from framework.export.program import ArrayDict, ArrayFunction, symbolic_arguments
from framework.export.specs import TensorSpec
from framework.nn.functional.lowering import platform_scope

if TYPE_CHECKING:
    import onnx

Function = ArrayFunction
OPSET, IR_VERSION = 18, 9  # what ONNX Runtime, its web build, OpenVINO and pnnx all read
LEAST_OPSET = 18
MOST_BYTES = (1 << 31) - (1 << 24)  # of a protobuf message is 2 GB the most; the nodes need some of it
EXTERNAL = 1024  # bytes from which a constant stands in the file of data


def import_onnx() -> ModuleType:
    """The package. Raises: MissingExtraError."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtraError("onnx", "onnx", "export to ONNX") from None
    return onnx


def export_onnx(
    fn: Function,
    weights: Mapping[str, jax.Array | np.ndarray],
    inputs: Mapping[str, TensorSpec],
    *,
    constraints: Sequence[str] = (),
    opset: int = OPSET,
    metadata: Mapping[str, str] | None = None,
) -> onnx.ModelProto:
    """`fn(weights, inputs) -> outputs`, flat dicts by name, as a model whose constants have the names of the weights.

    Args:
        inputs: Shape and type of each input; a size may be symbolic, such as "n" or "32*h".
        constraints: What holds for symbolic sizes; see `lower_program`.
        opset: Version of the operators, 18 or more.
        metadata: Texts that the file carries.

    Raises:
        TraceError: the function branches on a value, or has an operation without a form in ONNX.
        MissingExtraError: the package onnx is not installed.
    """
    onnx = import_onnx()
    if not LEAST_OPSET <= opset <= onnx.defs.onnx_opset_version():
        raise ConfigError(
            "this version of the operators cannot be written",
            where="opset",
            received=opset,
            allowed=f"{LEAST_OPSET} to {onnx.defs.onnx_opset_version()}",
        )
    graph = build_graph(fn, weights, inputs, constraints)
    model = onnx.helper.make_model(
        _graph_proto(onnx, graph, "program"),
        opset_imports=[onnx.helper.make_opsetid("", opset)],
        ir_version=IR_VERSION,
        producer_name="oar",
    )
    onnx.helper.set_model_props(model, dict(metadata or {}))
    return model


def build_graph(
    fn: Function,
    weights: Mapping[str, jax.Array | np.ndarray],
    inputs: Mapping[str, TensorSpec],
    constraints: Sequence[str] = (),
) -> Graph:
    """The graph of a function of weights and inputs. Raises: as `export_onnx`."""
    arguments = symbolic_arguments(inputs, constraints)
    shapes = {name: jax.ShapeDtypeStruct(np.shape(w), w.dtype) for name, w in weights.items()}

    # A function of its own: jit would reuse the trace of `fn` for another platform.
    def fresh(weights: ArrayDict, inputs: ArrayDict) -> ArrayDict:
        return fn(weights, inputs)

    with platform_scope("graph"), explain_trace_errors():
        traced = jax.jit(fresh).trace(shapes, arguments)
    outputs = sorted(traced.out_info)  # as jit hands dicts back
    graph = Graph()
    values = []
    for name in sorted(weights):  # as jit hands dicts over
        array = np.asarray(weights[name])
        values.append(Value(array.shape, array.dtype, name, tuple(range(array.ndim)), array))
    for name in sorted(arguments):
        spec = arguments[name]
        axes = tuple(range(len(spec.shape)))
        graph.define_sizes(name, spec.shape, axes)
        values.append(_image_first(graph, Value(tuple(spec.shape), np.dtype(spec.dtype), name, axes)))
    graph.inputs = [(name, np.dtype(spec.dtype), tuple(spec.shape)) for name, spec in arguments.items()]
    converter = Converter(graph)
    jaxpr = traced.jaxpr
    results = converter.run(jaxpr.jaxpr, jaxpr.consts, values)
    for name, value, aval in zip(outputs, results, jaxpr.out_avals):
        tensor = converter.plain(value, aval.shape)
        graph.nodes.append(Node("Identity", [tensor], [name]))
        graph.outputs.append((name, np.dtype(aval.dtype), tuple(aval.shape)))
    optimize(graph)
    _end_with_names(graph)
    return graph


def _image_first(graph: Graph, value: Value) -> Value:
    """An input that is a channels-last image as channels-first: moving bytes takes a quarter of the time of moving the
    floats that they become, and arithmetic by channels is slow where the last axis has three."""
    if value.dtype != np.uint8 or len(value.shape) != 4 or value.shape[3] not in (1, 3, 4):
        return value
    name = graph.add("Transpose", value.name, perm=[0, 3, 1, 2])
    return replace(value, name=name, order=(0, 2, 3, 1))


def _end_with_names(graph: Graph) -> None:
    """Give the nodes that make the outputs their names, instead of an Identity behind each."""
    producers = {name: node for node in graph.nodes for name in node.outputs}
    ends = {node.outputs[0]: node for node in graph.nodes if node.op == "Identity"}
    names: dict[str, str] = {}
    for name, *_ in graph.outputs:
        end = ends.get(name)
        if end is None or end.inputs[0] not in producers or end.inputs[0] in names:
            continue
        maker = producers[end.inputs[0]]
        if maker.op == "Identity":
            continue
        names[end.inputs[0]] = name
        graph.nodes.remove(end)
        maker.outputs = [name if one == end.inputs[0] else one for one in maker.outputs]
    for node in graph.nodes:
        node.inputs = [names.get(name, name) for name in node.inputs]
        for body in node.bodies():
            _rename_reads(body, names)


def _rename_reads(graph: Graph, names: Mapping[str, str]) -> None:
    for node in graph.nodes:
        node.inputs = [names.get(name, name) for name in node.inputs]
        for body in node.bodies():
            _rename_reads(body, names)


# -- to protobuf ------------------------------------------------------------------------------------------------------


def _graph_proto(onnx: ModuleType, graph: Graph, name: str) -> Any:
    helper = onnx.helper
    nodes = []
    for node in graph.nodes:
        attributes = {
            key: _graph_proto(onnx, value, key) if isinstance(value, Graph) else _plain(onnx, value)
            for key, value in node.attributes.items()
        }
        nodes.append(helper.make_node(node.op, node.inputs, node.outputs, name=node.outputs[0], **attributes))
    constants = [onnx.numpy_helper.from_array(array, key) for key, array in graph.constants.items()]
    return helper.make_graph(
        nodes,
        name,
        [_info(onnx, *one) for one in graph.inputs],
        [_info(onnx, *one) for one in graph.outputs],
        constants,
    )


def _plain(onnx: ModuleType, value: object) -> object:
    return onnx.helper.np_dtype_to_tensor_dtype(value) if isinstance(value, np.dtype) else value


def _info(onnx: ModuleType, name: str, dtype: np.dtype, shape: Sequence[Size]) -> Any:
    sizes = [str(size) if is_symbolic(size) else int(size) for size in shape]
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(dtype), sizes)


# -- to disk ----------------------------------------------------------------------------------------------------------


def write_onnx(model: onnx.ModelProto, path: str | Path, most_bytes: int = MOST_BYTES) -> list[Path]:
    """Write a model; one of more than `most_bytes` with its constants beside it in <name>.data. -> the files.

    Each file appears whole or not at all.

    Raises:
        DiskError: the disk is full, or may not be written to.
    """
    onnx, path = import_onnx(), Path(path)
    data = path.with_name(path.name + ".data")
    with disk_errors(path, model.ByteSize()), fresh_folder(path) as fresh:
        written = fresh / path.name
        if model.ByteSize() > most_bytes:
            onnx.save_model(
                model,
                str(written),
                save_as_external_data=True,
                all_tensors_to_one_file=True,
                location=data.name,
                size_threshold=EXTERNAL,
            )
        else:
            written.write_bytes(model.SerializeToString())
        return move_files(sorted(fresh.iterdir(), reverse=True), path.parent)


def move_files(files: Sequence[Path], folder: Path) -> list[Path]:
    """Move files into a folder, in their order: the data first, then what points to it. -> where they are."""
    for file in files:
        os.replace(file, folder / file.name)
    return [folder / file.name for file in files]
