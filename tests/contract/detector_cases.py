"""Every variant of every detector and pose model, with what the contract tests have to know about each.

A new class or variant is a new row here; `test_detectors.py` fails until it has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from detection.contracts import PoseTargets, Targets
from detection.layers.nms import NMS
from detection.models import (
    dino,
    higher_hrnet,
    picodet,
    picodet_esnet,
    pp_yoloe,
    rt_detr,
    top_down_hrnet,
    yolox,
)
from framework import nn
from framework.config import build
from zoo.vision.resnet import ResNetConfig

Shape = tuple[int, ...]
CLASSES = 3
# A structure that is quick to compile; the tests put it into DINO's table of variants.
TINY_DINO = dino.VARIANTS["r50_4scale"]._replace(backbone=ResNetConfig("resnet18"), encoder=1, decoder=2)


@dataclass(frozen=True)
class Row:
    """One variant.

    Attributes:
        full: The config at its published size; it is never computed.
        small: A config of the same structure that is compiled; None where another row compiles that structure.
        size_hw: The input that the variant is published with.
        image: The input [N, H, W, 3] of the compiled tests.
        detections: K of `full`.
        people: M of a pose model's targets; None for a detector.
        slow: The compiled checks run under the marker `slow`.
        gain: Factor of the kernels of `named_weights`, so that the image is still seen in the output.
        bfloat16: Root mean square of what bfloat16 dots change, relative to the deviation of the raw outputs.
        selects: The best places of the image become queries, so rounding swaps rows: they are compared sorted.
        flat: A regular expression of the parameters whose gradient is 0 by construction, and why.
    """

    name: str
    variant: str
    full: Any
    small: Any | None
    size_hw: tuple[int, int]
    detections: int
    people: int | None = None
    image: Shape = (2, 64, 64, 3)
    slow: bool = False
    gain: float = 1.0
    bfloat16: float = 0.05
    selects: bool = False
    flat: tuple[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.name}-{self.variant}"

    def build(self, full: bool = False) -> nn.Layer:
        return build(self.full if full else self.small)

    def targets(self, n: int, full: bool = False) -> Targets | PoseTargets:
        """Objects on the first image, for maps of every stride, among padding, and none on the others."""
        if self.people is not None:
            points = (self.full if full else self.small).num_keypoints  # pyright: ignore[reportOptionalMemberAccess]
            keypoints = np.zeros((n, self.people, points, 3), np.float32)
            keypoints[0, 0] = [(20 + keypoint, 40 - keypoint, 2) for keypoint in range(points)]
            bounds, there = np.zeros((n, self.people, 4), np.float32), np.zeros((n, self.people), bool)
            bounds[0, 0], there[0, 0] = (0, 0, 64, 64), True
            return PoseTargets(jnp.asarray(keypoints), jnp.asarray(bounds), jnp.asarray(there))
        boxes, labels = np.zeros((n, 6, 4), np.float32), np.zeros((n, 6), np.int32)
        valid, side = np.zeros((n, 6), bool), self.image[1]
        for place, share in ((0, 1), (2, 1 / 2), (3, 1 / 4), (5, 1 / 8)):
            boxes[0, place] = np.asarray([1 - share, 0, 1, share]) * side
            labels[0, place], valid[0, place] = place % CLASSES, True
        return Targets(jnp.asarray(boxes), jnp.asarray(labels), jnp.asarray(valid), jnp.asarray(0, jnp.int32))

    def outputs(self, n: int) -> dict[str, Shape]:
        """The shapes that `detect` gives at the published size."""
        k = self.detections
        if self.people is not None:
            return {"keypoints": (n, k, self.full.num_keypoints, 3), "scores": (n, k)}
        return {"boxes": (n, k, 4), "scores": (n, k), "labels": (n, k)}


def _rows() -> Iterator[Row]:
    few = NMS(0.0, 0.6, 60, 20)
    for variant in picodet.VARIANTS:
        small = picodet.PicoDetConfig(variant, CLASSES, nms=few) if variant == picodet.SMALL else None
        yield Row(
            "PicoDet", variant, picodet.PicoDetConfig(variant), small, (416, 416), 100, image=(2, 320, 320, 3)
        )
    for variant in picodet_esnet.VARIANTS:
        config = picodet_esnet.PicoDetESNetConfig
        small = config(variant, CLASSES, nms=few) if variant == picodet_esnet.SMALL else None
        yield Row("PicoDetESNet", variant, config(variant), small, (320, 320), 100)
    for variant in pp_yoloe.VARIANTS:
        small = pp_yoloe.PPYOLOEConfig(variant, CLASSES, nms=few) if variant == pp_yoloe.SMALL else None
        yield Row(
            "PPYOLOE",
            variant,
            pp_yoloe.PPYOLOEConfig(variant),
            small,
            (640, 640),
            300,
            image=(2, 160, 160, 3),
        )
    for variant in yolox.VARIANTS:
        small = yolox.YOLOXConfig(variant, CLASSES, l1_from=0, nms=few) if variant == yolox.SMALL else None
        side = 416 if variant in ("nano", "tiny") else 640
        yield Row(
            "YOLOX",
            variant,
            yolox.YOLOXConfig(variant),
            small,
            (side, side),
            100,
            image=(2, 128, 128, 3),
            gain=1.6,
        )
    for variant in rt_detr.VARIANTS:
        config = rt_detr.RTDETRConfig(variant, CLASSES, num_queries=20, num_denoising=6, top_k=20)
        yield Row(
            "RTDETR",
            variant,
            rt_detr.RTDETRConfig(variant),
            config if variant == rt_detr.SMALL else None,
            (640, 640),
            300,
            bfloat16=0.15,
            selects=True,
        )
    config = dino.DINOConfig("contract", CLASSES, num_queries=20, num_denoising=6, top_k=20)
    for variant in dino.VARIANTS:
        yield Row(
            "DINO", variant, dino.DINOConfig(variant), config, (800, 1333), 300, bfloat16=0.15, selects=True
        )
    for variant in higher_hrnet.VARIANTS:
        config = higher_hrnet.HigherHRNetConfig
        small = config(variant, 3, max_people=4) if variant == higher_hrnet.SMALL else None
        yield Row("HigherHRNet", variant, config(variant), small, (512, 512), 30, people=2, slow=True)
    for variant in top_down_hrnet.VARIANTS:
        config = top_down_hrnet.TopDownHRNetConfig
        small = config(variant, 3) if variant == top_down_hrnet.SMALL else None
        yield Row("TopDownHRNet", variant, config(variant), small, (256, 192), 1, people=1, slow=True)


ROWS = tuple(_rows())
