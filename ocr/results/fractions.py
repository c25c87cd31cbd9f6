"""Fractions of a PDF's text, which are set over several lines: numerator, rule and denominator become text of one line.

A fraction is told by its places: a short rule, over it and below it one row of characters each that stand by themselves
in its middle, one of them nearly as wide. Rows of tables, sums and underlined words look alike; so beside the rule has
to be an operator, or the rows have to be mathematics and no words. Fractions within fractions are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from framework.workflow.files.pdf_content import PageContent
from ocr.results.geometry import Box, bounding_box, box_polygon, line_box
from ocr.results.lines import Char, Line, Word

# Multiples of the size of the type.
SHORTEST, LONGEST = 0.25, 30.0  # of the rule
NUMERATOR, DENOMINATOR = (0.0, 1.0), (0.5, 1.4)  # from the rule to the baseline
SCRIPTS = 0.3  # nearer or further away at most: raised and lowered characters of these
ROW = 0.75  # from the nearest to the furthest baseline of a row, with such characters
SMALL = 0.87  # their size, to that of the others of the row; that of a fraction in a line of text
LEVEL = 0.15  # between baselines of a row
OUT, OFF = 0.3, 0.35  # how far a row reaches beyond the rule; how far its middle is off that of the rule
ALONE = 0.5  # white beside each row
AXIS = (-0.05, 0.6)  # from the rule to the baseline of what stands beside it
BESIDE = 1.5  # white between them, at most
JOINED = 1.0  # white between a fraction and a line that it is a part of
COLUMN = 6.0  # up to so far away a second rule of the same ends says that both are of a table

FILLED = 0.6  # of the rule's width: the wider one of both rows
_OPERATORS = "=<>≤≥≈≡≠±∓×÷+−–-·∗*∝→∼~([{)]}√∫∑∏,;"
_OPERATOR = re.compile(r"[=<>≤≥≈≡≠±×÷+−·∑∏∫√^-]")
_WORD = re.compile(r"[^\W\d_]{4,}")
_LONE = 3  # characters of each row of a fraction that nothing else tells
_PLAIN = re.compile(r"\w+|\w+[!'′]|\S")


class Fraction(NamedTuple):
    """Its rule (y, left, right), and the numbers of the characters over and below it."""

    rule: tuple[float, float, float]
    numerator: np.ndarray
    denominator: np.ndarray


def find_fractions(
    page: PageContent, printed: np.ndarray, sizes: np.ndarray, rules: np.ndarray
) -> list[Fraction]:
    """The fractions among the upright characters of a page, from left to right.

    Args:
        printed: [N], which characters are looked at.
        sizes: [N] of the type, in pixels.
        rules: The page's `level_lines`.
    """
    at = np.flatnonzero(printed)
    if not len(at) or not len(rules):
        return []
    widths = rules[:, 2] - rules[:, 1]
    rules = rules[(widths > SHORTEST * sizes[at].min()) & (widths < LONGEST * sizes[at].max())]
    candidates = [
        one for rule in rules.tolist() if (one := _around(page, at, sizes, rule, rules)) is not None
    ]
    inside = np.zeros(len(printed), bool)
    for one in candidates:
        inside[one.numerator] = inside[one.denominator] = True
    others = at[~inside[at]]
    ends = [one.rule for one in candidates]
    sure = [
        one
        for one in candidates
        if all(_is_alone(page, row, others, sizes) for row in (one.numerator, one.denominator))
        and _is_mathematics(page, one, others, sizes, rules, ends)
    ]
    uses = np.zeros(len(printed), int)
    for one in sure:
        uses[one.numerator] += 1
        uses[one.denominator] += 1
    sure = [one for one in sure if max(uses[one.numerator].max(), uses[one.denominator].max()) == 1]
    return sorted(sure, key=lambda one: one.rule[1])


def _around(
    page: PageContent, at: np.ndarray, sizes: np.ndarray, rule: Sequence[float], rules: np.ndarray
) -> Fraction | None:
    """What stands over and below a rule (y, left, right, thickness), where that may be a fraction."""
    y, left, right, _ = rule
    text = page.text
    middle = (text.cells[at, 0] + text.cells[at, 2]) / 2
    near = at[(middle > left) & (middle < right) & (np.abs(text.origins[at, 1] - y) < 2 * sizes[at])]
    rows = [_row(page, near, sizes, y, above) for above in (True, False)]
    if min(map(len, rows)) == 0:
        return None
    em = float(max(sizes[row].max() for row in rows))
    between = (np.abs(rules[:, 0] - y) > 0.1 * em) & (np.abs(rules[:, 0] - y) < 2 * em)
    if (between & (rules[:, 1] < right) & (rules[:, 2] > left)).any():
        return None
    extents = [(text.cells[row, 0].min(), text.cells[row, 2].max()) for row in rows]
    off = OFF * em + 0.05 * (right - left)
    for first, last in extents:
        if first < left - OUT * em or last > right + OUT * em or abs(first + last - left - right) / 2 > off:
            return None
    if max(last - first for first, last in extents) < FILLED * (right - left):
        return None
    return Fraction((y, left, right), rows[0], rows[1])


def _row(page: PageContent, near: np.ndarray, sizes: np.ndarray, y: float, above: bool) -> np.ndarray:
    """Those of the characters around a rule that are the row over or below it; none where there is none."""
    least, most = NUMERATOR if above else DENOMINATOR
    away = (page.text.origins[near, 1] - y) * (-1 if above else 1)
    scaled = away / sizes[near]
    side = (scaled > least - SCRIPTS) & (scaled < most + SCRIPTS) & (away > 0)
    near, away = near[side], away[side]
    if not len(near):
        return near
    first = away - away.min()
    size = float(sizes[near[first < 0.4 * sizes[near]]].max())
    row = near[first < ROW * size]
    large = row[sizes[row] >= SMALL * sizes[row].max()]
    drop = np.abs(page.text.origins[large, 1] - y)
    level = np.ptp(drop) < LEVEL * size and least * size <= drop[0] <= most * size
    return row if level else row[:0]


def _is_alone(page: PageContent, row: np.ndarray, others: np.ndarray, sizes: np.ndarray) -> bool:
    """Whether a row of a fraction has white on both sides, unlike a word in a line."""
    text = page.text
    em = float(sizes[row].max())
    base = float(np.median(text.origins[row[sizes[row] >= SMALL * em], 1]))
    level = np.abs(text.origins[others, 1] - base) < 0.3 * em
    left, right = text.cells[row, 0].min(), text.cells[row, 2].max()
    beside = (text.cells[others, 2] > left - ALONE * em) & (text.cells[others, 0] < right + ALONE * em)
    return not (level & beside).any()


def _is_mathematics(
    page: PageContent,
    one: Fraction,
    others: np.ndarray,
    sizes: np.ndarray,
    rules: np.ndarray,
    ends: Sequence[tuple[float, float, float]],
) -> bool:
    """Whether an operator, a bracket or another fraction stands beside the rule, or both rows are mathematics."""
    text, (y, left, right) = page.text, one.rule
    em = float(sizes[np.concatenate([one.numerator, one.denominator])].max())
    rise = (text.origins[others, 1] - y) / sizes[others]
    axis = others[(rise > AXIS[0]) & (rise < AXIS[1])]
    before, after = left - text.cells[axis, 2], text.cells[axis, 0] - right
    for gaps in (before, after):
        close = (gaps > -0.3 * em) & (gaps < BESIDE * em)
        if not close.any():
            continue
        next_to = axis[close][np.argmin(gaps[close])]
        if (
            text.text[next_to] in _OPERATORS or em < SMALL * sizes[next_to]
        ):  # or it is small, in a line of text
            return True
    if any(
        abs(other[0] - y) < 0.1 * em and 0 < max(left - other[2], other[1] - right) < BESIDE * em
        for other in ends
    ):
        return True
    ends_alike = (np.abs(rules[:, 1] - left) < 0.1 * em) & (np.abs(rules[:, 2] - right) < 0.1 * em)
    apart = np.abs(rules[:, 0] - y)
    if (ends_alike & (apart > 0.1 * em) & (apart < COLUMN * em)).any():
        return False
    texts = ["".join(text.text[i] for i in row) for row in (one.numerator, one.denominator)]
    if any(map(_WORD.search, texts)) or not any(char.isalpha() for char in "".join(texts)):
        return False
    return any(map(_OPERATOR.search, texts)) or max(map(len, texts)) <= _LONE


def join_fractions(
    lines: Sequence[tuple[int, Line]],
    fractions: Sequence[Fraction],
    lines_of: Callable[[np.ndarray], list[tuple[int, Line]]],
) -> list[tuple[int, Line]]:
    """Lines, each with where it begins in the content, with fractions in those that they are a part of.

    Args:
        lines: Of the characters that are in no fraction.
        lines_of: Makes the lines of some characters, given by their numbers.
    """
    joined = list(lines)
    for one in fractions:
        rows = [lines_of(row) for row in (one.numerator, one.denominator)]
        if any(len(row) != 1 for row in rows):
            joined += [line for row in rows for line in row]
            continue
        (over_at, over), (below_at, below) = rows[0][0], rows[1][0]
        words = [*_in_brackets(over.words), _rule_sign(one.rule), *_in_brackets(below.words)]
        whole, first = _line(over, words), min(over_at, below_at)
        y, left, right = one.rule
        beside: list[Line] = []
        while (near := _beside(joined, y, left, right)) is not None:
            at, line = joined.pop(near)
            box = line_box(line)
            left, right, first = min(left, box[0]), max(right, box[2]), min(first, at)
            beside.append(line)
        if beside:
            beside.sort(key=lambda line: line_box(line)[0])
            others = [word for line in beside for word in line.words]
            cut = sum(line_box(word)[0] < one.rule[1] for word in others)
            whole = _line(
                max(beside, key=lambda line: len(line.text)), [*others[:cut], *words, *others[cut:]]
            )
        joined.append((first, whole))
    return sorted(joined, key=lambda item: item[0])


def _beside(lines: Sequence[tuple[int, Line]], y: float, left: float, right: float) -> int | None:
    """The number of a line at the height of a rule that touches what stands from `left` to `right`; None of none."""
    for number, (_, line) in enumerate(lines):
        box = line_box(line)
        if line.orientation or line.vertical or not line.words or not box[1] < y < box[3]:
            continue
        size = line.style.size if line.style is not None else box[3] - box[1]
        if max(left - box[2], box[0] - right) < JOINED * size:
            return number
    return None


def _in_brackets(words: Sequence[Word]) -> list[Word]:
    """Words of one row, in brackets where they are more than a number or name."""
    if len(words) == 1 and _PLAIN.fullmatch(words[0].text):
        return list(words)
    first, last = words[0], words[-1]
    if first.text[0] == "(" and last.text[-1] == ")" and "".join(w.text for w in words).count("(") == 1:
        return list(words)
    opened = replace(
        first,
        text="(" + first.text,
        chars=(Char("(", 1.0, first.polygon), *first.chars),
        spans=tuple(replace(span, start=span.start + 1, end=span.end + 1) for span in first.spans),
    )
    closed = opened if len(words) == 1 else last
    closed = replace(closed, text=closed.text + ")", chars=(*closed.chars, Char(")", 1.0, last.polygon)))
    return [closed] if len(words) == 1 else [opened, *words[1:-1], closed]


def _rule_sign(rule: tuple[float, float, float]) -> Word:
    y, left, right = rule
    polygon = box_polygon((left, y, right, y))
    return Word("/", 1.0, polygon, (Char("/", 1.0, polygon),))


def _line(like: Line, words: Sequence[Word]) -> Line:
    """A line of words, set as another one is."""
    box: Box = bounding_box(map(line_box, words))
    return replace(
        like, text=" ".join(word.text for word in words), polygon=box_polygon(box), words=tuple(words)
    )
