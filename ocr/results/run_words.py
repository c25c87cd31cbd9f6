"""The characters of one line of a PDF's text: their order, their words, and what is raised, struck out or a link."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from framework.workflow.files.pdf_content import PageText
from ocr.results.bidi import logical_order
from ocr.results.lines import is_unspaced
from ocr.results.spans import Span

WORD_GAP = 0.17  # of the font size, over the line's own letter spacing
# The same beside Chinese and Japanese, whose programs set up to a quarter between them and Latin letters or digits.
UNSPACED_GAP = 0.4
TIGHT_GAP, UNSPACED = 0.1, 0.03  # where the reader of the PDF saw a space, and letters stand no further apart
EVEN, EVEN_SHARE = 0.06, 0.7  # of the font size, by which letters stand apart or overlap; of them, at least
OVERLAPPING = (
    0.15  # of the texts of a line: so many begin on the end of the one before them where each is a word
)
WORD_CHARS = 2.0  # of such texts, in the mean
OVERLAP = (0.12, 0.3)  # of the font size, by which texts must overlap to be two words; where one may go on
RAISED, LOWERED, SMALL = 0.15, 0.06, 0.87  # of the line's type: rise and drop of notes' numbers, their size
NARROWEST = 0.1  # of the font size, a space between right-to-left words
LEADERS = ".·․…_"  # which lead the eye to a page number
LEADER_CHARS = 4  # at least, in a row
LONGEST_NOTE = 6  # characters of a note's sign that stands alone
SIGNS = ("Sm", "Sc", "So", "Nl", "No")  # of Unicode: none of them is a letter of a word that is set apart
RAISED_ALONE = 0.25  # the rise that tells it whatever the size


@dataclass(frozen=True, eq=False)
class Content:
    """The characters of a page: what they say, the sizes of their type, which are struck out, and for each the number
    of the address behind it, -1 for none.
    """

    text: PageText
    codes: Sequence[str]
    sizes: np.ndarray
    struck: np.ndarray
    linked: np.ndarray | None = None
    addresses: tuple[str, ...] = ()

    @cached_property
    def is_marked(self) -> bool:
        """Whether anything is struck out or a link."""
        return bool(self.struck.any()) or self.linked is not None


class Chars(NamedTuple):
    """The characters of one angle: their places in the page's text, what they say, extents along and across the text,
    sizes of the font, baselines, text objects, how many spaces come before each, of the document and of PDFium, which
    sees some in the gaps, and whether each goes on in the word of the one before it, though it stands apart.
    """

    members: np.ndarray
    codes: list[str]
    left: list[float]
    right: list[float]
    top: list[float]
    bottom: list[float]
    size: list[float]
    base: list[float]
    object: list[int]
    spaces: list[int]
    seen_spaces: list[int]
    tied: list[bool]


@dataclass
class Run:
    """Characters of one baseline: u along the text, v across it. `parts` are those that follow one another in the
    content, in its order.
    """

    parts: list[list[int]]
    left: float
    right: float
    base: float
    size: float
    last: int  # the place in the content of its end
    first: int  # and of its beginning
    count: int  # of its characters

    def has_raised(self, chars: Chars) -> bool:
        """Whether characters off its baseline are raised or lowered: they are few, else it is the large letter that
        stands out.
        """
        if len(self.parts) == 1:
            return False
        off = sum(abs(chars.base[i] - self.base) > LOWERED * self.size for part in self.parts for i in part)
        return off / max(self.count, 1) <= 0.5


def by_place(chars: Chars, run: Run) -> list[int]:
    """The characters of a run from left to right, with vowel signs behind their letters."""
    every = [i for part in run.parts for i in part]
    signs = [i for i in every if unicodedata.combining(chars.codes[i][0])]
    order = sorted(set(every) - set(signs), key=lambda i: (chars.left[i] + chars.right[i], i))
    for sign in signs:
        middle = (chars.left[sign] + chars.right[sign]) / 2
        if not order:
            return sorted(every)
        near = min(order, key=lambda i: abs((chars.left[i] + chars.right[i]) / 2 - middle))
        order.insert(order.index(near), sign)  # what is read from right to left is turned round
    return order


def in_order(chars: Chars, run: Run) -> list[int]:
    """The characters of a run as they are read: each of its parts as the content has it, from left to right. One that
    fills a gap of another one stands there; one that is the same as what it lies on is drawn twice.
    """
    if len(run.parts) == 1:
        return run.parts[0]
    left, right = chars.left, chars.right
    order: list[int] = []
    reach = -math.inf
    for part in sorted(run.parts, key=lambda part: min(left[i] for i in part)):
        first, last = min(left[i] for i in part), max(right[i] for i in part)
        if order and last <= reach + 0.1 * chars.size[part[0]]:
            under = [j for j in order if left[j] < last and right[j] > first]
            near = 0.2 * chars.size[part[0]]
            same = sum(
                any(
                    abs(left[i] - left[j]) < near
                    and abs(chars.base[i] - chars.base[j]) < near
                    and chars.codes[i] == chars.codes[j]
                    for j in under
                )
                for i in part
            )
            if same > 0.8 * len(part):
                continue
            at = next((n for n, j in enumerate(order) if left[j] >= first - 0.05 * chars.size[j]), len(order))
            order[at:at] = part
        else:
            order += part
        reach = max(reach, last)
    return order


def split_words(chars: Chars, order: list[int], rightward: bool) -> list[list[int]]:
    """Characters from left to right as words: at gaps that are wider than the line's letters stand apart, at spaces of
    the document, and where two texts overlap.
    """
    members, _, left, right = chars[:4]
    size, spaces, gaps_seen = chars.size, chars.spaces, chars.seen_spaces
    gaps = [left[after] - right[before] for before, after in pairwise(order)]
    codes = [chars.codes[i] for i in order]
    leaders = _leaders(codes)
    unspaced = [code > "\u2e7f" and is_unspaced(code[0]) for code in codes]
    spacing = _letter_spacing(chars, order, gaps, leaders)
    are_words = not rightward and _are_words(chars, order, gaps)
    is_tight = spacing < UNSPACED * chars.size[order[0]] and _is_even(chars, order, gaps)
    words: list[list[int]] = [[order[0]]]
    for n, (gap, (before, after)) in enumerate(zip(gaps, pairwise(order), strict=True)):
        if chars.tied[after] and after == before + 1:
            words[-1].append(after)
            continue
        em = min(size[after], size[before])
        beside = unspaced[n] or unspaced[n + 1]
        least = UNSPACED_GAP if beside else WORD_GAP
        wide = gap > (least + (spacing / em if spacing > 0.1 * em else 0.0)) * em
        spaced = spaces[after] > spaces[before]
        if rightward:  # the content may have such letters in either order
            near = abs(int(members[after]) - int(members[before])) <= 3
            spaced = spaces[after] != spaces[before] and near and gap > NARROWEST * em
        if (
            leaders[n] != leaders[n + 1]
            or (wide and not leaders[n])
            or (spaced and gap > 0.02 * em and spacing < 0.1 * em and not leaders[n])
            or (
                is_tight
                and not (beside or leaders[n])
                and gap > TIGHT_GAP * em
                and gaps_seen[after] > gaps_seen[before]
            )
            or (are_words and chars.object[before] != chars.object[after])
            or (gap < -OVERLAP[0] * em and _overlap(chars, before, after, gap / em))
        ):
            words.append([after])
        else:
            words[-1].append(after)
    return words


def _letter_spacing(
    chars: Chars, order: Sequence[int], gaps: Sequence[float], leaders: Sequence[bool]
) -> float:
    """How far the letters of a line stand apart, in the units of its gaps; 0 where that cannot be told of so few.

    Where the document has spaces they end words, such as those of one sign in "5 < 6 & 7 > 2", and letters stand as far
    apart as what has no space between it. Only where nothing but single letters stands between spaces these may be
    those of one word that is set apart.
    """
    within = [n for n in range(len(gaps)) if not leaders[n] and not leaders[n + 1]]
    if len(within) <= 3:
        return 0.0
    spaces = chars.spaces
    tight = [n for n in within if spaces[order[n + 1]] <= spaces[order[n]]]
    if len(tight) < len(within):
        signs = [chars.codes[i][0] for i in order]
        pairs = any(signs[n].isalnum() and signs[n + 1].isalnum() for n in tight)
        if pairs or any(one.isdigit() or unicodedata.category(one) in SIGNS for one in signs):
            within = tight
    # Of many words of one letter the middle gap is one between words.
    letters = [gaps[n] for n in within]
    return max(_first_quartile(letters) if len(letters) > 2 else min(letters, default=0.0), 0.0)


def _is_even(chars: Chars, order: Sequence[int], gaps: Sequence[float]) -> bool:
    """Whether nearly all letters of a line touch where no space is seen, which those of scans' text layers do not."""
    within = [
        abs(gap) <= EVEN * chars.size[i]
        for gap, (i, j) in zip(gaps, pairwise(order), strict=True)
        if chars.seen_spaces[i] == chars.seen_spaces[j] and chars.spaces[i] == chars.spaces[j]
    ]
    return sum(within) >= EVEN_SHARE * len(within)


