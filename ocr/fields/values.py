"""Dates and amounts in text, as they are written and as plain values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "jan january januar janvier enero gennaio",
            "feb february februar fevrier février febrero febbraio",
            "mar march märz maerz mrz mars marzo",
            "apr april avril abril aprile",
            "may mai mayo maggio",
            "jun june juni juin junio giugno",
            "jul july juli juillet julio luglio",
            "aug august aout août agosto",
            "sep sept september septembre septiembre settembre",
            "oct okt october oktober octobre octubre ottobre",
            "nov november novembre noviembre",
            "dec dez december dezember decembre décembre diciembre dicembre",
        ),
        1,
    )
    for name in names.split()
}
_NAME = "|".join(sorted(_MONTHS, key=len, reverse=True))
_BETWEEN = r"\s?[-/.,年月 ]\s?"
_PATTERNS = (
    # 2018-03-25, 2018/3/25, 2018年3月25日
    (rf"(?P<y>(?:19|20)\d\d){_BETWEEN}(?P<m>\d{{1,2}}){_BETWEEN}(?P<d>\d{{1,2}})(?!\d)", 1.0),
    # 25 MAR 2018, 14/JUN/2017, 25. März 2018
    (
        rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?[-/., ]{{0,2}}(?P<n>{_NAME})\.?[-/.,' ]{{0,2}}(?P<y>(?:19|20)?\d\d)(?!\d)",
        1.0,
    ),
    # March 25, 2018
    (rf"(?P<n>{_NAME})\.?\s?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s?(?P<y>(?:19|20)\d\d)", 1.0),
    # 25/03/2018; the time may follow without a space
    (rf"(?P<a>\d{{1,2}}){_BETWEEN}(?P<b>\d{{1,2}}){_BETWEEN}(?P<y>(?:19|20)\d\d)(?!\d{{3}}(?!\d))", 1.0),
    # 25/03/18
    (r"(?P<a>\d{1,2})\s?[-/. ]\s?(?P<b>\d{1,2})\s?[-/.]\s?(?P<y>\d\d)(?!\d)(?!\s?[.,]\d)", 0.8),
    # 27/06/185:02 PM, as recognisers read a space that is narrow
    (
        r"(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d\d)(?=(?:[01]?\d|2[0-3])(?::[0-5]\d(?!\d)|[.:][0-5]\d[.:][0-5]\d(?!\d)))",
        0.7,
    ),
    # 20180325 and 25032018
    (r"(?P<y>20\d\d)(?P<m>[01]\d)(?P<d>[0-3]\d)(?!\d)", 0.5),
    (r"(?P<d>[0-3]\d)(?P<m>[01]\d)(?P<y>20\d\d)(?!\d)", 0.5),
)
_COMPILED = tuple(
    (re.compile(rf"(?<![\d.,])(?:{pattern})", re.IGNORECASE), score) for pattern, score in _PATTERNS
)
YEARS = (1900, 2099)


@dataclass(frozen=True)
class FoundDate:
    """A date as it is written at `start` to `end` of a text; `score` in [0, 1] says how sure its form is one."""

    day: date
    text: str
    start: int
    end: int
    score: float

    @property
    def value(self) -> str:
        """As "2018-03-25"."""
        return self.day.isoformat()


def find_dates(text: str, *, day_first: bool = True) -> list[FoundDate]:
    """The dates of a text, from left to right.

    Args:
        day_first: What 03/04/2018 means; where one of the numbers is no month, it is the day all the same.
    """
    found: list[FoundDate] = []
    taken: list[tuple[int, int]] = []
    for pattern, score in _COMPILED:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            day = _day_of(match, day_first)
            if day is not None:
                found.append(FoundDate(day, match[0].strip(), match.start(), match.end(), score))
                taken.append(match.span())
    return sorted(found, key=lambda item: item.start)


def _day_of(match: re.Match[str], day_first: bool) -> date | None:
    parts = match.groupdict()
    year = int(parts["y"])
    year += 0 if year > 99 else 2000 if year < 70 else 1900
    if parts.get("n"):
        month, day = _MONTHS[parts["n"].lower()], int(parts["d"])
    elif parts.get("a"):
        first, second = int(parts["a"]), int(parts["b"])
        day, month = (first, second) if (day_first and second <= 12) or first > 12 else (second, first)
    else:
        month, day = int(parts["m"]), int(parts["d"])
    try:
        return date(year, month, day) if YEARS[0] <= year <= YEARS[1] else None
    except ValueError:
        return None


_CURRENCY = r"(?:RM|USD|EUR|GBP|CHF|SGD|MYR|INR|AUD|CAD|Rs\.?|[$€£¥₹])"
_AMOUNT = re.compile(
    rf"(?P<before>{_CURRENCY})?\s?(?P<sign>[-−(])?\s?(?P<before2>{_CURRENCY})?\s?"
    rf"(?<![\d.,])(?P<digits>\d{{1,3}}(?:(?P<mark>[,.' ])\d{{3}})(?:(?P=mark)\d{{3}})*[.,]\s?\d\d|\d+\s?[.,]\s?\d\d)"
    rf"(?![\d])(?![.,/:-]\d)\s?(?P<after>{_CURRENCY})?(?P<percent>\s?%)?",
    re.IGNORECASE,
)
# What recognisers take for digits in an amount that is a piece of its own: 15.0C, 7-00, 1O.50.
_LOOKALIKES = str.maketrans(
    {"O": "0", "o": "0", "C": "0", "D": "0", "l": "1", "I": "1", "|": "1", "S": "5", "B": "8"}
)


@dataclass(frozen=True)
class FoundAmount:
    """An amount of money with two decimals, in hundredths, as it is written from `start` to `end` of a text."""

    cents: int
    text: str
    start: int
    end: int
    currency: str = ""

    @property
    def value(self) -> str:
        """As "1234.50"."""
        return as_amount(self.cents)


def as_amount(cents: int) -> str:
    """Hundredths as "1234.50"."""
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02d}"


def find_amounts(text: str) -> Iterator[FoundAmount]:
    """The amounts of a text, from left to right; percentages are none."""
    for match in _AMOUNT.finditer(text):
        if match["percent"]:
            continue
        digits = re.sub(r"\D", "", match["digits"])
        if len(digits) > 12:
            continue
        currency = match["before"] or match["before2"] or match["after"] or ""
        cents = -int(digits) if match["sign"] else int(digits)
        yield FoundAmount(cents, match[0].strip(), match.start(), match.end(), currency)


def read_misread_amount(text: str) -> FoundAmount | None:
    """The amount that a piece of text on its own must be, whose recogniser took digits or the point for others."""
    plain = re.sub(rf"^{_CURRENCY}\s?", "", text.strip(), flags=re.IGNORECASE)
    if not re.fullmatch(r"[\dOoCDlI|SB]{1,5}\s?[.,\-·]\s?[\dOoCDlI|SB]{2}", plain) or not re.search(
        r"\d", plain
    ):
        return None
    digits = re.sub(r"\D", "", plain.translate(_LOOKALIKES))
    return FoundAmount(int(digits), text.strip(), 0, len(text))
