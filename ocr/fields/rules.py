"""Fields of receipts, invoices and forms without training: key-value pairs, and what their words and places tell.

`company`, `date`, `address` and `total` are looked for everywhere (`receipt_fields`), pairs such as "Invoice no: 123"
by colons and alignment, and the fields of passports and identity cards by their machine-readable zone (`mrz`). Dates
are ISO 8601 in `Field.value` and as written in `Field.text`; amounts are "1234.50".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from ocr.fields.mrz import find_mrz
from ocr.fields.receipts import Candidate, find_address, find_company, find_date, find_total
from ocr.fields.values import find_amounts, find_dates
from ocr.results.blocks import Box, Field
from ocr.results.geometry import line_box, rows_of
from ocr.results.lines import Line
from ocr.results.pages import Page

MOST_PAIRS = 2000  # of a document
LONGEST_KEY, LONGEST_VALUE = 40, 200
WIDEST_GAP = 30.0  # heights of the line between a key and its value
# What keys are called, whatever the words on the page.
_NAMES = (
    ("invoice_number", r"(tax\s*)?(inv(oice)?|rechnung(snummer)?|facture)\s*(no|nr|num|number|#|id)?\.?"),
    ("receipt_number", r"(receipt|bill|doc(ument)?|trn|beleg)\s*(no|nr|number|#|id)\.?"),
    ("order_number", r"(order|po|bestellung)\s*(no|nr|number|#|id)?\.?"),
    ("customer_number", r"(customer|cust|account|kunden|member)\s*\.?\s*(no|nr|number|#|id)\.?|kundennummer"),
    (
        "tax_id",
        r"(gst|vat|tax|ust|sst)[\s.-]*(id(nr)?|reg|no|nr|number)[\s.]*(id|no|nr|number|#)?\.?|steuernummer",
    ),
    ("registration_number", r"(co\.?\s*)?(reg|roc|company)[\s.]*(no|nr|number)?\.?"),
    ("phone", r"(tel(ephone|efon)?|phone|hp|mobile|call)[\s.]*(no|nr)?\.?"),
    ("fax", r"fax[\s.]*(no|nr)?\.?"),
    ("email", r"e-?\s?mail"),
    ("website", r"web(site)?|www|url"),
    ("due_date", r"(payment\s*)?due(\s*date)?|fällig(\s*am)?|zahlbar\s*bis"),
    ("birth_date", r"(date\s*of\s*birth|birth\s*date|d\.?o\.?b\.?|geburtsdatum|geboren)"),
    (
        "expiry_date",
        r"(date\s*of\s*)?(expiry|expiration|expires|valid\s*(until|to|thru))(\s*date)?|gültig\s*bis",
    ),
    ("issue_date", r"(date\s*of\s*issue|issue\s*date|issued(\s*on)?|ausgestellt)"),
    ("date", r"(invoice\s*|bill\s*|order\s*|receipt\s*|rechnungs)?(date|datum|tarikh)"),
    ("time", r"(time|zeit|uhrzeit|masa)"),
    ("cashier", r"(cashier|kassierer|operator|server|waiter|salesperson)"),
    (
        "document_number",
        r"(passport|document|id(entity)?(\s*card)?|licen[cs]e|ausweis)\s*(no|nr|number|#)\.?",
    ),
    ("surname", r"(surname|last\s*name|family\s*name|nachname|nom)"),
    ("given_names", r"(given\s*names?|first\s*name|forename|vorname(n)?|prénoms?)"),
    ("name", r"(full\s*)?name"),
    ("nationality", r"(nationality|staatsangehörigkeit|nationalité)"),
    ("sex", r"(sex|gender|geschlecht)"),
    ("address", r"(address|anschrift|adresse)"),
)
_KNOWN = tuple((name, re.compile(rf"\W*(?:{pattern})\W*", re.IGNORECASE)) for name, pattern in _NAMES)
_COLON = re.compile(r"\s*[:：]\s*")
_FORM_ONLY = {
    "surname", "given_names", "name", "nationality", "sex", "birth_date", "expiry_date", "issue_date",
    "document_number", "address",
}  # fmt: skip


class FieldModel(Protocol):
    """What finds the fields of pages; FieldReader and FormReader are such."""

    @property
    def reads_images(self) -> bool:
        """Whether pages must have their image."""
        ...

    def __call__(self, page: Page) -> list[Field]:
        """The fields of a page."""
        ...


def find_fields(pages: Iterable[Page], model: FieldModel | None = None) -> tuple[Field, ...]:
    """The fields of a document's pages, those of a model or of `receipt_fields` first."""
    finder = FieldFinder(model=model)
    for page in pages:
        finder.add(page)
    return finder.find()


