"""Pages as users' programs write them: labels and values, sidebars, margins, lists, narrow tables, totals, breaks."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from framework.core.errors import InputError
from ocr.documents.lazy import Lazy
from ocr.documents.reader import DocumentReader
from ocr.pipeline.predictor import OCRPredictor
from tests.unit.ocr.documents.pdf_pages import HEIGHT, PdfPage, make_pdf

TEXT = (
    "the council met on Tuesday to discuss a new bridge over the river and several members asked how long the "
    "work would take and who was to pay for it while the engineer said that two summers would be enough if the "
    "weather was kind and shops on the east bank hope for more visitors once the road is open again"
)
WORDS = TEXT.split()


def no_ocr() -> OCRPredictor:
    raise InputError("OCR was asked for")


READ = DocumentReader(Lazy(no_ocr), figures=False)


def prose(
    page: PdfPage, x: float, y: float, rows: int, *, words: int = 8, size: float = 8, step: float = 10
) -> float:
    """Rows of a paragraph; returns the height of the next one."""
    for row in range(rows):
        line = " ".join(WORDS[(row * words + k) % len(WORDS)] for k in range(words))
        page.text(x, y, line.capitalize() if row == 0 else line + "." * (row == rows - 1), size)
        y += step
    return y


def rows_of_text(
    page: PdfPage, xs: Sequence[float], y: float, rows: Sequence[Sequence[str]], step: float = 12
) -> None:
    for row in rows:
        for x, said in zip(xs, row, strict=True):
            if said:
                page.text(x, y, said, 8)
        y += step


def markdown(*pages: PdfPage) -> str:
    return READ(make_pdf(*pages)).to_markdown()


def table_of(text: str) -> list[list[str]]:
    """The cells of a Markdown table, without the line below its head."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    return [row for row in cells if not all(re.fullmatch("-+", cell) for cell in row)]


@pytest.mark.parametrize(
    "rows",
    [
        [("Name:", "Maria Example"), ("Date of birth:", "01.02.1980"), ("Insurance no.:", "A 123 456")],
        [("Patient", "Jonas Petersen"), ("Room", "14 on floor 2"), ("Admitted on", "14 May 2021")],
        [("garden", "Garten"), ("tree", "Baum"), ("river", "Fluss"), ("bread", "Brot")],
        [("Name:", "Maria"), ("Age:", "44"), ("Total:", "1,250.00")],
    ],
)
def test_labels_stay_with_their_values(rows: list[tuple[str, str]]) -> None:
    page = PdfPage()
    rows_of_text(page, (30, 120), 40, rows, step=15)
    text = markdown(page)
    said = [
        "  ".join(row).split() for row in (table_of(text) or [line.split() for line in text.splitlines()])
    ]
    assert said == ["  ".join(row).split() for row in rows]


@pytest.mark.parametrize("right", [True, False])
def test_answers_far_right_stay_with_their_questions(right: bool) -> None:
    rows = [("Do you smoke?", "No, not now"), ("Any allergies to food?", "Nuts"), ("Last visit", "March 2023"),
            ("Who is your doctor?", "Dr. A. Example")]  # fmt: skip
    if right:
        rows = [(label.replace("?", ""), value) for label, value in rows]
    page = PdfPage()
    for number, (label, value) in enumerate(rows):
        page.text(16, 30 + 14 * number, label, 9, "Mono")
        page.text(384 - 5.4 * len(value) if right else 300, 30 + 14 * number, value, 9, "Mono")
    said = " ".join(markdown(page).split())
    assert said == " ".join(f"{label} {value}" for label, value in rows)


def test_blocks_with_heads_are_read_one_after_the_other() -> None:
    page = PdfPage().text(
        30, 24, "Harbour Tools Ltd, makers of tools for boats and of everything beside them", 8
    )
    left = ("Bill to:", "Maria Example", "5 Main Street", "Springfield SP4 5CD")
    right = ("Ship to:", "Example Works", "Gate 3, Dock Road", "Springfield SP9 1XX")
    rows_of_text(page, (30, 220), 40, list(zip(left, right, strict=True)), step=10)
    assert markdown(page).split()[13:] == " ".join((*left, *right)).split()


