"""Reference outputs and losses of PP-YOLOE+ and YOLOX: PaddleDetection.

    python tools/golden/yolo_detectors.py [case ...]        needs: paddlepaddle 2.6, ppdet

Every entry of the state dict is drawn from its name (framework/interop/named_weights.py), but for the output
convolutions, whose scale and bias are set so that boxes are about as large as the objects: without that no assigner
has a choice. Images are noise, the objects are those of `objects` below. Each output is thinned to a few values.
"""

from __future__ import annotations

import sys
import zlib  # noqa: F401  before paddle, whose own copy breaks it
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from framework.interop.named_weights import named_weights

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "yolo_detectors"
KEPT = 400  # values of each output


class Whole(paddle.nn.Layer):
    """Backbone, neck and head under upstream's names."""

    def __init__(self, backbone: Any, neck: Any, head: Any, head_name: str) -> None:
        super().__init__()
        self.backbone, self.neck = backbone, neck
        setattr(self, head_name, head)
        self.call = lambda images, targets=None: head(neck(backbone({"image": images})), targets)


def pp_yoloe(depth: float, width: float) -> Callable[[], Whole]:
    def build() -> Whole:
        from ppdet.modeling.assigners import ATSSAssigner, TaskAlignedAssigner
        from ppdet.modeling.backbones.cspresnet import CSPResNet
        from ppdet.modeling.heads.ppyoloe_head import PPYOLOEHead
        from ppdet.modeling.necks.custom_pan import CustomCSPPAN

        size = {"depth_mult": depth, "width_mult": width, "act": "swish"}
        backbone = CSPResNet(
            layers=[3, 6, 6, 3],
            channels=[64, 128, 256, 512, 1024],
            return_idx=[1, 2, 3],
            use_large_stem=True,
            use_alpha=True,
            **size,
        )
        channels = [shape.channels for shape in backbone.out_shape]
        neck = CustomCSPPAN(
            in_channels=channels, out_channels=[768, 384, 192], stage_num=1, block_num=3, spp=True, **size
        )
        head = PPYOLOEHead(
            in_channels=[shape.channels for shape in neck.out_shape],
            static_assigner_epoch=1,
            static_assigner=ATSSAssigner(topk=9),
            assigner=TaskAlignedAssigner(topk=13, alpha=1.0, beta=6.0),
        )
        return Whole(backbone, neck, head, "yolo_head")

    return build


def yolox(depth: float, width: float, depthwise: bool) -> Callable[[], Whole]:
    def build() -> Whole:
        from ppdet.modeling.assigners.simota_assigner import SimOTAAssigner
        from ppdet.modeling.backbones.csp_darknet import CSPDarkNet
        from ppdet.modeling.heads.yolo_head import YOLOXHead
        from ppdet.modeling.necks.yolo_fpn import YOLOCSPPAN

        backbone = CSPDarkNet("X", depth_mult=depth, width_mult=width, depthwise=depthwise)
        channels = [shape.channels for shape in backbone.out_shape]
        neck = YOLOCSPPAN(depth_mult=depth, in_channels=channels, depthwise=depthwise)
        head = YOLOXHead(
            width_mult=width,
            depthwise=depthwise,
            in_channels=channels,
            l1_epoch=1,
            assigner=SimOTAAssigner(use_vfl=False),
            nms=None,
        )
        model = Whole(backbone, neck, head, "head")
        for layer in model.sublayers():  # as upstream's trainer does
            if isinstance(layer, paddle.nn.BatchNorm2D):
                layer._epsilon, layer._momentum = 1e-3, 0.97
        return model

    return build


CASES: dict[str, tuple[Callable[[], Whole], tuple[int, int]]] = {
    "pp_yoloe_s": (pp_yoloe(0.33, 0.5), (128, 160)),
    "pp_yoloe_s_640": (pp_yoloe(0.33, 0.5), (640, 640)),
    "yolox_nano": (yolox(0.33, 0.25, True), (128, 160)),
    "yolox_nano_416": (yolox(0.33, 0.25, True), (416, 416)),
}


