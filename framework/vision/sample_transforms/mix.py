"""Transforms that make one image of several, with the objects of all of them.

The loader draws and loads the other samples: a class says with `extra` how many it needs. What comes out is a new
image: it has no warp back to a file, and no areas as annotated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, ShapeError
from framework.core.transform import MixTransform
from framework.vision.image import Interpolation, pad
from framework.vision.sample import Sample
from framework.vision.sample_transforms.apply import IGNORE_INDEX, apply_warp
from framework.vision.sample_transforms.checks import Fill, check_fill, check_number, check_size
from framework.vision.warp import Size, Warp


@register("transform")
@dataclass(frozen=True)
class Mosaic(MixTransform[Sample]):
    """Puts four images around a random point of a canvas of `size_hw`, with probability `p`.

    Each is scaled to fit a quarter of the canvas, keeping its aspect, and lies with one corner at the point, which is
    drawn from the middle half of both sides; what sticks out is cut, what stays empty is `fill`. An image to which it
    is not applied keeps its size.

    YOLOX draws on a canvas of twice its input size and then cuts the input out: Mosaic((1280, 1280)),
    RandomAffine(10, (0.1, 0.1), (0.5, 1.5), 2), CenterCrop((640, 640)).

    Source: Bochkovskiy et al., "YOLOv4", section 3.3; Ge et al., "YOLOX", section 2.1.

    Raises:
        ConfigError: a side is smaller than 2, or a fill, a share or a probability is out of range.
        ShapeError: at a call, the samples do not have the same fields, channels or type of pixels.
    """

    extra: ClassVar[int] = 3
    size_hw: Size
    p: float = 1.0
    fill: Fill = 114
    interpolation: Interpolation = "linear"
    ignore_index: int = IGNORE_INDEX
    min_visible: float = 0.0

    def __post_init__(self) -> None:
        check_size(self)
        if min(self.size_hw) < 2:
            raise ConfigError(
                "four images do not fit",
                where="Mosaic.size_hw",
                received=self.size_hw,
                allowed="sides >= 2",
            )
        check_number(self, "p", 0, 1)
        check_fill(self)
        check_number(self, "min_visible", 0, 1)

    def __call__(self, sample: Sample, rng: np.random.Generator, others: Sequence[Sample] = ()) -> Sample:
        if rng.random() >= self.p:
            return sample
        height, width = self.size_hw
        _check_alike((sample, *others), "Mosaic")
        y, x = (int(rng.integers(side // 4, side - side // 4 + 1)) for side in self.size_hw)
        x, y = min(max(x, 1), width - 1), min(max(y, 1), height - 1)
        quarters = ((0, 0, x, y), (x, 0, width, y), (0, y, x, height), (x, y, width, height))
        parts = []
        for number, (one, (x0, y0, x1, y1)) in enumerate(zip((sample, *others), quarters, strict=True)):
            warp = self._into(
                one.size_hw, (y1 - y0, x1 - x0), at_right=number in (0, 2), at_bottom=number < 2
            )
            part = apply_warp(
                one,
                warp,
                interpolation=self.interpolation,
                fill=self.fill,
                ignore_index=self.ignore_index,
                min_visible=self.min_visible,
            )
            parts.append((part, (x0, y0)))
        image = np.empty((height, width, *sample.image.shape[2:]), sample.image.dtype)
        for part, place in parts:
            _paste(image, part.image, place)
        return _unite(parts, image)

    def _into(self, size_hw: Size, tile_hw: Size, *, at_right: bool, at_bottom: bool) -> Warp:
        """Scaled to fit half the canvas, and moved so that the given corner is that of the tile."""
        room_hw = self.size_hw[0] // 2, self.size_hw[1] // 2
        factor = min(room / side for room, side in zip(room_hw, size_hw, strict=True))
        fitted_hw = tuple(
            min(room, max(1, round(side * factor))) for room, side in zip(room_hw, size_hw, strict=True)
        )
        matrix = np.diag([fitted_hw[1] / size_hw[1], fitted_hw[0] / size_hw[0], 1.0])
        matrix[:2, 2] = (
            tile_hw[1] - fitted_hw[1] if at_right else 0,
            tile_hw[0] - fitted_hw[0] if at_bottom else 0,
        )
        return Warp(matrix, tile_hw, size_hw)


@register("transform")
@dataclass(frozen=True)
class MixUp(MixTransform[Sample]):
    """Blends the image with another one, with probability `p`; the objects of both stay, with equal rights.

    Both lie in the top left corner of a black canvas that is as high and as wide as the larger of the two. The first
    image's weight is drawn from Beta(alpha, alpha).

    Source: Zhang et al., "Bag of Freebies for Training Object Detection Neural Networks", section 3.1.

    Raises:
        ConfigError: `alpha` is not above 0, or `p` is no probability.
        ShapeError: at a call, the samples do not have the same fields, channels or type of pixels, or have a mask of
            classes, which cannot be blended.
    """

    extra: ClassVar[int] = 1
    alpha: float = 1.5
    p: float = 1.0

    def __post_init__(self) -> None:
        check_number(self, "alpha", 0, above=True)
        check_number(self, "p", 0, 1)

    def __call__(self, sample: Sample, rng: np.random.Generator, others: Sequence[Sample] = ()) -> Sample:
        applied, weight = rng.random() < self.p, rng.beta(self.alpha, self.alpha)
        if not applied:
            return sample
        pair = (sample, others[0])
        if any(one.mask is not None and one.mask.ndim == 2 for one in pair):
            raise ShapeError(
                "masks of classes cannot be blended",
                where=_where("MixUp", sample),
                received="a mask [H, W]",
                allowed="masks of objects [K, H, W], or none",
            )
        _check_alike(pair, "MixUp")
        height, width = (max(sides) for sides in zip(*(one.size_hw for one in pair), strict=True))
        first, second = (
            pad(one.image, 0, 0, width - one.size_hw[1], height - one.size_hw[0]) for one in pair
        )
        image = cv2.addWeighted(first, weight, second, 1 - weight, 0).reshape(first.shape)
        return _unite([(one, (0, 0)) for one in pair], image)


_MosaicTile = tuple[Sample, tuple[int, int]]  # and where its top left corner (x, y) comes to lie


def _check_alike(samples: Sequence[Sample], where: str) -> None:
    """Raises: ShapeError, where images have different channels or types, so that no image can hold them all."""
    kinds = [(one.image.shape[2], one.image.dtype.name) for one in samples]
    if len(set(kinds)) > 1:
        raise ShapeError(
            "images of different channels or types cannot be mixed",
            where=_where(where, samples[0]),
            received=", ".join(f"{channels} of {dtype}" for channels, dtype in kinds),
            allowed="the same channels and type in each",
        )


def _unite(parts: Sequence[_MosaicTile], image: np.ndarray) -> Sample:
    """One sample of the objects of `parts`, each moved to its place in `image`; it has the first one's id."""
    kinds = [_kinds(part) for part, _ in parts]
    first = parts[0][0]
    if any(kind != kinds[0] for kind in kinds) or kinds[0] & {_OF_THE_IMAGE["labels"], _OF_THE_IMAGE["text"]}:
        raise ShapeError(
            "these samples cannot be mixed",
            where=_where("a mixing transform", first),
            received="; ".join(", ".join(sorted(kind)) or "an image alone" for kind in kinds),
            allowed="the same fields in each, with one entry an object",
        )
    moved = [_move(part, place, image.shape[:2]) for part, place in parts]
    joined: dict[str, Any] = {}
    for name in moved[0]:
        values = [one[name] for one in moved]
        joined[name] = sum(values, ()) if isinstance(values[0], tuple) else np.concatenate(values)
    if _CLASS_MASK in kinds[0] and first.mask is not None:
        dtypes = [part.mask.dtype for part, _ in parts if part.mask is not None]
        mask = np.empty(image.shape[:2], np.result_type(*dtypes))
        for part, place in parts:
            assert part.mask is not None, "all have the same fields"
            _paste(mask, part.mask, place)
        joined["mask"] = mask
    return Sample(image, id=first.id, **joined)


