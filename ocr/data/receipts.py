"""Receipts of SROIE: lines, and what a page's fields are but not where; where they stand is found by their texts.

Source: https://rrc.cvc.uab.es/?ch=13, tasks 2 and 3
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

from framework.config.registry import register
from framework.core.errors import FormatError
from framework.vision.dataset_files import read_annotations
from ocr.data.forms import (
    FormPage,
    FormPages,
    Segment,
    some_pages,
)
from ocr.data.labels import read_regions
from ocr.results.geometry import bounds_of

SROIE_CLASSES = ("company", "date", "address", "total")
ALIKE = 0.85  # share of letters from which lines say a value, though not to the letter
_LEAST_WORDS, _MOST_LINES = 8, 7
_TOTAL = re.compile(r"t[o0]ta[l1]|amount|due|payable|nett?\b", re.IGNORECASE)


@register("dataset")
@dataclass(frozen=True)
class SROIE(FormPages):
    """Receipts of SROIE, tasks 2 and 3: `img/*.jpg`, `box/*.csv` (the lines) and `key/*.json` (company, date, address,
    total). Where the fields stand is found by their texts; what of a line is no part of a field is a segment of its
    own.

    Attributes:
        root: The folder that holds the three.
        read_images: See FormPages.
    """

    root: Path
    classes: tuple[str, ...] = field(default=SROIE_CLASSES, kw_only=True)

    def _read_pages(self) -> list[FormPage]:
        found = []
        for path in sorted((self.root / "box").glob("*.csv")):
            lines = [
                Segment(region.text, bounds_of(region.polygon), "other", 0)
                for region in read_regions(path)
                if region.text.strip()
            ]
            key = self.root / "key" / f"{path.stem}.json"
            fields = read_annotations(key)
            if not isinstance(fields, dict):
                raise FormatError(
                    "these are no fields",
                    where=key,
                    received=type(fields).__name__,
                    allowed='{"company", "date", "address", "total"}',
                )
            wanted = {name: str(fields[name]) for name in self._labels if str(fields.get(name) or "").strip()}
            segments = locate_fields(lines, wanted)
            found.append(FormPage(self.root / "img" / f"{path.stem}.jpg", None, segments, str(path)))
        return some_pages(found, str(self.root / "box"))


# -- where fields stand that are known by their texts ------------------------------------------------------------------

ALIKE = 0.85  # share of letters from which lines say a value, though not to the letter
_LEAST_WORDS, _MOST_LINES = 8, 7
_TOTAL = re.compile(r"t[o0]ta[l1]|amount|due|payable|nett?\b", re.IGNORECASE)


def locate_fields(lines: Sequence[Segment], wanted: dict[str, str]) -> tuple[Segment, ...]:
    """The lines with the labels of the fields whose values they say; a line with more than a value is cut.

    A value may go over several lines that follow each other. Letters and digits alone are compared. Of an amount that
    stands in several places all beside a word of sums count, else the last one; of other values the first one.
    """
    spans: dict[int, list[tuple[int, int, str]]] = {}
    for name, value in wanted.items():
        places = [
            place
            for place in _find(lines, value) or _find_alike(lines, value)
            if not any(_overlaps(spans.get(line, []), start, end) for line, start, end in place)
        ]
        if not places:
            continue
        if name == "total":
            beside = [place for place in places if _TOTAL.search(_row_text(lines, place[0][0]))]
            chosen = beside or places[-1:]
        else:
            chosen = places[:1]
        for place in chosen:
            for line, start, end in place:
                spans.setdefault(line, []).append((start, end, name))
    found: list[Segment] = []
    for number, line in enumerate(lines):
        at = 0
        for start, end, name in [*sorted(spans.get(number, [])), (len(line.text), len(line.text), "")]:
            for first, last, label in ((at, start, "other"), (start, end, name)):
                if line.text[first:last].strip():
                    found.append(_cut(line, first, last, label)._replace(number=len(found)))
            at = end
    return tuple(found)


def _find(lines: Sequence[Segment], value: str) -> list[list[tuple[int, int, int]]]:
    """Where a value stands: for each place its (line, first character, the one after the last)."""
    joined = [
        (number, place, char.upper())
        for number, line in enumerate(lines)
        for place, char in enumerate(line.text)
        if char.isalnum()
    ]
    plain = "".join(char for *_, char in joined)
    sought = _letters(value)
    found = []
    for match in re.finditer(f"(?={re.escape(sought)})", plain) if sought else ():
        first, last = match.start(), match.start() + len(sought) - 1
        cuts_number = any(
            0 <= near < len(joined)
            and joined[near][0] == joined[edge][0]
            and abs(joined[near][1] - joined[edge][1]) == 1
            and joined[near][2].isdecimal()
            and joined[edge][2].isdecimal()
            for near, edge in ((first - 1, first), (last + 1, last))
        )
        if cuts_number:
            continue
        parts: dict[int, list[int]] = {}
        for number, place, _ in joined[first : last + 1]:
            parts.setdefault(number, []).append(place)
        found.append(
            [(number, *_to_spaces(lines[number].text, at[0], at[-1] + 1)) for number, at in parts.items()]
        )
    return found


def _find_alike(lines: Sequence[Segment], value: str) -> list[list[tuple[int, int, int]]]:
    """The lines that follow each other and say about the same as a value of words; none is as much alike: []."""
    sought = _letters(value)
    if len(sought) < _LEAST_WORDS or not any(char.isalpha() for char in sought):
        return []
    best, most = [], ALIKE
    for first in range(len(lines)):
        for last in range(first + 1, min(first + _MOST_LINES, len(lines)) + 1):
            plain = _letters("".join(line.text for line in lines[first:last]))
            matcher = SequenceMatcher(None, plain, sought, autojunk=False)
            if (
                matcher.real_quick_ratio() > most
                and matcher.quick_ratio() > most
                and (ratio := matcher.ratio()) > most
            ):
                best, most = [(place, 0, len(lines[place].text)) for place in range(first, last)], ratio
    return [best] if best else []


def _letters(text: str) -> str:
    return "".join(char.upper() for char in text if char.isalnum())


def _to_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """The span with the signs that are joined to it."""
    while (
        start > 0
        and not text[start - 1].isspace()
        and not text[start - 1].isalnum()
        and text[start - 1] not in ":;"
    ):
        start -= 1
    while end < len(text) and not text[end].isspace() and not text[end].isalnum():
        end += 1
    return start, end


def _overlaps(spans: Sequence[tuple[int, int, str]], start: int, end: int) -> bool:
    return any(start < other_end and other_start < end for other_start, other_end, _ in spans)


def _row_text(lines: Sequence[Segment], number: int) -> str:
    """What stands on the height of a line."""
    box = lines[number].box
    centre = (box[1] + box[3]) / 2
    return " ".join(line.text for line in lines if line.box[1] <= centre <= line.box[3])


def _cut(line: Segment, start: int, end: int, label: str) -> Segment:
    """A part of a line, its box by the share of the characters."""
    text = line.text[start:end]
    start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
    left, top, right, bottom = line.box
    step = (right - left) / len(line.text)
    return Segment(line.text[start:end], (left + start * step, top, left + end * step, bottom), label, 0)