def test_a_sidebar_of_short_lines_is_read_by_itself() -> None:
    page = PdfPage()
    side = ("maria@example.org", "call 555 0101", "Springfield", "speaks French", "plays chess")
    for number, said in enumerate(side):
        page.text(20, 44 + 13 * number, said, 7)
    prose(page, 140, 40, 9)
    text = markdown(page)
    assert [text.index(said) for said in side] == sorted(text.index(said) for said in side)
    assert not set(re.findall("|".join(side[1:]), text[text.index("The council") :][:600]))


def test_a_note_in_the_margin_does_not_part_a_heading_from_its_text() -> None:
    page = PdfPage().text(140, 30, "Clinical study report", 14)
    below = prose(page, 140, 50, 8)
    page.text(140, below + 12, "1. Introduction", 11, "Bold")
    for number, said in enumerate(("Sponsor: Example Ltd", "Protocol 00083083", "Version 3.1")):
        page.text(20, below + 31 + 8 * number, said, 6)
    prose(page, 140, below + 28, 4)
    text = markdown(page)
    assert re.search(r"Introduction\s+The council met", text) and "Version 3.1" in text
    assert len(re.findall(r"The council met", text)) == 2


def test_lists_keep_their_levels_and_end_where_a_paragraph_begins() -> None:
    page = PdfPage()
    rows = (
        (0, "1.  Install the package."),
        (0, "2.  Set the key."),
        (0, "Restart the shell before you go on."),
        (0, "3.  Run the import."),
        (20, "a)  Check the log."),
        (20, "b)  Check the output."),
        (0, "4.  Send the report to all of the members who asked for it."),
    )
    for number, (indent, said) in enumerate(rows):
        page.text(30 + indent, 40 + 12 * number, said, 9)
    assert markdown(page).split("\n") == [
        "1. Install the package.",
        "2. Set the key.",
        "",
        "Restart the shell before you go on.",
        "",
        "3. Run the import.",
        "    - a) Check the log.",
        "    - b) Check the output.",
        "4. Send the report to all of the members who asked for it.",
        "",
    ]
    html = READ(make_pdf(page)).to_html()
    assert (
        html.index("Run the import")
        < html.index("<ul>\n<li")
        < html.index("Check the log")
        < html.index("</ul>")
    )
    assert html.count("<li") == html.count("</li>") == 6


def test_close_columns_of_numbers_are_columns() -> None:
    """The white between them is half the size of the type, and in every row."""
    page = PdfPage()
    rows = [
        ["Stn", *"ABCDEFGH"],
        *([f"S{n}", *(str(100 + 37 * n + 11 * k) for k in range(8))] for n in range(7)),
    ]
    for number, row in enumerate(rows):
        for k, said in enumerate(row):
            page.text(30 + 17.5 * k, 40 + 11 * number, said, 8)
    assert table_of(markdown(page)) == rows


def test_thousands_are_no_columns() -> None:
    page = PdfPage()
    rows = [["Item", "Amount"], *([f"Item {n} of all", f"{n + 1} {100 + n} {200 + n}"] for n in range(7))]
    rows_of_text(page, (30, 160), 40, rows)
    assert {len(row) for row in table_of(markdown(page))} == {2}


def test_a_cell_of_many_lines_does_not_end_a_table() -> None:
    page = PdfPage()
    rows = [
        ("Date", "Description", "Debit", "Credit", "Balance"),
        ("01/03", "Opening balance", "", "", "1,200.00"),
        ("05/03", "Salary", "", "2,500.00", "3,700.00"),
        ("09/03", "Direct debit POWER", "80.00", "", "3,620.00"),
        ("", "Contract 771-22", "", "", ""),
        ("", "for March", "", "", ""),
        ("", "and April", "", "", ""),
        ("15/03", "Cash machine", "100.00", "", "3,520.00"),
        ("28/03", "Interest", "", "1.15", "3,521.15"),
    ]
    rows_of_text(page, (30, 70, 200, 260, 320), 40, rows)
    wanted = [list(row) for row in rows]
    wanted[3][1] = "Direct debit POWER Contract 771-22 for March and April"
    assert table_of(markdown(page)) == wanted[:4] + wanted[7:]


def test_totals_are_rows_of_their_own() -> None:
    page = PdfPage().line(28, 44, 380, 44)
    rows = [
        ("Description", "Qty", "Unit price", "Amount"),
        ("Steel bolt", "4", "12.50", "50.00"),
        ("Torque wrench", "1", "89.90", "89.90"),
        ("Work gloves", "10", "3.25", "32.50"),
        ("", "", "Subtotal", "172.40"),
        ("", "", "VAT 20%", "34.48"),
        ("", "", "Total due", "206.88"),
    ]
    rows_of_text(page, (30, 160, 230, 330), 40, rows)
    found = [[cell for cell in row if cell] for row in table_of(markdown(page))]
    assert found[-3:] == [["Subtotal", "172.40"], ["VAT 20%", "34.48"], ["Total due", "206.88"]]