class FieldFinder:
    """Gathers fields from pages that come one by one.

    Args:
        day_first: What 03/04/2018 means.
        model: A trained one; what it finds under a name takes the place of what rules find. Where it reads images,
            pages must have theirs.
    """

    def __init__(self, *, day_first: bool = True, model: FieldModel | None = None) -> None:
        self._day_first, self._model = day_first, model
        self._trained: dict[str, list[Field]] = {}
        self._best: dict[str, Candidate] = {}
        self._pairs: list[Field] = []
        self._filled: list[Field] = []  # into forms: these are certain

    @property
    def reads_images(self) -> bool:
        """Whether pages must have their image."""
        return self._model is not None and self._model.reads_images

    def add(self, page: Page) -> None:
        """Look at a page. Raises: InputError, where the model reads images and the page has none."""
        self._filled += page.fields[: max(MOST_PAIRS - len(self._filled), 0)]
        lines = [line for line in page.lines if line.text.strip()]
        if not lines:
            return
        number = page.page
        if self._model is not None:
            self._add_trained(self._model(page))
        company = find_company(lines, number)
        first = {
            "company": company,
            "address": find_address(lines, number, None if company is None else company.field),
            "date": find_date(lines, number, day_first=self._day_first),
        }
        for name, found in first.items():  # of several pages the first tells who and when
            if found is not None and (name not in self._best or found.points > self._best[name].points + 1):
                self._best[name] = found
        total = find_total(lines, number)  # and the last one how much
        if total is not None and ("total" not in self._best or total.points >= self._best["total"].points):
            self._best["total"] = total
        if len(self._pairs) < MOST_PAIRS:
            self._pairs += [*find_mrz(lines, number), *find_pairs(lines, number, day_first=self._day_first)]

    def _add_trained(self, found: Sequence[Field]) -> None:
        """A name that each page has once is of the document; the surest one counts. Of others all are kept."""
        by_name: dict[str, list[Field]] = {}
        for field in found:
            by_name.setdefault(field.name, []).append(field)
        for name, fields in by_name.items():
            before = self._trained.get(name, [])
            if len(before) == len(fields) == 1 and not fields[0].key:
                self._trained[name] = [max(before[0], fields[0], key=lambda field: field.score)]
            elif len(before) < MOST_PAIRS:
                self._trained[name] = [*before, *fields]

    def find(self) -> tuple[Field, ...]:
        """The fields of all pages so far."""
        by_rules = {
            name: self._best[name].field
            for name in ("company", "date", "address", "total")
            if name in self._best
        }
        filled = {field.name for field in self._filled}
        best = [field for name, field in by_rules.items() if name not in self._trained and name not in filled]
        best = [field for fields in self._trained.values() for field in fields] + best
        best = [*self._filled, *best]
        values = {(field.name, field.value) for field in best}
        pairs = []
        for field in self._pairs[:MOST_PAIRS]:
            if (field.name, field.value) not in values:
                values.add((field.name, field.value))
                pairs.append(field)
        return (*best, *pairs)


