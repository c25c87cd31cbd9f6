"""From images to the networks' inputs: pure functions of arrays, RGB uint8 in.

The official weights were trained on BGR images, with the mean and deviation of ImageNet's R, G, B applied to B, G, R.
`bgr: true` of their `normalize` says so once; everything before it stays RGB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from framework.core.errors import InputError
from framework.vision.contours import cut_quads, quad_sizes
from framework.vision.image import resize, rotate90, to_gray

REC_HEIGHT = 48

LINE_TURNS = ("0", "180")  # degrees clockwise, by class
PAGE_TURNS = ("0", "90", "180", "270")


@dataclass(frozen=True)
class DetSize:
    """The size at which a detector sees an image.

    The image is scaled so that its shorter side is at least ("min") or its longer side at most ("max") `limit_side`,
    then so that the longer is at most `max_side`, and each side is rounded to the nearest multiple of `multiple`,
    halves to the even one; no side is shorter than `multiple`.

    Source: DetResizeForTest of PaddleOCR (type 0) and of PaddleX 3.

    Attributes:
        limit_side: Pixels of the side that `limit_type` names.
        limit_type: "max": the longer side is at most `limit_side`; "min": the shorter is at least that.
        max_side: Most pixels of the longer side after that, or no limit.
        multiple: Sides are rounded to multiples of it, as the network's strides need.
    """

    limit_side: int = 960
    limit_type: Literal["min", "max"] = "max"
    max_side: int | None = None
    multiple: int = 32

    def __call__(self, size_hw: tuple[int, int]) -> tuple[int, int]:
        """(height, width) for a source of `size_hw`. Raises: InputError when a side is smaller than 1."""
        height, width = size_hw
        if height < 1 or width < 1:
            raise InputError(
                "the image has no pixels", where="DetSize", received=size_hw, allowed="sides >= 1"
            )
        side = min(height, width) if self.limit_type == "min" else max(height, width)
        out_of_limit = side < self.limit_side if self.limit_type == "min" else side > self.limit_side
        ratio = self.limit_side / side if out_of_limit else 1.0
        height, width = int(height * ratio), int(width * ratio)
        if self.max_side is not None and max(height, width) > self.max_side:
            ratio = self.max_side / max(height, width)
            height, width = int(height * ratio), int(width * ratio)
        down, across = (max(round(side / self.multiple), 1) * self.multiple for side in (height, width))
        return down, across


def turned_lines(quads: np.ndarray, *, rotate_ratio: float = 1.5, glyph_ratio: float = 1.6) -> np.ndarray:
    """Which quads [N, 4, 2] hold a vertical line, so that their crops are to be turned: bool [N].

    Upstream turns every crop at least `rotate_ratio` times as high as wide, and with it each single tall glyph: a 1, an
    I, a bracket. Such a glyph is as high as the lines around it, while two characters above one another are twice as
    high. So a tall quad stays upright when it is at most `glyph_ratio` times as high as the image's median
    horizontal line, or where there is none as its median square, a letter alone. Images of tall quads only keep
    upstream's rule, and `glyph_ratio=0` does always.
    """
    if len(quads) == 0:
        return np.zeros(0, bool)
    height, width = quad_sizes(quads).T
    tall = height >= rotate_ratio * width
    wide = width >= rotate_ratio * height
    level = wide if wide.any() else ~tall
    if not level.any():
        return tall
    return tall & (height > glyph_ratio * np.median(height[level]))


def crop_lines(image: np.ndarray, quads: np.ndarray, turned: np.ndarray | None = None) -> list[np.ndarray]:
    """Straightened crops of `image [H, W, 3]` at `quads` [N, 4, 2], each as large as the longer of its opposite edges.

    Quads run clockwise from the top-left corner. Where `turned` (of `turned_lines`, the default) is true the crop is
    rotated 90 degrees counter-clockwise.
    """
    turned = turned_lines(quads) if turned is None else turned
    crops = cut_quads(image, quads)
    return [rotate90(crop, -1) if turn else crop for crop, turn in zip(crops, turned, strict=True)]


def line_width(size_hw: tuple[int, ...], height: int = REC_HEIGHT, width_scale: float = 1.0) -> int:
    """Width of a crop of `size_hw` (height, width, ...) at `height`: in proportion, times `width_scale`, rounded up."""
    return math.ceil(height * (size_hw[1] / size_hw[0]) * width_scale)


def pack_lines(
    crops: Sequence[np.ndarray],
    width: int,
    height: int = REC_HEIGHT,
    *,
    width_scale: float = 1.0,
    stretch: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Crops at one height, side by side in a batch: [N, height, width, 3] uint8 and widths [N] int32 by `line_width`.

    Wider lines are squeezed to `width`, with `stretch` all lines are brought to it; what is right of a line is 0. A
    compiled program normalises the columns below the line's width and makes the others 0, for which no uint8 could
    stand, hence the widths.
    """
    batch = np.zeros((len(crops), height, width, 3), np.uint8)
    widths = np.array(
        [width if stretch else min(line_width(crop.shape, height, width_scale), width) for crop in crops],
        dtype=np.int32,
    )
    for row, crop, wide in zip(batch, crops, widths.tolist(), strict=True):
        row[:, :wide] = resize(crop, (height, wide))
    return batch, widths


def resize_short_hw(size_hw: tuple[int, int], short_side: int, least_hw: tuple[int, int]) -> tuple[int, int]:
    """The size of an image scaled so that its shorter side has `short_side` pixels and it holds `least_hw`."""
    scale = max(short_side / min(size_hw), *(least / side for least, side in zip(least_hw, size_hw)))
    height, width = (max(least, round(side * scale)) for least, side in zip(least_hw, size_hw, strict=True))
    return height, width


def choose_patches(image: np.ndarray, size_hw: tuple[int, int], count: int) -> list[tuple[int, int]]:
    """(top, left) of the `count` parts of `size_hw` with the most edges, of as many as cover `image [H, W, 3]` evenly.

    There are fewer where fewer cover it. The image is at least of that size.
    """
    (rows, columns), (height, width) = size_hw, image.shape[:2]
    grey = to_gray(image).astype(np.int16)
    tops, lefts = (
        np.linspace(0, side - part, math.ceil(side / part)).round().astype(int)
        for side, part in ((height, rows), (width, columns))
    )
    edges = np.zeros((height, width), np.float32)
    edges[1:] += np.abs(np.diff(grey, axis=0))
    edges[:, 1:] += np.abs(np.diff(grey, axis=1))
    places = [(int(top), int(left)) for top in tops for left in lefts]
    found = [float(edges[top : top + rows, left : left + columns].mean()) for top, left in places]
    return [places[i] for i in np.argsort(-np.array(found), kind="stable")[:count]]
