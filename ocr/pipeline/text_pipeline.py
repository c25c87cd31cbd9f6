"""The text of a page: detect lines, turn them upright, recognise them, and put everything into the page's geometry.

`OCRPipeline` works on artifacts alone; it imports no model code. It may be called from several threads.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from framework.core.process import cpu_count
from framework.inference.memory import release_after_item
from framework.vision.grid_warp import GridWarp
from framework.vision.image import rotate90
from framework.workflow import ImageItem
from ocr.pages.preparation import PagePreparation, PreparedImage
from ocr.pages.stages import PageOrientationClassifier, Unwarper
from ocr.pipeline.small_letters import (
    READ_WELL,
    are_among,
    are_low,
    are_narrow,
    badly_read,
    closer_scale,
    merge_looks,
)
from ocr.results.pages import Char, Line, Page, Word
from ocr.results.settings import ReadingSettings
from ocr.text.char_boxes import char_spans, text_quads, upright_quads
from ocr.text.characters import reading_indices
from ocr.text.directions import SURE, read_directed
from ocr.text.letters_apart import add_missed, as_letters
from ocr.text.postprocess import Text
from ocr.text.preprocess import crop_lines, turned_lines
from ocr.text.reading_order import quad_of, reading_order, upright_boxes, words_from_chars
from ocr.text.stacked_letters import (
    LEAST_STACKED,
    add_missed_below,
    find_stacks,
    join_stack,
    letters_in_a_row,
)
from ocr.text.stages import DetectedLines, Detector, OrientationClassifier, Recognizer, RecognizerGroup
from ocr.text.tiles import detect_in_grid, detect_in_tiles, split_long

LONGEST = 1.5  # a line that would be squeezed more than this to fit the recogniser is read in parts
_WEAK = 0.25  # score of a letter alone, such as an I
_EDGE = 12  # points of each edge of a curved line


class LineCrops(NamedTuple):
    """N images of lines, which of them are turned by 90 degrees [N], and how curved ones were straightened."""

    images: list[np.ndarray]
    rotated: np.ndarray
    warps: Mapping[int, GridWarp]


Readings = tuple[list[tuple[Text, int, float]], np.ndarray]


@dataclass(frozen=True)
class PipelineOptions:
    """What to keep and what to look for.

    Attributes:
        drop_score: Lines whose mean character probability is below it are dropped, in 0..1.
        orient: Whether lines on their heads are turned; needs a pipeline with an orientation classifier.
        rotate_ratio: Quads at least this many times as high as wide are read as vertical lines; see turned_lines.
        look_closer: Whether a page with small or badly read lines is seen once more in tiles, for two to four times the
            time of one look.
    """

    drop_score: float = 0.5
    orient: bool = True
    rotate_ratio: float = 1.5
    look_closer: bool = True


class OCRPipeline:
    """Finds and recognises the text of pages with the stages of one artifact.

    Args:
        orientation: None where lines on their heads are not turned.
        preparation: Makes pages upright and flat first; None where they are read as they are.
    """

    def __init__(
        self,
        detector: Detector,
        recognizer: Recognizer | RecognizerGroup,
        orientation: OrientationClassifier | None,
        options: PipelineOptions,
        preparation: PagePreparation | None = None,
    ) -> None:
        self.detector, self.recognizer, self.orientation = detector, recognizer, orientation
        self.options, self.preparation = options, preparation
        # One pool for all calls: glibc gives each new thread memory of its own and keeps some of it.
        self._pool = ThreadPoolExecutor(cpu_count(), thread_name_prefix="oar-detect")

    @property
    def recognizers(self) -> tuple[Recognizer, ...]:
        """Every recogniser; more than one where several languages need several."""
        group = self.recognizer
        return group.recognizers if isinstance(group, RecognizerGroup) else (group,)

    @property
    def _stages(
        self,
    ) -> list[Detector | OrientationClassifier | Recognizer | PageOrientationClassifier | Unwarper]:
        first = () if self.preparation is None else self.preparation.stages
        return [s for s in (*first, self.detector, self.orientation, *self.recognizers) if s is not None]

    @property
    def compile_count(self) -> int:
        """Shapes compiled so far in all stages; never more than `bucket_count` when that is a number."""
        return sum(stage.engine.compile_count for stage in self._stages)

    @property
    def bucket_count(self) -> int | None:
        """How many shapes there are at most; None when a stage has unbounded ones."""
        counts = [stage.buckets for stage in self._stages]
        return None if None in counts else sum(counts)  # type: ignore[arg-type]

    @property
    def settings(self) -> ReadingSettings:
        """What pages are read with."""
        size, postprocess = self.detector.options.size, self.detector.options.postprocess
        return ReadingSettings(
            size.limit_side,
            size.limit_type,
            size.max_side,
            postprocess.thresh,
            postprocess.box_thresh,
            postprocess.unclip_ratio,
            self.options.drop_score,
            self.orientation is not None,
            self.preparation is not None,
        )

    def predict_page(self, item: ImageItem) -> Page:
        """The page of one image."""
        return self._finish(*self._begin(item), item)

    def predict_prepared(self, item: ImageItem) -> tuple[Page, PreparedImage | None]:
        """The page in pixels of the image as it was read, and that image where it is another one than was given."""
        prepared, detected, seconds = self._begin(item)
        if prepared is None:
            return self._recognize(detected, seconds, item), None
        page = self._recognize(detected, seconds, item._replace(image=prepared.image))
        return prepared.describe(page), prepared

    def predict_stream(self, images: Iterable[ImageItem]) -> Iterator[Page]:
        """The page of each image, in order; the next one is detected while one is recognised."""
        items = iter(images)
        waiting = failure = None
        while failure is None:
            coming = None
            try:
                item = next(items, None)
                coming = item and (self._pool.submit(self._begin, item), item)
            except Exception as error:  # raised once the pages before it are out
                failure = error
            if waiting is not None:
                page = self._finish(*waiting[0].result(), waiting[1])
                release_after_item()
                yield page
            waiting = coming
            if waiting is None:
                break
        if failure is not None:
            raise failure

    # -- the two halves of a page -----------------------------------------------------------------------------------

    def _begin(self, item: ImageItem) -> tuple[PreparedImage | None, DetectedLines, dict[str, float]]:
        prepared = None if self.preparation is None else self.preparation(item.image)
        detected, seconds = self._detect(item.image if prepared is None else prepared.image)
        return prepared, detected, seconds

    def _finish(
        self,
        prepared: PreparedImage | None,
        detected: DetectedLines,
        seconds: dict[str, float],
        item: ImageItem,
    ) -> Page:
        if prepared is None:
            return self._recognize(detected, seconds, item)
        page = self._recognize(detected, seconds, item._replace(image=prepared.image))
        return prepared.restore(page, item.image)

    def _detect(self, image: np.ndarray) -> tuple[DetectedLines, dict[str, float]]:
        started = time.perf_counter()
        if self.orientation is not None:
            self.orientation.prepare()
        most = self.detector.options.max_aspect
        if max(image.shape[:2]) <= most * min(image.shape[:2]):
            detected = self.detector.find_lines(image)
            if not self.detector.finds_outlines:
                quads = detected.quads
                scale = self.detector.view_scale(image.shape[:2])
                if self.options.look_closer and are_low(quads, scale):
                    quads = self._detect_closer(image, quads)
                    detected = detected._replace(faint=0, in_tiles=True)
                assert quads is not None
                quads = add_missed_below(image, add_missed(image, self._split_long(image, quads)))
                detected = detected._replace(quads=quads)
        else:
            quads, _ = detect_in_tiles(self.detector, image, most)
            quads = add_missed(image, self._split_long(image, quads))
            detected = DetectedLines(quads, {}, in_tiles=True)
        return detected, {"detect": time.perf_counter() - started}

    def _split_long(self, image: np.ndarray, quads: np.ndarray) -> np.ndarray:
        """Quads [N, 4, 2] of which none has to be squeezed for the recogniser."""
        options = self.recognizer.options
        if not len(quads) or not options.widths:
            return quads
        longest = LONGEST * options.widths[-1] / (options.height * options.width_scale)
        return split_long(image, quads, longest)

    def _recognize(self, detected: DetectedLines, seconds: dict[str, float], item: ImageItem) -> Page:
        page = self._recognize_lines(detected, seconds, item)
        quarter = 0 if detected.curved else _sideways(page.lines)
        if quarter:
            # Detectors are trained on horizontal text and run lines of a page on its side into one another. The crops
            # are cut from the image as it is, with the corners in the order of the upright page.
            upright, more = self._detect(rotate90(item.image, -quarter))
            again = self._recognize_lines(_turn_back(upright, quarter, page.size_hw), more, item)
            seconds = _add_seconds(page, again)
            if _certainty(again.lines) >= _certainty(page.lines):
                page, detected = replace(again, seconds=seconds), upright
            else:
                page, quarter = replace(page, seconds=seconds), 0
        return self._look_closer(page, detected, quarter, item)

    def _look_closer(self, page: Page, detected: DetectedLines, quarter: int, item: ImageItem) -> Page:
        """The page, with what was seen too small to be read well read in tiles.

        Args:
            detected: Its lines on the image turned by `-quarter` quarters.
        """
        bad = 0 if detected.curved else badly_read(page.lines, len(detected.quads), detected.faint)
        image = rotate90(item.image, -quarter) if quarter else item.image
        started = time.perf_counter()
        seen_whole = not detected.curved and not detected.in_tiles
        narrow = seen_whole and are_narrow(page.lines, self.detector.view_scale(image.shape[:2]))
        if not self.options.look_closer:
            scale = self.detector.view_scale(image.shape[:2])
            small = bad if closer_scale(detected.quads, scale) is not None else 0
            return replace(page, warnings=(*page.warnings, *_too_small(small, max(page.size_hw))))
        quads = self._detect_closer(image, detected.quads) if bad or narrow else None
        if quads is None:
            return page
        closer = _turn_back(DetectedLines(quads, {}), quarter, page.size_hw)
        again = self._recognize_lines(closer, {"detect": time.perf_counter() - started}, item)
        both = [*again.lines, *(line for line in page.lines if line.score >= READ_WELL)]
        outlines = np.stack([quad_of(line.polygon) for line in both]) if both else np.zeros((0, 4, 2))
        lost = ~are_among(outlines, outlines[: len(again.lines)])
        lines = [line for i, line in enumerate(both) if i < len(again.lines) or lost[i]]
        if _certainty(lines) > _certainty(page.lines):
            order = reading_order([line.polygon for line in lines])
            page = replace(page, lines=tuple(lines[i] for i in order))
            bad = badly_read(lines, max(len(quads), len(lines)), 0)
        warnings = (*page.warnings, *_too_small(bad, max(page.size_hw)))
        return replace(page, seconds=_add_seconds(page, again), warnings=warnings)

    def _detect_closer(self, image: np.ndarray, quads: np.ndarray) -> np.ndarray | None:
        """The lines [N, 4, 2] of an image, seen in tiles; None where the detector saw it about as large as it is.

        Args:
            quads: [M, 4, 2], what it found in the whole image.
        """
        scale = self.detector.view_scale(image.shape[:2])
        closer = closer_scale(quads, scale)
        if closer is None:
            return None
        tiles, _ = detect_in_grid(self.detector, image, round(scale / closer * max(image.shape[:2])))
        return self._split_long(image, merge_looks(quads, tiles, scale))

    def _recognize_lines(self, detected: DetectedLines, seconds: dict[str, float], item: ImageItem) -> Page:
        """The page of detected lines, unless it lies on its side; `seconds` gets what each step took."""

        def timed(name: str, started: float) -> float:
            now = time.perf_counter()
            seconds[name] = now - started
            return now

        image = item.image
        clock = time.perf_counter()
        crops = self._cut(image, detected)
        clock = timed("crop", clock)
        probabilities = None
        if self.orientation is not None and crops.images:
            probabilities = self.orientation(crops.images)
            clock = timed("orient", clock)
        texts, upside_down = self._read(crops, probabilities)
        clock = timed("recognize", clock)
        lines = self._arrange(detected.quads, crops, texts, upside_down)
        timed("arrange", clock)
        seconds["total"] = sum(seconds.values())
        height, width = image.shape[:2]
        return Page(
            lines,
            item.number,
            seconds,
            warnings=item.warnings,
            source=item.source,
            width=width,
            height=height,
            image=image,
            settings=self.settings,
        )

    def _cut(self, image: np.ndarray, detected: DetectedLines) -> LineCrops:
        """The image of each line, from left to right; curved ones are straightened."""
        rotated = turned_lines(detected.quads, rotate_ratio=self.options.rotate_ratio)
        rotated[list(detected.curved)] = False
        crops = crop_lines(image, detected.quads, rotated)
        warps = {number: line.warp(image.shape[:2]) for number, line in detected.curved.items()}
        for number, warp in warps.items():
            crops[number] = warp.image(image)
        return LineCrops(crops, rotated, warps)

    def _read(self, crops: LineCrops, probabilities: np.ndarray | None) -> Readings:
        """What each line says, the right way up, and which lines stand on their heads."""
        if self.orientation is None or probabilities is None:
            return self.recognizer(crops.images), np.zeros(len(crops.images), bool)
        thresh = self.orientation.options.thresh
        return read_directed(crops.images, probabilities, crops.rotated, self.recognizer, thresh)

    def _arrange(
        self,
        quads: np.ndarray,
        crops: LineCrops,
        texts: Sequence[tuple[Text, int, float]],
        upside_down: np.ndarray,
    ) -> tuple[Line, ...]:
        """The lines that say something, in the order in which they are read."""
        lines = [
            self._line(text, steps, share, quad, bool(rotated), bool(flip), crops.warps.get(number))
            for number, ((text, steps, share), quad, rotated, flip) in enumerate(
                zip(texts, quads, crops.rotated, upside_down)
            )
            if text.text.strip() and text.score >= min(self.options.drop_score, _least_score(text))
        ]
        lines = as_letters(self._join_stacked(lines, quads, crops))
        lines = [line for line in lines if line.score >= self.options.drop_score]
        # Now that it is known which way up each line is: a page on its head starts at its lower edge. Letters below one
        # another stand where the first of them does.
        first = [line.words[0].chars[0].polygon if _is_stacked(line) else line.polygon for line in lines]
        return tuple(lines[i] for i in reading_order(first))

    def _join_stacked(
        self,
        lines: list[Line],
        quads: np.ndarray,
        crops: LineCrops,
    ) -> list[Line]:
        """The lines, with single letters below one another as one."""
        if sum(len(line.text) == 1 for line in lines) < LEAST_STACKED:
            return lines
        stacks = find_stacks(upright_boxes([line.polygon for line in lines]), [line.text for line in lines])
        if not stacks or any(line.orientation for line in lines):
            return lines
        image_of = {_corners(quad): crop for quad, crop in zip(quads, crops.images)}
        joined, rows = [], []
        for stack in stacks:
            found = [image_of.get(_corners(np.array(lines[i].polygon))) for i in stack]
            rows.append(letters_in_a_row([crop for crop in found if crop is not None]))
        # Side by side a word is read as one: of a letter alone nobody can tell whether it is an O or a zero.
        for stack, (text, _, _) in zip(stacks, self.recognizer(rows)):
            whole = text.text if len(text.text) == len(stack) and text.score >= SURE else None
            joined.append(join_stack([lines[i] for i in stack], whole))
        gone = {i for stack in stacks for i in stack}
        return [*(line for i, line in enumerate(lines) if i not in gone), *joined]

    def _line(
        self,
        text: Text,
        steps: int,
        share: float,
        quad: np.ndarray,
        turned: bool,
        upside_down: bool,
        warp: GridWarp | None,
    ) -> Line:
        spans = np.concatenate([[[0.0, 1.0]], char_spans(text.chars, steps, share)])
        if warp is not None:
            return _curved_line(text, spans, warp, upside_down)
        quads = text_quads(spans, quad, rotated_90=turned, rotated_180=upside_down)
        column = turned and _is_column(text, spans[1:], quad)
        vertical: Any = column or None  # None: worked out from the polygons
        if column:
            quads = upright_quads(quads)
        return Line(text.text, text.score, quads[0], _words(text, quads), vertical=vertical)


def _curved_line(text: Text, spans: np.ndarray, warp: GridWarp, upside_down: bool) -> Line:
    """A line whose crop was straightened: its boxes are worked out there, and led back."""
    height, width = warp.size_hw
    strip = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    quads = warp.source_points(text_quads(spans, strip, rotated_180=upside_down)).astype(np.float32)
    edge = np.linspace(0, width, _EDGE)[:: -1 if upside_down else 1]
    top, bottom = (0, height)[:: -1 if upside_down else 1]
    outline = np.concatenate(
        [np.stack([edge, np.full_like(edge, top)], 1), np.stack([edge[::-1], np.full_like(edge, bottom)], 1)]
    )
    points = tuple((float(x), float(y)) for x, y in warp.source_points(outline))
    return Line(text.text, text.score, points, _words(text, quads))


def _words(text: Text, quads: np.ndarray) -> tuple[Word, ...]:
    """The words of a line from its quad and those of its characters [1 + N, 4, 2]."""
    order = reading_indices([char.char for char in text.chars], text.right_to_left)
    return words_from_chars([Char(text.chars[i].char, text.chars[i].score, quads[1 + i]) for i in order])


def _certainty(lines: Sequence[Line]) -> float:
    """By which of several readings of one page the best is told."""
    return sum(line.score * sum(map(str.isalnum, line.text)) for line in lines)


def _add_seconds(first: Page, second: Page) -> dict[str, float]:
    keys = {**first.seconds, **second.seconds}
    return {key: first.seconds.get(key, 0.0) + second.seconds.get(key, 0.0) for key in keys}


def _too_small(lines: int, longest: int) -> list[str]:
    """The warning that lines read badly, maybe as their letters are too small; none where there are no such lines."""
    text = (
        f"about {lines} lines could not be read well; where their letters are small, "
        f"max_side={longest} (--max_side {longest}) looks for them in the image as large as it is"
    )
    return [text] if lines else []


def _least_score(text: Text) -> float:
    """A letter alone may read badly and be one of a word all the same."""
    return _WEAK if len(text.text.strip()) == 1 else 1.0


def _is_stacked(line: Line) -> bool:
    """Whether it is a word whose letters were lines of their own."""
    chars = line.words[0].chars if len(line.words) == 1 else ()
    return line.vertical and len(chars) >= LEAST_STACKED and all(ord(char.text[0]) < 0x2E80 for char in chars)


def _corners(quad: np.ndarray) -> tuple[int, ...]:
    return tuple(quad.round().astype(int).ravel().tolist())


def _sideways(lines: Sequence[Line]) -> int:
    """By how many quarters most of the text is turned clockwise, if it is on its side: 1, 3, or 0 for any other."""
    for quarter in (1, 3):
        turned = sum(len(x.text) for x in lines if x.orientation == 90 * quarter and not x.vertical)
        if 2 * turned > sum(len(x.text) for x in lines):
            return quarter
    return 0


def _turn_back(detected: DetectedLines, quarter: int, size_hw: tuple[int, int]) -> DetectedLines:
    """Lines of an image that was turned by `-quarter` (0, 1 or 3) quarters, in pixels of the original."""
    if not quarter or not len(detected.quads):
        return detected
    return detected._replace(quads=_rotate_back(detected.quads, quarter, size_hw), curved={})


def _rotate_back(quads: np.ndarray, quarter: int, size_hw: tuple[int, int]) -> np.ndarray:
    x, y = quads[..., 0], quads[..., 1]
    height, width = size_hw
    return np.stack([width - y, x] if quarter == 1 else [y, height - x], axis=-1).astype(np.float32)


def _is_column(text: Text, spans: np.ndarray, quad: np.ndarray) -> bool:
    """Whether a tall quad is a column of upright characters and not a line turned by 90 degrees.

    A recogniser that was shown the crop turned reads both. Upright CJK characters in a column keep their width across
    the column, so each takes about one square; letters of a turned line are narrower.
    """
    if len(spans) < 2:
        return False
    edges = np.linalg.norm(quad - np.roll(quad, -1, axis=0), axis=1)
    length, across = max(edges[1], edges[3]), max(edges[0], edges[2], 1.0)
    wide = [ord(char.char[0]) >= 0x2E80 for char in text.chars if char.char.strip()]
    return bool(wide and np.mean(wide) > 0.5 and length / across / len(wide) > 0.7)