def find_pairs(lines: Sequence[Line], page: int = 1, *, day_first: bool = True) -> list[Field]:
    """Key-value pairs of a page: "key: value" on a line, a key and its value beside it or below it.

    Without a colon only known keys count, and below a key only those of forms (names, birth dates, numbers).
    """
    rows = rows_of(lines)
    found: list[Field] = []
    for number, row in enumerate(rows):
        used: set[int] = set()
        for place, line in enumerate(row):
            if place in used:
                continue
            key, value = _split(line.text)
            if key and value:
                found.append(_field(key, value, line.score * 0.9, page, (line_box(line),), day_first))
                continue
            bare = line.text.strip().rstrip(":：").strip()
            ends = line.text.rstrip().endswith((":", "："))
            name = _known_name(bare)
            beside = row[place + 1] if place + 1 < len(row) and _is_near(line, row[place + 1]) else None
            has_colon = ends or (beside is not None and beside.text.lstrip().startswith((":", "：")))
            if not bare or len(bare) > LONGEST_KEY or not (has_colon or name):
                continue
            if beside is not None:
                said = beside.text.strip().lstrip(":：").strip()
                if said and not _known_name(said.rstrip(": ")):
                    boxes = (line_box(line), line_box(beside))
                    found.append(_field(bare, said, beside.score * 0.8, page, boxes[1:], day_first))
                    used.add(place + 1)
                    continue
            if (ends or name in _FORM_ONLY) and number + 1 < len(rows):
                below = _below(line, rows[number + 1])
                if below is not None and ":" not in below.text and _known_name(below.text) is None:
                    score = below.score * (0.7 if name else 0.4)
                    found.append(_field(bare, below.text.strip(), score, page, (line_box(below),), day_first))
    return [field for field in found if field.value]


def _split(text: str) -> tuple[str, str]:
    """The key and value around a line's first colon; ("", "") where these are none, as in a time or an address."""
    match = _COLON.search(text)
    if match is None:
        return "", ""
    key, value = text[: match.start()].strip(" *-•."), text[match.end() :].strip()
    is_time = bool(re.search(r"\d$", key)) and bool(re.match(r"\d\d", value))
    if is_time or not value or value.startswith("//") or len(key) > LONGEST_KEY or len(value) > LONGEST_VALUE:
        return "", ""
    # "16 FEB 2018 Time: 10:30" and the like: the key is what follows the last number.
    letters = sum(char.isalpha() for char in key)
    return (key, value) if letters >= 2 and letters >= 0.5 * len(key.replace(" ", "")) else ("", "")


def _known_name(key: str) -> str | None:
    return next((name for name, pattern in _KNOWN if pattern.fullmatch(key)), None)


def name_of_key(key: str) -> str:
    """A key's name: a known one, else its words joined by underscores."""
    name = _known_name(key)
    return name or re.sub(r"[^\w]+", "_", key.casefold()).strip("_") or "field"


def _field(key: str, value: str, score: float, page: int, boxes: tuple[Box, ...], day_first: bool) -> Field:
    name, plain = name_of_key(key), value
    if "date" in name and (dates := find_dates(value, day_first=day_first)):
        plain = dates[0].value
        value = dates[0].text
    elif (amounts := list(find_amounts(value))) and len(amounts) == 1 and amounts[0].text == value.strip():
        plain = amounts[0].value
    return Field(name, plain, score, key, page, boxes, value)


def _is_near(key: Line, value: Line) -> bool:
    left, right = line_box(key), line_box(value)
    return right[0] - left[2] < WIDEST_GAP * (left[3] - left[1])


def _below(line: Line, row: Sequence[Line]) -> Line | None:
    """The line straight below, that starts where this one does."""
    box = line_box(line)
    height = box[3] - box[1]
    for other in row:
        at = line_box(other)
        if abs(at[0] - box[0]) < 1.0 * height and at[1] - box[3] < 1.5 * height:
            return other
    return None
