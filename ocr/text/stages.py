"""The three models of text detection and recognition at run time: where is text, which way up, what does it say.

A stage is an engine (program, weights, device) and a frozen dataclass of options. Images go in as uint8 RGB and are
padded to one of the declared sizes, so the number of compilations is bounded, or, by engines that compile nothing, to
the least size that the network takes; normalisation is part of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from framework.inference import Engine
from framework.vision.contours import min_area_rects, order_corners
from framework.vision.image import resize
from framework.vision.normalize import Normalize
from ocr.text.batches import Batch, fit_batches, plan_batches
from ocr.text.characters import CharacterSet
from ocr.text.curved_lines import Band, find_band
from ocr.text.postprocess import DBPostprocess, Text, ctc_decode
from ocr.text.preprocess import DetSize, pack_lines

SHRUNK = 0.75  # from here on small letters may be lost


@dataclass(frozen=True)
class DetectOptions:
    """How the detector sees an image.

    Attributes:
        size: Largest or smallest side, and rounding; see DetSize.
        sides: Heights and widths that inputs are padded to. Empty: every size of `size`, one compilation each.
        shrink: To fit a smaller bucket an image may be scaled by down to this factor, instead of padded more.
        max_aspect: Longer images are cut into overlapping tiles of about half this aspect.
        normalize: What the program does to the pixels.
        postprocess: From probability map to quads.
    """

    normalize: Normalize
    size: DetSize = field(default_factory=DetSize)
    sides: tuple[int, ...] = (320, 416, 512, 608, 704, 832, 960)
    shrink: float = 0.97
    max_aspect: float = 4.0
    postprocess: DBPostprocess = field(default_factory=DBPostprocess)


@dataclass(frozen=True)
class RecognizeOptions:
    """How the recogniser sees lines.

    Attributes:
        height: Rows of the input.
        widths: Columns that lines are padded to; wider lines are squeezed into the last. One alone: all lines get it
            from every engine, as models of one size need it. Empty: upstream's rule, batches of `batch` lines padded to
            the widest, at least 320 columns at 48 rows.
        columns: Lines of one width are batched up to about this many columns in all.
        batch: At most this many lines at once.
        normalize: What the program does to the pixels; columns right of a line become 0 after it.
        width_scale: How much wider than in proportion lines become: narrow letters then keep more columns.
        stretch: Lines are stretched to the first of `widths`, whatever their proportions, as PARSeq reads words.
    """

    normalize: Normalize
    height: int = 48
    widths: tuple[int, ...] = (160, 192, 256, 320, 384, 512, 640, 768, 960, 1280, 1920, 3200)
    columns: int = 1280
    batch: int = 8
    width_scale: float = 1.0
    stretch: bool = False


@dataclass(frozen=True)
class OrientationOptions:
    """How the 0/180 degree classifier sees lines.

    Attributes:
        size_hw: Rows and columns of the input.
        thresh: The probability from which a line is turned, 0 to 1.
        batch: At most this many lines at once.
        normalize: What the program does to the pixels.
    """

    normalize: Normalize
    size_hw: tuple[int, int] = (48, 192)
    thresh: float = 0.9
    batch: int = 16


class DetectedLines(NamedTuple):
    """Lines of an image.

    Attributes:
        quads: [N, 4, 2] float32 in its pixels, clockwise.
        curved: Those that are curved, by their number.
        faint: How many regions may be text and are too faint to count; 0 where the image is hardly shrunk.
        in_tiles: Whether the image was seen in tiles.
    """

    quads: np.ndarray
    curved: Mapping[int, Band]
    faint: int = 0
    in_tiles: bool = False


class Detector:
    """Text lines in an image."""

    def __init__(self, engine: Engine, options: DetectOptions) -> None:
        self.engine, self.options = engine, options

    @property
    def finds_outlines(self) -> bool:
        """Whether regions have outlines, so that lines may be curved."""
        return self.options.postprocess.box_type == "poly"

    @property
    def buckets(self) -> int | None:
        """How many shapes there are, or None when they are not bounded."""
        return len(self.options.sides) ** 2 or None

    def __call__(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """image [H, W, 3] uint8 RGB -> quads [N, 4, 2] float32 in its pixels, clockwise, and scores [N]."""
        regions, scores, _ = self._find(image)
        return _rectangles(regions) if self.finds_outlines else np.asarray(regions, np.float32), scores

    def find_lines(self, image: np.ndarray) -> DetectedLines:
        """Lines of an image [H, W, 3] uint8 RGB; curved ones alone with `finds_outlines`."""
        regions, _, faint = self._find(image)
        if not self.finds_outlines:
            return DetectedLines(np.asarray(regions, np.float32), {}, faint)
        quads = _rectangles(regions)
        bands = {number: band for number, one in enumerate(regions) if (band := find_band(one)) is not None}
        for number, band in bands.items():
            quads[number] = band.quad
        return DetectedLines(quads, bands)

    def _find(self, image: np.ndarray) -> tuple[np.ndarray | list[np.ndarray], np.ndarray, int]:
        size_hw = image.shape[:2]
        resized_hw, padded_hw = self._sizes(size_hw)
        batch = np.zeros((1, *padded_hw, 3), np.uint8)
        # Linear interpolation leaves out pixels below half the size, and strokes of small letters with them.
        shrinks = 2 * max(resized_hw) < max(size_hw)
        scaled = resize(image, resized_hw, "area" if shrinks else "linear")
        batch[0, : resized_hw[0], : resized_hw[1]] = scaled
        size = np.asarray([resized_hw], np.int32)
        probability = self.engine({"image": batch, "size": size})["probability"][0]
        regions, scores = self.options.postprocess(probability, size_hw, resized_hw)
        faint = 0
        if self.view_scale(size_hw) <= SHRUNK:
            seen = self.options.postprocess.count_regions(probability[: resized_hw[0], : resized_hw[1]])
            faint = max(seen - len(regions), 0)
        return regions, scores, faint

    def _sizes(self, size_hw: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
        if not self.engine.takes_any_shape:
            return self.fit(size_hw)
        resized_hw = self.options.size(size_hw)
        return resized_hw, resized_hw

    def view_scale(self, size_hw: tuple[int, int]) -> float:
        """Pixels of what the network sees of an image of this size for one of the image."""
        return max(self._sizes(size_hw)[0]) / max(size_hw)

    def fit(self, size_hw: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
        """(resized_hw, padded_hw) for an image of this size."""
        wanted = self.options.size(size_hw)
        if not self.options.sides:
            return wanted, wanted
        return fit_bucket(wanted, self.options.sides, self.options.shrink)


def _rectangles(outlines: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """The smallest rectangle around each outline [P, 2]: [N, 4, 2] float32, clockwise from the upper left corner."""
    quads, _ = min_area_rects([np.asarray(outline, np.float32) for outline in outlines])
    return order_corners(quads)


def fit_bucket(
    wanted_hw: tuple[int, int], sides: Sequence[int], shrink: float
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The size to resize to and the bucket to pad to, for an image that should be seen at `wanted_hw`.

    The cheapest bucket that holds the image at `shrink` times that size or larger; the image is scaled to fill it, but
    not beyond `wanted_hw`. Without such a bucket the one that shrinks the image least.
    """
    height, width = wanted_hw
    best: tuple[float, float, tuple[int, int]] | None = None
    for rows in sides:
        for columns in sides:
            scale = min(rows / height, columns / width, 1.0)
            rank = (
                (0.0, rows * columns, (rows, columns)) if scale >= shrink else (1.0, -scale, (rows, columns))
            )
            best = rank if best is None or rank < best else best
    assert best is not None
    rows, columns = best[2]
    scale = min(rows / height, columns / width, 1.0)
    return (max(1, round(height * scale)), max(1, round(width * scale))), (rows, columns)


