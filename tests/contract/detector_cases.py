"""Every variant of every registered detector and pose model; what one differs in is its `contract`, and no row here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import jax.numpy as jnp
import numpy as np

from detection.contracts import PoseTargets, Targets
from detection.layers.nms import NMS
from framework import nn
from framework.config import available, build
from framework.config.registry import find
from tests.contract.cases import contract_of, said, sized, smallest

PACKAGES = ("detection", "zoo", "framework")
Shape = tuple[int, ...]
CLASSES = 3
# The name of a contract's `row` in its model's table of variants, while a test runs.
ROW = "contract"


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


# What makes a model quick to compile, where its config has such a field.
_FEW: dict[str, Any] = {
    "num_classes": CLASSES,
    "num_keypoints": 3,
    "nms": NMS(0.0, 0.6, 60, 20),
    "l1_from": 0,
    "num_queries": 20,
    "num_denoising": 6,
    "top_k": 20,
    "max_people": 4,
}


def _detections(config: Any) -> int:
    """K of what `detect` gives."""
    known = {field.name for field in fields(config)}
    if "nms" in known:
        return config.nms.keep_top_k
    return next((getattr(config, name) for name in ("top_k", "max_people") if name in known), 1)


# (table of variants, row): what is quick to compile, of contracts that have one.
SMALL_ROWS: list[tuple[dict[str, Any], Any]] = []


def _rows() -> Iterator[Row]:
    for name in available("model", ("detection",)):
        entry = find("model", name, PACKAGES)
        known = {field.name for field in fields(entry.config)}
        contract = contract_of(entry)
        usual = {
            "published_hw": getattr(entry.layer, "example_shape", (1, 640, 640, 3))[1:3],
            "people": 1 if "num_keypoints" in known else None,
        }
        own = usual | said(contract)
        small = {**_FEW, **own.pop("fields", {}), **own.pop("small", {})}
        small_row = own.pop("row", None)
        if small_row is not None:
            SMALL_ROWS.append((sys.modules[entry.module].VARIANTS, small_row))
        own["size_hw"] = own.pop("published_hw")
        compiled = own.pop("compiled", (ROW if small_row is not None else smallest(entry).variant,))
        for variant in sys.modules[entry.module].VARIANTS:
            full = sized(entry, variant)
            chosen = ROW if small_row is not None else variant
            config = sized(entry, chosen, **small) if chosen in compiled else None
            yield Row(name, variant, full, config, detections=_detections(full), **own)


ROWS = tuple(_rows())
