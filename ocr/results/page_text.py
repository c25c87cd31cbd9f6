"""The text layer of a PDF page as lines of text, and whether it can stand in for OCR.

Characters that follow one another on a baseline are a run; runs of one baseline that stand close to each other are a
line. Neighbours in the page's content may stand further apart than runs that only happen to be level: these are the
lines of two columns.
"""

from __future__ import annotations

import math
import statistics
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from framework.workflow.files.pdf_content import PageContent, PageText
from ocr.results.blocks import Box
from ocr.results.lines import Char, Line, Polygon, Word

WORD_GAP = 0.17  # of the font size, over the line's own letter spacing
RUN_GAP = 1.0  # between neighbours in the content
LEVEL_GAP = 0.6  # between runs that are level, but not neighbours: columns stand 1.0 apart and more

# Bullets and marks of Symbol and Wingdings, which have no Unicode map.
_PRIVATE = {
    0xF0B7: "•",
    0xF0A7: "▪",
    0xF0A8: "□",
    0xF06F: "□",
    0xF0D8: "➢",
    0xF0FC: "✓",
    0xF0E0: "→",
    0xF076: "❖",
    0xF0B0: "°",
    0xF0B1: "±",
}


@dataclass(frozen=True)
class LineStyle:
    """How most of a line is set. `size` in pixels of the page."""

    size: float
    bold: bool
    italic: bool
    font: str
    invisible: bool = False


@dataclass(frozen=True)
class TextLayer:
    """Lines in the order in which the page's content draws them, `styles[i]` that of `lines[i]`.

    `chars` counts the characters without spaces, `broken` those of them that the fonts do not map to Unicode;
    `hyphens[i]` says that line i ends in a hyphen that breaks a word over two lines, as the document marks it.
    """

    lines: tuple[Line, ...]
    styles: tuple[LineStyle, ...]
    chars: int = 0
    broken: int = 0
    hyphens: tuple[bool, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True)
class TextLayerRule:
    """When a text layer is good enough to take the place of OCR.

    Attributes:
        min_chars: So many characters are needed on a page with images or drawings that may hold text.
        max_broken: The share of characters without a Unicode map from which on the layer is not believed.
        scan_area: An image of this share of the page may be a scan.
        min_cover: On it, lines must cover this share of its height.
        accept_invisible: Believe the invisible text of searchable scans, that is another program's OCR.
    """

    min_chars: int = 50
    max_broken: float = 0.05
    scan_area: float = 0.5
    min_cover: float = 0.08
    accept_invisible: bool = False


@dataclass(frozen=True)
class Usable:
    """Whether the text layer is used, and why. True where `usable` is."""

    usable: bool
    reason: str

    def __bool__(self) -> bool:
        return self.usable


