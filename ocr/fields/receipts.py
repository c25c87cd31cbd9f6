"""The total, date, company and address of receipts and invoices, by words and places.

Every line that may be one gets points for what speaks for it, and the best is taken. The rules know words of English,
German, French, Spanish, Italian and Malay; they were developed on the 36 receipts of `sroie/train`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median

from ocr.fields.values import FoundAmount, as_amount, find_amounts, find_dates, read_misread_amount
from ocr.results.blocks import Field
from ocr.results.lines import Line
from ocr.results.page_text import line_box
from ocr.tables.cell_text import rows_of


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# Rows of totals and of what may be taken for one; recognisers read "total" as t0tal and tota1.
_THE_TOTAL = _any_case(r"t[o0]ta[l1i]")
_TOTAL = _any_case(r"t[o0]ta[l1i]|summe|gesamt|jumlah|importe|montant|betrag|amount|balance|due|payable")
# Points of the words beside an amount: the total itself, and what is a part of it or merely has the word.
_POINTS = (
    (
        _any_case(
            r"grand\s*t[o0]ta[l1i]|gesamt(betrag|summe)|zu\s*zahlen|endbetrag|total\s*(à|a)\s*(payer|pagar)"
        ),
        5.0,
    ),
    (
        _any_case(
            r"(amount|balance|total)\s*(due|payable)|net+\s*(total|t[o0]ta[l1i]|amt|amount)|rounded\s*total"
        ),
        4.5,
    ),
    (
        _any_case(
            r"t[o0]ta[l1i]\s*(sales?|amount|amt)?\s*[\[(]?\s*(incl|inc\b|rm|with|after|w/)|after\s*round"
        ),
        4.0,
    ),
    (_any_case(r"t[o0]ta[l1i]"), 3.0),
    (_any_case(r"^\W*(due|payable|to pay)\b"), 3.0),
    (_any_case(r"jumlah|summe|amount|montant|importe|betrag"), 1.5),
)
_PARTS = (
    (_any_case(r"sub\s*-?\s*t[o0]ta|zwischensumme|sous[- ]total|before|exc[l1.]|w/o|without|netto"), -2.5),
    (
        _any_case(
            r"\b(qty|quantity|items?|pcs|units?|saving|discount|disc|points?|member|change|kuantiti)\b"
        ),
        -4.0,
    ),
    (
        _any_case(
            r"(total|ttl)\s*(gst|tax|vat|mwst|tva|iva|sst)|(gst|tax|vat|mwst)\s*(total|amount|amt)|included"
        ),
        -3.0,
    ),
    (_any_case(r"round(ing)?\s*(adj|\(|:|$)|adjustment"), -3.0),
    (_any_case(r"\b(tax|gst|vat|sst|mwst)\b"), -0.5),
)
_SUMMARY = _any_case(
    r"(gst|tax|vat|sst|mwst|steuer)\w*\s*(summ?ary|sumsary|analysis|code|detail|übersicht)|^summary"
)
_PAID = _any_case(r"\b(cash|tender(ed)?|paid|payment|tunai|bar|gegeben|visa|master\w*|card|credit|debit)\b")
_CHANGE = _any_case(r"c[hu1i]*a[nm]ge|\bbaki\b|rückgeld|rendu|cambio|resto|balance")
_BALANCE = _any_case(r"balance")  # what is to be paid, or what comes back
_DATE_LABEL = _any_case(r"(?:(?:invoice|bill|receipt|order|issue)\s)?\w*dat[eum]\w*|tarikh|fecha|日期")
_NO_DATE = _any_case(r"due|expir|valid|birth|print(ed)?\s*on|until|bis\b|delivery|exchange|approved|prn")
_TIME = re.compile(r"\d{1,2}\s?[:.]\s?\d\d")
ROUNDED = 5  # hundredths up to which cash is rounded


@dataclass(frozen=True)
class Candidate:
    """A field that a page may have; `points` compare it with those of its name on other pages."""

    field: Field
    points: float


@dataclass(frozen=True)
class _Amount:
    cents: int
    points: float
    found: FoundAmount
    line: Line
    key: str


def find_total(lines: Sequence[Line], page: int) -> Candidate | None:
    """What is to be paid: the amount beside the words that say so, and which cash less change confirms."""
    rows = rows_of(lines)
    candidates: list[_Amount] = []
    paid: list[int] = []
    change: list[int] = []
    in_summary = False
    for number, row in enumerate(rows):
        said = " ".join(line.text for line in row)
        in_summary |= bool(_SUMMARY.search(said))
        amounts = _amounts_of(row)
        key = said
        if not amounts and _TOTAL.search(said) and number + 1 < len(rows):
            # The amount may stand in the next row, where that has nothing else to say.
            below = rows[number + 1]
            amounts = (
                [] if re.search(r"[A-Za-z]{3}", " ".join(line.text for line in below)) else _amounts_of(below)
            )
        if not amounts:
            continue
        amount, line = amounts[-1]
        if _CHANGE.search(said) and not _TOTAL.search(_BALANCE.sub("", said)):
            change.append(amount.cents)
            continue
        if _PAID.search(said) and not _THE_TOTAL.search(said):
            paid.append(amount.cents)
            continue
        points = max((p for pattern, p in _POINTS if pattern.search(said)), default=0.0)
        if not points:
            continue
        points += sum(p for pattern, p in _PARTS if pattern.search(said))
        if in_summary:
            points -= 3.0
        candidates.append(_Amount(amount.cents, points, amount, line, key))
    if not candidates:
        return None
    # What was handed over less what came back is what was to be paid.
    proofs = {p - c for p in paid for c in (change or [0]) if p - c > 0}
    confirmed = {c.cents for c in candidates} & proofs
    largest = max(c.cents for c in candidates)

    def points_of(item: _Amount) -> float:
        # Amounts that several rows name, that cash confirms, that are the largest, are totals.
        times = sum(other.cents == item.cents for other in candidates)
        return (
            item.points
            + 3.0 * (item.cents in confirmed)
            + 0.4 * min(times - 1, 3)
            + 0.5 * (item.cents == largest)
            - 6.0 * (item.cents <= 0)
        )

    best = max(candidates, key=points_of)
    points = points_of(best)
    cents = min(proofs, key=lambda cents: (abs(cents - best.cents), cents), default=best.cents)
    is_rounded = abs(cents - best.cents) <= ROUNDED  # what was paid is the total after rounding
    value = as_amount(cents) if is_rounded else best.found.value
    key = re.split(r"[:\d]", best.key)[0].strip()
    field = Field(
        "total", value, _as_score(points, 6.0) * best.line.score, key, page,
        (line_box(best.line),), best.found.text,
    )  # fmt: skip
    return Candidate(field, points)


def _amounts_of(row: Sequence[Line]) -> list[tuple[FoundAmount, Line]]:
    found = [(amount, line) for line in row for amount in find_amounts(line.text)]
    if not found and row and (amount := read_misread_amount(row[-1].text)) is not None:
        found = [(amount, row[-1])]
    return found


def _as_score(points: float, full: float) -> float:
    return min(max(points / full, 0.1), 1.0)


def find_date(lines: Sequence[Line], page: int, *, day_first: bool = True) -> Candidate | None:
    """When it was issued: a date with the word beside it or a time after it; else the first one."""
    best: Candidate | None = None
    number = 0
    for row in rows_of(lines):
        said = " ".join(line.text for line in row)
        for line in row:
            for found in find_dates(line.text, day_first=day_first):
                before, after = line.text[: found.start], line.text[found.end :]
                beside = (
                    " ".join(other.text for other in row if line_box(other)[0] < line_box(line)[0])
                    + f" {before}"
                )
                points = 2.0 * found.score - 0.15 * min(number, 10)
                points += 1.5 * bool(_DATE_LABEL.search(beside)) + 0.7 * bool(_TIME.search(after[:12]))
                points += 0.3 * bool(_TIME.search(said.replace(found.text, "")))
                points -= 2.5 * bool(_NO_DATE.search(beside[-40:]))
                points -= 1.5 * (found.score < 0.6 and not _DATE_LABEL.search(beside))
                points -= 1.0 * (found.day > date.today())
                number += 1
                if best is None or points > best.points:
                    key = next((match[0] for match in reversed([*_DATE_LABEL.finditer(beside)])), "")
                    score = _as_score(points, 3.5) * line.score
                    boxes = (line_box(line),)
                    best = Candidate(
                        Field("date", found.value, score, key, page, boxes, found.text),
                        points,
                    )
    return best


_KINDS = _any_case(
    r"((sdn|bhd|s/b|ltd|limited|inc|llc|plc|corp|gmbh|pte|pty|co|company|m)\b\.?\W*)+"
)  # of companies, where they stand alone
LARGE = 1.25  # times the usual height of lines
_COMPANY = _any_case(
    r"\b(sdn\.?\s*bhd|s/b|bhd|ltd|limited|inc|llc|plc|corp(oration)?|gmbh|ohg|e\.?k|s\.?a\.?r\.?l|s\.?r\.?l|s\.?p\.?a"
    r"|b\.?v|pte|pty|co\.?\s*(\(m\)|ltd|kg)|(?-i:AG|KG)|oy|aps|kft|enterprises?|trading|holdings?|marketing|industries|group)\b"
)
_SHOP = _any_case(
    r"\b(restoran|restaurant|grocer\w*|boutique|bistro|pizzeria|studio|salon|cafe|café|kedai|shop|store|stores|mart|market|supermarkt|bakery|bakeries|hotel|pharmacy"
    r"|apotheke|farmasi|perniagaan|pasaraya|syarikat|hardware|stationery|books?(tore)?|clinic|klinik|petrol|station)\b"
)
_STREET = _any_case(
    r"\b(jalan|jln|lorong|lrg|lot|taman|tmn|persiaran|lebuh|kampung|bandar|pusat|kawasan|seksyen|sek|medan|plaza|wisma"
    r"|bangunan|menara|level|floor|unit|block|street|st\.|road|rd\.?|avenue|ave\.?|lane|drive|boulevard|blvd|suite|square"
    r"|no\.?\s*\d|rue|place|calle|via|piazza|plaza|selangor|johor|kuala|lumpur|kl)\b|stra(ß|ss)e|str\.|weg\b|platz|allee"
)
_POSTCODE = re.compile(r"(?<![\d-])(\d{5}(-\d{4})?|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2})(?![\d-])")
_NOT_NAME = _any_case(
    r"^\W*(tel|fax|phone|gst|vat|tax|co\.?\s*reg|reg|roc|invoice|receipt|bill|date|time|cash|no\b|table|order|guest"
    r"|welcome|thank|simplified|www|http|page|copy|customer|sold to|attn|to\s*:|member|original|duplicate)"
)
_STOP = _any_case(
    r"(?<!\w)(tel\b|telp|fax|phone|gst\b|vat\b|tax\b|co\.?\s*reg|reg\.?\s*no|roc\b|invoice|receipt|bill|date|time|cashier|e-?mail"
    r"|www\.|http|qty|item|customer|order|table\s*no|ust-?id|steuer)"
)


def find_company(lines: Sequence[Line], page: int) -> Candidate | None:
    """Who issued it: a line of the head that ends as companies do or names a shop; else the largest one there."""
    rows = rows_of(lines)
    top, bottom = _extent(lines)
    usual = median(line_box(line)[3] - line_box(line)[1] for line in lines)
    best: Candidate | None = None
    for number, row in enumerate(rows):
        line = max(row, key=lambda item: len(item.text))
        box, text = line_box(line), line.text.strip(" *-=:.")
        letters = sum(char.isalpha() for char in text)
        place = (box[1] - top) / max(bottom - top, 1.0)
        if letters < 3 or letters < 0.5 * len(text.replace(" ", "")) or place > 0.35 or len(row) > 2:
            continue
        points = (
            2.0 - 0.35 * min(number, 8) + 2.5 * bool(_COMPANY.search(text)) + 1.2 * bool(_SHOP.search(text))
        )
        points -= 4.0 * bool(_NOT_NAME.search(text)) + 2.0 * (_is_address(text) and not _COMPANY.search(text))
        points -= 1.0 * (text == text.lower()) + 3.0 * (bool(find_dates(text)) or any(find_amounts(text)))
        points += 0.8 * (box[3] - box[1] > LARGE * usual)
        boxes = [box]
        said = text
        if not _COMPANY.search(text) and number + 1 < len(rows):
            # The kind of company may stand alone in the next row.
            more = " ".join(item.text for item in rows[number + 1]).strip()
            if _KINDS.fullmatch(more):
                said, points = f"{text} {more}", points + 2.5
                boxes += [line_box(item) for item in rows[number + 1]]
        points -= 3.0 * bool(_KINDS.fullmatch(text))
        said = re.sub(r"\s+\d{5,}-[A-Z]\b.*$", "", said)  # the number in the register
        said = re.sub(
            r"\s*[\[(（]\s*(co\.?\s*reg\D*)?\d{4,}\W*\w?\s*[\])）]?.*$", "", said, flags=re.IGNORECASE
        )
        said = said.strip()
        if said and (best is None or points > best.points):
            score = _as_score(points, 4.5) * line.score
            best = Candidate(Field("company", said, score, "", page, tuple(boxes), said), points)
    return best


def _extent(lines: Sequence[Line]) -> tuple[float, float]:
    boxes = [line_box(line) for line in lines]
    return min((b[1] for b in boxes), default=0.0), max((b[3] for b in boxes), default=1.0)


def _is_address(text: str) -> bool:
    return bool(_STREET.search(text)) or bool(_POSTCODE.search(text))


def find_address(lines: Sequence[Line], page: int, company: Field | None = None) -> Candidate | None:
    """Where: neighbouring lines of the head that name streets, towns and postcodes, joined by spaces; not the company's
    own lines.
    """
    named = set() if company is None else set(company.boxes)
    top, bottom = _extent(lines)
    rows = rows_of(lines)
    runs: list[list[Line]] = []
    run: list[Line] = []
    for row in rows:
        said = " ".join(line.text for line in row)
        place = (line_box(row[0])[1] - top) / max(bottom - top, 1.0)
        stops = (
            line_box(row[0]) in named
            or any(find_amounts(said))
            or bool(_STOP.search(said))
            or bool(_COMPANY.search(said))
            or len(row) > 2
        )
        fits = not stops and (_is_address(said) or (bool(run) and _goes_on(run[-1].text, said)))
        if fits and place < 0.5:
            run.extend(row)
            continue
        if run:
            runs.append(run)
        run = []
    if run:
        runs.append(run)
    best: Candidate | None = None
    for number, found in enumerate(runs):
        text = " ".join(line.text.strip() for line in found).strip()
        points = 1.0 * len(_STREET.findall(text)) + 2.0 * bool(_POSTCODE.search(text)) - 1.0 * number
        if best is None or points > best.points:
            boxes = tuple(line_box(line) for line in found)
            best = Candidate(Field("address", text, _as_score(points, 5.0), "", page, boxes, text), points)
    return best if best is not None and best.points >= 1.5 else None


def _goes_on(before: str, text: str) -> bool:
    """Whether a line without a street's word is of the address: the one before ends in a comma, or it is a town."""
    plain = text.strip()
    return (
        len(plain) < 45
        and not re.fullmatch(r"[\W\d]+[A-Z]?\W*", plain)
        and (before.rstrip().endswith(",") or (plain.endswith((",", ".")) and plain[:1].isalpha()))
    )
