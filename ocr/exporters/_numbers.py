"""Numbers as tables print them: signs, separators of thousands, decimal commas, currencies, percent."""

from __future__ import annotations

import re
from typing import NamedTuple

_CURRENCIES = "$€£¥₹₩₽฿"
_NUMBER = re.compile(
    rf"(?P<open>\()?\s*(?P<before>[{_CURRENCIES}])?\s*(?P<sign>[-−–+])?\s*(?P<inner>[{_CURRENCIES}])?\s*"
    rf"(?P<digits>\d[\d.,' \u00a0\u202f]*)\s*(?P<after>%|[{_CURRENCIES}])?\s*(?P<close>\))?"
)
_GROUPS = re.compile(r"\d{1,3}(?P<mark>[.,' \u00a0\u202f])\d{3}(?:(?P=mark)\d{3})*")
_MOST_DIGITS = 15  # a double holds no more: longer ones are names of things


class Number(NamedTuple):
    """A value, and the number format that shows it as it was printed (ECMA-376, part 1, 18.8.31)."""

    value: float
    format: str


def parse_number(text: str, *, decimal_comma: bool = False) -> Number | None:
    """The number that a text is, or None where it is anything else: "007" (a name), a date, a range, a unit.

    Args:
        decimal_comma: What "1,234" means, which is 1.234 or 1234; and "1.234" the other way round.
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    digits = match["digits"].strip()
    plain = _plain_digits(digits, decimal_comma)
    if plain is None:
        return None
    whole, _, part = plain.partition(".")
    if len(whole) + len(part) > _MOST_DIGITS or (len(whole) > 1 and whole[0] == "0"):
        return None
    if (match["open"] and match["sign"]) or sum(bool(match[n]) for n in ("before", "inner")) > 1:
        return None
    value = float(plain) if part else int(plain)
    if match["open"] or match["sign"] in ("-", "−", "–"):
        value = -value
    shown = ("#,##0" if _GROUPS.match(digits) and len(whole) > 3 else "0") + (
        "." + "0" * len(part) if part else ""
    )
    before, after = match["before"] or match["inner"], match["after"]
    if after == "%":
        if before:
            return None
        return Number(round(value / 100, len(part) + 4), shown + "%")
    if before and after:
        return None
    if before:
        shown = f'"{before}"{shown}'
    elif after:
        shown = f'{shown}\\ "{after}"'
    return Number(value, shown if shown != "0" else "General")


def _plain_digits(digits: str, decimal_comma: bool) -> str | None:
    """Digits with at most one "." between whole and decimals; None where separators stand in no order."""
    if digits.isdecimal() and digits.isascii():
        return digits
    grouped = _GROUPS.match(digits)
    mark = grouped["mark"] if grouped else ""
    if grouped:
        rest = digits[grouped.end() :]
        single = digits.count(mark) == 1 and not rest
        is_decimal = single and mark in ".," and (mark == ",") == decimal_comma
        if not is_decimal and (not rest or re.fullmatch(r"[.,]\d+", rest)) and not (rest and rest[0] == mark):
            return re.sub(r"[^\d.]", "", re.sub(rf"[{re.escape(mark)}]", "", digits).replace(",", "."))
    return digits.replace(",", ".") if re.fullmatch(r"\d+[.,]\d+", digits) and digits.isascii() else None


def uses_decimal_comma(texts: list[str]) -> bool:
    """Whether the numbers of a table are more likely to have a comma before their decimals."""
    comma = sum(bool(re.search(r"\d,\d{1,2}(?!\d)|\d\.\d{3},\d", text)) for text in texts)
    point = sum(bool(re.search(r"\d\.\d{1,2}(?!\d)|\d,\d{3}\.\d", text)) for text in texts)
    return comma > point
