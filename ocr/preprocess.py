"""From images to the networks' inputs: pure functions of arrays, RGB uint8 in.

The official weights were trained on BGR images, with the mean and deviation of ImageNet's R, G, B applied to B, G, R.
`Normalize` says so once; everything before it stays RGB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from framework.core.errors import InputError, ShapeError
from framework.vision.contours import cut_quads, quad_sizes
from framework.vision.image import resize, rotate90, to_bgr

REC_HEIGHT = 48
CLS_SIZE_HW = (48, 192)

# ------------------------------------------------------------------------------------------------------- detector


@dataclass(frozen=True)
class DetSize:
    """The size at which a detector sees an image.

    The image is scaled so that its shorter side is at least ("min") or its longer side at most ("max") `limit_side`,
    then so that the longer is at most `max_side`, and each side is rounded to the nearest multiple of `multiple`,
    halves to the even one; no side is shorter than `multiple`.

    Source: DetResizeForTest of PaddleOCR (type 0) and of PaddleX 3.
    """

    limit_side: int = 960
    limit_type: Literal["min", "max"] = "max"
    max_side: int | None = None
    multiple: int = 32

    def __call__(self, size_hw: tuple[int, int]) -> tuple[int, int]:
        """(height, width) for a source of `size_hw`. Raises: InputError when a side is smaller than 1."""
        height, width = _check_size(size_hw)
        side = min(height, width) if self.limit_type == "min" else max(height, width)
        out_of_limit = side < self.limit_side if self.limit_type == "min" else side > self.limit_side
        ratio = self.limit_side / side if out_of_limit else 1.0
        height, width = int(height * ratio), int(width * ratio)
        if self.max_side is not None and max(height, width) > self.max_side:
            ratio = self.max_side / max(height, width)
            height, width = int(height * ratio), int(width * ratio)
        return _to_multiple(height, self.multiple), _to_multiple(width, self.multiple)


PADDLEOCR_2 = DetSize(960, "max")  # `predict_det` and the `paddleocr` command of 2.x
PADDLEOCR_3 = DetSize(64, "min", max_side=4000)  # the pipelines of 3.x
RAPIDOCR = DetSize(736, "min")  # on what `rapidocr_frame` gives; also the evaluation during 2.x training


def rapidocr_frame(size_hw: tuple[int, int]) -> tuple[tuple[int, int], int]:
    """What RapidOCR makes of an image before its detector: a new size, and rows of black above and below.

    Longer sides than 2000 are scaled to 2000, then shorter ones than 30 to 30, both rounded to multiples of 32. To an
    image that is at most 30 high or more than 8 times as wide as high, black rows are added until it is a quarter as
    high as wide, and at least 60.

    Returns:
        Size (height, width) to resize to, and the number of rows to add at each of top and bottom.

    Source: RapidOCR 3, utils/process_img.py.
    """
    height, width = _check_size(size_hw)
    for out_of_limit, limit in ((max(height, width) > 2000, 2000), (min(height, width) < 30, 30)):
        if out_of_limit:
            ratio = limit / (max(height, width) if limit == 2000 else min(height, width))
            height, width = (_to_multiple(int(side * ratio), 32) for side in (height, width))
    rows = 0
    if height <= 30 or width / height > 8:
        rows = int(abs(max(int(width / 8), 30) * 2 - height) / 2)
    return (height, width), rows


@dataclass(frozen=True)
class Normalize:
    """`(image / 255 - mean) / std`, of the network's channels 0, 1, 2; `bgr` turns RGB to BGR first.

    An exported program does this on the accelerator from uint8; here it is for tests and other runtimes.
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    bgr: bool = True

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """[..., 3] uint8 RGB to float32. Raises: ShapeError for anything else."""
        if image.dtype != np.uint8 or image.shape[-1:] != (3,):
            raise ShapeError(
                "this is no RGB image",
                where="Normalize",
                received=f"{image.dtype} {list(image.shape)}",
                allowed="uint8 [..., 3]",
            )
        scale = 1 / (255 * np.array(self.std, np.float64))
        shift = -np.array(self.mean, np.float64) / self.std
        channels = image[..., ::-1] if self.bgr else image
        return channels * scale.astype(np.float32) + shift.astype(np.float32)