_CLASS_MASK = "a mask of classes"
_OF_THE_IMAGE = {"labels": "a label of the image", "text": "a text of the image", "mask": _CLASS_MASK}


def _kinds(sample: Sample) -> set[str]:
    names = ("boxes", "polygons", "keypoints", "labels", "valid", "mask", "text")
    of_image = sample.image_fields()
    found = {name for name in names if getattr(sample, name) is not None} - of_image
    return found | {_OF_THE_IMAGE[name] for name in of_image}


def _move(sample: Sample, place: tuple[int, int], size_hw: Size) -> dict[str, np.ndarray | tuple | str]:
    """The fields with an entry an object, on a canvas of `size_hw`."""
    fields: dict[str, np.ndarray | tuple | str | None] = {
        "labels": sample.labels,
        "valid": sample.valid,
        "text": sample.text,
    }
    if sample.boxes is not None:
        fields["boxes"] = sample.boxes + np.array([*place, *place], np.float32)
    if sample.polygons is not None:
        fields["polygons"] = tuple(polygon + np.array(place, np.float32) for polygon in sample.polygons)
    if sample.keypoints is not None:
        labelled = sample.keypoints[..., 2:] > 0
        shift = np.array([*place, 0], np.float32)
        fields["keypoints"] = np.where(labelled, sample.keypoints + shift, sample.keypoints)
    if sample.mask is not None and sample.mask.ndim == 3:
        mask = np.zeros((len(sample.mask), *size_hw), sample.mask.dtype)
        _paste(mask, sample.mask, place)
        fields["mask"] = mask
    return {name: value for name, value in fields.items() if value is not None}


def _paste(canvas: np.ndarray, part: np.ndarray, place: tuple[int, int]) -> None:
    """Into `[H, W]`, `[H, W, C]` or, all K alike, into `[K, H, W]` of bool."""
    x, y = place
    if canvas.ndim == 3 and canvas.dtype == np.bool_:
        canvas[:, y : y + part.shape[1], x : x + part.shape[2]] = part
    else:
        canvas[y : y + part.shape[0], x : x + part.shape[1]] = part


def _where(name: str, sample: Sample) -> str:
    return name if sample.id is None else f"{name}, sample {sample.id!r}"