def test_titles_of_tables_side_by_side_stay_apart() -> None:
    page = PdfPage().text(30, 36, "Parts", 10, "Bold").text(220, 36, "Labour", 10, "Bold")
    for x, rows in ((30, (("Bolt", "4"), ("Nut", "8"))), (220, (("Weld", "2"), ("Paint", "1")))):
        for y in (42, 58, 74):
            page.line(x, y, x + 120, y)
        for edge in (x, x + 60, x + 120):
            page.line(edge, 42, edge, 74)
        rows_of_text(page, (x + 4, x + 64), 53, rows, step=16)
    assert re.findall("Parts|Bolt|Labour|Weld", markdown(page)) == ["Parts", "Bolt", "Labour", "Weld"]


def test_headings_that_count_are_no_running_head() -> None:
    pages = []
    for number in range(1, 5):
        page = (
            PdfPage()
            .text(30, 14, "Example Society Yearbook 2023", 6)
            .text(30, 28, f"Chapter {number}", 12, "Bold")
        )
        prose(page, 30, 50, 15)
        pages.append(page.text(180, HEIGHT - 8, f"Page {number} of 4", 6))
    text = markdown(*pages)
    assert re.findall(r"^# .*", text, re.M) == [f"# Chapter {number}" for number in range(1, 5)]
    assert "Yearbook" not in text and "Page" not in text


def test_a_bold_running_head_with_the_number_of_the_page_is_left_out() -> None:
    pages = []
    for number in range(1, 5):
        page = PdfPage().text(30, 14, f"Yearbook of the society {number}", 8, "Bold")
        prose(page, 30, 50, 15)
        pages.append(page)
    assert "Yearbook" not in markdown(*pages)


def test_a_running_foot_is_left_out_beside_the_number_of_the_page_and_without_it() -> None:
    pages = []
    for number in range(1, 4):
        page = PdfPage()
        prose(page, 30, 50, 15)
        page.text(30, HEIGHT - 8, "Journal of Tests, Vol. 3", 6)
        pages.append(page.text(30 + 100 * number, HEIGHT - 8, str(number), 6) if number > 1 else page)
    assert "Journal" not in markdown(*pages)


def test_a_row_that_goes_on_over_the_page_is_one() -> None:
    def ruled(page: PdfPage, top: float, bottoms: Sequence[float]) -> None:
        for y in (top, *bottoms):
            page.line(28, y, 372, y)
        for x in (28, 90, 300, 372):
            page.line(x, top, x, bottoms[-1])

    first, second = PdfPage(), PdfPage()
    prose(first, 30, 20, 15, words=12)
    ruled(first, 200, (216, 290))
    rows_of_text(
        first,
        (32, 94, 304),
        211,
        [("Article", "Text", "Fee"), ("Art. 5", "The tenant has to leave", "120.00")],
        16,
    )
    ruled(second, 20, (40, 60))
    rows_of_text(
        second,
        (32, 94, 304),
        33,
        [("", "in writing and with a copy.", ""), ("Art. 6", "Pets are allowed.", "0.00")],
        20,
    )
    assert table_of(markdown(first, second)) == [
        ["Article", "Text", "Fee"],
        ["Art. 5", "The tenant has to leave in writing and with a copy.", "120.00"],
        ["Art. 6", "Pets are allowed.", "0.00"],
    ]


def test_heads_at_the_left_over_numbers_at_the_right() -> None:
    """As a spreadsheet is printed: a head is nearer to the numbers of the column before."""
    page = PdfPage()
    rows = [
        ["Station", "Jan", "Feb", "Mar", "Apr"],
        *([f"Town {n}", *(str(100 + n + k) for k in range(4))] for n in range(6)),
    ]
    for number, row in enumerate(rows):
        page.text(20, 40 + 12 * number, row[0], 8)
        for k, said in enumerate(row[1:]):
            page.text(80 + 60 * k + (0 if number == 0 else 44), 40 + 12 * number, said, 8)
    assert table_of(markdown(page)) == rows