def line_box(line: Line | Word | Char) -> Box:
    """The upright box around a line, word or character."""
    xs, ys = zip(*line.polygon, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def read_text_layer(page: PageContent) -> TextLayer:
    """The lines of a page: words from gaps, lines from baselines, superscripts with their line, columns apart."""
    text = page.text
    if not text.text:
        return TextLayer((), ())
    sizes = np.array([style.size for style in text.styles])[text.style]
    heights = np.maximum(text.cells[:, 3] - text.cells[:, 1], 1.0)
    sizes = np.where(sizes > 0.5, sizes, heights)
    angles = np.array([style.angle for style in text.styles])[text.style]
    inside = (
        (text.boxes[:, 2] > -2)
        & (text.boxes[:, 3] > -2)
        & (text.boxes[:, 0] < page.width + 2)
        & (text.boxes[:, 1] < page.height + 2)
    )
    visible_alpha = np.array([style.color[3] > 0 or style.invisible for style in text.styles])[text.style]
    codes = [_character(value) for value in text.text]
    printed = np.array([bool(code.strip()) for code in codes]) & inside & visible_alpha
    if not printed.any():
        return TextLayer((), ())
    broken = sum(
        1
        for i in np.flatnonzero(printed)
        if text.unmapped[i] or codes[i] == "\ufffd" or unicodedata.category(codes[i][0]) in ("Co", "Cc", "Cn")
    )
    lines: list[tuple[int, Line, LineStyle, bool]] = []
    for angle in sorted(set(np.round(angles[printed] / 2) * 2 % 360)):
        near = np.abs((angles - angle + 180) % 360 - 180) <= 1.0
        members = np.flatnonzero(printed & near)
        lines += _lines_at(text, codes, sizes, members, float(angle))
    lines.sort(key=lambda item: item[0])
    return TextLayer(
        tuple(item[1] for item in lines),
        tuple(item[2] for item in lines),
        int(printed.sum()),
        broken,
        tuple(item[3] for item in lines),
    )


def _character(value: str) -> str:
    if len(value) == 1 and ord(value) in _PRIVATE:
        return _PRIVATE[ord(value)]
    if "\ufb00" <= value <= "\ufb06":  # Latin ligatures
        return unicodedata.normalize("NFKC", value)
    if (
        value
        in "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000\u200b\ufeff"
    ):
        return " "
    return value


class _Chars(NamedTuple):
    """The characters of one angle: their places in the page's text, extents along and across the text, sizes of the
    font, and how many spaces of the document come before each.
    """

    members: np.ndarray
    left: list[float]
    right: list[float]
    top: list[float]
    bottom: list[float]
    size: list[float]
    spaces: list[int]


@dataclass
class _Run:
    """Characters `at` of one baseline: u along the text, v across it."""

    at: list[int]
    left: float
    right: float
    base: float
    size: float
    last: int  # the place in the content of its end


def _lines_at(
    text: PageText, codes: Sequence[str], sizes: np.ndarray, members: np.ndarray, angle: float
) -> list[tuple[int, Line, LineStyle, bool]]:
    """The lines of the characters that are turned clockwise by `angle`."""
    turn = math.radians(angle)
    along, across = np.array([math.cos(turn), math.sin(turn)]), np.array([-math.sin(turn), math.cos(turn)])
    corners = text.cells[members][:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
    us, vs = corners @ along, corners @ across
    left, right, top, bottom = us.min(1), us.max(1), vs.min(1), vs.max(1)
    base = text.origins[members] @ across
    size = sizes[members]
    if len(members) > 2 and _is_vertical(base, left, size):
        return _vertical_lines(text, codes, sizes, members)
    # A new run starts where the baseline changes, the text jumps back, or the gap is wide.
    gap = left[1:] - right[:-1]
    level = np.abs(base[1:] - base[:-1]) < 0.12 * np.maximum(size[1:], size[:-1])
    em = np.maximum(size[1:], size[:-1])
    spaced = np.diff(members) > 1  # a space character between them
    limit = np.where(spaced, np.maximum(RUN_GAP, 1.2), RUN_GAP) * em
    joined = level & (gap < limit) & (gap > -0.7 * em)
    starts = np.flatnonzero(np.concatenate([[True], ~joined]))
    ends = np.append(starts[1:], len(members))
    spaces = np.cumsum(np.array([code == " " for code in codes]) & ~text.generated)
    chars = _Chars(
        members,
        left.tolist(),
        right.tolist(),
        top.tolist(),
        bottom.tolist(),
        size.tolist(),
        spaces[members].tolist(),
    )
    bases = base.tolist()
    runs = [
        _Run(
            list(range(s, e)),
            min(chars.left[s:e]),
            max(chars.right[s:e]),
            statistics.median(bases[s:e]),
            statistics.median(chars.size[s:e]),
            int(e),
        )
        for s, e in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    found = []
    for run in _join(runs):
        order = sorted(run.at, key=lambda i: (chars.left[i], i))
        found.append(_line(text, codes, chars, order, (along, across), angle))
    return found


def _is_vertical(base: np.ndarray, left: np.ndarray, size: np.ndarray) -> bool:
    """Whether upright characters follow one another downwards: East Asian columns."""
    down, along = np.diff(base), np.diff(left)
    steps = (np.abs(along) < 0.4 * size[1:]) & (down > 0.6 * size[1:]) & (down < 2.2 * size[1:])
    return bool(steps.mean() > 0.6)


def _join(runs: list[_Run]) -> list[_Run]:
    """Runs of one line together: level ones at a small gap, and superscripts and subscripts with their neighbour."""
    runs = sorted(runs, key=lambda run: run.base)
    groups: list[_Run | None] = list(runs)
    bases = np.array([run.base for run in runs])
    changed = True
    while changed:
        changed = False
        for i, run in enumerate(groups):
            if run is None:
                continue
            reach = run.size * 0.75
            first, last = np.searchsorted(bases, [run.base - reach, run.base + reach])
            for j in range(int(first), int(last)):
                other = groups[j]
                if other is None or other is run:
                    continue
                if _belongs(run, other):
                    big = run if len(run.at) * run.size >= len(other.at) * other.size else other
                    groups[i] = run = _Run(
                        run.at + other.at,
                        min(run.left, other.left),
                        max(run.right, other.right),
                        big.base,
                        big.size,
                        max(run.last, other.last),
                    )
                    groups[j] = None
                    changed = True
    return [run for run in groups if run is not None]


def _belongs(first: _Run, second: _Run) -> bool:
    left, right = (first, second) if first.left <= second.left else (second, first)
    gap = right.left - left.right
    big, small = max(first.size, second.size), min(first.size, second.size)
    rise = abs(first.base - second.base)
    inner, outer = (first, second) if first.size <= second.size else (second, first)
    if small < 0.93 * big and rise < 0.6 * big and outer.left <= inner.left and inner.right <= outer.right:
        return True  # a superscript in the gap that it fills
    if gap < -0.5 * big and not (gap > -1.5 * big and small < 0.93 * big):
        return False
    neighbours = min(abs(left.last - right.at[0]), abs(right.last - left.at[0])) <= 1
    if rise < 0.15 * big:
        return gap < (RUN_GAP if neighbours else LEVEL_GAP) * big
    return small < 0.93 * big and rise < 0.6 * big and gap < 0.35 * big


def _line(
    text: PageText,
    codes: Sequence[str],
    chars: _Chars,
    order: list[int],
    axes: tuple[np.ndarray, np.ndarray],
    angle: float,
) -> tuple[int, Line, LineStyle, bool]:
    members, left, right, top, bottom, size, spaces = chars
    (ax, ay), (bx, by) = axes[0].tolist(), axes[1].tolist()

    def polygon(u0: float, v0: float, u1: float, v1: float) -> Polygon:
        return (
            (u0 * ax + v0 * bx, u0 * ay + v0 * by),
            (u1 * ax + v0 * bx, u1 * ay + v0 * by),
            (u1 * ax + v1 * bx, u1 * ay + v1 * by),
            (u0 * ax + v1 * bx, u0 * ay + v1 * by),
        )

    gaps = [left[after] - right[before] for before, after in pairwise(order)]
    spacing = max(statistics.median(gaps), 0.0) if len(gaps) > 3 else 0.0
    words: list[list[int]] = [[order[0]]]
    for gap, (before, after) in zip(gaps, pairwise(order), strict=True):
        em = min(size[after], size[before])
        wide = gap > (WORD_GAP + (spacing / em if spacing > 0.1 * em else 0.0)) * em
        spaced = spaces[after] > spaces[before]
        if wide or (spaced and gap > 0.02 * em and spacing < 0.1 * em):
            words.append([after])
        else:
            words[-1].append(after)
    made, boxes = [], []
    for word in words:
        parts = tuple(
            Char(codes[int(members[i])], 1.0, polygon(left[i], top[i], max(right[i], left[i]), bottom[i]))
            for i in word
        )
        box = (
            min(left[i] for i in word),
            min(top[i] for i in word),
            max(right[i] for i in word),
            max(bottom[i] for i in word),
        )
        boxes.append(box)
        made.append(Word("".join(char.text for char in parts), 1.0, polygon(*box), parts))
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    line = Line(
        " ".join(word.text for word in made),
        1.0,
        polygon(min(lefts), min(tops), max(rights), max(bottoms)),
        tuple(made),
        orientation=round(angle / 90) * 90 % 360,
        vertical=False,
    )
    at = members[order]
    return int(at.min()), line, _line_style(text, at), bool(text.hyphen[at[-1]])


def _line_style(text: PageText, at: np.ndarray) -> LineStyle:
    styles = Counter(text.style[at].tolist())
    most = text.styles[styles.most_common(1)[0][0]]
    total = len(at)
    bold = sum(n for s, n in styles.items() if text.styles[s].bold)
    italic = sum(n for s, n in styles.items() if text.styles[s].italic)
    hidden = sum(n for s, n in styles.items() if text.styles[s].invisible)
    return LineStyle(most.size, bold > total / 2, italic > total / 2, most.font, hidden > total / 2)


def _vertical_lines(
    text: PageText, codes: Sequence[str], sizes: np.ndarray, members: np.ndarray
) -> list[tuple[int, Line, LineStyle, bool]]:
    """Columns of upright characters, top to bottom."""
    columns: list[list[int]] = []
    for i in members.tolist():
        if columns:
            before = text.cells[columns[-1][-1]]
            now, em = text.cells[i], sizes[i]
            centre = abs((now[0] + now[2]) - (before[0] + before[2])) / 2
            if centre < 0.5 * em and -0.5 * em < now[1] - before[3] < RUN_GAP * em:
                columns[-1].append(i)
                continue
        columns.append([i])
    found = []
    for column in columns:
        chars = tuple(Char(codes[i], 1.0, _upright(text.cells[i])) for i in column)
        boxes = text.cells[column]
        outer = _upright(np.concatenate([boxes[:, :2].min(0), boxes[:, 2:].max(0)]))
        content = "".join(char.text for char in chars)
        line = Line(content, 1.0, outer, (Word(content, 1.0, outer, chars),), orientation=0, vertical=True)
        found.append((column[0], line, _line_style(text, np.array(column)), bool(text.hyphen[column[-1]])))
    return found


def _upright(box: np.ndarray) -> Polygon:
    left, top, right, bottom = (float(value) for value in box)
    return (left, top), (right, top), (right, bottom), (left, bottom)


def is_usable(layer: TextLayer, page: PageContent, rule: TextLayerRule | None = None) -> Usable:
    """Whether the text layer of this page tells what the page shows, so that OCR is not needed."""
    rule = rule or TextLayerRule()
    area = max(page.width * page.height, 1)
    images = [_clip(box, page) for box in page.images]
    curves = sum(1 for path in page.paths if path.curved and path.fill is not None)
    if not layer.chars:
        if not images and curves < 20:
            return Usable(True, "the page has no text, no images and no drawings with curves")
        what = "images" if images else "drawings that may be text as outlines"
        return Usable(False, f"no text, but {what}")
    share = layer.broken / layer.chars
    if share >= rule.max_broken:
        return Usable(False, f"{layer.broken} of {layer.chars} characters have no Unicode map")
    hidden = sum(len(line.text) for line, s in zip(layer.lines, layer.styles, strict=True) if s.invisible)
    shown = sum(len(line.text) for line in layer.lines) - hidden
    if hidden > shown and images and not rule.accept_invisible:
        return Usable(False, "invisible text over an image: another program's OCR of a scan")
    boxes = [
        line_box(line)
        for line, style in zip(layer.lines, layer.styles, strict=True)
        if rule.accept_invisible or not style.invisible
    ]
    for image in images:
        if _area(image) < rule.scan_area * area:
            continue
        spans = [(b[1], b[3]) for b in boxes if _area(_cut(b, image)) > 0.5 * max(_area(b), 1e-6)]
        if _covered(spans) < rule.min_cover * (image[3] - image[1]):
            return Usable(
                False, f"an image covers {_area(image) / area:.0%} of the page with hardly any text on it"
            )
    if layer.chars < rule.min_chars:
        if sum(map(_area, images)) > 0.05 * area:
            return Usable(False, f"only {layer.chars} characters beside images")
        if curves > 20 + 5 * layer.chars:
            return Usable(
                False, f"only {layer.chars} characters beside drawings that may be text as outlines"
            )
    return Usable(True, f"{layer.chars} characters with a Unicode map")


def images_without_text(layer: TextLayer, page: PageContent, *, min_area: float = 0.01) -> tuple[Box, ...]:
    """Boxes of images of at least `min_area` of the page on which no line of the layer lies: OCR may read these."""
    boxes = [line_box(line) for line in layer.lines]
    found = []
    for box in page.images:
        image = _clip(box, page)
        if _area(image) >= min_area * page.width * page.height and not any(
            _area(_cut(b, image)) > 0.5 * _area(b) for b in boxes
        ):
            found.append(image)
    return tuple(found)


def _clip(box: np.ndarray, page: PageContent) -> Box:
    left, top, right, bottom = (float(value) for value in box)
    return _cut((left, top, right, bottom), (0.0, 0.0, float(page.width), float(page.height)))


def _cut(first: Box, second: Box) -> Box:
    left, top = max(first[0], second[0]), max(first[1], second[1])
    return left, top, max(left, min(first[2], second[2])), max(top, min(first[3], second[3]))


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _covered(spans: list[tuple[float, float]]) -> float:
    total, end = 0.0, -math.inf
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total
