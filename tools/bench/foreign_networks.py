"""PP-LiteSeg and PP-YOLOE as ONNX graphs, from the arrays of their folded forms: what other runtimes run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BINS = (1, 2, 4)
HALF_PIXEL = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
STRIDES = (32, 16, 8)


class _Graph:
    """Nodes and arrays of a graph in the making; methods take and give names of values, [N, C, H, W]."""

    def __init__(self, state: Mapping[str, np.ndarray], size_hw: tuple[int, int]) -> None:
        self.state, self.size_hw, self.nodes, self.arrays = state, size_hw, [], []
        self.channels: dict[str, int] = {}

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def array(self, value: np.ndarray) -> str:
        name = f"c{len(self.arrays)}"
        self.arrays.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def plain_conv(self, x: str, name: str, stride: int, group: int = 1) -> str:
        weight, bias = self.state[f"{name}.weight"], self.state.get(f"{name}.bias")
        inputs = [self.array(value) for value in (weight, bias) if value is not None]
        size = weight.shape[2]
        pads, strides, kernel = [size // 2] * 4, [stride] * 2, [size] * 2
        return self.op("Conv", x, *inputs, strides=strides, pads=pads, kernel_shape=kernel, group=group)

    def serialized(self, name: str, outputs: list[onnx.ValueInfoProto], opset: int, ir_version: int) -> bytes:
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, *self.size_hw])
        made = helper.make_graph(self.nodes, name, [image], outputs, self.arrays)
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
        onnx.checker.check_model(model)
        return model.SerializeToString()


class _LiteSeg(_Graph):
    def conv(self, x: str, name: str, act: bool = True, stride: int = 1) -> str:
        weight = self.state[f"{name}.weight"]
        depthwise = weight.shape[1] == 1 and stride == 2 and name.endswith("avd_layer.0")
        y = self.plain_conv(x, name, stride, weight.shape[0] if depthwise else 1)
        return self.op("Relu", y) if act else y

    def resize(self, x: str, stride: int) -> str:
        """To the map at `stride`."""
        sizes = np.array([1, self.channels[x], *(side // stride for side in self.size_hw)], np.int64)
        return self.op("Resize", x, "", "", self.array(sizes), **HALF_PIXEL)

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
    graph = _LiteSeg(state, size_hw)
    maps = graph.stdc("image")
    y = graph.context(maps[-1])
    for level in (2, 1, 0):
        y = graph.fusion(maps[level], y, level)
    y = graph.conv(graph.conv(y, "seg_heads.0.conv._conv"), "seg_heads.0.conv_out", act=False)
    classes = graph.channels[y] = state["seg_heads.0.conv_out.weight"].shape[0]
    out, kind, shape = graph.resize(y, 1), TensorProto.FLOAT, [1, classes, *size_hw]
    if labels:
        out, kind, shape = graph.op("ArgMax", out, axis=1, keepdims=0), TensorProto.INT64, [1, *size_hw]
    return graph.serialized("pp_liteseg", [helper.make_tensor_value_info(out, kind, shape)], 18, 9)


class _Yoloe(_Graph):
    def conv(self, x: str, name: str, act: bool = True, stride: int = 1) -> str:
        y = self.plain_conv(x, name, stride)
        return self.op("Mul", y, self.op("Sigmoid", y)) if act else y

    def concat(self, *xs: str, axis: int = 1) -> str:
        return self.op("Concat", *xs, axis=axis)

    def blocks(self, x: str, name: str, residual: bool) -> str:
        """The numbered blocks below `name`, and the pyramid of pools where it stands among them."""
        place = 0
        while f"{name}.{place}.conv1.conv.weight" in self.state:
            y = self.conv(self.conv(x, f"{name}.{place}.conv1.conv"), f"{name}.{place}.conv2.conv")
            x = self.op("Add", x, y) if residual else y
            if place == 0 and f"{name}.spp.conv.conv.weight" in self.state:
                pools = (self.op("MaxPool", x, kernel_shape=[k] * 2, pads=[k // 2] * 4) for k in (5, 9, 13))
                x = self.conv(self.concat(x, *pools), f"{name}.spp.conv.conv")
            place += 1
        return x

    def halves(self, x: str, name: str, blocks: str, residual: bool) -> str:
        own = self.conv(x, f"{name}.conv1.conv")
        return self.concat(own, self.blocks(self.conv(x, f"{name}.conv2.conv"), f"{name}.{blocks}", residual))

    def backbone(self, x: str) -> list[str]:
        for name, stride in (("conv1", 2), ("conv2", 1), ("conv3", 1)):
            x = self.conv(x, f"backbone.stem.{name}.conv", stride=stride)
        maps = []
        for stage in range(4):
            name = f"backbone.stages.{stage}"
            x = self.halves(self.conv(x, f"{name}.conv_down.conv", stride=2), name, "blocks", residual=True)
            gate = self.conv(self.op("GlobalAveragePool", x), f"{name}.attn.fc", act=False)
            x = self.op("Mul", x, self.op("HardSigmoid", gate, alpha=1 / 6, beta=0.5))
            x = self.conv(x, f"{name}.conv3.conv")
            maps.append(x)
        return maps[1:]

    def stage(self, x: str, name: str) -> str:
        return self.conv(self.halves(x, f"{name}.0", "convs", residual=False), f"{name}.0.conv3.conv")

    def neck(self, maps: Sequence[str]) -> list[str]:
        double = self.array(np.array([1, 1, 2, 2], np.float32))
        how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        down: list[str] = []
        for level, x in enumerate(maps[::-1]):
            if down:
                route = self.conv(down[-1], f"neck.fpn_routes.{level - 1}.conv")
                x = self.concat(self.op("Resize", route, "", double, **how), x)
            down.append(self.stage(x, f"neck.fpn_stages.{level}"))
        up = [down[-1]]
        for level in range(len(down) - 2, -1, -1):
            x = self.concat(self.conv(up[0], f"neck.pan_routes.{level}.conv", stride=2), down[level])
            up.insert(0, self.stage(x, f"neck.pan_stages.{level}"))
        return up

    def head(self, maps: Sequence[str]) -> list[tuple[str, str]]:
        outs = []
        for level, x in enumerate(maps):
            mean = self.op("GlobalAveragePool", x)
            logits = []
            for kind in ("cls", "reg"):
                name = f"yolo_head.stem_{kind}.{level}"
                gate = self.op("Sigmoid", self.conv(mean, f"{name}.fc", act=False))
                y = self.conv(self.op("Mul", x, gate), f"{name}.conv.conv")
                y = self.op("Add", y, x) if kind == "cls" else y
                logits.append(self.conv(y, f"yolo_head.pred_{kind}.{level}", act=False))
            outs.append((logits[0], logits[1]))
        return outs


def pp_yoloe(state: Mapping[str, np.ndarray], size: int) -> bytes:
    """The serialized graph: "image" [1, 3, size, size] -> logits of classes and distances [1, C, H, W], coarsest first.

    Args:
        state: `state_dict()` of the model with `deploy`; its names begin with backbone, neck and yolo_head.
    """
    graph = _Yoloe(state, (size, size))
    outs = [out for pair in graph.head(graph.neck(graph.backbone("image"))) for out in pair]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None, size // stride, size // stride])
        for name, stride in zip(outs, np.repeat(STRIDES, 2).tolist(), strict=True)
    ]
    return graph.serialized("pp_yoloe", values, 13, 8)