def test_rows_of_a_table_may_stand_far_apart() -> None:
    page = PdfPage()
    rows = [
        ("Description", "Qty", "Amount"),
        ("Anchor", "2", "160.00"),
        ("Rope", "3", "73.50"),
        ("Paint", "10", "99.00"),
    ]
    rows_of_text(page, (30, 180, 300), 40, rows, step=28)
    assert table_of(markdown(page)) == [list(row) for row in rows]


def test_cards_are_read_row_by_row() -> None:
    page = PdfPage().text(30, 30, "Spring catalogue", 14, "Bold")
    for number, name in enumerate(("Anchor", "Rope", "Lamp", "Paint")):
        x, y = 30 + 190 * (number % 2), 70 + 80 * (number // 2)
        page.text(x, y, name, 10, "Bold")
        prose(page, x, y + 16, 3, words=7, size=7)
    assert re.findall("Anchor|Rope|Lamp|Paint", markdown(page)) == ["Anchor", "Rope", "Lamp", "Paint"]


@pytest.mark.parametrize("formula", ["f(x) = ax + b", "E = mc2  (2)", "x + y > 7"])
def test_formulas_are_no_headings(formula: str) -> None:
    page = PdfPage()
    below = prose(page, 30, 40, 4)
    page.text(150, below + 14, formula, 13)
    prose(page, 30, below + 34, 4)
    text = markdown(page)
    assert "#" not in text and formula.split()[0] in text


@pytest.mark.parametrize(
    "columns",
    [
        [
            "Our bakers|start at four|every day.",
            "Fresh rolls are|sold until the|shop shuts.",
            "Cakes need|a day of|notice.",
        ],
        ["The hall is|let by the|hour.", "Chairs and|tables cost|no more."],
        ["Guests who|stay for a|week may ask|for a bicycle.", "Dogs are|welcome in|two rooms."],
    ],
)
def test_narrow_columns_of_sentences_are_read_one_by_one(columns: list[str]) -> None:
    page = PdfPage()
    for number, column in enumerate(columns):
        for row, said in enumerate(column.split("|")):
            page.text(20 + 90 * number, 30 + 10 * row, said, 8)
    prose(page, 20, 100, 4, words=14)
    said_by_column = [column.replace("|", " ") for column in columns]
    blocks = [block.strip() for block in markdown(page).split("\n\n")]
    assert blocks[: len(columns)] == said_by_column


def test_cells_of_two_lines_are_no_columns_of_sentences() -> None:
    page = PdfPage()
    rows_of_text(
        page,
        [20, 120, 220],
        30,
        [
            ("Goods", "Kept in", "Note"),
            ("Apples", "a cool", "Turn them"),
            ("", "cellar", "once a week."),
            ("Bread", "a dry box", "Three days."),
            ("Milk", "the fridge", "Do not shake."),
        ],
        step=11,
    )
    said = markdown(page)
    assert said.index("Bread") < said.index("Three days") < said.index("Milk")


def test_names_with_particles_keep_their_lines() -> None:
    page = PdfPage().text(40, 40, "Members", 16, "Bold")
    names = [
        "Wernher von Braun",
        "Juan Pablo de la Cruz",
        "Maria Schmidt",
        "van der Berg, Pieter",
        "de la Cruz, Ana",
    ]
    others = ["von Braun, Emil", "Johansson, Karin", "da Silva, Rui", "ten Brink, Jo"]
    for x, column in ((40, names), (200, others)):
        rows_of_text(page, [x], 70, [[name] for name in column])
    text = markdown(page)
    assert [line.strip() for line in text.splitlines()[1:] if line.strip()] == names + others


def test_a_bullet_may_touch_its_item() -> None:
    page = PdfPage()
    rows_of_text(page, [40], 40, [["\x9510% at least"], ["\x95 95% at most"], ["\x955 V supply"]])
    assert markdown(page).splitlines()[:3] == ["- 10% at least", "- 95% at most", "- 5 V supply"]


def test_a_note_of_one_column_is_not_of_the_next() -> None:
    page = PdfPage().text(40, 100, "Water of the lake").text(115.7, 96, "2", 9.6).text(132.5, 96, "H")
    page.text(139.7, 101, "2", 9.6).text(145.1, 96, "O and so on")
    assert [line.text for line in READ(make_pdf(page)).pages[0].lines] == [
        "Water of the lake2",
        "H2O and so on",
    ]
