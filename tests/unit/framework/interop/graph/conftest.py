"""Small ONNX graphs, made with the onnx package and read by the importer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from framework.interop.graph.layer import GraphLayer
from framework.interop.programs.onnx import load
from framework.interop.source import Source

Load = Callable[..., GraphLayer]


def value(
    name: str, shape: Sequence[Any] | None = None, kind: int = TensorProto.FLOAT
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto | str] = ("x",),
    outputs: Sequence[onnx.ValueInfoProto | str] = ("y",),
    arrays: dict[str, np.ndarray] | None = None,
    opset: int = 17,
    domains: dict[str, int] | None = None,
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (arrays or {}).items()]
    infos, results = ([value(i) if isinstance(i, str) else i for i in side] for side in (inputs, outputs))
    graph = helper.make_graph(list(nodes), "g", infos, results, tensors)
    sets = [helper.make_opsetid(d, v) for d, v in {"": opset, **(domains or {})}.items()]
    return helper.make_model(graph, opset_imports=sets)


@pytest.fixture
def open_graph() -> Load:
    def open_graph(
        nodes: Sequence[onnx.NodeProto], *args: Any, operators: Any = None, **options: Any
    ) -> GraphLayer:
        content = model(nodes, *args, **options).SerializeToString()
        return load(Source("graph.onnx", memoryview(content)), operators)

    return open_graph
