"""Write QuantizeLinear and DequantizeLinear into an ONNX model, and its weights as int8."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from framework.compress.layers import (
    QuantizableLayer,
    passing_sources,
    quantized_tensors,
)
from framework.compress.ranges import Range, quantize_weight
from framework.export.formats.onnx.model import import_onnx

if TYPE_CHECKING:
    import onnx

_LARGEST_BIAS = 2.0**30  # of int32, with room for the sum


def insert_qdq(
    model: onnx.ModelProto,
    layers: Sequence[QuantizableLayer],
    ranges: Mapping[str, Range],
    skip: Container[str] = (),
    bits: int = 8,
) -> onnx.ModelProto:
    """The model with layers in int8: tensors uint8 with one scale, weights int8 and biases int32 with one a channel.

    Args:
        layers: Those of `find_layers`.
        ranges: Of all of `quantized_tensors`.
        skip: Names of layers that stay in float32.
        bits: Of weights: 8, or 7.
    """
    chosen = [layer for layer in layers if layer.name not in skip]
    tensors = quantized_tensors(model, layers, skip)
    sources = passing_sources(model, tensors)
    writer = _Writer(model, {name: ranges[sources.get(name, name)] for name in tensors}, bits)
    by_output = {layer.output: layer for layer in chosen}
    renamed: dict[str, str] = {}
    nodes: list[onnx.NodeProto] = []
    for one in model.graph.input:
        if one.name in tensors:
            renamed[one.name] = writer.quantize(one.name, nodes)
    for node in model.graph.node:
        fresh = type(node)()
        fresh.CopyFrom(node)
        layer = by_output.get(node.output[0]) if node.output else None
        for index, name in enumerate(fresh.input):
            if name in renamed:
                fresh.input[index] = renamed[name]
        if layer is not None:
            fresh.input[1] = writer.weight(layer, nodes)
            if layer.bias is not None:
                fresh.input[2] = writer.bias(layer, nodes)
        nodes.append(fresh)
        for name in node.output:
            if name in tensors:
                renamed[name] = writer.quantize(name, nodes)
    return writer.finish(nodes)


class _Writer:
    """Makes the nodes and constants of one model."""

    def __init__(self, model: onnx.ModelProto, ranges: Mapping[str, Range], bits: int) -> None:
        self.onnx, self.model, self.ranges, self.bits = import_onnx(), model, ranges, bits
        self.weights = {one.name: one for one in model.graph.initializer}
        self.constants: dict[str, np.ndarray] = {}
        self.scales: dict[str, np.ndarray] = {}  # of weights
        self.kept: dict[str, str] = {}  # weights and ranges that were written: name of what they are now

    def array(self, name: str) -> np.ndarray:
        return self.onnx.numpy_helper.to_array(self.weights[name])

    def quantize(self, name: str, nodes: list[onnx.NodeProto]) -> str:
        """A tensor as uint8 and back; the name of what it is then."""
        chosen = self.ranges[name]
        scale, zero = f"{name}_scale", f"{name}_zero_point"
        self.constants[scale] = np.array(chosen.scale, np.float32)
        self.constants[zero] = np.array(chosen.zero_point, np.uint8)
        make = self.onnx.helper.make_node
        nodes.append(make("QuantizeLinear", [name, scale, zero], [f"{name}_q"], name=f"{name}_q"))
        nodes.append(make("DequantizeLinear", [f"{name}_q", scale, zero], [f"{name}_dq"], name=f"{name}_dq"))
        return f"{name}_dq"

    def weight(self, layer: QuantizableLayer, nodes: list[onnx.NodeProto]) -> str:
        """The weight as int8, dequantised by channel."""
        key = f"{layer.weight}#{layer.axis}"
        if key not in self.kept:
            weight = self.array(layer.weight)
            least = None
            if layer.bias is not None:  # so that the bias fits into int32
                step = self.ranges[layer.input].scale
                least = np.abs(self.array(layer.bias)).astype(np.float64) / (step * _LARGEST_BIAS)
            whole, scales = quantize_weight(weight, layer.axis, self.bits, least)
            self.kept[key] = f"{layer.weight}_dq" if layer.axis == 0 else f"{layer.weight}_dq{layer.axis}"
            self.scales[layer.weight] = scales
            self._dequantize(self.kept[key], whole, scales, layer.axis, nodes)
        return self.kept[key]

    def bias(self, layer: QuantizableLayer, nodes: list[onnx.NodeProto]) -> str:
        """The bias as int32 in steps of input times weight, dequantised by channel."""
        assert layer.bias is not None
        step = self.ranges[layer.input].scale
        steps = (self.scales[layer.weight].astype(np.float64) * step).astype(np.float32)
        bias = self.array(layer.bias).astype(np.float64) / steps
        whole = np.clip(np.rint(bias), -(2.0**31) + 1, 2.0**31 - 1).astype(np.int32)
        name = f"{layer.output}_bias_dq"
        self._dequantize(name, whole, steps, 0, nodes)
        return name

    def _dequantize(
        self, name: str, whole: np.ndarray, scales: np.ndarray, axis: int, nodes: list[onnx.NodeProto]
    ) -> None:
        stem = name.removesuffix("_dq")
        self.constants |= {f"{stem}_{whole.dtype}": whole, f"{stem}_scale": scales}
        self.constants[f"{stem}_zero_point"] = np.zeros(scales.shape, whole.dtype)
        inputs = [f"{stem}_{whole.dtype}", f"{stem}_scale", f"{stem}_zero_point"]
        nodes.append(self.onnx.helper.make_node("DequantizeLinear", inputs, [name], name=name, axis=axis))

    def finish(self, nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
        """The model of these nodes, without the constants that none of them reads any more."""
        made = type(self.model)()
        made.CopyFrom(self.model)
        del made.graph.node[:]
        made.graph.node.extend(nodes)
        del made.graph.value_info[:]
        read = {name for node in nodes for name in _reads(node)} | {one.name for one in made.graph.output}
        kept = [one for one in self.model.graph.initializer if one.name in read]
        del made.graph.initializer[:]
        made.graph.initializer.extend(kept)
        from_array = self.onnx.numpy_helper.from_array
        made.graph.initializer.extend(from_array(array, name) for name, array in self.constants.items())
        return made


def _reads(node: onnx.NodeProto) -> list[str]:
    """What a node reads, with the nodes of its bodies."""
    found = list(node.input)
    for attribute in node.attribute:
        for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
            found += [name for inner in body.node for name in _reads(inner)]
            found += [one.name for one in body.output]
    return found
