"""The rows of a paragraph: lines of one height, and which of their ends are the author's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ocr.results.bidi import starts_right
from ocr.results.blocks import Box
from ocr.results.geometry import bounding_box, line_box
from ocr.results.lines import Line, is_unspaced
from ocr.text.hyphens import NO_WORDS, WordList, join_at_hyphen
from ocr.text.reading_order import join_texts

CELL_GAP = 1.0  # lines of a row nearer than this are one cell
EVEN = 1.5  # the widest white between words to the narrowest, in a row that is justified
ROW_GAP = 1.5  # between two cells of a row that does not run on
SHORT_WORDS, SHORT_MOST = 3.4, 5  # of rows that tell nothing of their column's width: the mean, the most
OWN_ENDS, OWN_ENDS_SHORT = 0.4, 0.3  # of the ends of rows: the author's, at least; where all rows are short
SMALL, VERSE_MOST = (
    0.8,
    10,
)  # of the rows of such verse begin with small letters, at least; words of each, at most
WORD_ROOM = 0.5  # of the height: the white before a word whose width is that of the row's letters in the mean
OWN_ROOM = 0.38  # of the size: the white before one whose width is known
_ONE_MARK = r"([^\w\s]|\(?(\d{1,3}|[a-zA-Z]|[ivx]{2,5})[.)]?)"
SHORT_MARK = re.compile(rf"{_ONE_MARK}(\s+{_ONE_MARK})?")  # bullets and numbers, before their item
CONTENTS = re.compile(r".*\S … (\d+|[ivxlcIVXLC]+|[A-Z]?-?\d+)$")  # an entry with its page
_LEADERS = re.compile(r"\s*[.]{4,}\s*(\S+)$")
_LOCATOR = re.compile(r"[\s,]\d+\W*$")  # of an index's entry
ENDS_WITH_AMOUNT = re.compile(r"\d[.,]\d\d\W*[A-Za-z]{0,3}$")  # at the end of a row
# Of people: words with capitals, and between or before them the particles of family names.
_PARTICLES = (
    r"((von|vom|van|der|den|dem|del?|della|di|d[ao]s?|du|des|la|las|los|le|el|al|bin|ibn|ben|zu|zum|zur|te[rn]?|af|av|y|e)"
    r"\s+)*"
)
_NAME = re.compile(rf"{_PARTICLES}[^\W\d_a-z][\w.'’-]*(,?\s+{_PARTICLES}[^\W\d_a-z][\w.'’-]*)*")
# What a form's row begins with: its label, and a colon.
_LABELLED = re.compile(r"[^\W\d_a-z][^:.;!?]{0,30}:(\s|$)")


@dataclass(frozen=True)
class Row:
    """The lines of one height in a region, from left to right.

    `cells` are those that stand together, apart from others, such as a label and its price; `hyphen` says that the
    row's end breaks a word, `rightward` that it runs from right to left: its cells are in that order, `counted` that
    it begins an item of a list with a bare number or letter.
    """

    cells: tuple[tuple[Line, ...], ...]
    box: Box
    size: float
    bold: bool
    hyphen: bool
    rightward: bool = False
    counted: bool = False

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Row:
        """A row of lines from left to right."""
        boxes = [line_box(line) for line in lines]
        # The mark of a list's item may be set in another type.
        marked = len(lines) > 1 and SHORT_MARK.fullmatch(lines[0].text.strip()) is not None
        size = max(map(type_size, lines[1:] if marked else lines))
        cells = [[lines[0]]]
        for line, (before, after) in zip(lines[1:], pairwise(boxes), strict=True):
            if after[0] - before[2] > CELL_GAP * size:
                cells.append([])
            cells[-1].append(line)
        end = lines[-1].style
        rightward = starts_right("".join(line.text for line in lines))
        if rightward:
            cells = [cell[::-1] for cell in reversed(cells)]
        return cls(
            tuple(map(tuple, cells)),
            bounding_box(boxes),
            size,
            all(line.is_bold for line in lines),
            end is not None and end.hyphen,
            rightward,
        )

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for cell in self.cells for line in cell)

    @cached_property
    def text(self) -> str:
        text = " ".join(line.text.strip() for line in self.lines)
        return _LEADERS.sub(r" … \1", text) if "...." in text else text

    @cached_property
    def white(self) -> float:
        """The widest white between two of its cells, in multiples of its size; 0 of single letters, such as the lowered
        ones of TeX's logo.
        """
        if all(len(line.text.strip()) == 1 and line.text.strip().isalpha() for line in self.lines):
            return 0.0
        ends = [bounding_box(map(line_box, cell)) for cell in self.cells]
        return max((after[0] - before[2] for before, after in pairwise(ends)), default=0.0) / self.size

    @property
    def middle(self) -> float:
        return (self.box[1] + self.box[3]) / 2

    def room(self, below: Row, left: float, right: float) -> float:
        """How much of the column from `left` to `right` a row leaves free for the beginning of the one below it."""
        apart = abs(self.box[0] + self.box[2] - below.box[0] - below.box[2]) / 2
        centred = apart < 0.5 * self.size and abs(self.box[0] - below.box[0]) > self.size
        if self.rightward:  # such text may still be flush left
            return self.box[0] - left + right - self.box[2]
        return right - self.box[2] + (self.box[0] - left if centred else 0.0)


def type_size(line: Line) -> float:
    """The size of its type, or how high it is, across the text."""
    if line.style is not None:
        return line.style.size
    left, top, right, bottom = line_box(line)
    return right - left if line.vertical or line.orientation in (90, 270) else bottom - top


def join_rows(
    rows: Sequence[Row],
    left: float,
    right: float,
    text_of: Callable[[Row], str] = lambda row: row.text,
    *,
    keep_cells: bool = False,
    keep_ends: bool = False,
    words: WordList = NO_WORDS,
) -> str:
    """The rows of one paragraph as a person would type it.

    A row runs on into the next one where that one's first word had no room on it any more, up to `right`, and from
    `left` on where the two are centred; other line ends are kept as newlines, as in addresses and verse. So are those
    of rows with wide white inside, such as a label and its value, and, since a few words do not tell how much room
    there was, those of short rows before a capital or a digit, of rows that all end with amounts, and of those that
    begin with labels. Nothing stands between Chinese or Japanese characters. Hyphens at row ends: `join_at_hyphen`.
    Entries of a table of contents, which end with a page number behind leaders, keep their line ends.

    Args:
        text_of: What a row says.
        keep_cells: Rows with cells that stand apart keep their line ends.
        keep_ends: All rows do, but those that break a word: `own_ends`.
        words: Of the page, for hyphens.
    """
    text = text_of(rows[0])
    short = _are_short(rows) or _are_index(rows)
    for before, row in pairwise(rows):
        text_below = text_of(row)
        cells = keep_cells and max(len(before.cells), len(row.cells)) > 1
        joined = None if cells else join_at_hyphen(text, text_below, words)
        if joined is not None:
            text = joined
        elif (
            cells
            or (keep_ends and not text.endswith("-"))
            or is_entry(before.text)
            or has_room(before, row, text_below, left, right)
            or white_inside(row, left, right) > ROW_GAP
            or (white_inside(before, left, right) > ROW_GAP and not is_beside_the_label(row, before))
            or (short and not text.endswith("-") and (text_below[0].isupper() or not text_below[0].isalpha()))
            or (ENDS_WITH_AMOUNT.search(before.text) and ENDS_WITH_AMOUNT.search(row.text))
            or (_LABELLED.match(before.text) and _LABELLED.match(row.text))
        ):
            text += "\n" + text_below
        else:
            text = join_texts(text, text_below)
    return text


def is_entry(text: str) -> bool:
    """Whether a row is an entry of a table of contents."""
    return "…" in text and CONTENTS.match(text) is not None


def has_room(before: Row, row: Row, text_below: str, left: float, right: float) -> bool:
    """Whether the first word of a row, which says `text_below`, had room in the row before it."""
    word = text_below.split(maxsplit=1)[0]
    first = row.lines[0].words[:1]
    spaced = not is_unspaced(text_below[0])
    letters = len(word) if spaced else 1
    # Rows that run from right to left are seldom set to full width: the white of one space is enough to tell.
    space = (0.25 if before.rightward else WORD_ROOM) * (row.box[3] - row.box[1])
    needed = (row.box[2] - row.box[0]) * letters / max(len(text_below), 1) + space
    if spaced and first and first[0].text == word and row.lines[0].style is not None:
        left_end, _, right_end, _ = line_box(first[0])
        # Wide words need more than the row's letters do in the mean, and narrow ones tell less.
        needed = max(needed, right_end - left_end + (0.25 if before.rightward else OWN_ROOM) * row.size)
    return before.room(row, left, right) > needed


def own_ends(paragraphs: Sequence[Sequence[Row]], left: float, right: float) -> list[bool]:
    """Whether the ends of all rows are the author's, of each paragraph of a column, as in verse, addresses and lists
    without marks.

    Many of such ends leave room for the first word of the next row, which those of a program do not, or are told by
    what follows, where rows are short. How wide the column is, nothing tells: all of its rows may be such. So
    paragraphs of short rows follow the others, and those of long rows that are all full do not.
    """
    counts = [_count_own_ends(rows, left, right) for rows in paragraphs]
    author_ends, ends = map(sum, zip(*counts, strict=True))
    # A row without spaces is one word, however long it is.
    short = [
        (_are_short(rows) and not any(is_unspaced(row.text[0]) for row in rows))
        or _are_names(rows, left, right)
        for rows in paragraphs
    ]
    if ends < 2 or author_ends < (OWN_ENDS_SHORT if all(short) else OWN_ENDS) * ends:
        return [False] * len(paragraphs)
    return [
        is_short or (count > 0 and _are_verse(rows))
        for is_short, (count, _), rows in zip(short, counts, paragraphs, strict=True)
    ]


def _are_verse(rows: Sequence[Row]) -> bool:
    """Whether nearly all rows begin with small letters, so that such a letter does not say that a row goes on."""
    small = sum(row.text[:1].islower() for row in rows)
    return small >= SMALL * len(rows) and max(len(row.text.split()) for row in rows) <= VERSE_MOST


def _count_own_ends(rows: Sequence[Row], left: float, right: float) -> tuple[int, int]:
    """How many ends of a paragraph's rows are the author's by themselves, and how many there are in all."""
    short = _are_short(rows) or _are_names(rows, left, right)
    texts = [row.text for row in rows]
    sentence = texts[0][:1].isupper() and texts[-1].endswith((".", "!", "?"))
    sentence = sentence and all(text[:1].islower() for text in texts[1:])
    if sentence or any(len(row.cells) > 1 or is_unspaced(row.text[0]) for row in rows):
        return 0, len(rows) - 1
    author_ends = sum(
        (short and not row.text[:1].islower() and not before.text.endswith("-"))
        or has_room(before, row, row.text, left, right)
        for before, row in pairwise(rows)
    )
    return author_ends, len(rows) - 1


def _are_short(rows: Sequence[Row]) -> bool:
    """Whether rows have so few words that they may be addresses, options or entries, and their ends the author's."""
    words = [len(row.text.split()) for row in rows]
    return sum(words) <= SHORT_WORDS * len(words) and max(words) <= SHORT_MOST


