"""Which nodes of an ONNX model compute in int8, and which tensors between them are quantised."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

# Operators whose inputs and outputs have the same values: one scale serves both.
PASSING = frozenset(
    ("MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Split", "Identity")
)
# Operators that engines compute in int8 where what they take and what they give is quantised.
_BETWEEN = frozenset(("Add", "Mul", "Concat", "AveragePool", "GlobalAveragePool", "Resize"))
# Engines compute these with the operator before them, so nothing is quantised between the two.
_FUSED = frozenset(("Relu", "Clip", "LeakyRelu"))
# Functions of one tensor that are not: the layer before them is in int8 only where its output is quantised, too.
_UNARY = frozenset(("HardSwish", "HardSigmoid", "Sigmoid", "Tanh", "Gelu", "Elu", "Erf", "Softplus", "PRelu"))


@dataclass(frozen=True)
class QuantizableLayer:
    """A convolution or a product with a constant weight.

    Attributes:
        name: Of its weight, which is that of the checkpoint; with #2, #3, … where layers share it.
        input: The tensor that it takes.
        weight: Name of the constant.
        bias: Name of the constant of one number a channel, or None.
        output: The tensor that it gives.
        axis: That of the output channels in the weight.
    """

    name: str
    input: str
    weight: str
    bias: str | None
    output: str
    axis: int


def find_layers(model: onnx.ModelProto) -> list[QuantizableLayer]:
    """Conv, Gemm and MatMul of float32 with constant weights, in the order in which they run; those in the bodies of
    loops and branches are left alone."""
    ranks = {one.name: len(one.dims) for one in model.graph.initializer if one.data_type == 1}
    found: list[QuantizableLayer] = []
    seen: dict[str, int] = {}
    for node in model.graph.node:
        if node.op_type not in ("Conv", "Gemm", "MatMul") or len(node.input) < 2:
            continue
        image, weight, bias = node.input[0], node.input[1], node.input[2] if len(node.input) > 2 else ""
        rank = ranks.get(weight, 0)
        if image in ranks or (rank < 3 if node.op_type == "Conv" else rank != 2):
            continue
        if bias and ranks.get(bias) != 1:
            continue
        if node.op_type == "Gemm":
            numbers = {one.name: one for one in node.attribute}
            if any(key in numbers and numbers[key].f != 1 for key in ("alpha", "beta")):
                continue
            if "transA" in numbers and numbers["transA"].i:
                continue
            axis = 0 if "transB" in numbers and numbers["transB"].i else 1
        else:
            axis = 0 if node.op_type == "Conv" else 1
        seen[weight] = seen.get(weight, 0) + 1
        name = weight if seen[weight] == 1 else f"{weight}#{seen[weight]}"
        found.append(QuantizableLayer(name, image, weight, bias or None, node.output[0], axis))
    return found


def quantized_tensors(
    model: onnx.ModelProto, layers: Iterable[QuantizableLayer], skip: Container[str] = ()
) -> set[str]:
    """The tensors that are quantised: what the layers take, and back from there what engines compute in int8 only
    where it ends in int8. What no layer takes, such as the scores of a head, stays as it is.

    Args:
        skip: Names of layers that stay in float32.
    """
    makers = {name: node for node in model.graph.node for name in node.output}
    constants = {one.name for one in model.graph.initializer}
    constants |= {name for node in model.graph.node if node.op_type == "Constant" for name in node.output}
    wanted = {layer.input for layer in layers if layer.name not in skip}
    running = {layer.output for layer in layers if layer.name not in skip}
    waiting = list(wanted)
    while waiting:
        node = makers.get(waiting.pop())
        if node is None:
            continue
        more: list[str] = []
        if node.op_type in _FUSED:
            waiting.append(node.input[0])
        elif node.op_type in PASSING:
            more = [node.input[0]]
        elif node.op_type in _BETWEEN:
            arrays = list(node.input[:1] if node.op_type == "Resize" else node.input)
            if not any(name in constants for name in arrays):
                more = arrays
        elif node.op_type in _UNARY and node.input[0] in running:
            more = [node.input[0]]
        for name in more:
            if name not in wanted and name not in constants:
                wanted.add(name)
                waiting.append(name)
    return wanted


def passing_sources(model: onnx.ModelProto, tensors: Container[str]) -> dict[str, str]:
    """Of each of `tensors` that a passing operator gives, the first before it whose range it has."""
    sources: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type in PASSING and node.input[0] in tensors:
            first = sources.get(node.input[0], node.input[0])
            sources |= {name: first for name in node.output if name in tensors}
    return sources


def head_outputs(model: onnx.ModelProto, layers: Iterable[QuantizableLayer]) -> list[str]:
    """The outputs of the layers that no other layer comes after: where the noise of a network can be seen before a
    threshold or a choice hides it."""
    layers = list(layers)
    readers: dict[str, list[str]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).extend(node.output)
    inputs = {layer.input for layer in layers}
    leads: dict[str, bool] = {}
    for node in reversed(model.graph.node):  # readers stand behind what they read
        for name in node.output:
            leads[name] = name in inputs or any(leads.get(one, False) for one in readers.get(name, ()))
    return [layer.output for layer in layers if not leads.get(layer.output, False)]
