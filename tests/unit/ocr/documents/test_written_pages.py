"""Pages as WeasyPrint, Word and Chromium write them: rules that end columns, short rows, clipped borders, forms."""

from __future__ import annotations

import pytest

from tests.unit.ocr.documents.pdf_pages import HEIGHT, PdfPage
from tests.unit.ocr.documents.test_pages_of_others import WORDS, markdown, prose, rows_of_text, table_of


def blocks(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n")]


def test_a_rule_across_the_page_ends_columns() -> None:
    page = PdfPage()
    prose(page, 30, 40, 8, words=7)
    for number, text in enumerate(("Tide", "High 04:10", "Low 10:25", "Wind north", "Sea calm")):
        page.text(300, 46 + 13 * number, text, 7)
    page.line(20, 128, 380, 128).text(30, 138, "Printed by the Post", 7)
    said = markdown(page)
    assert said.index("calm") < said.index("Printed")


def test_short_texts_beside_one_another_are_a_row() -> None:
    page = PdfPage().text(30, 30, "Nordic Supply", 10)
    left = ("Bill to:", "Maria Example", "Main Street 5", "Springfield")
    right = ("Ship to:", "Example Works", "Dock Road 3", "Porttown")
    rows_of_text(page, (30, 220), 60, list(zip(left, right, strict=True)), step=12)
    page.text(30, 120, "Order no. 5512 of June", 8)
    said = " ".join(markdown(page).split())
    assert (
        said.index("Springfield") < said.index("Ship to:") < said.index("Porttown") < said.index("Order no.")
    )


def test_borders_drawn_as_frames_behind_clips_are_lines() -> None:
    """As WeasyPrint draws those of one side: the whole cell is filled, clipped to its lower edge."""
    page = PdfPage()
    rows = [
        ("Port", "Boats", "Catch"),
        ("Bergen", "14", "120.5"),
        ("Moss", "9", "88.0"),
        ("Bodo", "22", "310.2"),
    ]
    rows_of_text(page, (40, 140, 240), 60, rows, step=18)
    for x in (30, 130, 230):
        low = HEIGHT - 66
        page.raw(f"q {x} {low} 98 1 re W n 0 g {x} {low} 98 20 re f Q")
    assert table_of(markdown(page)) == [list(row) for row in rows]


def test_borders_of_two_colours_whose_ends_are_cut_askew_are_lines() -> None:
    """As Chromium draws `<table border=1>`: upright borders are trapezoids, and cells stand two pixels apart."""
    page, rows = PdfPage(), [("Port", "Boats"), ("Bergen", "14"), ("Moss", "9")]
    for row, texts in enumerate(rows):
        for column, text in enumerate(texts):
            x0, y0 = 40 + 62 * column, HEIGHT - 40 - 22 * row
            x1, y1 = x0 + 60, y0 - 20
            page.text(x0 + 4, 54 + 22 * row, text)
            page.fill(x0, 40 + 22 * row, x1, 40.8 + 22 * row, 0.3).fill(
                x0, 59.2 + 22 * row, x1, 60 + 22 * row, 0.7
            )
            page.raw(f"0.3 g {x0} {y0} m {x0} {y1} l {x0 + 0.8} {y1 + 0.8} l {x0 + 0.8} {y0} l f")
            page.raw(f"0.7 g {x1 - 0.8} {y0 - 0.8} m {x1 - 0.8} {y1} l {x1} {y1} l {x1} {y0} l f")
    page.raw("0 g")
    assert table_of(markdown(page)) == [list(row) for row in rows]


def test_bullets_beside_their_texts_are_no_table() -> None:
    page = PdfPage()
    y = 40.0
    for number in range(3):
        page.text(40, y, "\x95", 8)
        for row in range(2):
            page.text(60, y, " ".join(WORDS[8 * number + 4 * row : 8 * number + 4 * row + 6]), 8)
            y += 11
    page.text(30, y + 16, "Table 1: Catch", 8)
    said = markdown(page)
    assert "|" not in said and said.count("\n- ") + said.startswith("- ") == 3


def test_rows_of_a_form_keep_their_ends() -> None:
    page = PdfPage()
    rows = ("Full name: Anna Marie Vik", "Name of the boat: Havfruen of Bergen", "Length: 11.4 m over all")
    for number, row in enumerate(rows):
        page.text(30, 40 + 14 * number, row)
    assert markdown(page).replace("  \n", "\n").strip().split("\n") == list(rows)


def test_entries_of_an_index_keep_their_ends() -> None:
    page = PdfPage()
    rows = (
        "Adversus Judaeos (Tertullian), 88",
        "Against Celsus (Origen), 327, 328, 329",
        "Against Heresies, 12, 14",
    )
    for number, row in enumerate(rows):
        page.text(30, 40 + 12 * number, row)
    assert markdown(page).replace("  \n", "\n").strip().split("\n") == list(rows)


def test_a_heading_may_have_several_lines() -> None:
    page = PdfPage()
    title = ("1 A very long title of a chapter", "about the boats of the north", "and of those who sail them",
             "with all of their nets")  # fmt: skip
    for number, row in enumerate(title):
        page.text(30, 40 + 23 * number, row, 20, "Bold")
    prose(page, 30, 150, 8, words=9)
    assert blocks(markdown(page))[0] == "# " + " ".join(title)


@pytest.mark.parametrize("text", ["NOK 80.00", "Total due 277,87 EUR"])
def test_amounts_are_no_headings(text: str) -> None:
    page = PdfPage()
    end = prose(page, 30, 40, 4)
    page.text(30, end + 8, text, 8, "Bold")
    prose(page, 30, end + 30, 4)
    assert text in blocks(markdown(page))


def test_a_total_with_its_amount_far_off_is_no_heading() -> None:
    page = PdfPage()
    end = prose(page, 30, 40, 4)
    page.text(30, end + 8, "TOTAL NOK", 8, "Bold").text(220, end + 8, "22.30", 8, "Bold")
    prose(page, 30, end + 30, 4)
    assert "TOTAL NOK 22.30" in " ".join(markdown(page).split()) and "# TOTAL" not in markdown(page)


@pytest.mark.parametrize(("step", "gap"), [(11, 8), (10.4, 9)])
def test_short_paragraphs_stay_apart_below_a_heading(step: float, gap: float) -> None:
    """Most of the distances between their lines are those between paragraphs."""
    page = PdfPage().text(30, 40, "The quiet harbour", 20, "Bold")
    y = 70.0
    for number, rows in enumerate((2, 2, 2, 1, 2, 1)):
        for row in range(rows):
            page.text(30, y, " ".join(WORDS[10 * number + 9 * row : 10 * number + 9 * row + 9]), 9)
            y += step
        y += gap
    assert len(blocks(markdown(page))) == 7


def test_justified_rows_run_on() -> None:
    """Their words stand far apart, and equally so."""
    page = PdfPage()
    for number, row in enumerate(
        ("the council met on a", "new bridge over it", "several members ask", "how long work is")
    ):
        words, x = row.split(), 30.0
        widths = [4.6 * len(word) for word in words]
        gap = (130 - sum(widths)) / (len(words) - 1)
        for word, width in zip(words, widths, strict=True):
            page.raw(
                f"BT /Mono {width / len(word) / 0.6} Tf 1 0 0 1 {x} {HEIGHT - 40 - 11 * number} Tm ({word}) Tj ET"
            )
            x += width + gap
    assert "\n" not in markdown(page).strip()


def test_right_aligned_rows_are_one_paragraph() -> None:
    page = PdfPage()
    for number, (x, row) in enumerate(
        ((257.2, "Invoice 4711"), (236.1, "Date: 02.06.2022"), (276, "Buyer 120"))
    ):
        page.text(x, 40 + 12 * number, row, 10, "Mono")
    assert len(blocks(markdown(page))) == 1


def test_numbers_of_one_digit_are_words() -> None:
    """The gaps between words are more than those between letters."""
    page = (
        PdfPage()
        .text(40, 40, "2019", 8)
        .text(60, 40, "4", 8)
        .text(68, 40, "4", 8)
        .text(76, 40, "1", 8)
        .text(84, 40, "2", 8)
    )
    assert markdown(page).split() == ["2019", "4", "4", "1", "2"]


def test_a_smaller_title_on_the_first_page_is_a_heading() -> None:
    page = PdfPage().text(30, 40, "The quiet harbour", 24, "Bold")
    prose(page, 30, 60, 3)
    page.text(30, 98, "At the auction", 16, "Bold")
    prose(page, 30, 115, 6)
    said = markdown(page)
    assert "# The quiet harbour" in said and "## At the auction" in said


def test_a_sender_beside_the_number_of_his_letter() -> None:
    page = PdfPage()
    left, right = (
        ("Muster GmbH", "Hafenstr. 3", "20095 Hamburg"),
        ("Order: 4711", "Date: 2 June", "Buyer: 1203"),
    )
    rows_of_text(page, (30, 260), 40, list(zip(left, right, strict=True)), step=11)
    prose(page, 30, 76, 3)
    assert markdown(page).split()[: len(" ".join(left + right).split())] == " ".join(left + right).split()
