"""Pages by one model alone: where text is, what a line says, which way up it is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from framework.workflow import ImageItem
from ocr.formulas.stage import FormulaRecognizer
from ocr.pages.stages import PageOrientationClassifier
from ocr.results.blocks import Block, Formula
from ocr.results.lines import as_polygon
from ocr.results.pages import Char, Line, Page
from ocr.tables.stage import TableRecognizer
from ocr.text.char_boxes import char_spans, text_quads
from ocr.text.preprocess import LINE_TURNS, PAGE_TURNS
from ocr.text.reading_order import reading_order, words_from_chars
from ocr.text.stages import Detector, OrientationClassifier, Recognizer
from ocr.text.tiles import detect_in_tiles


class SingleStage:
    """What `OCRPredictor` runs: pages of images, by one stage."""

    def __init__(
        self,
        stage: Detector
        | Recognizer
        | OrientationClassifier
        | PageOrientationClassifier
        | TableRecognizer
        | FormulaRecognizer,
    ) -> None:
        self.stage = stage

    @property
    def compile_count(self) -> int:
        """Shapes compiled so far."""
        return self.stage.engine.compile_count

    @property
    def bucket_count(self) -> int | None:
        """How many shapes there are at most; None where they are not bounded."""
        return self.stage.buckets

    def predict_page(self, item: ImageItem) -> Page:
        """The page of one image."""
        started = time.perf_counter()
        lines, blocks = self._lines(item.image), self._blocks(item.image)
        height, width = item.image.shape[:2]
        return Page(
            tuple(lines),
            item.number,
            {"total": time.perf_counter() - started},
            tuple(blocks),
            warnings=item.warnings,
            source=item.source,
            width=width,
            height=height,
            image=item.image,
        )

    def predict_stream(self, images: Iterable[ImageItem]) -> Iterator[Page]:
        """The page of each image, in order."""
        return map(self.predict_page, images)

    def _lines(self, image: np.ndarray) -> list[Line]:
        return []

    def _blocks(self, image: np.ndarray) -> list[Block]:
        return []


class DetectedPages(SingleStage):
    """The regions of a page as lines without text."""

    stage: Detector

    def _lines(self, image: np.ndarray) -> list[Line]:
        quads, scores = detect_in_tiles(self.stage, image, self.stage.options.max_aspect)
        lines = [Line("", float(score), quad) for quad, score in zip(quads, scores)]
        return [lines[place] for place in reading_order([line.polygon for line in lines])]


class ReadLines(SingleStage):
    """The text of an image that is one line."""

    stage: Recognizer

    def _lines(self, image: np.ndarray) -> list[Line]:
        ((text, steps, share),) = self.stage([image])
        quad = _outline(image)
        spans = np.concatenate([[[0.0, 1.0]], char_spans(text.chars, steps, share)])
        quads = text_quads(spans, quad, rotated_90=False, rotated_180=False)
        chars = tuple(
            Char(text.chars[i].char, text.chars[i].score, quads[1 + i])
            for i in self.stage.characters.reading_indices([char.char for char in text.chars])
        )
        return [Line(text.text, text.score, as_polygon(quad), words_from_chars(chars))]


class LineDirections(SingleStage):
    """Which way up an image of one line is: a line whose text is "0" or "180", degrees clockwise."""

    stage: OrientationClassifier

    def _lines(self, image: np.ndarray) -> list[Line]:
        probabilities = self.stage([image])[0]
        turned = int(probabilities.argmax())
        return [Line(LINE_TURNS[turned], float(probabilities[turned]), as_polygon(_outline(image)))]


class PageAngles(SingleStage):
    """Which way up a page is: a page with its `angle`, whose only line says it: "0", "90", "180" or "270"."""

    stage: PageOrientationClassifier

    def predict_page(self, item: ImageItem) -> Page:
        page = super().predict_page(item)
        return replace(page, angle=int(page.lines[0].text))

    def _lines(self, image: np.ndarray) -> list[Line]:
        probabilities = self.stage(image)
        turns = int(probabilities.argmax())
        return [Line(PAGE_TURNS[turns], float(probabilities[turns]), as_polygon(_outline(image)))]


class TablePages(SingleStage):
    """An image that is one table as a page with one block: its cells without text."""

    stage: TableRecognizer

    def _blocks(self, image: np.ndarray) -> list[Block]:
        height, width = image.shape[:2]
        table = self.stage(image)
        score = sum(cell.score for cell in table.cells) / max(len(table.cells), 1)
        return [Block("table", (0, 0, width, height), score=score, order=0, content=table)]


class FormulaPages(SingleStage):
    """An image that is one formula as a page with one block: its LaTeX."""

    stage: FormulaRecognizer

    def _blocks(self, image: np.ndarray) -> list[Block]:
        height, width = image.shape[:2]
        latex, score = self.stage(image)
        box = (0, 0, width, height)
        return [Block("formula", box, latex, score=score, order=0, content=Formula(latex))]


def _outline(image: np.ndarray) -> np.ndarray:
    """The image's own corners, clockwise."""
    height, width = image.shape[:2]
    return np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