def _are_words(chars: Chars, order: Sequence[int], gaps: Sequence[float]) -> bool:
    """Whether each text object of a line is a word, which no space follows: words that are placed one by one, in a font
    that is wider than the one they were placed for, begin on the end of the one before.
    """
    if chars.spaces[order[0]] != chars.spaces[order[-1]]:
        return False
    ends = [n for n, (i, j) in enumerate(pairwise(order)) if chars.object[i] != chars.object[j]]
    if not ends or len(order) < WORD_CHARS * (len(ends) + 1):
        return False
    over = [n for n in ends if gaps[n] < -OVERLAP[0] * chars.size[order[n]]]
    over = [n for n in over if _can_overlap(chars, order[n], order[n + 1])]
    return len(over) >= OVERLAPPING * len(ends)


def _first_quartile(values: Sequence[float]) -> float:
    """The first of `statistics.quantiles(values, n=4)`, which works out all, of three values or more."""
    ordered = sorted(values)
    index, rest = divmod(len(ordered) + 1, 4)
    return (ordered[index - 1] * (4 - rest) + ordered[index] * rest) / 4


def _overlap(chars: Chars, before: int, after: int, gap: float) -> bool:
    """Whether a text begins on the end of another one of its size and line: these are two words. Letters of one word
    may overlap a little, too, where it is set in parts.
    """
    if chars.object[before] == chars.object[after] or not _can_overlap(chars, before, after):
        return False
    first, second = (chars.codes[i] for i in (before, after))
    goes_on = (
        not second.isalnum()
        or (first.isalpha() and second.islower())
        or (first.isupper() and second.isupper())
        or (first.isdigit() and second.isdigit())
    )
    return gap < -OVERLAP[goes_on and second not in "$€£"]


