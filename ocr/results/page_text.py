"""The text layer of a PDF page as lines of text.

Characters that follow one another on a baseline are a run; runs of one baseline that stand close to each other are a
line. Neighbours in the page's content may stand further apart than runs that only happen to be level: these are the
lines of two columns. A run stays as its content has it, also where another one overlaps it. Right-to-left text is in
the order in which it is read. What nobody can see, and watermarks, are kept apart.
"""

from __future__ import annotations

import math
import statistics
import unicodedata
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from framework.workflow.files.pdf_content import PageContent, PageText
from ocr.results.bidi import is_right_to_left, may_run_right, mirror
from ocr.results.char_marks import level_lines, linked_chars, struck_chars
from ocr.results.curved_text import curved_line, find_curves, turned_advances
from ocr.results.fractions import find_fractions, join_fractions
from ocr.results.geometry import bounding_box, box_polygon
from ocr.results.letter_spacing import Neighbours, spaced_letters
from ocr.results.lines import Char, CharTable, Line, LineStyle, Polygon, Word
from ocr.results.run_words import (
    RAISED_ALONE,
    Chars,
    Content,
    Run,
    by_place,
    in_order,
    is_leader,
    logical_words,
    spans,
    split_words,
)
from ocr.results.watermarks import find_watermarks

RUN_GAP = 1.0  # between neighbours in the content
SAME_PLACE = 0.2  # of the size: how far text that is drawn twice stands from itself
LEVEL_GAP = 0.6  # between runs that are level, but not neighbours: columns stand 1.0 apart and more
SLANT = 5.0  # degrees off the page's sides
LONGEST_RAISED, TOUCH = 12, 0.2  # characters and gap, in sizes, of what is raised without being smaller
BULLETS = "•▪◦‣⁃●■▸►➢✓❖"  # which stand before a word only as signs of a list's item
LEAST_SIZE = 2.0  # points: nobody reads smaller type

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
class TextLayer:
    """Lines with their styles, in the order in which the page's content draws them.

    `chars` counts the characters without spaces, `broken` those of them that the fonts do not map to Unicode.
    `watermarks` are lines that lie across the page's text; `hidden` are those that nobody can see, and `hidden_chars`
    says how many of their characters there are for each reason.
    """

    lines: tuple[Line, ...] = ()
    chars: int = 0
    broken: int = 0
    watermarks: tuple[Line, ...] = ()
    hidden: tuple[Line, ...] = ()
    hidden_chars: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


def read_text_layer(
    page: PageContent, *, keep_hidden: bool = False, keep_invisible: bool = False
) -> TextLayer:
    """The lines of a page: words from gaps, lines from baselines, superscripts with their line, columns apart.

    Args:
        keep_hidden: Whether what nobody can see stands among the lines.
        keep_invisible: Whether text does that is neither filled nor stroked, as that of searchable scans.
    """
    text = page.text
    if not text.text:
        return TextLayer()
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
    codes = [_character(value) for value in text.text]
    printed = np.array([bool(code.strip()) for code in codes])
    reasons = _hidden(page, sizes, angles) if not keep_hidden else {}
    if keep_invisible:
        reasons.pop("invisible", None)
    printed_there = printed & inside
    reasons = {"off the page": ~inside, **reasons} if not keep_hidden else reasons
    hidden = np.zeros(len(codes), bool)
    counts = []
    for reason, these in reasons.items():
        these = these & printed & ~hidden
        hidden |= these
        if these.any():
            counts.append((reason, int(these.sum())))
    seen = printed_there & ~hidden
    broken = sum(
        1
        for i in np.flatnonzero(seen)
        if text.unmapped[i] or codes[i] == "\ufffd" or unicodedata.category(codes[i][0]) in ("Co", "Cc", "Cn")
    )
    linked, addresses = linked_chars(page, seen) if page.annotations.links else (None, ())
    level, drawn = seen & (np.abs(angles) < 1), level_lines(page)
    content = Content(text, codes, sizes, struck_chars(page, level, sizes, drawn), linked, addresses)
    fractions = find_fractions(page, level, sizes, drawn)
    rest = seen.copy()
    for one in fractions:
        rest[one.numerator] = rest[one.denominator] = False
    lines = _lines_of(content, angles, rest)
    if fractions:
        lines = join_fractions(
            lines, fractions, lambda row: _lines_of(content, angles, _mask(row, len(codes)))
        )
    lines, watermarks = find_watermarks(lines, page, seen, sizes)
    return TextLayer(
        tuple(line for _, line in lines),
        int(seen.sum()),
        broken,
        tuple(watermarks),
        tuple(line for _, line in _lines_of(content, angles, hidden)),
        tuple(counts),
    )


