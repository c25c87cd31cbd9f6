"""From the networks' outputs to quads, orientations and text: pure functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from framework.core.errors import ShapeError
from framework.vision.contours import find_contours, means_inside, min_area_rects, order_corners, simplify
from framework.vision.image import rotate90
from ocr.text.characters import BLANK, CharacterSet
from ocr.text.polygons import grow_rectangles, has_clipper, import_clipper

_LETTER = 6  # pixels of a probability map


@dataclass(frozen=True)
class DBPostprocess:
    """Text regions of a DB probability map.

    The steps: threshold; outline of each region; smallest rectangle; mean probability in it; growth by
    `area * unclip_ratio / perimeter` with round corners; smallest rectangle again; scale to the source image.

    The defaults are those of PP-OCRv2 to v5 in PaddleOCR 2.x. Others: 3.x pipelines box_thresh 0.6; PP-OCRv6's own
    configs thresh 0.2, box_thresh 0.45, max_candidates 3000, unclip_ratio 1.4; RapidOCR box_thresh 0.5, unclip_ratio
    1.6, use_dilation True.

    Source: Liao et al., Real-time Scene Text Detection with Differentiable Binarization (AAAI 2020), section 3.3;
    PaddleOCR ppocr/postprocess/db_postprocess.py and tools/infer/predict_det.py.

    Attributes:
        thresh: A pixel above it is text, in 0..1.
        box_thresh: A region whose mean probability is below it is dropped, in 0..1.
        max_candidates: Regions looked at, the lowest in the image first.
        unclip_ratio: How far a region grows. DB is trained on shrunk regions.
        min_size: Shorter sides, in pixels of the map, are dropped: below it before growth, below it + 2 after.
        score_mode: "fast" takes the mean inside the rectangle, "slow" inside the outline.
        use_dilation: Spreads the thresholded map by one pixel first.
        box_type: "quad", or "poly" for outlines of curved text.
    """

    thresh: float = 0.3
    box_thresh: float = 0.6
    max_candidates: int = 1000
    unclip_ratio: float = 1.5
    min_size: int = 3
    score_mode: Literal["fast", "slow"] = "fast"
    use_dilation: bool = False
    box_type: Literal["quad", "poly"] = "quad"

    def __call__(
        self, probability: np.ndarray, size_hw: tuple[int, int], valid_hw: tuple[int, int] | None = None
    ) -> tuple[np.ndarray | list[np.ndarray], np.ndarray]:
        """Regions of one image, the lowest first, and their scores [N] float32.

        Args:
            probability: [H, W] float32, text probability in 0..1.
            size_hw: Size of the source image; its upright rectangle is the map's valid part.
            valid_hw: Rows and columns of the map that are not padding, from the top left; None for all.

        Returns:
            For "quad" [N, 4, 2] float32, whole source pixels in [0, width - 1] x [0, height - 1], clockwise from
            the upper left corner; for "poly" a list of [P, 2] float32. Scores [N] float32.

        Raises: ShapeError when the map is not a float [H, W] or `valid_hw` is larger; MissingExtraError for "poly"
            without pyclipper.
        """
        if probability.ndim != 2 or probability.dtype.kind != "f":
            raise ShapeError(
                "this is no probability map",
                where="DBPostprocess",
                received=f"{probability.dtype} {list(probability.shape)}",
                allowed="float [H, W]",
                fix="pass the map of one image without its channel axis",
            )
        if valid_hw is not None:
            if not all(0 < valid <= side for valid, side in zip(valid_hw, probability.shape, strict=True)):
                raise ShapeError(
                    "the valid part is not inside the map",
                    where="DBPostprocess",
                    received=valid_hw,
                    allowed=f"(height, width) from (1, 1) to {probability.shape}",
                )
            probability = probability[: valid_hw[0], : valid_hw[1]]
        found = find_contours(probability > self.thresh, dilate=self.use_dilation)[: self.max_candidates]
        if self.box_type == "poly":
            return self._polygons(probability, found, size_hw)
        return self._quads(probability, found, size_hw)

    def count_regions(self, probability: np.ndarray) -> int:
        """How many regions of a map [H, W] are above `thresh` and longer than a letter, whether they count or not."""
        _, sides = min_area_rects(find_contours(probability > self.thresh, dilate=self.use_dilation))
        return int((sides.max(axis=1, initial=0) >= _LETTER).sum())

    def _quads(
        self, probability: np.ndarray, found: list[np.ndarray], size_hw: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        quads, sides = min_area_rects(found)
        wide = np.flatnonzero(sides.min(axis=1, initial=np.inf) >= self.min_size)
        regions = [found[i] for i in wide] if self.score_mode == "slow" else quads[wide]
        scores = means_inside(probability, regions) if len(wide) else np.zeros(0)
        sure = scores >= self.box_thresh
        quads, scores = quads[wide[sure]], scores[sure]

        grown = _grow(quads, self.unclip_ratio)
        whole = np.array([points is not None for points in grown], dtype=bool)
        quads, sides = min_area_rects([points for points in grown if points is not None])
        scores = scores[whole]
        wide = sides.min(axis=1, initial=np.inf) >= self.min_size + 2
        quads, scores = quads[wide], scores[wide]

        # Rounding comes before the corners are ordered and clipped: upstream's order, which decides about ties.
        quads = order_corners(_to_source(quads, probability.shape, size_hw))
        quads = quads.clip(0, (size_hw[1] - 1, size_hw[0] - 1)).astype(np.float32)
        across = ((quads[:, 0] - quads[:, 1]) ** 2).sum(axis=1)
        down = ((quads[:, 0] - quads[:, 3]) ** 2).sum(axis=1)
        large = (across >= 16) & (down >= 16)  # sides that round down to more than 3
        return quads[large], scores[large].astype(np.float32)

    def _polygons(
        self, probability: np.ndarray, found: list[np.ndarray], size_hw: tuple[int, int]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        shapes = [points for outline in found if len(points := simplify(outline, 0.002)) >= 4]
        scores = means_inside(probability, shapes) if shapes else np.zeros(0)
        sure = [i for i, score in enumerate(scores) if score >= self.box_thresh]
        grown = [
            (points, scores[i])
            for i in sure
            for points in _grow([shapes[i]], self.unclip_ratio)
            if points is not None
        ]
        _, sides = min_area_rects([points for points, _ in grown])
        limit = (size_hw[1] - 1, size_hw[0] - 1)
        kept = [
            (_to_source(points.astype(np.float32), probability.shape, size_hw).clip(0, limit), score)
            for (points, score), short in zip(grown, sides.min(axis=1, initial=np.inf), strict=True)
            if short >= self.min_size + 2
        ]
        return [points.astype(np.float32) for points, _ in kept], np.array(
            [score for _, score in kept], np.float32
        )


def _to_source(points: np.ndarray, map_hw: tuple[int, ...], size_hw: tuple[int, int]) -> np.ndarray:
    side, target = (np.array(hw[::-1], points.dtype) for hw in (map_hw, size_hw))
    return np.clip(np.round(points / side * target), 0, target)


def _grow(polygons: np.ndarray | Sequence[np.ndarray], ratio: float) -> list[np.ndarray | None]:
    """Each polygon [P, 2] moved outwards by area * ratio / perimeter, [Q, 2] int32; None where that splits or ends it.

    Corners are cut to whole pixels first and the result is rounded, as Clipper counts in integers. Quads, which are
    rectangles here, need no Clipper: without it their growth differs by less than a pixel.
    """
    if not len(polygons):
        return []
    if isinstance(polygons, np.ndarray):
        distances = _growth(polygons, ratio)
        if not has_clipper():
            grown = grow_rectangles(polygons.astype(np.int64), distances)
            return list(np.rint(grown).astype(np.int32))
        corners = polygons.astype(np.int64).tolist()
    else:
        distances = [_growth(polygon, ratio) for polygon in polygons]
        corners = [polygon.astype(np.int64).tolist() for polygon in polygons]
    clipper = import_clipper()
    result: list[np.ndarray | None] = []
    for points, distance in zip(corners, distances, strict=True):
        offset = clipper.PyclipperOffset()
        offset.AddPath(points, clipper.JT_ROUND, clipper.ET_CLOSEDPOLYGON)
        paths = offset.Execute(distance)
        result.append(np.array(paths[0], np.int32) if len(paths) == 1 else None)
    return result


def _growth(polygons: np.ndarray, ratio: float) -> np.ndarray:
    """area * ratio / perimeter of [..., P, 2]; 0 for one without extent."""
    x, y = np.moveaxis(polygons.astype(np.float64), -1, 0)
    # Relative to the first corner, an upright rectangle is exact. Its distance is often a half, and then the last bit
    # decides how Clipper rounds.
    area = np.abs(((x - x[..., :1]) * (np.roll(y, 1, axis=-1) - np.roll(y, -1, axis=-1))).sum(axis=-1)) / 2
    perimeter = np.sqrt((np.roll(x, -1, axis=-1) - x) ** 2 + (np.roll(y, -1, axis=-1) - y) ** 2).sum(axis=-1)
    return area * ratio / np.maximum(perimeter, 1e-12)


def apply_orientation(
    crops: Sequence[np.ndarray], probabilities: np.ndarray, thresh: float = 0.9
) -> tuple[list[np.ndarray], np.ndarray]:
    """Line crops with those turned by 180 degrees that a 0/180 classifier saw on their heads.

    Args:
        crops: N images [h, w, 3].
        probabilities: [N, 2], of upright and of upside down.
        thresh: A crop is turned when upside down is the likelier and its probability is above this.

    Returns:
        The crops, and bool [N]: which were turned.

    Raises: ShapeError when `probabilities` is not [N, 2].
    """
    if probabilities.shape != (len(crops), 2):
        raise ShapeError(
            "there is no pair of probabilities for each crop",
            where="apply_orientation",
            received=list(probabilities.shape),
            allowed=[len(crops), 2],
        )
    turned = (probabilities[:, 1] > probabilities[:, 0]) & (probabilities[:, 1] > thresh)
    return [rotate90(crop, 2) if turn else crop for crop, turn in zip(crops, turned, strict=True)], turned


class TextChar(NamedTuple):
    """One symbol of a line: its probability at its first step, and its steps [start_step, end_step)."""

    char: str
    score: float
    start_step: int
    end_step: int


class Text(NamedTuple):
    """A recognised line. `text` is in reading order, `chars` from left to right in the crop; `score` is their mean.

    `right_to_left` says by which rule the two orders differ: that of the dictionary that wrote the line.
    """

    text: str
    score: float
    chars: tuple[TextChar, ...]
    right_to_left: bool = False


def ctc_decode(
    indices: np.ndarray,
    probabilities: np.ndarray,
    characters: CharacterSet,
    valid_steps: Sequence[int] | np.ndarray | None = None,
) -> list[Text]:
    """Best-path CTC decoding: repeats are joined, blanks dropped.

    Args:
        indices: [N, T] int, the likeliest class of each step.
        probabilities: [N, T] float, its probability.
        valid_steps: [N], steps that are not padding; None for all, as upstream.

    Returns:
        N lines; a line without symbols has score 0. The score is the mean of the probabilities that the symbols have
        at their first steps.

    Raises: ShapeError when the arrays do not fit one another or a class is not in `characters`.

    Source: Graves et al., Connectionist Temporal Classification (ICML 2006), section 3.2; PaddleOCR CTCLabelDecode.
    """
    if indices.ndim != 2 or indices.shape != probabilities.shape:
        raise ShapeError(
            "classes and probabilities do not fit",
            where="ctc_decode",
            received=f"{list(indices.shape)} and {list(probabilities.shape)}",
            allowed="[N, T] both",
        )
    if indices.size and (indices.min() < 0 or indices.max() >= characters.num_classes):
        raise ShapeError(
            "a class is not in the dictionary",
            where="ctc_decode",
            received=f"classes from {indices.min()} to {indices.max()}",
            allowed=f"0 to {characters.num_classes - 1} of {characters.source}",
            fix="use the dictionary that came with the weights",
        )
    num_lines, num_steps = indices.shape
    if valid_steps is not None:
        inside = np.arange(num_steps) < np.asarray(valid_steps).reshape(num_lines, 1)
        indices = np.where(inside, indices, BLANK)
    starts = np.ones(indices.shape, bool)
    starts[:, 1:] = indices[:, 1:] != indices[:, :-1]
    # Each run ends where the next one starts, so the runs of all lines can stand in one row.
    runs = np.flatnonzero(starts)
    ends = np.append(runs, indices.size)[1:]
    symbols = indices.reshape(-1)[runs]
    kept = symbols != BLANK
    runs, ends, symbols = runs[kept], ends[kept], symbols[kept]
    scores = probabilities.reshape(-1)[runs].astype(np.float64)
    lines = runs // max(num_steps, 1)
    counts = np.bincount(lines, minlength=num_lines)
    means = np.bincount(lines, weights=scores, minlength=num_lines) / np.maximum(counts, 1)
    first = lines * num_steps
    table = characters.symbols
    chars = [
        TextChar(table[symbol], score, start, end)
        for symbol, score, start, end in zip(
            symbols.tolist(), scores.tolist(), (runs - first).tolist(), (ends - first).tolist(), strict=True
        )
    ]
    results, position = [], 0
    for count, mean in zip(counts.tolist(), means.tolist(), strict=True):
        line = tuple(chars[position : position + count])
        position += count
        text = characters.reading_order("".join([char.char for char in line]))
        results.append(Text(text, mean, line, characters.right_to_left))
    return results