def _can_overlap(chars: Chars, before: int, after: int) -> bool:
    """Whether two characters are of one size and line, and none an accent that is drawn by itself."""
    level = abs(chars.base[before] - chars.base[after]) < 0.12 * chars.size[after]
    if not level or abs(chars.size[before] - chars.size[after]) > 0.05 * chars.size[after]:
        return False
    codes = (chars.codes[before], chars.codes[after])
    return not any(unicodedata.category(code[0]) in ("Sk", "Lm", "Mn") for code in codes)


def _leaders(codes: Sequence[str]) -> list[bool]:
    """Which characters of a line are dots and the like in a row of at least LEADER_CHARS."""
    found = [False] * len(codes)
    said = "".join(codes)
    if "……" not in said and not any(sign * LEADER_CHARS in said for sign in LEADERS):
        return found
    at = 0
    while at < len(codes):
        end = at
        while end < len(codes) and codes[end] == codes[at] and codes[at] in LEADERS:
            end += 1
        if end - at >= (2 if codes[at] == "…" else LEADER_CHARS):
            found[at:end] = [True] * (end - at)
        at = max(end, at + 1)
    return found


def is_leader(chars: Chars, word: Sequence[int]) -> bool:
    """Whether a word is dots and the like in a row, which lead to a page number."""
    said = {chars.codes[i] for i in word}
    return len(word) >= LEADER_CHARS and len(said) == 1 and said <= set(".·․…")


def logical_words(chars: Chars, words: list[list[int]]) -> tuple[list[list[int]], set[int]]:
    """Words that stand from left to right as they are read, and the brackets that are turned round."""
    places: list[int] = []
    for word in words:
        places += [*([-1] if places else []), *word]
    said = [" " if i < 0 else chars.codes[i] for i in places]
    order, turned = logical_order(said)
    read: list[list[int]] = [[]]
    for at in order:
        if places[at] < 0:
            read.append([])
        else:
            read[-1].append(places[at])
    return [word for word in read if word], {places[at] for at in turned}


def spans(
    content: Content, chars: Chars, word: Sequence[int], run: Run, may_be_raised: bool
) -> tuple[Span, ...]:
    """What is raised, lowered, struck out or a link in a word. `may_be_raised` is what `Run.has_raised` says."""
    if not may_be_raised and not content.is_marked:
        return ()
    marks: list[tuple[int, str, str]] = []  # of each character that has one: its number, style, target
    for number, i in enumerate(word):
        at = int(chars.members[i])
        rise = (run.base - chars.base[i]) / run.size
        small = chars.size[i] < SMALL * run.size
        printable = unicodedata.category(chars.codes[i][0])[0] != "C"
        if (
            may_be_raised
            and printable
            and ((small and (rise > RAISED or rise < -LOWERED)) or abs(rise) > RAISED_ALONE)
        ):
            marks.append((number, "superscript" if rise > 0 else "subscript", ""))
        if content.struck[at]:
            marks.append((number, "strike", ""))
        if content.linked is not None and content.linked[at] >= 0:
            marks.append((number, "link", content.addresses[content.linked[at]]))
    raised = [style for _, style, _ in marks if style in ("superscript", "subscript")]
    if len(raised) == len(word) and ("subscript" in raised or len(word) > LONGEST_NOTE):
        # A word of its own is a text that stands a little lower or higher, such as a label.
        marks = [mark for mark in marks if mark[1] not in ("superscript", "subscript")]
    if not any(chars.codes[word[number]].isalnum() for number, style, _ in marks if style.endswith("script")):
        # Stops and brackets of a smaller type are neither; a sign such as "*" stands above the line.
        marks = [
            mark
            for mark in marks
            if not mark[1].endswith("script")
            or (mark[1] == "superscript" and chars.codes[word[mark[0]]] not in ".,;:")
        ]
    if not marks:
        return ()
    starts = [0]
    for i in word:
        starts.append(starts[-1] + len(chars.codes[i]))
    spans: list[Span] = []
    for style, target in dict.fromkeys((style, target) for _, style, target in marks):
        numbers = [number for number, *mark in marks if mark == [style, target]]
        first = numbers[0]
        for before, after in pairwise([*numbers, len(word) + 1]):
            if after != before + 1:
                spans.append(Span(starts[first], starts[before + 1], style, target))
                first = after
    return tuple(spans)
