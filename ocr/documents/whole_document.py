"""What only a whole document tells of its pages, without holding them: two passes over pages that come one by one.

Headers, footers and page numbers are what repeats at the edges of pages; headings get their levels; and a paragraph or
table that goes on over a column break or page break says so. `DocumentFacts.add` sees every page once; `finish` then
takes them again, in order. What is held in between is a few short texts and numbers a page.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ocr.documents.assemble import UNORDERED
from ocr.pages.sideways import Rotation, find_rotation
from ocr.results.blocks import FLOATS, MOST_FLOATS, Block, Box, Table
from ocr.results.geometry import line_box, rows_of
from ocr.results.lines import Line, is_unspaced
from ocr.results.pages import Page
from ocr.text.paragraphs import HEADINGS, OCR_SIZE, heading_depth

EDGE = 0.1  # of the page's height: where headers and footers stand
FOOT, FOOT_ROOM = 0.2, 1.0  # where a number stands that is alone: of the page's height; of its own, above it
CENTRED = 0.02  # of the page's width: how far its middle is off the page's
HEIGHTS = 50  # heights at which a repeated text may stand: its places on two pages are alike where these are
REPEATED = 4  # a text on more pages than this, at one height, repeats in a document of any length
LARGER = 1.2  # than most lines of the page: a heading
LEVELS = 0.88  # of a size: headings of this part of it are of another level
_NUMBER = re.compile(
    r"(?:page|seite|p\.)?\s*[-–—]?\s*(\d{1,4}|[ivxlc]{1,6})\s*[-–—]?(?:\s*(?:/|of|von)\s*\d{1,4})?", re.I
)
_PAGE = re.compile(r"\b(page|seite|pagina|p\.)\s*\d|\d\s*(/|of|von|de)\s*\d|\|\s*\d+$|^\d+\s*\|", re.I)
_CHAPTER = re.compile(
    r"(chapter|section|part|lesson|unit|appendix|annex|article|art\.|exercise|step|kapitel|abschnitt|teil|lektion|anhang"
    r"|artikel|chapitre|partie|leçon|annexe|capítulo|capitolo|§)\s*[\dIVXA-Z]+\.?",
    re.I,
)
_END = re.compile(r"[.!?:;。！？…][\"'”’)\]]*$")
_Edge = tuple[str, str, int]  # "header" or "footer", the text with numbers as "#", its height


class _Read(NamedTuple):
    """What of a document was read last."""

    last: Block | None  # but footnotes
    text: Block | None  # but tables and figures, that may go on after them
    floats: int  # tables, figures and captions since then


def finish_document(pages: Sequence[Page]) -> tuple[Page, ...]:
    """Pages whose blocks `arrange` has ordered, with what only the whole document tells."""
    facts = DocumentFacts()
    for page in pages:
        facts.add(page)
    return tuple(facts.finish(pages))


@dataclass
class DocumentFacts:
    """What has been seen of a document's pages."""

    pages: int = 0
    _edges: Counter[_Edge] = field(default_factory=Counter)
    _headings: list[tuple[float, _Edge | None]] = field(default_factory=list)
    _titles: list[tuple[int, float, _Edge | None, str]] = field(
        default_factory=list
    )  # page, size, edge, text

    def add(self, page: Page) -> None:
        """Note what stands at the page's edges, and its headings."""
        self.pages += 1
        rotation = _rotation_of(page)
        edges = _edges_of(page, rotation)
        self._edges.update({edge for edge in edges if edge is not None})
        for block, edge in zip(page.blocks, edges, strict=True):
            if block.label == "paragraph_title":
                self._headings.append((_size(block), edge))
            elif block.label == "doc_title":
                self._titles.append((page.page, _size(block), edge, _without_numbers(block.text)))

    def finish(self, pages: Iterable[Page]) -> Iterator[Page]:
        """The same pages again, in order: headers, footers and numbers labelled, levels and `continued` set.

        A document has one title; what looks like one on other pages is a heading, and so is the first one where others
        differ from it only in their numbers ("Chapter 1").
        """
        titles = [one for one in self._titles if one[2] is None or not self._repeats(one[2])]
        counted = any(text == titles[0][3] and number != titles[0][0] for number, _, _, text in titles[1:])
        title_page = titles[0][0] if titles and not counted else None
        headings = [size for size, edge in self._headings if edge is None or not self._repeats(edge)]
        on_page = [size for number, size, _, _ in titles if number == title_page]
        title_size = LEVELS * max(on_page, default=0.0)  # a smaller one there is a heading, too
        headings += [size for number, size, _, _ in titles if number != title_page or size < title_size]
        sizes: list[float] = []  # of the levels, from the largest
        for size in sorted(headings, reverse=True):
            if not sizes or size < LEVELS * sizes[-1]:
                sizes.append(size)
        before = _Read(None, None, 0)
        for page in pages:
            rotation = _rotation_of(page)
            edges = _edges_of(page, rotation)
            labelled = (self._relabel(*one) for one in zip(page.blocks, edges, strict=True))
            is_title_page = page.page == title_page
            blocks = [
                _relevel(block, is_title_page and _size(block) >= title_size, title_page is not None, sizes)
                for block in labelled
            ]
            read = [block for block in blocks if block.label not in UNORDERED]
            read = [replace(block, order=number) for number, block in enumerate(read)]
            rest = [replace(block, order=None) for block in blocks if block.label in UNORDERED]
            read, before = _mark_continuations(read, before, rotation)
            yield replace(page, blocks=(*read, *rest))

    def _repeats(self, edge: _Edge) -> bool:
        """Whether so many pages have this at their edge that it is no text of the page."""
        kind, text, position = edge
        count = sum(self._edges[kind, text, position + step] for step in (-1, 0, 1))
        return count > max(1, min(self.pages // 4, REPEATED))

    def _relabel(self, block: Block, edge: _Edge | None) -> Block:
        if edge is None:
            return block
        if _NUMBER.fullmatch(block.text.strip()):
            return replace(block, label="number", level=0)
        return replace(block, label=edge[0], level=0) if self._repeats(edge) else block


def _rotation_of(page: Page) -> Rotation:
    """How the page lies: what is told by places is told by those on the upright page."""
    return find_rotation(page.lines, page.width, page.height)


def _relevel(block: Block, is_title: bool, has_title: bool, sizes: Sequence[float]) -> Block:
    """Levels 1 to 6: of numbered headings by their numbers, of the others by size, the title before all."""
    if block.label == "doc_title" and is_title:
        return replace(block, level=1)
    if block.label not in ("doc_title", "paragraph_title"):
        return block
    depth = heading_depth(block.text)
    if depth is None:
        depth = next((n for n, size in enumerate(sizes, 1) if _size(block) >= LEVELS * size), len(sizes) or 1)
    return replace(block, label="paragraph_title", level=min(depth + has_title, 6))


def _edges_of(page: Page, rotation: Rotation) -> list[_Edge | None]:
    """What may repeat on other pages, of each block at the page's edges; None of the others.

    Numbers count for nothing, but in headings: "Chapter 1" and "Chapter 2" are no running head.
    """
    height = rotation.size[1]
    usual = float(np.median([_line_size(line) for line in page.lines])) if page.lines else 0.0
    boxes = [rotation.box(block.bbox) for block in page.blocks]
    highest = min((box[1] for box in boxes), default=0.0)
    edges: list[_Edge | None] = []
    for block, box in zip(page.blocks, boxes, strict=True):
        is_header = box[3] <= EDGE * height
        is_edge = is_header or box[1] >= (1 - EDGE) * height or _is_foot(block, box, boxes, rotation.size)
        if block.content is not None or not is_edge:
            edges.append(None)
            continue
        text = " ".join(block.text.split())
        is_heading = is_header and _is_heading(block, text, usual, below_others=box[1] > highest)
        text = text.casefold()[:100] if is_heading else _without_numbers(text)
        position = round(box[1] / max(height, 1) * HEIGHTS)
        edges.append(("header" if is_header else "footer", text, position))
    return edges


def _is_foot(block: Block, box: Box, boxes: Sequence[Box], size: tuple[float, float]) -> bool:
    """Whether a block is a number in the middle of the page's foot, below all else: paper is often higher than its
    layout was made for.
    """
    width, height = size
    if box[1] < (1 - FOOT) * height or not _NUMBER.fullmatch(block.text.strip()):
        return False
    lowest = max((other[3] for other in boxes if other is not box), default=0.0)
    apart = box[1] - lowest > FOOT_ROOM * (box[3] - box[1])
    return apart and abs((box[0] + box[2]) / 2 - width / 2) < CENTRED * width


def _without_numbers(text: str) -> str:
    """What a text says whatever the numbers in it; those at its ends, such as a page's beside a title, are left out."""
    wording = re.sub(r"\d+", "#", " ".join(text.split())).casefold()[:100]
    return re.sub(r"^(# )+|( #)+$", "", wording)


def _is_heading(block: Block, text: str, usual: float, *, below_others: bool) -> bool:
    """Whether the topmost text of a page is a heading by its type or wording, and not numbered as pages are."""
    if _PAGE.search(text):
        return False
    larger = _size(block) >= LARGER * usual and len(text) >= 2 and not _NUMBER.fullmatch(text)
    titled = block.label in HEADINGS and (below_others or _CHAPTER.fullmatch(text) is not None)
    return larger or titled


def _line_size(line: Line) -> float:
    """Of its type; as far as its box tells where that is not known: across the text, whichever way it runs."""
    if line.style is not None:
        return line.style.size
    box = line_box(line)
    return OCR_SIZE * (box[2] - box[0] if line.orientation in (90, 270) else box[3] - box[1])


def _size(block: Block) -> float:
    """The size of the block's smallest line, in pixels."""
    return min(map(_line_size, block.lines), default=OCR_SIZE * (block.bbox[3] - block.bbox[1]))


def _mark_continuations(
    blocks: Sequence[Block], before: _Read, rotation: Rotation
) -> tuple[list[Block], _Read]:
    """Sets `continued`: over column breaks, over the page break after `before`, and over the tables and figures that
    stand within a paragraph; also what was read last.
    """
    marked: list[Block] = []
    last, text, floats = before
    last_middle = text_middle = math.inf  # of their heights; on the page before they stand beside everything
    for block in blocks:
        if block.label == "footnote":
            marked.append(block)
            continue
        # Within a page only what begins beside the last block, or higher up, stands in another column.
        box = rotation.box(block.bbox)
        continued = (
            last is not None and box[1] < last_middle and _goes_on(last, block, last_middle == math.inf)
        )
        below = (
            text is not None
            and 0 < floats <= MOST_FLOATS
            and _goes_on(text, block, False)
            and _begins_within_sentence(block)
            and (box[1] < text_middle or _fills_up(text, block, rotation))
        )
        if continued or below:
            block = replace(block, continued=True)
        marked.append(block)
        last, last_middle = block, (box[1] + box[3]) / 2
        if block.label in FLOATS:
            floats += 1
        else:  # a paragraph is cut once, so that few pages are held until it is whole
            text, text_middle, floats = None if below else block, last_middle, 0
    return marked, _Read(last, text, floats)


def _goes_on(last: Block, first: Block, new_page: bool) -> bool:
    if isinstance(last.content, Table) and isinstance(first.content, Table):
        widths = [block.bbox[2] - block.bbox[0] for block in (last, first)]
        same_width = abs(widths[0] - widths[1]) < 0.1 * max(widths)
        return (
            new_page and last.content.columns == first.content.columns and same_width and not first.children
        )
    if first.label == "text" and last.label in ("text", "list_item"):
        text = first.text.lstrip()
        open_end = bool(text) and not _END.search(last.text.rstrip()) and not text[0].isupper()
        return open_end and not (_keeps_line_ends(last) and _keeps_line_ends(first))
    return False


def _keeps_line_ends(block: Block) -> bool:
    """Whether all of a block's line ends are the author's, as in lists of names, which go on in no other block."""
    ends = block.text.count("\n")
    return ends > 0 and ends >= len(rows_of(block.lines)) - 1


def _begins_within_sentence(block: Block) -> bool:
    first = block.text.lstrip()[0]
    return first.islower() or is_unspaced(first)


def _fills_up(last: Block, first: Block, rotation: Rotation) -> bool:
    """Whether two texts below one another may be one paragraph that something cuts: both begin at the same place, the
    second one without an indent; and they have several lines each, or the first one no room for the next word.
    """
    if not last.lines or not first.lines:
        return False
    upper, lower = rotation.box(last.bbox), rotation.box(first.bbox)
    start = first.lines[0]
    left, top, right, bottom = rotation.box(line_box(start))
    height = bottom - top
    if abs(upper[0] - lower[0]) >= height or left - lower[0] >= 0.5 * height:
        return False
    if min(len(rows_of(block.lines)) for block in (last, first)) > 1:
        return True
    first_word = start.words[0].text if start.words else start.text.split()[0]
    word = (
        height
        if is_unspaced(first_word[0])
        else (right - left) * len(first_word) / len(start.text) + 0.6 * height
    )
    return max(upper[2], lower[2]) - rotation.box(line_box(last.lines[-1]))[2] < word