def _mask(members: np.ndarray, count: int) -> np.ndarray:
    mask = np.zeros(count, bool)
    mask[members] = True
    return mask


def hidden_text(layer: TextLayer) -> list[str]:
    """What a page's warnings say of its hidden text: no line, or one."""
    if not layer.hidden:
        return []
    counts = ", ".join(f"{count} {reason}" for reason, count in layer.hidden_chars)
    return [f"characters that nobody can see are left out: {counts}; hidden=keep reads them"]


def lost_text(layer: TextLayer) -> list[str]:
    """What a page's warnings say of letters whose font does not name them: no line, or one."""
    if not layer.broken:
        return []
    count = f"{layer.broken} character{'s' * (layer.broken > 1)}"
    return [
        f"{count} of fonts that do not say which they are may be wrong or \ufffd; text_layer=never reads by OCR"
    ]


def _hidden(page: PageContent, sizes: np.ndarray, angles: np.ndarray) -> dict[str, np.ndarray]:
    """Which characters [N] nobody can see, by the reason."""
    text = page.text
    ink = np.maximum(text.boxes[:, 3] - text.boxes[:, 1], text.boxes[:, 2] - text.boxes[:, 0])
    invisible = np.array([style.invisible for style in text.styles], bool)[text.style]
    own = np.array([style.size for style in text.styles])[text.style]
    tiny = (own < LEAST_SIZE * page.scale) & (ink < LEAST_SIZE * page.scale)
    return {
        "invisible": invisible,
        "of its ground's colour, clear, drawn over, cut off or in a layer that is off": text.unseen,
        "too small": tiny,
    }


def _lines_of(content: Content, angles: np.ndarray, members: np.ndarray) -> list[tuple[int, Line]]:
    """The lines of some characters, each with where it begins in the content."""
    lines: list[tuple[int, Line]] = []
    for curve in find_curves(content.text, content.codes, angles, content.sizes, members):
        line = curved_line(content.text, content.codes, content.sizes, curve)
        lines.append((curve[0], replace(line, style=_line_style(content.text, np.array(curve)))))
        members = members & ~_mask(np.array(curve), len(members))
    for angle in sorted(set(np.round(angles[members] / 2) * 2 % 360)):
        near = np.abs((angles - angle + 180) % 360 - 180) <= 1.0
        lines += _lines_at(content, np.flatnonzero(members & near), float(angle))
    lines.sort(key=lambda item: item[0])
    return lines


def _character(value: str) -> str:
    if value < "\u00a0":
        return value
    if len(value) == 1 and ord(value) in _PRIVATE:
        return _PRIVATE[ord(value)]
    # Latin ligatures; letters of Arabic and Hebrew as they are shaped in a word.
    if "\ufb00" <= value <= "\ufb06" or "\ufb1d" <= value <= "\ufdcf" or "\ufe70" <= value <= "\ufefc":
        return unicodedata.normalize("NFKC", value).strip() or value
    if (
        value
        in "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000\u200b\ufeff"
    ):
        return " "
    return value


