"""How the text of synthetic documents is set: typefaces, words, lines broken and justified."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from framework.vision.canvas import Canvas, Colour, measure_text
from ocr.data.synthetic.fonts import FontSet
from ocr.data.synthetic.texts import Texts
from ocr.results.blocks import Box
from ocr.results.lines import Line, is_unspaced

Align = Literal["left", "justified", "centre", "right"]
ASCENT, DESCENT = 0.74, 0.22  # of the size: what a line's box holds above and below its baseline
_SYLLABLES = (
    "a an ar be ca ce co de di do e en er es fa fi for ge gra i in ing is la le li lo ly ma me mi mo na ne ni no o on "
    "or pa per po pre pro ra re ri ro sa se si so sta ta te ter ti tion to tra u un va ve vi"
)
_SHORT = "the of and in to a was for with is by that were as at on from"


class Typeface(NamedTuple):
    """Fonts of one family; those that are not there are the regular one."""

    regular: str
    bold: str
    italic: str


def group_typefaces(fonts: FontSet) -> list[Typeface]:
    """The families among the fonts, by the names of their files."""
    families: dict[str, dict[str, str]] = {}
    for source in fonts.sources:
        stem = Path(source).stem.lower()
        bold, italic = "bold" in stem, "italic" in stem or "oblique" in stem
        family = re.sub(r"[-_ ]*(bold|italic|oblique|regular|book|roman)", "", stem)
        if not (bold and italic):
            families.setdefault(family, {})["bold" if bold else "italic" if italic else "regular"] = source
    found = [
        Typeface(kinds["regular"], kinds.get("bold", kinds["regular"]), kinds.get("italic", kinds["regular"]))
        for kinds in families.values()
        if "regular" in kinds
    ]
    return found or [Typeface(*fonts.sources[:1] * 3)]


@lru_cache(maxsize=200_000)
def _width(text: str, font: str, size: int) -> float:
    return measure_text(text, font, size)


def measure(text: str, font: str, size: float) -> float:
    """The advance of a line in pixels."""
    return _width(text, font, max(1, round(size)))


class Words:
    """Gives words in sentences: of the corpus where there is one, else of syllables.

    Args:
        characters: What a word without a corpus may hold; others are left out of it.
    """

    def __init__(self, texts: Texts, has_corpus: bool, rng: np.random.Generator) -> None:
        self._texts, self._has_corpus, self._rng = texts, has_corpus, rng

    def draw(self, count: int) -> list[str]:
        """About `count` words, or characters of a script without spaces, with capitals and full stops."""
        if self._has_corpus:
            found: list[str] = []
            while len(found) < count:
                found += split_words(self._texts.draw(self._rng))
            return found[:count]
        rng, words, left = self._rng, [], 0
        syllables, short = _SYLLABLES.split(), _SHORT.split()
        for number in range(count):
            word = short[int(rng.integers(len(short)))]
            if rng.random() > 0.32:
                parts = rng.integers(0, len(syllables), int(rng.integers(2, 5))).tolist()
                word = "".join(syllables[part] for part in parts)
            elif rng.random() < 0.08:
                word = f"{rng.uniform(0, 100):.{int(rng.integers(0, 3))}f}"
            if left == 0:
                word, left = word.capitalize(), int(rng.integers(6, 24))
            left -= 1
            if left == 0 or number == count - 1:
                word, left = word + ".", 0
            elif rng.random() < 0.07:
                word += ","
            elif rng.random() < 0.03:
                word = f"[{int(rng.integers(1, 60))}]"
            words.append(word)
        return words

    def phrase(self, count: int) -> list[str]:
        """Words of a heading or cell, without a full stop."""
        words = [word.rstrip(".,") for word in self.draw(count)]
        return [word for word in words if word] or ["1"]


def split_words(text: str) -> list[str]:
    """Words, and each character of scripts without spaces."""
    found: list[str] = []
    for word in text.split():
        part = ""
        for char in word:
            if is_unspaced(char):
                found += [part, char] if part else [char]
                part = ""
            else:
                part += char
        found += [part] if part else []
    return found


def _gap(before: str, after: str) -> bool:
    return not (is_unspaced(before[-1]) or is_unspaced(after[0]))


class Row(NamedTuple):
    """One line: its words with their places from the left edge, and how wide it is."""

    words: tuple[tuple[float, str], ...]
    width: float
    text: str


def break_lines(
    words: Sequence[str], font: str, size: float, width: float, *, indent: float = 0.0, justify: bool = False
) -> list[Row]:
    """Lines of at most `width` pixels, a longer word alone on one; the first begins at `indent`."""
    space = measure(" ", font, size)
    rows: list[list[str]] = [[]]
    used = indent
    for word in words:
        long = measure(word, font, size)
        gap = space if rows[-1] and _gap(rows[-1][-1], word) else 0.0
        if rows[-1] and used + gap + long > width:
            rows.append([])
            used, gap = 0.0, 0.0
        rows[-1].append(word)
        used += gap + long
    done = []
    for number, row in enumerate(rows):
        left = indent if number == 0 else 0.0
        gaps = [space if _gap(a, b) else 0.0 for a, b in pairwise(row)]
        lengths = [measure(word, font, size) for word in row]
        room = width - left - sum(lengths) - sum(gaps)
        if justify and number < len(rows) - 1 and gaps and room > 0:
            gaps = [gap + room / len(gaps) for gap in gaps]
        places, x = [], left
        text = row[0] if row else ""
        for place, word in enumerate(row):
            places.append((x, word))
            x += lengths[place] + (gaps[place] if place < len(gaps) else 0.0)
            if place:
                text += (" " if _gap(row[place - 1], word) else "") + word
        done.append(Row(tuple(places), x, text))
    return done


@dataclass(frozen=True)
class TextSetting:
    """How a piece of text is set. `leading` is the distance of baselines as a multiple of the size, in pixels."""

    font: str
    size: float
    leading: float = 1.2
    align: Align = "left"
    colour: Colour = (0, 0, 0)

    @property
    def step(self) -> float:
        """From baseline to baseline, in pixels."""
        return self.size * self.leading


def set_rows(
    canvas: Canvas, rows: Sequence[Row], x: float, y: float, width: float, how: TextSetting
) -> tuple[Line, ...]:
    """Draws rows below `y`, the upper edge of the first, within `width`; returns them as lines."""
    lines = []
    baseline = y + ASCENT * how.size
    for row in rows:
        if not row.words:
            continue
        shift = {"centre": (width - row.width) / 2, "right": width - row.width}.get(how.align, 0.0)
        left = x + shift
        if how.align == "justified":
            for place, word in row.words:
                canvas.text((left + place, baseline), word, how.font, how.size, how.colour)
        else:
            canvas.text((left + row.words[0][0], baseline), row.text, how.font, how.size, how.colour)
        first, last = left + row.words[0][0], left + row.width
        top, bottom = baseline - ASCENT * how.size, baseline + DESCENT * how.size
        lines.append(Line(row.text, 1.0, ((first, top), (last, top), (last, bottom), (first, bottom))))
        baseline += how.step
    return tuple(lines)


def rows_height(count: int, how: TextSetting) -> float:
    """Of `count` rows, in pixels."""
    return max(0, count - 1) * how.step + (ASCENT + DESCENT) * how.size if count else 0.0


def around(boxes: Sequence[Box]) -> Box:
    """The box around boxes, of which there is one at least."""
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def box_of(lines: Sequence[Line]) -> Box:
    """The box around lines."""
    return around([(*line.polygon[0], *line.polygon[2]) for line in lines])  # type: ignore[misc]
