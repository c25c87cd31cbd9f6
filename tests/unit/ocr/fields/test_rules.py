"""Fields by rules: dates, amounts, receipts, forms, machine-readable zones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ocr
from ocr.fields.mrz import check_digit, find_mrz
from ocr.fields.rules import FieldFinder, find_fields, find_pairs
from ocr.fields.values import find_amounts, find_dates, read_misread_amount
from ocr.results.blocks import Field
from ocr.results.lines import Line
from ocr.results.pages import Document, Page
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf


def line(text: str, x: float = 0, y: float = 0, height: float = 10, score: float = 1.0) -> Line:
    width = 6.0 * len(text)
    return Line(text, score, ((x, y), (x + width, y), (x + width, y + height), (x, y + height)))


def page(*rows: tuple[str, ...], number: int = 1) -> Page:
    """Rows of pieces, 200 apart."""
    lines = [line(said, 200 * c, 14 * r) for r, row in enumerate(rows) for c, said in enumerate(row) if said]
    return Page(tuple(lines), number, width=600, height=14 * len(rows) + 20)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Date 17.05.2024 14:32", "2024-05-17"),
        ("25/03/18", "2018-03-25"),
        ("05-13-2018", "2018-05-13"),  # no month 13
        ("2018-03-25", "2018-03-25"),
        ("2018年3月25日", "2018-03-25"),
        ("27 MAR 2018 18:46", "2018-03-27"),
        ("14/JUN/2017", "2017-06-14"),
        ("3. März 2019", "2019-03-03"),
        ("March 3, 2019", "2019-03-03"),
        ("20180304", "2018-03-04"),
        ("25032018", "2018-03-25"),
        ("04/03/201815:41:52", "2018-03-04"),  # the time begins at once
        ("04/03/185:41 PM", "2018-03-04"),
        ("27/06/185.02:32 PM", "2018-06-27"),
        ("27-06-1805:02:32", "2018-06-27"),
        ("1/2/69", "2069-02-01"),
        ("1/2/70", "1970-02-01"),
    ],
)
def test_dates(text, day):
    (found,) = find_dates(text)
    assert found.day.isoformat() == day and text[found.start : found.end].strip() == found.text


def test_months_first():
    assert find_dates("03/04/2018", day_first=False)[0].day.isoformat() == "2018-03-04"
    assert [d.day.isoformat() for d in find_dates("from 1/2/2018 to 3.2.2018")] == [
        "2018-02-01",
        "2018-02-03",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "31/02/2018",
        "1.50",
        "192.168.10.20",
        "07-8263254",
        "99/99/9999",
        "1/2/1800",
        "10.10.185.02",
        "27/06/1860:02",
    ],
)
def test_what_is_no_date(text):
    assert find_dates(text) == []


def test_amounts():
    found = list(find_amounts("RM 1,234.50 and -3.20, 12.5 %, 6.00% of $7.00 on 1.2.2018 at 10.30.15"))
    assert [(a.value, a.currency) for a in found] == [("1234.50", "RM"), ("-3.20", ""), ("7.00", "$")]
    assert [a.value for a in find_amounts("1.234,50 €")] == ["1234.50"]
    assert list(find_amounts("Tel 07-386 7524, 12345")) == []
    for text, value in (("15.0C", "15.00"), ("7-00", "7.00"), ("RM 1O.50", "10.50")):
        assert read_misread_amount(text).value == value  # type: ignore[union-attr]
    assert read_misread_amount("SOS.OO") is None and read_misread_amount("CS 12.5") is None


RECEIPT = (
    ("GREEN MARKET SDN BHD",),
    ("(801580-T)",),
    ("NO. 12, JALAN BESAR,",),
    ("81200 JOHOR BAHRU",),
    ("Tel: 07-386 7524",),
    ("Invoice No: A-17", "Date: 12/02/2018"),
    ("Soap", "2.20"),
    ("Rice", "10.22"),
    ("Sub Total", "12.42"),
    ("Rounding", "-0.02"),
    ("TOTAL", "12.42"),
    ("CASH", "20.40"),
    ("CHANGE", "8.00"),
    ("GST SUMMARY", "Total"),
    ("Total", "99.00"),
)


def test_a_receipt():
    fields = find_fields([page(*RECEIPT)])
    by_name = {field.name: field for field in fields}
    names = ("company", "date", "address", "total", "invoice_number", "phone")
    assert {name: by_name[name].value for name in names} == {
        "company": "GREEN MARKET SDN BHD",
        "date": "2018-02-12",
        "address": "NO. 12, JALAN BESAR, 81200 JOHOR BAHRU",
        "total": "12.40",  # cash less change: the amount after rounding
        "invoice_number": "A-17",
        "phone": "07-386 7524",
    }
    total = by_name["total"]
    assert (total.key, total.text, total.boxes) == ("TOTAL", "12.42", ((200, 140, 230, 150),))
    assert by_name["date"].text == "12/02/2018" and by_name["date"].key == "Date"
    assert all(0 < field.score <= 1 for field in fields)
    kept = Document((page(*RECEIPT),), fields=fields)
    assert Document.from_dict(kept.to_dict()).to_dict() == kept.to_dict()


def test_words_that_are_no_total():
    rows = (("Total Qty", "3.00"), ("Total GST", "0.50"), ("Grand total", "9.90"), ("Total saving", "20.00"))
    (total,) = (field for field in find_fields([page(*rows)]) if field.name == "total")
    assert total.value == "9.90"
    assert not any(field.name == "total" for field in find_fields([page(("Soap", "3.00"))]))


@pytest.mark.parametrize("change", ["Change", "BALANCE", "Balance"])
def test_cash_less_change_is_the_total_after_rounding(change):
    rows = (("Total", "12.42"), ("Cash", "20.40"), (change, "8.00"))
    (total,) = (field for field in find_fields([page(*rows)]) if field.name == "total")
    assert (total.value, total.text) == ("12.40", "12.42")
    far = (("Total", "12.42"), ("Cash", "20.40"), (change, "7.00"))
    (total,) = (field for field in find_fields([page(*far)]) if field.name == "total")
    assert total.value == "12.42"  # a difference of more than 5 hundredths is no rounding


def test_several_pages():
    """The first page tells who, the last one how much."""
    finder = FieldFinder()
    finder.add(page(("FIRST TRADING LTD",), ("Date: 1/2/2018",), ("Total", "5.00")))
    finder.add(Page((), 2, width=0, height=0))
    finder.add(page(("Total", "7.00"), ("Date: 3/2/2018",), number=3))
    values = {field.name: (field.value, field.page) for field in reversed(finder.find())}
    assert values["company"] == ("FIRST TRADING LTD", 1) and values["date"] == ("2018-02-01", 1)
    assert values["total"] == ("7.00", 3)


def test_key_value_pairs():
    lines = [
        line("Surname", 0, 0), line("Given names", 200, 0),
        line("MÜLLER", 0, 14), line("ANNA", 200, 14),
        line("Date of birth:", 0, 40), line("3.4.1980", 120, 40),
        line("Table", 0, 60), line(": 7", 100, 60),
        line("Remarks:", 0, 80),
        line("10:30", 0, 120), line("http://a.b", 200, 120),
        line("Tax: 3.50", 0, 140),
    ]  # fmt: skip
    found = [(f.name, f.value, f.text) for f in find_pairs(lines)]
    assert found == [
        ("surname", "MÜLLER", "MÜLLER"),
        ("given_names", "ANNA", "ANNA"),
        ("birth_date", "1980-04-03", "3.4.1980"),
        ("table", "7", "7"),
        ("tax", "3.50", "3.50"),
    ]


def test_machine_readable_zones():
    """The specimens of ICAO Doc 9303, parts 4 and 5."""
    assert check_digit("L898902C3") == 6 and check_digit("740812") == 2
    passport = [
        line("P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<"),
        line("L898902C36UTO7408122F1204159ZE184226B<<<<<10"),
    ]
    found = {field.name: field for field in find_mrz(passport)}
    assert {name: field.value for name, field in found.items()} == {
        "document_number": "L898902C3",
        "birth_date": "1974-08-12",
        "expiry_date": "2012-04-15",
        "nationality": "UTO",
        "sex": "F",
        "issuer": "UTO",
        "name": "ERIKSSON, ANNA MARIA",
    }
    assert found["birth_date"].score == 1.0
    card = [
        line("I<UTOD231458907<<<<<<<<<<<<<<<"),
        line("7408122F1204159UTO<<<<<<<<<<<6"),
        line("ERIKSSON<<ANNA<MARIA<<<<<<<<<<"),
    ]
    values = {field.name: field.value for field in find_mrz(card)}
    assert (values["document_number"], values["birth_date"], values["name"]) == (
        "D23145890",
        "1974-08-12",
        "ERIKSSON, ANNA MARIA",
    )
    wrong = [passport[0], line(passport[1].text.replace("7408122", "7408123"))]
    assert {field.name: field.score for field in find_mrz(wrong)}["birth_date"] == 0.3
    assert find_mrz([line("no zone")]) == []


def test_fields_of_a_document():
    pdf = make_pdf(
        PdfPage()
        .text(30, 40, "Acme Ltd", 14)
        .text(30, 60, "Invoice no: 17")
        .text(30, 80, "Total")
        .text(200, 80, "3.50")
    )
    found = ocr.document(pdf, fields=True)
    assert [(f.name, f.value) for f in found.fields] == [
        ("company", "Acme Ltd"), ("total", "3.50"), ("invoice_number", "17")
    ]  # fmt: skip
    assert ocr.document(pdf).fields == ()
    assert json.loads(found.to_json())["fields"][0]["text"] == "Acme Ltd"
    assert Field("a", "b") == Field("a", "b", text="")


@pytest.mark.slow
def test_receipts_of_sroie(shared: Path):
    """The bar of the rules: total and date of at least 85 % of the receipts that they were not made on."""
    read = ocr.predictor()
    folder = shared / "data" / "sroie" / "test"
    right = {"total": 0, "date": 0}
    images = sorted((folder / "img").glob("*.jpg"))
    for image in images:
        truth = json.loads((folder / "key" / f"{image.stem}.json").read_text(encoding="utf-8"))
        fields = {field.name: field.value for field in reversed(find_fields(read(image).pages))}
        right["date"] += fields.get("date") == find_dates(truth["date"])[0].day.isoformat()
        # Of two receipts the truth is no amount ("43.7", nothing): that counts as missed.
        amounts = [amount.value for amount in find_amounts(truth["total"])]
        right["total"] += fields.get("total") in amounts[:1]
    assert images and all(count >= 0.85 * len(images) for count in right.values()), right
