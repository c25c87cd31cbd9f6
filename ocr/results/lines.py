"""A line of text and its parts: Line > Word > Char, frozen and comparable. `ocr.results.pages` puts them into pages.

What polygons and texts hold is told there.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import InputError, ShapeError
from framework.core.types import JSON
from ocr.results.spans import Span, span_to_dict, spans_in

Polygon = tuple[tuple[float, float], ...]

_FROM_GEOMETRY: Any = None


def as_polygon(points: ArrayLike) -> Polygon:
    """Points [P, 2] as nested tuples of Python floats.

    Raises: ShapeError unless the array is [P >= 4, 2]; InputError when a coordinate is NaN or infinite.
    """
    if _is_plain(points):
        return points  # type: ignore[return-value]
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 2 or len(array) < 4:
        raise ShapeError(
            "not a polygon",
            where="ocr.results.lines",
            received=f"an array of shape {list(array.shape)}",
            allowed="[P, 2] with P >= 4: xy points, clockwise from the text's own top-left corner",
        )
    if not np.isfinite(array).all():
        raise InputError(
            "a polygon has a coordinate that is not finite",
            where="ocr.results.lines",
            received=array.tolist(),
            allowed="finite pixel coordinates",
            fix="drop the detection, or look for a division by zero in the step that made it",
        )
    return tuple((x, y) for x, y in array.tolist())


def _is_plain(points: ArrayLike) -> bool:
    """Whether `points` is a Polygon already: four or more pairs of finite Python floats in tuples."""
    if type(points) is not tuple or len(points) < 4:
        return False
    total = 0.0
    for point in points:
        if type(point) is not tuple or len(point) != 2:
            return False
        x, y = point
        if type(x) is not float or type(y) is not float:
            return False
        total += x + y
    return math.isfinite(total)  # one that is infinite or NaN makes the sum so


def _freeze(item: Char | Word | Line) -> None:
    """Plain Python values instead of numpy ones, so that == and hash work."""
    if type(item.score) is not float:
        object.__setattr__(item, "score", float(item.score))
    if not math.isfinite(item.score):
        raise InputError(
            "a score is not finite", where=f"{type(item).__name__} {item.text!r}", received=item.score
        )
    if not _is_plain(item.polygon):
        object.__setattr__(item, "polygon", as_polygon(item.polygon))


@dataclass(frozen=True)
class Char:
    """One recognised character (a code point, or a cluster that the vocabulary treats as one). Score in [0, 1]."""

    text: str
    score: float
    polygon: Polygon

    def __post_init__(self) -> None:
        _freeze(self)


class CharTable(NamedTuple):
    """What the characters of a text layer say, and the sides of their upright boxes: finite Python floats."""

    texts: Sequence[str]
    left: Sequence[float]
    top: Sequence[float]
    right: Sequence[float]
    bottom: Sequence[float]

    def char(self, number: int) -> Char:
        """A character of score 1; one that is drawn backward has no width."""
        left, top, bottom = self.left[number], self.top[number], self.bottom[number]
        right = max(self.right[number], left)
        char = object.__new__(Char)  # without what makes other values plain
        values = char.__dict__
        values["text"], values["score"] = self.texts[number], 1.0
        values["polygon"] = ((left, top), (right, top), (right, bottom), (left, bottom))
        return char


class _CharsOnDemand:
    """The characters of a word that `Word.of_table` made, when they are first asked for: a text layer has thousands on
    a page, few readers look at any, and to make them takes a tenth of the page's time. It is no data descriptor: the
    characters of other words, and these once they are made, are a value of the word itself.
    """

    def __get__(self, word: Word | None, owner: type[Word]) -> tuple[Char, ...]:
        if word is None:
            return ()  # the field's default
        values = word.__dict__
        source = values.get("_table")
        if source is not None:  # else another thread has made them just now
            table, numbers = source
            values["chars"] = tuple(table.char(number) for number in numbers)
            values.pop("_table", None)
        return values["chars"]


@dataclass(frozen=True, repr=False)
class Word:
    """A run of characters without a space. `chars` is empty when the recogniser gives no character positions; `spans`
    are those of its text.
    """

    text: str
    score: float
    polygon: Polygon
    chars: tuple[Char, ...] = cast("tuple[Char, ...]", _CharsOnDemand())
    spans: tuple[Span, ...] = ()

    def __post_init__(self) -> None:
        _freeze(self)
        object.__setattr__(self, "chars", tuple(self.chars))
        object.__setattr__(self, "spans", tuple(self.spans))

    @classmethod
    def of_table(
        cls, text: str, polygon: Polygon, table: CharTable, numbers: Sequence[int], spans: tuple[Span, ...]
    ) -> Word:
        """A word of score 1 in a polygon of finite Python floats, of characters of a table."""
        word = object.__new__(cls)
        values = word.__dict__
        values["text"], values["score"], values["polygon"] = text, 1.0, polygon
        values["spans"], values["_table"] = spans, (table, numbers)
        return word

    def __repr__(self) -> str:
        return f"Word({self.text!r}, {self.score:.3f})"


@dataclass(frozen=True)
class LineStyle:
    """How most of a line is set. `size` in pixels of the page; `hyphen` says that the line's last one breaks a word;
    `mono` that all its letters are of one width; `invisible` that its letters are neither filled nor stroked.
    """

    size: float
    bold: bool
    italic: bool
    font: str
    invisible: bool = False
    hyphen: bool = False
    mono: bool = False


@dataclass(frozen=True, repr=False)
class Line:
    """One line of text, or one column of vertical text.

    `orientation` is how far the text is turned clockwise from upright: 0, 90, 180 or 270 degrees. `vertical` says that
    upright characters follow one another from top to bottom, as in a Japanese or Chinese column. Both follow from the
    geometry and are worked out from it when they are not given. `style` is known of a PDF's own text while its page is
    read; it is neither written nor compared.
    """

    text: str
    score: float
    polygon: Polygon
    words: tuple[Word, ...] = ()
    orientation: int = _FROM_GEOMETRY
    vertical: bool = _FROM_GEOMETRY
    style: LineStyle | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _freeze(self)
        object.__setattr__(self, "words", tuple(self.words))
        if self.orientation is None:
            right = _upper_edge(self.polygon)
            turn = round(math.degrees(math.atan2(right.imag, right.real)) / 90) * 90 % 360
            object.__setattr__(self, "orientation", turn)
        if self.vertical is None:
            object.__setattr__(self, "vertical", _is_vertical(self))

    def __repr__(self) -> str:
        turned = f", orientation={self.orientation}" if self.orientation else ""
        return f"Line({self.text!r}, {self.score:.3f}{turned}{', vertical' if self.vertical else ''})"

    @property
    def spans(self) -> tuple[Span, ...]:
        """Those of its text."""
        return spans_in(self.text, (self,))

    @property
    def is_bold(self) -> bool:
        """Whether it is known to be set in bold."""
        return self.style is not None and self.style.bold


def has_styles(lines: Sequence[Line]) -> bool:
    """Whether it is known how lines are set: those of a PDF's own text."""
    return any(line.style is not None for line in lines)