def _are_names(rows: Sequence[Row], left: float, right: float) -> bool:
    """Whether three rows or more hold nothing but names, some with particles: no row ends with one, as rows of a title
    do, and one at least leaves room for the next.
    """
    if len(rows) < 3 or not all(_NAME.fullmatch(row.text.strip()) for row in rows):
        return False
    return any(has_room(before, row, row.text, left, right) for before, row in pairwise(rows))


def _are_index(rows: Sequence[Row]) -> bool:
    """Whether each of three rows or more begins with a capital and ends with a number, as entries of an index do."""
    texts = [row.text for row in rows]
    return len(rows) > 2 and all(text[:1].isupper() and _LOCATOR.search(text) for text in texts)


def white_inside(row: Row, left: float, right: float) -> float:
    """`Row.white`; 0 of a row that is justified: it fills its column, and all of its words stand equally far apart."""
    if not row.white or row.box[0] - left > 0.5 * row.size or right - row.box[2] > 0.5 * row.size:
        return row.white
    boxes = [line_box(word) for line in row.lines for word in line.words or (line,)]
    gaps = [after[0] - before[2] for before, after in pairwise(sorted(boxes))]
    return 0.0 if len(gaps) > 1 and max(gaps) <= EVEN * min(gaps) else row.white


def is_beside_the_label(row: Row, before: Row) -> bool:
    """Whether a row goes on right of the first cell of the one above it, as a value beside its label does."""
    return row.box[0] >= line_box(before.cells[0][-1])[2]
