"""Cases on which functions are compared with Paddle: rows of functional.yml and vision_ops.yml, which tests run, too.

Nothing here imports jax or paddle. Both sides make the same inputs from the CRC of a case's name, so only outputs and
gradients are stored. Arrays are channels-last; what runs Paddle turns images over.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tools.golden.tables import load


def _rng(*words: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32("/".join(words).encode()))


def derived(case: str, name: str, shape: tuple[int, ...], scale: float = 1.0) -> np.ndarray:
    """Normal float32 values that depend on nothing but their names."""
    return (_rng(case, name).standard_normal(shape) * scale).astype(np.float32)


@dataclass(frozen=True)
class Array:
    """One input. kind: normal, uniform (0.05 to 0.95), simplex (last axis sums to 1), int (0 to `high` - 1), sign."""

    shape: tuple[int, ...] = ()
    kind: str = "normal"
    scale: float = 1.0
    high: int = 0
    image: bool = False
    values: Any = None
    dtype: str = "float32"
    grad: bool = False

    def make(self, case: str, name: str) -> np.ndarray:
        if self.values is not None:
            return np.asarray(self.values, self.dtype)
        rng = _rng(case, name)
        if self.kind == "int":
            return rng.integers(0, self.high, self.shape).astype("int64")
        if self.kind == "sign":
            return rng.choice([-1.0, 1.0], self.shape).astype("float32")
        if self.kind == "uniform":
            return rng.uniform(0.05, 0.95, self.shape).astype("float32")
        if self.kind == "simplex":
            raw = rng.uniform(0.1, 1.0, self.shape)
            return (raw / raw.sum(-1, keepdims=True)).astype("float32")
        return derived(case, name, self.shape, self.scale)


def read_array(row: str | Mapping[str, Any]) -> Array:
    """An Array as a row writes it: its fields, or words such as "image 2 5 6 4" or "int 6 high=5".

    `weight` is a normal one that is differentiated, `image` one with channels, too. "places 48 2 3 4 2" are distinct
    int32 places below 48 for the values of each channel.
    """
    if not isinstance(row, str):
        return Array(**row)
    first, *words = row.split()
    shape = tuple(int(word) for word in words if word.isdigit())
    options: dict[str, Any] = {word: True for word in words if word in ("grad", "image")}
    for word in words:
        key, equals, value = word.partition("=")
        if equals:
            options[key] = int(value) if key == "high" else float(value)
    if first == "places":
        return Array(values=_places(*shape), dtype="int32", image=True)
    options |= {"weight": {"grad": True}, "image": {"grad": True, "image": True}}.get(first, {"kind": first})
    return Array(shape, **options)


def _places(count: int, *shape: int) -> list[Any]:
    rng = np.random.default_rng(count)
    n, c, inner = shape[0], shape[-1], int(np.prod(shape[1:-1]))
    rows = [[rng.permutation(count)[:inner] for _ in range(c)] for _ in range(n)]
    return np.moveaxis(np.asarray(rows), 1, 2).reshape(shape).tolist()


PLATFORMS = ("conv2d", "conv2d_transpose", "max_pool2d", "avg_pool2d", "batch_norm", "conv1d")
CLOSE = ("pool3d", "unpool", "conv3d", "margins", "seldom", "pool_v3", "margins_v3")  # groups held to 1e-6


@dataclass(frozen=True)
class Case:
    name: str
    op: str
    arrays: dict[str, Array]
    options: dict[str, Any] = field(default_factory=dict)
    image_out: bool = False

    @property
    def group(self) -> str:
        return self.name.split("/")[0]

    @property
    def platforms(self) -> bool:
        """Whether the form depends on the platform, so that all of them are tried."""
        return self.op in PLATFORMS

    @property
    def tolerance(self) -> float:
        """Of the largest magnitude in the reference."""
        return 1e-6 if self.group in CLOSE else 1e-5

    def inputs(self) -> dict[str, np.ndarray]:
        return {name: array.make(self.name, name) for name, array in self.arrays.items()}

    @property
    def differentiated(self) -> list[str]:
        return [name for name, array in self.arrays.items() if array.grad]

    def cotangent(self, index: int, shape: tuple[int, ...]) -> np.ndarray:
        return derived(self.name, f"cotangent{index}", shape)


def functional_cases() -> list[Case]:
    """Groups that end in _v3 are functions of Paddle 3 and need paddlepaddle 3.3.1; all others 2.6.2."""
    return [
        Case(name, op, {key: read_array(value) for key, value in arrays.items()}, options, bool(image_out))
        for name, (op, arrays, options, *image_out) in load("functional").items()
    ]


# -- paddle.vision.ops -----------------------------------------------------------------------------------------------


def draw_boxes(rng: np.random.Generator, count: int, side: float = 60.0, empty: int = 0) -> np.ndarray:
    """[count, 4] xyxy in a square; the first `empty` have no area."""
    low = rng.uniform(-2, side * 0.7, (count, 2))
    size = rng.uniform(2, side * 0.6, (count, 2))
    size[:empty] = 0
    return np.concatenate([low, low + size], axis=1).astype(np.float32)


Arrays = dict[str, np.ndarray]


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def _nms(rng: np.random.Generator, count: int, categories: int = 0, scored: bool = True) -> Arrays:
    out = {"boxes": draw_boxes(rng, count, empty=count // 10)}
    if scored:
        out["scores"] = rng.permutation(count).astype(np.float32) / count
    if categories:
        out["category_idxs"] = rng.integers(0, categories + 1, count)
    return out


def _roi(rng: np.random.Generator, map_shape: list[int], numbers: list[int], empty: int) -> Arrays:
    x = _normal(rng, *map_shape)
    return {
        "x": x,
        "boxes": draw_boxes(rng, sum(numbers), empty=empty),
        "boxes_num": np.array(numbers, np.int32),
    }


def _deform(
    rng: np.random.Generator, shape: list[int], out: int, kernel: list[int], out_hw: list[int],
    spread: int = 1, groups: int = 1, masked: bool = True, reach: float = 2.0,
) -> Arrays:  # fmt: skip
    taps = spread * kernel[0] * kernel[1]
    arrays = {
        "x": rng.standard_normal(shape),
        "offset": rng.normal(0, reach, (shape[0], *out_hw, 2 * taps)),
        "weight": rng.standard_normal((out, shape[3] // groups, *kernel)) * 0.3,
        "bias": rng.standard_normal(out),
    }
    if masked:
        arrays["mask"] = rng.uniform(0, 1, (shape[0], *out_hw, taps))
    return {key: value.astype(np.float32) for key, value in arrays.items()}


def _coder(rng: np.random.Generator, count: int, codes: list[int] | None, variances: bool) -> Arrays:
    out = {"prior_box": draw_boxes(rng, count)}
    if variances:
        out["prior_box_var"] = rng.uniform(0.1, 0.3, (count, 4)).astype(np.float32)
    code = _normal(rng, *(codes or ()), 4)
    out["target_box"] = draw_boxes(rng, 7) if codes is None else code
    return out


def _maps(rng: np.random.Generator, shapes: dict[str, list[int]]) -> Arrays:
    return {key: _normal(rng, *shape) for key, shape in shapes.items()}


def _yolo(
    rng: np.random.Generator, shape: list[int], sizes: Any = None, boxes: int = 0, scored: bool = False
) -> Arrays:
    out = {"x": _normal(rng, *shape)}
    if sizes is not None:
        return out | {"img_size": np.array(sizes, np.int32)}
    centre = rng.uniform(0.05, 0.95, (shape[0], boxes, 2))
    size = rng.uniform(0.03, 0.6, (shape[0], boxes, 2))
    size[:, -2:] = 0
    out["gt_box"] = np.concatenate([centre, size], axis=-1).astype(np.float32)
    out["gt_label"] = rng.integers(0, 4, (shape[0], boxes)).astype(np.int32)
    if scored:
        out["gt_score"] = rng.uniform(0.2, 1, (shape[0], boxes)).astype(np.float32)
    return out


def _proposals(rng: np.random.Generator, n: int, hw: list[int], anchors: int) -> Arrays:
    count = hw[0] * hw[1] * anchors
    return {
        "scores": (rng.permutation(n * count).reshape(n, *hw, anchors) / (n * count)).astype(np.float32),
        "bbox_deltas": rng.normal(0, 0.6, (n, *hw, 4 * anchors)).astype(np.float32),
        "img_size": rng.integers(30, 60, (n, 2)).astype(np.float32),
        "anchors": draw_boxes(rng, count).reshape(*hw, anchors, 4),
        "variances": rng.uniform(0.5, 1, (*hw, anchors, 4)).astype(np.float32),
    }


def _matrix(rng: np.random.Generator, n: int, boxes: int, classes: int) -> Arrays:
    corners = np.stack([draw_boxes(rng, boxes, empty=1) for _ in range(n)])
    scores = rng.permutation(n * classes * boxes).reshape(n, classes, boxes) / (n * classes * boxes)
    return {"bboxes": corners, "scores": scores.astype(np.float32)}


def _fpn(rng: np.random.Generator, numbers: list[int]) -> Arrays:
    return {"fpn_rois": draw_boxes(rng, sum(numbers), 400.0, 1), "rois_num": np.array(numbers, np.int32)}


DRAWS = {
    "nms": _nms, "roi": _roi, "deform": _deform, "coder": _coder, "maps": _maps, "yolo": _yolo,
    "proposals": _proposals, "matrix": _matrix, "fpn": _fpn,
}  # fmt: skip


@dataclass(frozen=True)
class OpCase:
    """`draw` names a function of DRAWS; `maps` are the arrays that Paddle takes channels-first."""

    name: str
    op: str
    draw: str
    settings: dict[str, Any]
    options: dict[str, Any]
    maps: tuple[str, ...] = ()
    maps_out: bool = False
    differentiated: tuple[str, ...] = ()

    def inputs(self) -> Arrays:
        return DRAWS[self.draw](_rng(self.name), **self.settings)

    def cotangent(self, shape: tuple[int, ...]) -> np.ndarray:
        """What the output is multiplied by, before the sum that is differentiated."""
        return _normal(_rng(f"{self.name}/cotangent"), *shape)


def op_cases() -> list[OpCase]:
    table = load("vision_ops")
    found = []
    for name, (draw, settings, options) in table["cases"].items():
        op = name.partition("/")[0]
        shared = {key: tuple(v) if isinstance(v, list) else v for key, v in table["ops"].get(op, {}).items()}
        if name in table["without_gradient"]:
            shared.pop("differentiated")
        if op in table["tuples"]:
            options = {key: tuple(v) if isinstance(v, list) else v for key, v in options.items()}
        found.append(OpCase(name, op, draw, settings, options, **shared))
    return found
