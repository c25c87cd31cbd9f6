"""PP-YOLOE as an ONNX graph, from the arrays of its deploy form: what tools/bench/detection.py runs elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STRIDES = (32, 16, 8)


class _Graph:
    """Nodes and arrays of a graph in the making; methods take and give names of values."""

    def __init__(self, state: Mapping[str, np.ndarray]) -> None:
        self.state, self.nodes, self.arrays = state, [], []

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def array(self, value: np.ndarray) -> str:
        name = f"c{len(self.arrays)}"
        self.arrays.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def conv(self, x: str, name: str, act: bool = True, stride: int = 1) -> str:
        weight, bias = (self.array(self.state[f"{name}.{part}"]) for part in ("weight", "bias"))
        size = self.state[f"{name}.weight"].shape[2]
        y = self.op(
            "Conv", x, weight, bias, strides=[stride] * 2, pads=[size // 2] * 4, kernel_shape=[size] * 2
        )
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
    graph = _Graph(state)
    outs = [out for pair in graph.head(graph.neck(graph.backbone("image"))) for out in pair]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, None, size // stride, size // stride])
        for name, stride in zip(outs, np.repeat(STRIDES, 2).tolist(), strict=True)
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, size, size])
    made = helper.make_graph(graph.nodes, "pp_yoloe", [image], values, graph.arrays)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()