def _lines_at(content: Content, members: np.ndarray, angle: float) -> list[tuple[int, Line]]:
    """The lines of the characters that are turned clockwise by `angle`, each with where it begins in the content."""
    if not len(members):
        return []
    text, codes = content.text, content.codes
    turn = math.radians(angle)
    along, across = np.array([math.cos(turn), math.sin(turn)]), np.array([-math.sin(turn), math.cos(turn)])
    base = text.origins[members] @ across
    size = content.sizes[members]
    if min(angle % 90, 90 - angle % 90) > SLANT:
        left, right, top, bottom = _slanted_extents(text, members, along, base, size)
    else:
        corners = text.cells[members][:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
        us, vs = corners @ along, corners @ across
        left, right, top, bottom = us.min(1), us.max(1), vs.min(1), vs.max(1)
    if len(members) > 2 and _is_vertical(base, left, size):
        return _vertical_lines(content, members)
    # A new run starts where the baseline changes, the text jumps back, or the gap is wide.
    gap = left[1:] - right[:-1]
    level = np.abs(base[1:] - base[:-1]) < 0.12 * np.maximum(size[1:], size[:-1])
    em = np.maximum(size[1:], size[:-1])
    spaced = np.diff(members) > 1  # a space character between them
    # A note's number may be level with the next column's text: letters of other sizes have to stand closer.
    alike = np.minimum(size[1:], size[:-1]) >= 0.98 * em
    limit = np.where(alike, np.where(spaced, np.maximum(RUN_GAP, 1.2), RUN_GAP), LEVEL_GAP) * em
    joined = level & (gap < limit) & (gap > -0.7 * em)
    blank = np.array([code == " " for code in codes])
    spaces, seen_spaces = np.cumsum(blank & ~text.generated), np.cumsum(blank & text.generated)
    texts = [codes[int(i)] for i in members]
    objects = text.objects[members]
    apart = np.diff(spaces[members])
    near = Neighbours(gap, em, level & (gap > -0.7 * em), objects[1:] == objects[:-1], apart > 0)
    tied, in_line = spaced_letters(texts, near, int(apart.sum()))
    joined |= tied | in_line
    if may_run_right("".join(codes)):
        rightward = np.array([is_right_to_left(codes[int(i)]) for i in members])
        # Such letters may follow one another to the left.
        back = left[:-1] - right[1:]
        either = rightward[1:] | rightward[:-1]
        joined |= level & either & (back < limit) & (back > -0.7 * em)
    starts = np.flatnonzero(np.concatenate([[True], ~joined]))
    ends = np.append(starts[1:], len(members))
    chars = Chars(
        members,
        texts,
        left.tolist(),
        right.tolist(),
        top.tolist(),
        bottom.tolist(),
        size.tolist(),
        base.tolist(),
        objects.tolist(),
        spaces[members].tolist(),
        seen_spaces[members].tolist(),
        [False, *tied.tolist()],
    )
    runs = [
        Run(
            [list(range(s, e))],
            min(chars.left[s:e]),
            max(chars.right[s:e]),
            statistics.median(chars.base[s:e]),
            statistics.median(chars.size[s:e]),
            int(e),
            int(s),
            int(e - s),
        )
        for s, e in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    runs = _drawn_once(runs, chars, [text.styles[n].invisible for n in text.style[members]])
    return [_line(content, chars, run, (along, across), angle) for run in _join(_join_raised(runs))]


def _drawn_once(runs: list[Run], chars: Chars, invisible: list[bool]) -> list[Run]:
    """The runs without those that say what another one says at its place: text is drawn twice to look bold, or for a
    shadow. What is seen does not stand for what is not.
    """
    runs_by_text: dict[tuple[str, bool], list[Run]] = {}
    once: list[Run] = []
    for run in runs:
        text = "".join(chars.codes[run.first : run.last])
        others = runs_by_text.setdefault((text, invisible[run.first]), [])
        near = SAME_PLACE * run.size
        if not any(abs(run.left - one.left) < near and abs(run.base - one.base) < near for one in others):
            others.append(run)
            once.append(run)
    return once


def _slanted_extents(
    text: PageText, members: np.ndarray, along: np.ndarray, base: np.ndarray, size: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Left, right, top and bottom of characters that are upright in no direction, from where they begin: their boxes
    are far wider than they are.
    """
    left = text.origins[members] @ along
    right = left + turned_advances(text, size, members)
    return left, right, base - 0.8 * size, base + 0.2 * size


def _is_vertical(base: np.ndarray, left: np.ndarray, size: np.ndarray) -> bool:
    """Whether upright characters follow one another downwards: East Asian columns."""
    down, along = np.diff(base), np.diff(left)
    steps = (np.abs(along) < 0.4 * size[1:]) & (down > 0.6 * size[1:]) & (down < 2.2 * size[1:])
    return bool(steps.mean() > 0.6)


def _join_raised(runs: list[Run]) -> list[Run]:
    """Runs, those that are raised or lowered, whatever the size of their type, with the run that they touch: few
    characters that follow it in the content.
    """
    joined: list[Run] = []
    for run in runs:
        before = joined[-1] if joined else None
        if before is not None and before.count >= run.count <= LONGEST_RAISED:
            rise, gap = abs(run.base - before.base), run.left - before.right
            level = RAISED_ALONE * before.size < rise < 0.6 * before.size
            if level and run.size <= before.size and abs(gap) < TOUCH * before.size:
                joined[-1] = _merged(before, run)
                continue
        joined.append(run)
    return joined


def _merged(first: Run, second: Run) -> Run:
    big = first if first.count * first.size >= second.count * second.size else second
    return Run(
        first.parts + second.parts,
        min(first.left, second.left),
        max(first.right, second.right),
        big.base,
        big.size,
        max(first.last, second.last),
        first.first,
        first.count + second.count,
    )


def _join(runs: list[Run]) -> list[Run]:
    """Runs of one line together: level ones at a small gap, and superscripts and subscripts with their neighbour."""
    runs = sorted(runs, key=lambda run: run.base)
    groups: list[Run | None] = list(runs)
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
                    groups[i] = run = _merged(run, other)
                    groups[j] = None
                    changed = True
    return [run for run in groups if run is not None]


def _belongs(first: Run, second: Run) -> bool:
    left, right = (first, second) if first.left <= second.left else (second, first)
    gap = right.left - left.right
    big, small = max(first.size, second.size), min(first.size, second.size)
    rise = abs(first.base - second.base)
    inner, outer = (first, second) if first.size <= second.size else (second, first)
    inside = outer.left <= inner.left and inner.right <= outer.right
    if small < 0.93 * big and rise < 0.6 * big and inside:
        return True  # a superscript in the gap that it fills
    if gap < -0.5 * big and not (gap > -1.5 * big and small < 0.93 * big):
        return False
    neighbours = min(abs(left.last - right.first), abs(right.last - left.first)) <= 1
    if rise < 0.15 * big:
        return gap < (RUN_GAP if neighbours else LEVEL_GAP) * big
    return small < 0.93 * big and rise < 0.6 * big and gap < 0.35 * big


def _line(
    content: Content, chars: Chars, run: Run, axes: tuple[np.ndarray, np.ndarray], angle: float
) -> tuple[int, Line]:
    members, codes, left, right, top, bottom = chars[:6]
    (ax, ay), (bx, by) = axes[0].tolist(), axes[1].tolist()

    def polygon(u0: float, v0: float, u1: float, v1: float) -> Polygon:
        return (
            (u0 * ax + v0 * bx, u0 * ay + v0 * by),
            (u1 * ax + v0 * bx, u1 * ay + v0 * by),
            (u1 * ax + v1 * bx, u1 * ay + v1 * by),
            (u0 * ax + v1 * bx, u0 * ay + v1 * by),
        )

    rightward = may_run_right("".join([codes[i] for part in run.parts for i in part]))
    order = by_place(chars, run) if rightward else in_order(chars, run)
    words = split_words(chars, order, rightward)
    first = words[0]
    if len(first) > 1 and codes[first[0]] in BULLETS and codes[first[1]].isalnum():
        words[:1] = [first[:1], first[1:]]  # "•10 %": writers of PDFs leave the space out
    turned: set[int] = set()
    if rightward:
        words, turned = logical_words(chars, words)
    said = codes if not turned else [mirror(code) if i in turned else code for i, code in enumerate(codes)]
    table = CharTable(said, left, top, right, bottom)
    may_be_raised = run.has_raised(chars)
    made, boxes = [], []
    for word in words:
        box = (
            min([left[i] for i in word]),
            min([top[i] for i in word]),
            max([right[i] for i in word]),
            max([bottom[i] for i in word]),
        )
        boxes.append(box)
        if is_leader(chars, word) and word is not words[-1]:
            if not made or made[-1].text != "…":  # leaders are one sign, however many dots they are
                made.append(Word("…", 1.0, polygon(*box), (Char("…", 1.0, polygon(*box)),)))
            continue
        text = "".join([said[i] for i in word])
        marks = spans(content, chars, word, run, may_be_raised)
        if angle == 0:
            made.append(Word.of_table(text, polygon(*box), table, word, marks))
            continue
        parts = tuple(
            Char(said[i], 1.0, polygon(left[i], top[i], max(right[i], left[i]), bottom[i])) for i in word
        )
        made.append(Word(text, 1.0, polygon(*box), parts, marks))
    at = members[order]
    line = Line(
        " ".join(word.text for word in made),
        1.0,
        polygon(*bounding_box(boxes)),
        tuple(made),
        orientation=round(angle / 90) * 90 % 360,
        vertical=False,
        style=_line_style(content.text, at),
    )
    return int(at.min()), line


def _line_style(text: PageText, at: np.ndarray) -> LineStyle:
    styles = Counter(text.style[at].tolist())
    most = text.styles[styles.most_common(1)[0][0]]
    total = len(at)
    bold = sum(n for s, n in styles.items() if text.styles[s].bold)
    italic = sum(n for s, n in styles.items() if text.styles[s].italic)
    hidden = sum(n for s, n in styles.items() if text.styles[s].invisible)
    mono = sum(n for s, n in styles.items() if text.styles[s].mono)
    return LineStyle(
        most.size,
        bold > total / 2,
        italic > total / 2,
        most.font,
        hidden > total / 2,
        bool(text.hyphen[at[-1]]),
        mono > 0.8 * total,
    )


def _vertical_lines(content: Content, members: np.ndarray) -> list[tuple[int, Line]]:
    """Columns of upright characters, top to bottom."""
    text, codes, sizes = content.text, content.codes, content.sizes
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
        chars = tuple(Char(codes[i], 1.0, box_polygon(text.cells[i])) for i in column)
        boxes = text.cells[column]
        outer = box_polygon(bounding_box(boxes))
        said = "".join(char.text for char in chars)
        style = _line_style(text, np.array(column))
        found.append((column[0], Line(said, 1.0, outer, (Word(said, 1.0, outer, chars),), 0, True, style)))
    return found
