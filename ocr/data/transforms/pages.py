"""Augmentations of pages with lines of text as polygons, for detectors.

Of `framework.vision.sample_transforms`, RandomRotation, RandomAffine, RandomScale and the flips carry polygons and
texts along; a flip leaves the points in their order, so that they run counter-clockwise on a mirrored image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from framework.config.registry import register
from framework.core.errors import ShapeError
from framework.core.transform import MixTransform, Transform
from framework.vision import polygons
from framework.vision.contours import quad_sizes
from framework.vision.image import Interpolation
from framework.vision.sample import Sample
from framework.vision.sample_transforms.apply import apply_warp
from framework.vision.sample_transforms.checks import (
    Fill,
    Range,
    around,
    check_fill,
    check_number,
    check_range,
    check_size,
)
from framework.vision.warp import Size, Warp

_MOST_PASTED = 30
_PLACES = 50  # that are tried for one text


@register("transform")
@dataclass(frozen=True)
class RandomTextCrop(Transform[Sample]):
    """Cuts out a random part whose edges pass through no readable text, and scales it to `size_hw`.

    A part is taken that has at least one readable text and sides of at least `min_crop_side_ratio` of the image's;
    after `max_tries` without one, or where nothing is readable, it is the whole image. Texts that are not `valid` may
    be cut. With `keep_ratio` the part lies in the top left corner and `fill` is right of it or below.

    What is readable: `polygons`, or `boxes` where there are none, and not marked by `valid`.

    Source: Zhou et al., "EAST", section 3.4, as PaddleOCR's EastRandomCropData with its default values.

    Raises:
        ConfigError: a side, a number of tries, a share or a fill is out of range.
    """

    size_hw: Size = (640, 640)
    max_tries: int = 10
    min_crop_side_ratio: float = 0.1
    keep_ratio: bool = True
    interpolation: Interpolation = "linear"
    fill: Fill = 0

    def __post_init__(self) -> None:
        check_size(self)
        check_number(self, "max_tries", 1)
        check_number(self, "min_crop_side_ratio", 0, 1)
        check_fill(self)

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        crop = Warp.crop(sample.size_hw, self._choose_part(sample, rng))
        if self.keep_ratio:
            fit = Warp.letterbox(crop.size_hw, self.size_hw, align="top_left")
        else:
            fit = Warp.resize(crop.size_hw, self.size_hw)
        # Beside the part nothing of the image is seen, hence two steps.
        out = apply_warp(sample, crop)
        return apply_warp(out, fit, interpolation=self.interpolation, fill=self.fill)

    def _choose_part(self, sample: Sample, rng: np.random.Generator) -> tuple[int, int, int, int]:
        height, width = sample.size_hw
        bounds = _readable_bounds(sample)
        if not len(bounds):
            return 0, 0, width, height
        free_x, free_y = (_free_cuts(bounds[:, axis::2], side) for axis, side in enumerate((width, height)))
        least = max(1.0, self.min_crop_side_ratio * width), max(1.0, self.min_crop_side_ratio * height)
        for _ in range(self.max_tries):
            (x0, x1), (y0, y1) = (_draw_cuts(free, rng) for free in (free_x, free_y))
            if x1 - x0 < least[0] or y1 - y0 < least[1]:
                continue
            seen = (bounds[:, 0] < x1) & (bounds[:, 2] > x0) & (bounds[:, 1] < y1) & (bounds[:, 3] > y0)
            if seen.any():
                return x0, y0, x1, y1
        return 0, 0, width, height


def _readable_bounds(sample: Sample) -> np.ndarray:
    """Upright bounds [N, 4] xyxy of the texts that count."""
    if sample.polygons is not None:
        rows = [np.concatenate([xy.min(axis=0), xy.max(axis=0)]) for xy in sample.polygons]
        bounds = np.array(rows, np.float64).reshape(-1, 4)
    elif sample.boxes is not None:
        bounds = sample.boxes.astype(np.float64)
    else:
        return np.zeros((0, 4))
    return bounds if sample.valid is None else bounds[sample.valid]


def _free_cuts(spans: np.ndarray, side: int) -> list[tuple[int, int]]:
    """Ranges (first, last) of the places 0 to `side` between two pixels that lie inside none of `spans [N, 2]`."""
    free = np.ones(side + 1, bool)
    for low, high in spans:
        free[max(0, int(np.floor(low)) + 1) : max(0, int(np.ceil(high)))] = False
    free[[0, side]] = True  # a text that leaves the image is cut by its edge already
    edges = np.flatnonzero(np.diff(np.concatenate([[0], free.view(np.int8), [0]])))
    return [(int(first), int(last) - 1) for first, last in edges.reshape(-1, 2)]


def _draw_cuts(free: list[tuple[int, int]], rng: np.random.Generator) -> tuple[int, int]:
    """Two places in order: one each in two ranges drawn anew, so that wide gaps do not take all."""
    found = []
    for number in rng.integers(0, len(free), 2).tolist():
        first, last = free[number]
        found.append(int(rng.integers(first, last + 1)))
    return min(found), max(found)


@register("transform")
@dataclass(frozen=True)
class CopyPasteText(MixTransform[Sample]):
    """Pastes readable texts of another page where they overlap none of this one, with probability `p`.

    A share `ratio` of the other page's texts is taken, at least one and at most 30. Each is cut out along its quad,
    turned by an angle from `degrees` (clockwise), scaled by a factor from `scale` and laid at a random place whose
    upright bounds meet no polygon's, of 50 that are tried; a text that finds none, or is larger than the page, is left
    out. Polygons of more than four points are not pasted.

    Source: PaddleOCR's CopyPaste with its default values, which turns texts by any angle.

    Raises:
        ConfigError: a probability, a share or a range is out of bounds.
        ShapeError: at a call, a sample has no polygons, or the two have different fields or fields that cannot be
            pasted (masks, keypoints).
    """

    extra: ClassVar[int] = 1
    p: float = 1.0
    ratio: float = 0.2
    degrees: Range = 180.0
    scale: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        check_number(self, "p", 0, 1)
        check_number(self, "ratio", 0, 1)
        check_range(self, "degrees", -360, 360)
        check_range(self, "scale", 0, above=True)

    def __call__(self, sample: Sample, rng: np.random.Generator, others: Sequence[Sample] = ()) -> Sample:
        if rng.random() >= self.p:
            return sample
        other = others[0]
        self._check(sample, other)
        assert sample.polygons is not None and other.polygons is not None
        readable = np.ones(len(other.polygons), bool) if other.valid is None else other.valid
        candidates = [i for i in np.flatnonzero(readable).tolist() if len(other.polygons[i]) == 4]
        wanted = max(1, min(int(self.ratio * len(other.polygons)), _MOST_PASTED))
        canvas, pasted, quads = sample.image.copy(), [], []
        bounds = [np.concatenate([xy.min(axis=0), xy.max(axis=0)]) for xy in sample.polygons]
        for place in rng.permutation(len(candidates))[:wanted].tolist():
            number = candidates[place]
            quad = self._paste(canvas, other, other.polygons[number], bounds, rng)
            if quad is not None:
                pasted.append(number)
                quads.append(quad)
                bounds.append(np.concatenate([quad.min(axis=0), quad.max(axis=0)]))
        if not pasted:
            return sample
        return sample.replace(image=canvas, areas=None, **_join(sample, other, pasted, quads))

    def _check(self, sample: Sample, other: Sample) -> None:
        kinds = [
            {
                name
                for name in ("polygons", "boxes", "labels", "valid", "text", "mask", "keypoints")
                if has(one, name)
            }
            for one in (sample, other)
        ]
        of_image = sample.image_fields() | other.image_fields()
        if kinds[0] != kinds[1] or "polygons" not in kinds[0] or {"mask", "keypoints"} & kinds[0] or of_image:
            raise ShapeError(
                "these pages cannot be mixed",
                where="CopyPasteText" if sample.id is None else f"CopyPasteText, sample {sample.id!r}",
                received="; ".join(", ".join(sorted(kind)) or "an image alone" for kind in kinds),
                allowed="polygons, and boxes, labels, valid, text with one entry a polygon, the same in both",
            )
        if sample.image.dtype != other.image.dtype or sample.image.shape[2] != other.image.shape[2]:
            raise ShapeError(
                "the pages are of other types",
                where="CopyPasteText",
                received="; ".join(f"{one.image.dtype} {list(one.image.shape)}" for one in (sample, other)),
                allowed="images of one dtype and number of channels",
            )

    def _paste(
        self,
        canvas: np.ndarray,
        other: Sample,
        quad: np.ndarray,
        bounds: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> np.ndarray | None:
        """Lays one text on the canvas; its new quad [4, 2] float32, or None where there is no place."""
        degrees, scale = rng.uniform(*around(self.degrees)), rng.uniform(*self.scale)
        high, wide = (max(1, round(side * scale)) for side in quad_sizes(quad[None])[0].tolist())
        straight = _straighten(other.size_hw, quad, (high, wide))
        if straight is None:
            return None
        turned = Warp.rotate((high, wide), degrees, expand=True)
        (rows, columns), (height, width) = turned.size_hw, canvas.shape[:2]
        if rows > height or columns > width:
            return None
        place = _find_place((height, width), (rows, columns), bounds, rng)
        if place is None:
            return None
        corners = turned.points(np.array([[0, 0], [wide, 0], [wide, high], [0, high]], np.float64))
        part = straight.then(turned).image(other.image, border=None)
        shown = polygons.fill([corners], (rows, columns))
        x, y = place
        canvas[y : y + rows, x : x + columns][shown] = part[shown]
        return (corners + np.array((x, y))).astype(np.float32)


def has(sample: Sample, name: str) -> bool:
    """Whether the field is set."""
    return getattr(sample, name) is not None


def _straighten(source_hw: Size, quad: np.ndarray, size_hw: Size) -> Warp | None:
    """The warp that lays the quad over `size_hw`; None for one without an area."""
    try:
        return Warp.perspective(source_hw, quad, size_hw)
    except ShapeError:
        return None


def _find_place(
    size_hw: Size, part_hw: Size, bounds: Sequence[np.ndarray], rng: np.random.Generator
) -> tuple[int, int] | None:
    """Where (x, y) a part meets none of the bounds."""
    taken = np.array(bounds, np.float64).reshape(-1, 4)
    for _ in range(_PLACES):
        y, x = (int(rng.integers(room - side + 1)) for room, side in zip(size_hw, part_hw, strict=True))
        x1, y1 = x + part_hw[1], y + part_hw[0]
        meets = (taken[:, 0] < x1) & (taken[:, 2] > x) & (taken[:, 1] < y1) & (taken[:, 3] > y)
        if not meets.any():
            return x, y
    return None


def _join(
    sample: Sample, other: Sample, numbers: Sequence[int], quads: Sequence[np.ndarray]
) -> dict[str, object]:
    """The fields of `sample` with those of the pasted texts behind."""
    changes: dict[str, object] = {"polygons": (*(sample.polygons or ()), *quads)}
    if isinstance(sample.text, tuple) and isinstance(other.text, tuple):
        changes["text"] = (*sample.text, *(other.text[number] for number in numbers))
    for name in ("labels", "valid"):
        if has(sample, name):
            changes[name] = np.concatenate([getattr(sample, name), getattr(other, name)[list(numbers)]])
    if sample.boxes is not None:
        new = [np.concatenate([quad.min(axis=0), quad.max(axis=0)]) for quad in quads]
        changes["boxes"] = np.concatenate([sample.boxes, np.array(new, np.float32)])
    return changes