def objects(size_hw: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(boxes [2, 4, 4] xyxy, labels [2, 4], valid [2, 4]): overlapping, small and large ones, and an image of none."""
    height, width = size_hw
    share = np.array(
        [
            [0.053, 0.107, 0.557, 0.703],
            [0.31, 0.32, 0.957, 0.95],
            [0.621, 0.05, 0.757, 0.2],
            [0.1, 0.123, 0.5, 0.75],
        ]
    )  # no centre lies where several cells are equally near: implementations choose differently there
    boxes = np.zeros((2, 4, 4), np.float32)
    boxes[0] = share * (width, height, width, height)
    labels = np.array([[3, 0, 79, 3], [0, 0, 0, 0]], np.int64)
    return boxes, labels, np.array([[True] * 4, [False] * 4])


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """`named_weights`, with calmer outputs."""
    state = named_weights(shapes)
    for name, value in state.items():
        if name.startswith("head.conv_") and name.split(".")[3] == "2":
            state[name] = value * 0.4
        if "pred_reg" in name:
            state[name] = value * 0.5
        if "pred_cls" in name:
            state[name] = value * 0.02
        if name.startswith("head.conv_reg") and name.endswith("2.bias"):
            state[name] = np.array([0, 0, 1.2, 1.2, 0], np.float32)
        if name == "yolo_head.proj_conv.weight":
            state[name] = np.arange(17, dtype=np.float32).reshape(1, 17, 1, 1)
    return state


def thin(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // KEPT)].astype(np.float32)


def run(case: str) -> dict[str, np.ndarray]:
    build, size_hw = CASES[case]
    model = build()
    state = weights({name: tuple(value.shape) for name, value in model.state_dict().items()})
    model.set_state_dict(state)
    images = paddle.to_tensor(np.random.RandomState(7).standard_normal((2, 3, *size_hw)).astype(np.float32))
    model.eval()
    with paddle.no_grad():
        outputs = model.call(images)
    found = {name: thin(out.numpy()) for name, out in zip(("scores", "boxes"), outputs)}
    boxes, labels, valid = objects(size_hw)
    model.train()
    for layer in model.sublayers():  # the statistics given: one batch of noise has no sensible ones
        if isinstance(layer, paddle.nn.BatchNorm2D):
            layer.eval()
    for epoch in (0, 1):
        if case.startswith("yolox"):
            targets = {
                "gt_class": [paddle.to_tensor(k[v][:, None]) for k, v in zip(labels, valid)],
                "gt_bbox": [paddle.to_tensor(b[v]) for b, v in zip(boxes, valid)],
            }
        else:
            targets = {
                "gt_class": paddle.to_tensor(labels[..., None]),
                "gt_bbox": paddle.to_tensor(boxes),
                "pad_gt_mask": paddle.to_tensor(valid[..., None].astype(np.float32)),
            }
        losses = model.call(images, {**targets, "epoch_id": epoch})
        print(case, epoch, {name: float(value) for name, value in losses.items()})
        found |= {f"{name}@{epoch}": np.float32(value.numpy()) for name, value in losses.items()}
        losses["loss"].backward()
        for name, parameter in model.named_parameters():
            if name in GRADIENTS:
                found[f"grad {name}@{epoch}"] = thin(parameter.grad.numpy())
        model.clear_gradients()
    return found


GRADIENTS = (
    "yolo_head.pred_reg.1.weight",
    "yolo_head.pred_cls.0.weight",
    "backbone.stem.conv2.conv.weight",
    "head.conv_reg.1.2.weight",
    "head.conv_cls.1.2.weight",
    "backbone.stem.conv.conv.weight",
)

if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    for case in sys.argv[1:] or CASES:
        np.savez_compressed(OUT / f"{case}.npz", **run(case))
