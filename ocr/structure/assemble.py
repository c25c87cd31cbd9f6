"""Pages of blocks from what was found on them, and documents from pages.

Of a page: captions join their tables and figures, and the rest gets its reading order. Of a document: headers, footers
and page numbers are what repeats at the edges of pages; headings get their levels; and a paragraph or table that goes
on over a column break or page break says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ocr.blocks import Block, Box, Table
from ocr.results import Page
from ocr.structure.order import order_boxes
from ocr.structure.paragraphs import heading_depth

EDGE = 0.1  # of the page's height: where headers and footers stand
CAPTION_GAP = 0.03  # of the page's height, between a caption and what it belongs to
_UNORDERED = ("header", "footer", "number", "aside_text")
_OWNERS = {"table_title": ("table",), "figure_title": ("image", "chart")}
_NUMBER = re.compile(
    r"(?:page|seite|p\.)?\s*[-–—]?\s*(\d{1,4}|[ivxlc]{1,6})\s*[-–—]?(?:\s*(?:/|of|von)\s*\d{1,4})?", re.I
)
_END = re.compile(r"[.!?:;。！？…][\"'”’)\]]*$")


def arrange(blocks: Sequence[Block], height: float) -> tuple[Block, ...]:
    """The blocks of a page in reading order, with `order` set, captions as children, footnotes at the end and then what
    is not read along.
    """
    owned = _attach_captions(blocks, height)
    body = [block for block in owned if block.label not in _UNORDERED and block.label != "footnote"]
    notes = sorted((b for b in owned if b.label == "footnote"), key=lambda block: block.bbox[1])
    # A caption takes its place with what it belongs to.
    boxes = [_around([part.bbox for part in block.walk()]) for block in body]
    ordered = [body[i] for i in order_boxes(boxes)] + notes
    rest = sorted((b for b in owned if b.label in _UNORDERED), key=lambda block: block.bbox[1])
    return (
        *(replace(block, order=number) for number, block in enumerate(ordered)),
        *(replace(block, order=None) for block in rest),
    )


def _around(boxes: Sequence[Box]) -> Box:
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def _attach_captions(blocks: Sequence[Block], height: float) -> list[Block]:
    """Each caption below the nearest table or figure right above or below it; others stay blocks of their own."""
    children: dict[int, list[Block]] = {}
    taken: set[int] = set()
    for number, block in enumerate(blocks):
        kinds = _OWNERS.get(block.label)
        if kinds is None:
            continue
        best, nearest = None, CAPTION_GAP * height
        for other_number, other in enumerate(blocks):
            share = min(block.bbox[2], other.bbox[2]) - max(block.bbox[0], other.bbox[0])
            gap = max(other.bbox[1] - block.bbox[3], block.bbox[1] - other.bbox[3])
            if other.label in kinds and share > 0 and gap <= nearest:
                best, nearest = other_number, gap
        if best is not None:
            children.setdefault(best, []).append(block)
            taken.add(number)
    return [
        replace(block, children=(*block.children, *children.get(number, ())))
        for number, block in enumerate(blocks)
        if number not in taken
    ]


def finish_document(pages: Sequence[Page]) -> tuple[Page, ...]:
    """Pages whose blocks `arrange` has ordered, with what only the whole document tells."""
    pages = _mark_edges(pages)
    pages = _relevel_headings(pages)
    return _mark_continuations(pages)


def _pattern(block: Block) -> str:
    return re.sub(r"\d+", "#", " ".join(block.text.split())).casefold()


def _edge_of(block: Block, page: Page) -> str | None:
    if block.bbox[3] <= EDGE * page.height:
        return "header"
    return "footer" if block.bbox[1] >= (1 - EDGE) * page.height else None


def _mark_edges(pages: Sequence[Page]) -> list[Page]:
    """Text at the upper or lower edge that repeats on other pages, and numbers that stand there alone."""
    seen: Counter[tuple[str, str]] = Counter()
    for page in pages:
        found = {
            (edge, _pattern(b)) for b in page.blocks if (edge := _edge_of(b, page)) and b.content is None
        }
        seen.update(found)
    marked = []
    for page in pages:
        blocks = []
        for block in page.blocks:
            edge = None if block.content is not None else _edge_of(block, page)
            if edge and _NUMBER.fullmatch(block.text.strip()):
                block = replace(block, label="number", level=0)
            elif edge and seen[edge, _pattern(block)] > max(1, len(pages) // 4):
                block = replace(block, label=edge, level=0)
            blocks.append(block)
        ordered = [block for block in blocks if block.label not in _UNORDERED]
        rest = [replace(block, order=None) for block in blocks if block.label in _UNORDERED]
        ordered = [replace(block, order=number) for number, block in enumerate(ordered)]
        marked.append(replace(page, blocks=(*ordered, *rest)))
    return marked


def _size(block: Block) -> float:
    """The height of the block's lowest line, in pixels."""
    heights = [
        min(max(y for _, y in line.polygon) - min(y for _, y in line.polygon), 1e6) for line in block.lines
    ]
    return min(heights, default=block.bbox[3] - block.bbox[1])


def _relevel_headings(pages: Sequence[Page]) -> list[Page]:
    """Levels 1 to 6: of numbered headings by their numbers, of the others by size, the title before all."""
    headings = [b for page in pages for b in page.blocks if b.label == "paragraph_title"]
    shift = int(any(b.label == "doc_title" for page in pages for b in page.blocks))
    sizes: list[float] = []  # of the levels, from the largest
    for size in sorted(map(_size, headings), reverse=True):
        if not sizes or size < 0.88 * sizes[-1]:
            sizes.append(size)

    def level(block: Block) -> int:
        if block.label == "doc_title":
            return 1
        if block.label != "paragraph_title":
            return block.level
        depth = heading_depth(block.text)
        if depth is None:
            depth = next((n for n, size in enumerate(sizes, 1) if _size(block) >= 0.88 * size), len(sizes))
        return min(depth + shift, 6)

    return [replace(p, blocks=tuple(replace(b, level=level(b)) for b in p.blocks)) for p in pages]


def _mark_continuations(pages: Sequence[Page]) -> tuple[Page, ...]:
    """Sets `continued`, over column breaks and page breaks."""
    done: list[Page] = []
    last: Block | None = None  # that is read before
    for page in pages:
        blocks: list[Block] = []
        new_page = True
        for block in page.blocks:
            if block.order is None or block.label == "footnote":
                blocks.append(block)
                continue
            # Within a page only what begins beside the last block, or higher up, stands in another column.
            breaks = new_page or (last is not None and 2 * block.bbox[1] < last.bbox[1] + last.bbox[3])
            if last is not None and breaks and _goes_on(last, block, new_page):
                block = replace(block, continued=True)
            blocks.append(block)
            last, new_page = block, False
        done.append(replace(page, blocks=tuple(blocks)))
    return tuple(done)


def _goes_on(last: Block, first: Block, new_page: bool) -> bool:
    if isinstance(last.content, Table) and isinstance(first.content, Table):
        widths = [block.bbox[2] - block.bbox[0] for block in (last, first)]
        same_width = abs(widths[0] - widths[1]) < 0.1 * max(widths)
        return (
            new_page and last.content.columns == first.content.columns and same_width and not first.children
        )
    if first.label == "text" and last.label in ("text", "list_item"):
        text = first.text.lstrip()
        return bool(text) and not _END.search(last.text.rstrip()) and not text[0].isupper()
    return False