class OrientationClassifier:
    """Which line crops stand on their heads."""

    buckets = 1

    def __init__(self, engine: Engine, options: OrientationOptions) -> None:
        self.engine, self.options = engine, options

    def prepare(self) -> None:
        """Make its one shape ready in the background."""
        rows = self.options.batch
        self.engine.prepare([{"image": (rows, *self.options.size_hw, 3), "width": (rows,)}])

    def __call__(self, crops: Sequence[np.ndarray]) -> np.ndarray:
        """crops [h, w, 3] uint8 RGB -> [N, 2] float32, probability of upright and of upside down."""
        height, width = self.options.size_hw
        out = []
        for start in range(0, len(crops), self.options.batch):
            batch, widths = pack_lines(crops[start : start + self.options.batch], width, height)
            count = len(batch)
            if not self.engine.takes_any_shape:
                batch, widths = _fill(batch, widths, self.options.batch)
            out.append(self.engine({"image": batch, "width": widths})["probability"][:count])
        return np.concatenate(out) if out else np.zeros((0, 2), np.float32)


class Recognizer:
    """What line crops say."""

    def __init__(self, engine: Engine, options: RecognizeOptions, characters: CharacterSet) -> None:
        self.engine, self.options, self.characters = engine, options, characters

    @property
    def buckets(self) -> int | None:
        """How many shapes there are, or None when they are not bounded: each width with a full batch and with one."""
        return 2 * len(self.options.widths) or None

    def __call__(self, crops: Sequence[np.ndarray]) -> list[tuple[Text, int, float]]:
        """crops [h, w, 3] uint8 RGB -> for each (text, steps of its padded input, share of it that is line)."""
        height, scale = self.options.height, self.options.width_scale
        wanted = [height * crop.shape[1] / crop.shape[0] * scale for crop in crops]
        if self.options.stretch:
            wanted = [float(self.options.widths[0])] * len(crops)
        running, plan = [], self._plan(wanted)
        self.engine.prepare({"image": (b.rows, height, b.width, 3), "width": (b.rows,)} for b in plan)
        for planned in plan:
            batch, widths = pack_lines(
                [crops[i] for i in planned.lines],
                planned.width,
                height,
                width_scale=scale,
                stretch=self.options.stretch,
            )
            batch, filled = _fill(batch, widths, planned.rows)
            outputs = self.engine.start({"image": batch, "width": filled})
            running.append((planned.lines, widths / planned.width, outputs))
        results: list[tuple[Text, int, float] | None] = [None] * len(crops)
        for members, shares, out in running:
            indices, probabilities = np.asarray(out["indices"]), np.asarray(out["probabilities"])
            count = len(members)
            texts = ctc_decode(indices[:count], probabilities[:count], self.characters)
            for i, text, share in zip(members, texts, shares.tolist()):
                results[i] = (text, indices.shape[1], share)
        return results  # type: ignore[return-value]

    def _plan(self, wanted: Sequence[float]) -> list[Batch]:
        """The batches, those of the widest lines first; by upstream's rule of the narrowest."""
        options = self.options
        if options.widths:
            if not self.engine.takes_any_shape:
                return plan_batches(wanted, options.widths, options.columns, options.batch)
            if len(options.widths) == 1:
                batches = plan_batches(wanted, options.widths, options.columns, options.batch)
                return [replace(batch, rows=len(batch.lines)) for batch in batches]
            return fit_batches(wanted, options.widths, options.columns, options.batch)
        order = sorted(range(len(wanted)), key=lambda line: wanted[line])
        batches, least = [], options.height * 320 // 48
        for start in range(0, len(order), options.batch):
            lines = tuple(order[start : start + options.batch])
            batches.append(Batch(max(int(wanted[lines[-1]]), least), len(lines), lines))
        return batches


class RecognizerGroup:
    """Several recognisers, each for languages that the others do not read. The surest reading of a line is kept.

    Args:
        recognizers: At least one; of equal scores that of the first is kept.
    """

    def __init__(self, recognizers: Sequence[Recognizer]) -> None:
        self.recognizers = tuple(recognizers)
        self.options = self.recognizers[0].options

    @property
    def buckets(self) -> int | None:
        """How many shapes there are in all, or None when they are not bounded."""
        counts = [recognizer.buckets for recognizer in self.recognizers]
        return None if None in counts else sum(counts)  # type: ignore[arg-type]

    def __call__(self, crops: Sequence[np.ndarray]) -> list[tuple[Text, int, float]]:
        """As Recognizer; of each line the reading with the highest mean probability of its characters."""
        readings = [recognizer(crops) for recognizer in self.recognizers]
        return [max(of_line, key=lambda reading: reading[0].score) for of_line in zip(*readings)]


def _fill(batch: np.ndarray, widths: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The batch with empty lines up to `rows`."""
    missing = rows - len(batch)
    if missing <= 0:
        return batch, widths
    return np.pad(batch, ((0, missing), (0, 0), (0, 0), (0, 0))), np.pad(widths, (0, missing))