DET_NORMALIZE = Normalize(
    (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
)  # PP-OCRv2 to v6, training and inference
HALF_NORMALIZE = Normalize(
    (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
)  # recognisers, classifiers; RapidOCR's detectors too


# --------------------------------------------------------------------------------------------------------- crops


def turned_lines(quads: np.ndarray, *, rotate_ratio: float = 1.5, glyph_ratio: float = 1.6) -> np.ndarray:
    """Which quads [N, 4, 2] hold a vertical line, so that their crops are to be turned: bool [N].

    Upstream turns every crop at least `rotate_ratio` times as high as wide, and with it each single tall glyph: a 1, an
    I, a bracket. Such a glyph is as high as the lines around it, while two characters above one another are twice as
    high. So a tall quad stays upright when it is at most `glyph_ratio` times as high as the image's median
    horizontal line. Images without a horizontal line keep upstream's rule, and `glyph_ratio=0` does always.
    """
    if len(quads) == 0:
        return np.zeros(0, bool)
    height, width = quad_sizes(quads).T
    tall = height >= rotate_ratio * width
    wide = width >= rotate_ratio * height
    if not wide.any():
        return tall
    return tall & (height > glyph_ratio * np.median(height[wide]))


def crop_lines(image: np.ndarray, quads: np.ndarray, turned: np.ndarray | None = None) -> list[np.ndarray]:
    """Straightened crops of `image [H, W, 3]` at `quads` [N, 4, 2], each as large as the longer of its opposite edges.

    Quads run clockwise from the top-left corner. Where `turned` (of `turned_lines`, the default) is true the crop is
    rotated 90 degrees counter-clockwise.
    """
    turned = turned_lines(quads) if turned is None else turned
    crops = cut_quads(image, quads)
    return [rotate90(crop, -1) if turn else crop for crop, turn in zip(crops, turned, strict=True)]


# --------------------------------------------------------------------------- recogniser and orientation classifier


def line_width(size_hw: tuple[int, ...], height: int = REC_HEIGHT) -> int:
    """Width of a crop of `size_hw` (height, width, ...) at `height`, its aspect kept, rounded up."""
    return math.ceil(height * (size_hw[1] / size_hw[0]))


def group_by_width(
    widths: Sequence[int], buckets: Sequence[int], max_batch: int
) -> list[tuple[int, np.ndarray]]:
    """Batches of lines that are padded to the same width.

    A line goes into the narrowest bucket that holds it, or into the widest, where it is squeezed. Lines of a bucket are
    sorted by width, so that a batch of similar ones needs the fewest steps.

    Padding is seen by the network: upstream pads a batch to `max(320, its widest line)`, so its answer for a line
    depends on which lines are beside it. Here it depends on the line alone. Buckets that start at 320 stay closest
    to the official results.

    Args:
        widths: [N], of `line_width`.
        buckets: Ascending widths of the padded input.

    Returns:
        (bucket, indices [<= max_batch] into `widths`) for each batch, narrow buckets first.

    Raises: InputError when the buckets are not ascending and positive, or `max_batch` is smaller than 1.
    """
    sizes = np.asarray(buckets, dtype=np.int64)
    if not len(sizes) or sizes[0] < 1 or (np.diff(sizes) <= 0).any() or max_batch < 1:
        raise InputError(
            "lines cannot be batched like this",
            where="group_by_width",
            received=f"buckets {list(buckets)}, max_batch {max_batch}",
            allowed="ascending widths, at least one, and max_batch >= 1",
        )
    wide = np.asarray(widths, dtype=np.int64)
    place = np.minimum(np.searchsorted(sizes, wide), len(sizes) - 1)
    batches = []
    for bucket in np.unique(place).tolist():
        members = np.flatnonzero(place == bucket)
        members = members[np.argsort(wide[members], kind="stable")]
        batches += [
            (int(sizes[bucket]), members[i : i + max_batch]) for i in range(0, len(members), max_batch)
        ]
    return batches


def pack_lines(
    crops: Sequence[np.ndarray], width: int, height: int = REC_HEIGHT
) -> tuple[np.ndarray, np.ndarray]:
    """Crops at one height, aspect kept, side by side in a batch: [N, height, width, 3] uint8 and widths [N] int32.

    Wider lines are squeezed to `width`; what is right of a line is 0. This is the fast input, a quarter of the bytes of
    `rec_batch`. A compiled program makes the same values of it: channels reversed, then `x / 127.5 - 1` where the
    column is below the line's width and 0 elsewhere. No uint8 could stand for that 0, hence the widths.
    """
    batch = np.zeros((len(crops), height, width, 3), np.uint8)
    widths = np.array([min(line_width(crop.shape, height), width) for crop in crops], dtype=np.int32)
    for row, crop, wide in zip(batch, crops, widths.tolist(), strict=True):
        row[:, :wide] = resize(crop, (height, wide))
    return batch, widths


def rec_batch(crops: Sequence[np.ndarray], width: int, height: int = REC_HEIGHT) -> np.ndarray:
    """The recogniser's input [N, height, width, 3] float32 BGR: `(x / 255 - 0.5) / 0.5`, 0 right of each line."""
    batch, widths = pack_lines(crops, width, height)
    if not len(batch):
        return batch.astype(np.float32)
    out = to_bgr(batch.reshape(-1, width, 3)).reshape(batch.shape).astype(np.float32)
    out *= np.float32(2 / 255)
    out -= 1
    for row, wide in zip(out, widths.tolist(), strict=True):
        row[:, wide:] = 0
    return out


def cls_batch(crops: Sequence[np.ndarray]) -> np.ndarray:
    """The v2 orientation classifier's input [N, 48, 192, 3] float32 BGR, made as `rec_batch` does."""
    return rec_batch(crops, CLS_SIZE_HW[1], CLS_SIZE_HW[0])


def _check_size(size_hw: tuple[int, int]) -> tuple[int, int]:
    height, width = size_hw
    if height < 1 or width < 1:
        raise InputError("the image has no pixels", where="DetSize", received=size_hw, allowed="sides >= 1")
    return height, width


def _to_multiple(side: int, multiple: int) -> int:
    return max(round(side / multiple) * multiple, multiple)
