"""Machine-readable zones of passports and identity cards.

Source: ICAO Doc 9303, part 3 (check digits), parts 4 to 6 (the fields of TD3, TD1 and TD2).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from ocr.results.blocks import Field
from ocr.results.lines import Line
from ocr.results.page_text import line_box

_ZONES = {(3, 30): "TD1", (2, 36): "TD2", (2, 44): "TD3"}
# By format and field: the row, the first character and the one after the last. A check digit follows these.
_CHECKED = {
    "TD3": {"document_number": (1, 0, 9), "birth_date": (1, 13, 19), "expiry_date": (1, 21, 27)},
    "TD2": {"document_number": (1, 0, 9), "birth_date": (1, 13, 19), "expiry_date": (1, 21, 27)},
    "TD1": {"document_number": (0, 5, 14), "birth_date": (1, 0, 6), "expiry_date": (1, 8, 14)},
}
# And these stand for themselves.
_PLAIN = {
    "TD3": {"nationality": (1, 10, 13), "sex": (1, 20, 21), "issuer": (0, 2, 5), "name": (0, 5, 44)},
    "TD2": {"nationality": (1, 10, 13), "sex": (1, 20, 21), "issuer": (0, 2, 5), "name": (0, 5, 36)},
    "TD1": {"nationality": (1, 15, 18), "sex": (1, 7, 8), "issuer": (0, 2, 5), "name": (2, 0, 30)},
}


def check_digit(text: str) -> int:
    """That of letters, digits and "<": weights 7, 3, 1 over values 0 to 35."""
    values = (int(c) if c.isdigit() else 0 if c == "<" else ord(c) - 55 for c in text)
    return sum(value * (7, 3, 1)[place % 3] for place, value in enumerate(values)) % 10


def find_mrz(lines: Sequence[Line], page: int = 1) -> list[Field]:
    """The fields of a machine-readable zone; scores are 1 where the check digit is right and .3 where it is not."""
    rows = [(re.sub(r"\s", "", line.text.upper()).replace("«", "<<"), line) for line in lines]
    rows = [
        (text, line) for text, line in rows if len(text) in (30, 36, 44) and re.fullmatch(r"[A-Z0-9<]+", text)
    ]
    for (count, length), kind in _ZONES.items():
        chosen = [(text, line) for text, line in rows if len(text) == length]
        if len(chosen) == count and any("<" in text for text, _ in chosen):
            return _read_zone(kind, chosen, page)
    return []


def _read_zone(kind: str, rows: Sequence[tuple[str, Line]], page: int) -> list[Field]:
    fields = []
    for name, (row, first, last) in _CHECKED[kind].items():
        text, line = rows[row]
        said, digit = text[first:last], text[last]
        value = said.strip("<")
        if name.endswith("date"):
            day = _day(said, future=name == "expiry_date")
            if day is None:
                continue
            value = day.isoformat()
        right = digit.isdigit() and check_digit(said) == int(digit)
        fields.append(Field(name, value, 1.0 if right else 0.3, "", page, (line_box(line),), said))
    for name, (row, first, last) in _PLAIN[kind].items():
        text, line = rows[row]
        said = text[first:last]
        surname, _, given = said.partition("<<")
        value = ", ".join(part.replace("<", " ").strip() for part in (surname, given) if part.strip("<"))
        if value:
            fields.append(Field(name, value, line.score, "", page, (line_box(line),), said))
    return fields


def _day(text: str, *, future: bool) -> date | None:
    """YYMMDD; of the two centuries the one in which people are born, and in which documents end."""
    if not text.isdecimal():
        return None
    year = int(text[:2]) + 2000
    if not future and year > date.today().year:
        year -= 100
    try:
        return date(year, int(text[2:4]), int(text[4:6]))
    except ValueError:
        return None
