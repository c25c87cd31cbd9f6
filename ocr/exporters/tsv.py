"""Tab-separated values with the columns of Tesseract: page (1), block (2), paragraph (3), line (4) and word (5).

Boxes are whole pixels of the source image; `conf` is that of a word, 0 to 100, and -1 of what holds words. A block is a
column or what spans the columns, with one paragraph, and a row of it that has several lines beside one another is one
line.

Source: Tesseract, TessTsvRenderer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ocr.exporters._xml import blocks_of, pixel_box
from ocr.text.reading_order import spaced_words

if TYPE_CHECKING:
    from ocr.results.pages import Document, Page

COLUMNS = tuple(
    "level page_num block_num par_num line_num word_num left top width height conf text".split()  # noqa: SIM905
)
_Box = tuple[int, int, int, int]


def to_tsv(document: Document) -> str:
    """The document, a line for each page, block, paragraph, line and word, below the names of the columns."""
    return "".join(iterate_tsv(document.pages))


def iterate_tsv(pages: Iterable[Page]) -> Iterator[str]:
    """As `to_tsv`, a page at a time."""
    yield "\t".join(COLUMNS) + "\n"
    for page in pages:
        yield "".join("\t".join(map(str, row)) + "\n" for row in _page_rows(page))


def _page_rows(page: Page) -> Iterator[tuple[object, ...]]:
    size = page.width, page.height
    yield _row(1, (page.page, 0, 0, 0, 0), (0, 0, *size))
    for block, lines in enumerate(blocks_of(page), 1):
        boxes = [pixel_box([line.polygon], size) for line in lines]
        yield _row(2, (page.page, block, 0, 0, 0), _around(boxes))
        yield _row(3, (page.page, block, 1, 0, 0), _around(boxes))
        for number, (line, box) in enumerate(zip(lines, boxes), 1):
            yield _row(4, (page.page, block, 1, number, 0), box)
            for index, (word, _) in enumerate(spaced_words(line), 1):
                place = (page.page, block, 1, number, index)
                text = " ".join(word.text.split())
                yield _row(5, place, pixel_box([word.polygon], size), round(100 * word.score, 2), text)


def _row(
    level: int, numbers: tuple[int, ...], box: _Box, score: float = -1, text: str = ""
) -> tuple[object, ...]:
    left, top, right, bottom = box
    return (level, *numbers, left, top, right - left, bottom - top, score, text)


def _around(boxes: Sequence[_Box]) -> _Box:
    lefts, tops, rights, bottoms = zip(*boxes)
    return min(lefts), min(tops), max(rights), max(bottoms)
