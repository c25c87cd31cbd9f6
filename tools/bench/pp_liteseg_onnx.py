"""PP-LiteSeg as an ONNX graph, from the arrays of its folded form: what tools/bench/segmentation.py runs elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BINS = (1, 2, 4)
HALF_PIXEL = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}


class _Graph:
    """Nodes and arrays of a graph in the making; methods take and give names of values, [N, C, H, W]."""

    def __init__(self, state: Mapping[str, np.ndarray], size_hw: tuple[int, int]) -> None:
        self.state, self.size_hw, self.nodes, self.arrays = state, size_hw, [], []

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def array(self, value: np.ndarray) -> str:
        name = f"c{len(self.arrays)}"
        self.arrays.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def conv(self, x: str, name: str, act: bool = True, stride: int = 1) -> str:
        weight, bias = self.state[f"{name}.weight"], self.state.get(f"{name}.bias")
        size, groups = weight.shape[2], self.state[f"{name}.weight"].shape[1]
        more = [] if bias is None else [self.array(bias)]
        group = weight.shape[0] if groups == 1 and stride == 2 and name.endswith("avd_layer.0") else 1
        y = self.op(
            *("Conv", x, self.array(weight), *more),
            strides=[stride] * 2,
            pads=[size // 2] * 4,
            kernel_shape=[size] * 2,
            group=group,
        )
        return self.op("Relu", y) if act else y

    def resize(self, x: str, stride: int) -> str:
        """To the map at `stride`."""
        sizes = np.array([1, self.channels[x], *(side // stride for side in self.size_hw)], np.int64)
        return self.op("Resize", x, "", "", self.array(sizes), **HALF_PIXEL)

    channels: dict[str, int]

    def stdc(self, x: str) -> list[str]:
        """The maps at strides 8, 16 and 32."""
        x = self.conv(x, "backbone.features.0.conv", stride=2)
        x = self.conv(x, "backbone.features.1.conv", stride=2)
        maps, place = [], 2
        while f"backbone.features.{place}.conv_list.0.conv.weight" in self.state:
            name = f"backbone.features.{place}"
            halve = f"{name}.avd_layer.0.weight" in self.state
            y = share = self.conv(x, f"{name}.conv_list.0.conv")
            if halve:
                y = self.conv(y, f"{name}.avd_layer.0", act=False, stride=2)
                share = self.op("AveragePool", share, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
            shares = [share]
            for number in (1, 2, 3):
                y = self.conv(y, f"{name}.conv_list.{number}.conv")
                shares.append(y)
            x = self.op("Concat", *shares, axis=1)
            maps = [*maps, x] if halve else [*maps[:-1], x]
            place += 1
        return maps

    def context(self, x: str) -> str:
        parts = []
        for place, bins in enumerate(BINS):
            kernel = [side // 32 // bins for side in self.size_hw]
            pooled = self.op("AveragePool", x, kernel_shape=kernel, strides=kernel)
            name = f"ppseg_head.cm.stages.{place}.1._conv"
            y = self.conv(pooled, name)
            self.channels[y] = self.state[f"{name}.weight"].shape[0]
            parts.append(self.resize(y, 32))
        total = self.op("Add", self.op("Add", parts[0], parts[1]), parts[2])
        return self.conv(total, "ppseg_head.cm.conv_out._conv")

    def fusion(self, x: str, y: str, level: int) -> str:
        name = f"ppseg_head.arm_list.{level}"
        x = self.conv(x, f"{name}.conv_x._conv")
        self.channels[y] = self.state[f"{name}.conv_x._conv.weight"].shape[0]
        y = self.resize(y, 8 << level)
        axes = self.array(np.array([1], np.int64))
        seen = [self.op(kind, z, axes, keepdims=1) for z in (x, y) for kind in ("ReduceMean", "ReduceMax")]
        z = self.conv(self.op("Concat", *seen, axis=1), f"{name}.conv_xy_atten.0._conv")
        weight = self.op("Sigmoid", self.conv(z, f"{name}.conv_xy_atten.1._conv", act=False))
        rest = self.op("Sub", self.array(self.state[f"{name}._scale"]), weight)
        mixed = self.op("Add", self.op("Mul", x, weight), self.op("Mul", y, rest))
        return self.conv(mixed, f"{name}.conv_out._conv")


def pp_liteseg(state: Mapping[str, np.ndarray], size_hw: tuple[int, int], labels: bool) -> bytes:
    """A graph of normalised images [1, 3, H, W], whose sides 128 divides, to logits of that size or the labels of them.

    Args:
        state: Of a PPLiteSeg in eval mode after `fold_norms`.
    """
    graph = _Graph(state, size_hw)
    graph.channels = {}
    maps = graph.stdc("image")
    y = graph.context(maps[-1])
    for level in (2, 1, 0):
        y = graph.fusion(maps[level], y, level)
    y = graph.conv(graph.conv(y, "seg_heads.0.conv._conv"), "seg_heads.0.conv_out", act=False)
    classes = graph.channels[y] = state["seg_heads.0.conv_out.weight"].shape[0]
    out, kind, shape = graph.resize(y, 1), TensorProto.FLOAT, [1, classes, *size_hw]
    if labels:
        out, kind, shape = graph.op("ArgMax", out, axis=1, keepdims=0), TensorProto.INT64, [1, *size_hw]
    made = helper.make_graph(
        graph.nodes,
        "pp_liteseg",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, *size_hw])],
        [helper.make_tensor_value_info(out, kind, shape)],
        graph.arrays,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model.SerializeToString()