def _upper_edge(polygon: Polygon) -> complex:
    """The way the upper edge runs, as x + iy. Of P points the first half is the upper edge."""
    return complex(*polygon[(len(polygon) + 1) // 2 - 1]) - complex(*polygon[0])


def _middle(polygon: Polygon) -> complex:
    """The mean of the points, as x + iy: in Python, which is done before numpy has made an array of so few."""
    return sum(complex(x, y) for x, y in polygon) / len(polygon)


def _is_vertical(line: Line) -> bool:
    pieces: Sequence[Word | Char] = [char for word in line.words for char in word.chars] or line.words
    right = _upper_edge(line.polygon)
    if len(pieces) > 1 and right:  # from the first to the last piece, seen with the text upright
        advance = (_middle(pieces[-1].polygon) - _middle(pieces[0].polygon)) / right
        return abs(advance.imag) > abs(advance.real)
    if len(line.polygon) != 4 or len(line.text) < 2:
        return False
    width, height = abs(right), math.dist(line.polygon[1], line.polygon[2])
    return height > 1.5 * width


def line_to_dict(line: Line) -> dict[str, JSON]:
    """{"text", "score", "polygon", "words"}, a word {…, "chars"}, and "spans" where it has some: {"start", "end",
    "style"}, of links "target" too. Scores have 4 decimals, coordinates 1.
    """
    words = []
    for word in line.words:
        plain = _piece(word) | {"chars": [_piece(char) for char in word.chars]}
        words.append(plain | {"spans": list(map(span_to_dict, word.spans))} if word.spans else plain)
    return _piece(line) | {"words": words}


def line_from_dict(data: Mapping[str, Any]) -> Line:
    """The line that `line_to_dict` wrote; KeyError, TypeError or InputError where keys or values do not fit."""
    words = (
        Word(
            *_parts(word),
            chars=tuple(Char(*_parts(char)) for char in word.get("chars", ())),
            spans=tuple(Span(**span) for span in word.get("spans", ())),
        )
        for word in data["words"]
    )
    return Line(*_parts(data), words=tuple(words))


def _piece(piece: Line | Word | Char) -> dict[str, JSON]:
    polygon = [[round(x, 1), round(y, 1)] for x, y in piece.polygon]
    return {"text": piece.text, "score": round(piece.score, 4), "polygon": polygon}


def _parts(data: Mapping[str, Any]) -> tuple[str, float, Polygon]:
    if not isinstance(data["text"], str):
        raise TypeError(f"text is {data['text']!r}")
    # As tuples they need no numpy, which takes most of the time of reading a page otherwise.
    return data["text"], data["score"], tuple(map(tuple, data["polygon"]))


def is_unspaced(char: str) -> bool:
    """Whether the script of `char` writes no spaces between words: Chinese and Japanese, not Korean."""
    return unicodedata.east_asian_width(char) in "WF" and not unicodedata.name(char, "").startswith("HANGUL")
