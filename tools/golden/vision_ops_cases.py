"""Cases of parity with paddle.vision.ops, shared by the tool that runs Paddle and by the test; maps channels-last.

Arrays are drawn from the case's name, so none are stored. `maps` names those that Paddle takes channels-first.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    name: str
    op: str
    make: Callable[[np.random.Generator], dict[str, np.ndarray]]
    options: dict[str, Any] = field(default_factory=dict)
    maps: tuple[str, ...] = ()
    maps_out: bool = False
    differentiated: tuple[str, ...] = ()

    def inputs(self) -> dict[str, np.ndarray]:
        return self.make(np.random.default_rng(zlib.crc32(self.name.encode())))

    def cotangent(self, shape: tuple[int, ...]) -> np.ndarray:
        """What the output is multiplied by, before the sum that is differentiated."""
        rng = np.random.default_rng(zlib.crc32(f"{self.name}/cotangent".encode()))
        return rng.standard_normal(shape).astype(np.float32)


def draw_boxes(rng: np.random.Generator, count: int, side: float = 60.0, empty: int = 0) -> np.ndarray:
    """[count, 4] xyxy in a square; the first `empty` have no area."""
    low = rng.uniform(-2, side * 0.7, (count, 2))
    size = rng.uniform(2, side * 0.6, (count, 2))
    size[:empty] = 0
    return np.concatenate([low, low + size], axis=1).astype(np.float32)


def _nms(count: int, categories: int = 0, scored: bool = True) -> Callable[[Any], dict[str, np.ndarray]]:
    def make(rng: np.random.Generator) -> dict[str, np.ndarray]:
        out = {"boxes": draw_boxes(rng, count, empty=count // 10)}
        if scored:
            out["scores"] = rng.permutation(count).astype(np.float32) / count
        if categories:
            out["category_idxs"] = rng.integers(0, categories + 1, count)
        return out

    return make


def _roi(
    map_shape: tuple[int, ...], numbers: tuple[int, ...], empty: int = 1
) -> Callable[[Any], dict[str, np.ndarray]]:
    def make(rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {
            "x": rng.standard_normal(map_shape).astype(np.float32),
            "boxes": draw_boxes(rng, sum(numbers), empty=empty),
            "boxes_num": np.array(numbers, np.int32),
        }

    return make


def _deform(
    shape: tuple[int, ...],
    out: int,
    kernel: tuple[int, int],
    out_hw: tuple[int, int],
    spread: int = 1,
    groups: int = 1,
    masked: bool = True,
    reach: float = 2.0,
) -> Callable[[Any], dict[str, np.ndarray]]:
    def make(rng: np.random.Generator) -> dict[str, np.ndarray]:
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

    return make


def _coder(
    count: int, codes: tuple[int, ...] | None, variances: bool
) -> Callable[[Any], dict[str, np.ndarray]]:
    def make(rng: np.random.Generator) -> dict[str, np.ndarray]:
        out = {"prior_box": draw_boxes(rng, count)}
        if variances:
            out["prior_box_var"] = rng.uniform(0.1, 0.3, (count, 4)).astype(np.float32)
        code = rng.standard_normal((*(codes or ()), 4)).astype(np.float32)
        out["target_box"] = draw_boxes(rng, 7) if codes is None else code
        return out

    return make


def _maps(**shapes: tuple[int, ...]) -> Callable[[Any], dict[str, np.ndarray]]:
    def make(rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}

    return make


def _yolo(
    shape: tuple[int, ...], sizes: list[list[int]] | None = None, boxes: int = 0, scored: bool = False
) -> Callable[[Any], dict[str, np.ndarray]]:
    def make(rng: np.random.Generator) -> dict[str, np.ndarray]:
        out = {"x": rng.standard_normal(shape).astype(np.float32)}
        if sizes is not None:
            out["img_size"] = np.array(sizes, np.int32)
        else:
            centre, size = (
                rng.uniform(0.05, 0.95, (shape[0], boxes, 2)),
                rng.uniform(0.03, 0.6, (shape[0], boxes, 2)),
            )
            size[:, -2:] = 0
            out["gt_box"] = np.concatenate([centre, size], axis=-1).astype(np.float32)
            out["gt_label"] = rng.integers(0, 4, (shape[0], boxes)).astype(np.int32)
            if scored:
                out["gt_score"] = rng.uniform(0.2, 1, (shape[0], boxes)).astype(np.float32)
        return out

    return make


def _proposals(n: int, hw: tuple[int, int], anchors: int) -> Callable[[Any], dict[str, np.ndarray]]:
    def make(rng: np.random.Generator) -> dict[str, np.ndarray]:
        count = hw[0] * hw[1] * anchors
        return {
            "scores": (rng.permutation(n * count).reshape(n, *hw, anchors) / (n * count)).astype(np.float32),
            "bbox_deltas": rng.normal(0, 0.6, (n, *hw, 4 * anchors)).astype(np.float32),
            "img_size": rng.integers(30, 60, (n, 2)).astype(np.float32),
            "anchors": draw_boxes(rng, count).reshape(*hw, anchors, 4),
            "variances": rng.uniform(0.5, 1, (*hw, anchors, 4)).astype(np.float32),
        }

    return make


def _matrix(n: int, boxes: int, classes: int) -> Callable[[Any], dict[str, np.ndarray]]:
    def make(rng: np.random.Generator) -> dict[str, np.ndarray]:
        found = np.stack([draw_boxes(rng, boxes, empty=1) for _ in range(n)])
        scores = rng.permutation(n * classes * boxes).reshape(n, classes, boxes) / (n * classes * boxes)
        return {"bboxes": found, "scores": scores.astype(np.float32)}

    return make


_ROI = {"maps": ("x",), "maps_out": True}
_DEFORM = {
    "maps": ("x", "offset", "mask"),
    "maps_out": True,
    "differentiated": ("x", "offset", "weight", "mask"),
}
_ANCHORS = [10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119]
_SCORED: dict[str, Any] = {
    "anchors": _ANCHORS,
    "anchor_mask": [5, 3],
    "class_num": 4,
    "ignore_thresh": 0.3,
    "use_label_smooth": False,
    "scale_x_y": 1.1,
}
_PROPOSALS = ("scores", "bbox_deltas")

CASES = [
    Case("nms/order", "nms", _nms(41, scored=False), {"iou_threshold": 0.3}),
    Case("nms/scores", "nms", _nms(57), {"iou_threshold": 0.5}),
    Case("nms/one", "nms", _nms(1), {"iou_threshold": 0.5}),
    Case("nms/strict", "nms", _nms(30), {"iou_threshold": 0.0}),
    Case("nms/categories", "nms", _nms(63, 3), {"iou_threshold": 0.2, "categories": [0, 1, 2, 3]}),
    Case("nms/top_k", "nms", _nms(63, 3), {"iou_threshold": 0.2, "categories": [0, 1, 2, 3], "top_k": 7}),
    Case("nms/some_categories", "nms", _nms(40, 3), {"iou_threshold": 0.2, "categories": [2, 0]}),
    *(
        Case(f"matrix_nms/{name}", "matrix_nms", _matrix(*shape), options)
        for name, shape, options in (
            ("linear", (2, 19, 3), (0.1, 0.02, 9, 11)),
            ("all", (1, 13, 2), (0.3, 0.0, -1, -1)),
            ("none", (2, 5, 2), (1.5, 0.0, 4, 4)),
            ("one", (1, 1, 2), (0.0, 0.0, 10, 10)),
        )
        for options in [dict(zip(("score_threshold", "post_threshold", "nms_top_k", "keep_top_k"), options))]
    ),
    Case(
        "matrix_nms/gaussian",
        "matrix_nms",
        _matrix(2, 23, 4),
        {
            "score_threshold": 0.05,
            "post_threshold": 0.1,
            "nms_top_k": 12,
            "keep_top_k": 15,
            "use_gaussian": True,
            "background_label": -1,
            "normalized": False,
        },
    ),
    *(
        Case(
            f"{op}/{name}",
            op,
            _roi(shape, numbers, empty="sampling_ratio" in options or op != "roi_align"),
            options,
            differentiated=() if (op, name) == ("roi_align", "adaptive") else ("x",),
            **_ROI,
        )
        for op, name, shape, numbers, options in (
            # The gradient that Paddle gives for the fourth box of these is not the derivative of its own result. Boxes
            # without an area are NaN in it where the number of points follows from them; here they are 0.
            ("roi_align", "adaptive", (2, 15, 17, 3), (3, 2), {"output_size": (3, 2), "spatial_scale": 0.25}),
            ("roi_align", "two", (2, 15, 17, 3), (0, 5), {"output_size": 4, "sampling_ratio": 2}),
            (
                "roi_align",
                "legacy",
                (1, 9, 7, 2),
                (6,),
                {"output_size": (1, 5), "spatial_scale": 0.125, "sampling_ratio": 3, "aligned": False},
            ),
            ("roi_align", "legacy_adaptive", (1, 16, 9, 2), (4,), {"output_size": 2, "aligned": False}),
            ("roi_align", "pixel", (1, 1, 1, 2), (3,), {"output_size": 2, "spatial_scale": 0.1}),
            ("roi_pool", "plain", (2, 15, 17, 3), (3, 2), {"output_size": (3, 2), "spatial_scale": 0.25}),
            ("roi_pool", "fine", (2, 15, 17, 2), (4, 0), {"output_size": 5, "spatial_scale": 0.07}),
            ("psroi_pool", "plain", (2, 15, 17, 12), (3, 2), {"output_size": (3, 2), "spatial_scale": 0.25}),
            ("psroi_pool", "fine", (1, 11, 8, 18), (4,), {"output_size": 3, "spatial_scale": 0.11}),
        )
    ),
    *(
        Case(f"deform_conv2d/{name}", "deform_conv2d", make, options, **_DEFORM)
        for name, make, options in (
            ("plain", _deform((2, 7, 9, 4), 5, (3, 3), (7, 9), masked=False), {"padding": 1}),
            ("masked", _deform((2, 7, 9, 4), 6, (3, 3), (4, 5)), {"padding": 1, "stride": 2}),
            (
                "groups",
                _deform((1, 8, 6, 6), 6, (3, 2), (6, 3), spread=3, groups=2),
                {
                    "padding": (1, 0),
                    "dilation": (2, 1),
                    "stride": (1, 2),
                    "deformable_groups": 3,
                    "groups": 2,
                },
            ),
            ("far", _deform((1, 5, 5, 2), 3, (1, 1), (5, 5), reach=6.0), {}),
            ("pixel", _deform((1, 1, 1, 2), 3, (3, 3), (1, 1)), {"padding": 1}),
        )
    ),
    Case("box_coder/encode", "box_coder", _coder(5, None, True), {"code_type": "encode_center_size"}),
    Case(
        "box_coder/encode_pixels",
        "box_coder",
        _coder(5, None, False),
        {"code_type": "encode_center_size", "prior_box_var": [0.1, 0.1, 0.2, 0.2], "box_normalized": False},
    ),
    Case("box_coder/decode", "box_coder", _coder(5, (3, 5), True), {"code_type": "decode_center_size"}),
    Case(
        "box_coder/decode_1",
        "box_coder",
        _coder(3, (3, 5), True),
        {"code_type": "decode_center_size", "axis": 1},
    ),
    Case(
        "box_coder/decode_pixels",
        "box_coder",
        _coder(5, (1, 5), False),
        {"code_type": "decode_center_size", "prior_box_var": [0.1, 0.1, 0.2, 0.2], "box_normalized": False},
    ),
    *(
        Case(f"prior_box/{name}", "prior_box", make, options, maps=("input", "image"))
        for name, make, options in (
            ("plain", _maps(input=(1, 3, 5, 2), image=(1, 24, 41, 3)), {"min_sizes": [4.0]}),
            (
                "ratios",
                _maps(input=(2, 2, 3, 2), image=(2, 25, 31, 3)),
                {
                    "min_sizes": [4.0, 9.0],
                    "max_sizes": [9.0, 15.0],
                    "aspect_ratios": [2.0, 3.0],
                    "flip": True,
                },
            ),
            (
                "order",
                _maps(input=(1, 2, 3, 2), image=(1, 25, 31, 3)),
                {
                    "min_sizes": [4.0, 9.0],
                    "max_sizes": [9.0, 15.0],
                    "aspect_ratios": [1.0, 2.0, 0.5],
                    "flip": True,
                    "clip": True,
                    "steps": [8.0, 7.0],
                    "offset": 0.3,
                    "variance": [0.1, 0.2, 0.3, 0.4],
                    "min_max_aspect_ratios_order": True,
                },
            ),
            ("pixel", _maps(input=(1, 1, 1, 1), image=(1, 1, 1, 1)), {"min_sizes": [4.0], "clip": True}),
        )
    ),
    *(
        Case(f"yolo_box/{name}", "yolo_box", make, options, maps=("x",))
        for name, make, options in (
            (
                "plain",
                _yolo((2, 3, 5, 2 * 9), [[96, 133], [50, 61]]),
                {"anchors": [10, 13, 16, 30], "class_num": 4, "conf_thresh": 0.4, "downsample_ratio": 16},
            ),
            (
                "stretched",
                _yolo((1, 4, 4, 3 * 7), [[96, 133]]),
                {
                    "anchors": [10, 13, 16, 30, 60, 80],
                    "class_num": 2,
                    "conf_thresh": 0.01,
                    "downsample_ratio": 32,
                    "clip_bbox": False,
                    "scale_x_y": 1.2,
                },
            ),
            (
                "iou",
                _yolo((2, 1, 3, 2 * 7), [[96, 133], [32, 31]]),
                {
                    "anchors": [10, 13, 16, 30],
                    "class_num": 1,
                    "conf_thresh": 0.45,
                    "downsample_ratio": 8,
                    "iou_aware": True,
                    "iou_aware_factor": 0.4,
                },
            ),
        )
    ),
    *(
        Case(
            f"yolo_loss/{name}",
            "yolo_loss",
            make,
            options,
            maps=("x",),
            differentiated=() if name == "crowded" else ("x",),
        )
        for name, make, options in (
            (
                "plain",
                _yolo((2, 5, 5, 3 * 9), boxes=7),
                {"anchors": _ANCHORS, "anchor_mask": [0, 1, 2], "class_num": 4, "ignore_thresh": 0.5},
            ),
            (
                "scored",
                _yolo((3, 4, 4, 2 * 9), boxes=4, scored=True),
                _SCORED,
            ),
            # Of two boxes in a cell Paddle differentiates the later alone, so the gradient is not that of its loss.
            ("crowded", _yolo((3, 4, 4, 2 * 9), boxes=20, scored=True), _SCORED),
        )
        for options in [options | {"downsample_ratio": 32}]
    ),
    *(
        Case(
            f"distribute_fpn_proposals/{name}",
            "distribute_fpn_proposals",
            lambda rng, numbers=numbers: {
                "fpn_rois": draw_boxes(rng, sum(numbers), 400.0, 1)
                if sum(numbers)
                else np.zeros((0, 4), np.float32),
                "rois_num": np.array(numbers, np.int32),
            },
            {"min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 224, "pixel_offset": offset},
        )
        for name, numbers, offset in (
            ("plain", (9, 6), False),
            ("offset", (2, 11, 3), True),
            ("one", (1,), True),
        )
    ),
    *(
        Case(f"generate_proposals/{name}", "generate_proposals", make, options, maps=_PROPOSALS)
        for name, make, options in (
            ("plain", _proposals(2, (3, 5), 3), {"nms_thresh": 0.6, "min_size": 2.0}),
            (
                "few",
                _proposals(1, (5, 4), 2),
                {"pre_nms_top_n": 20, "post_nms_top_n": 4, "pixel_offset": True},
            ),
            ("adaptive", _proposals(1, (6, 4), 3), {"nms_thresh": 0.9, "eta": 0.9}),
            ("offset", _proposals(2, (2, 7), 3), {"nms_thresh": 0.4, "min_size": 6.0, "pixel_offset": True}),
            ("none", _proposals(1, (2, 3), 1), {"min_size": 100.0}),
        )
        for options in [options | {"return_rois_num": True}]
    ),
]
