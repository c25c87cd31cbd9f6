"""Tables as users' programs write them: cells of several lines, too narrow ones, heads without rules, on their side."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ocr.results.blocks import Table
from tests.unit.ocr.documents.pdf_pages import HEIGHT, PdfPage, make_pdf
from tests.unit.ocr.documents.test_pages_of_others import READ, markdown, prose, rows_of_text, table_of


def cells_of_lines(
    page: PdfPage,
    xs: Sequence[float],
    y: float,
    rows: Sequence[Sequence[str]],
    *,
    gap: float,
    middle: bool = False,
) -> None:
    """Rows of cells whose lines are parted by "|", with more white between rows than between lines."""
    for row in rows:
        cells = [cell.split("|") for cell in row]
        lines = max(map(len, cells))
        for x, cell in zip(xs, cells, strict=True):
            first = (lines - len(cell)) / 2 if middle else 0
            for number, said in enumerate(cell):
                page.text(x, y + 10 * (first + number), said, 8)
        y += 10 * lines + gap


def said(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[cell.replace("|", " ") for cell in row] for row in rows]


def frame(page: PdfPage, xs: Sequence[float], ys: Sequence[float]) -> None:
    for y in ys:
        page.line(xs[0], y, xs[-1], y)
    for x in xs:
        page.line(x, ys[0], x, ys[-1])


@pytest.mark.parametrize(
    ("middle", "rows"),
    [
        (
            False,
            [
                ("Payment date", "Rate", "Basis"),
                ("15 March|2024", "4.25|per cent", "Actual days|over 360"),
                ("15 June|2024", "4.30|per cent", "Actual days|over 365"),
                ("15 December|2024", "4.40|per cent", "Thirty days|over 360"),
            ],
        ),
        (
            False,
            [
                ("Course", "Teacher", "Room"),
                (
                    "Introduction to|the history of|the old bridge",
                    "Maria|Example",
                    "Room 14 on|the second|floor",
                ),
                ("Painting for|beginners", "Jonas|Petersen|and others", "Main hall"),
                ("Cooking with what|the garden gives", "Peter Brown", "Kitchen"),
            ],
        ),
        (
            True,
            [
                ("Product", "Description", "Price"),
                ("Bridge", "A long crossing|over the river|made of steel", "1,200.00"),
                ("Tunnel", "Under the hill|with two lanes|and lamps", "3,400.00"),
                ("Road", "Paved", "50.00"),
            ],
        ),
        (
            False,
            [
                ("Issuer", "Example Funding Ltd"),
                ("Initial Valuation|Date (if any)", "23 March 2023"),
                ("Maturity Date", "24 March 2028"),
                ("Specified|Currency", "EUR"),
                ("Aggregate|Principal Amount", "EUR 1,000,000"),
            ],
        ),
    ],
)
def test_lines_of_a_cell_stand_closer_than_rows(middle: bool, rows: list[tuple[str, ...]]) -> None:
    page = PdfPage()
    cells_of_lines(page, (30, 150, 270)[: len(rows[0])], 40, rows, gap=7, middle=middle)
    assert table_of(markdown(page)) == said(rows)


CENTRED = (
    """Item;Supplier;Price
    Steel beams|for the bridge;Harbour Tools;1,250.00
    Paint;Example Works;85.50
    Cables|and anchors;Ropes Ltd;912.00
    Lamps;Lamp Makers;77.20""",
    """Product;Description;Maker
    Bridge;A long crossing|over the river;Harbour Tools
    Tunnel;Under the hill|with two lanes;Northern Stone
    Road;Paved;Example Works
    Tower;A tall block|of stone;Lamp Makers""",
    """Product;Description;Price
    Bridge|of steel;A long crossing|over the river|by night;1,200.00
    Tunnel;Under the hill|with two lanes;3,400.00
    Road;Paved;50.00
    Tower|and hall;A tall block|of stone|and glass;780.00""",
)


def rows_in(text: str) -> list[list[str]]:
    return [line.strip().split(";") for line in text.split("\n")]


@pytest.mark.parametrize("gap", [4, 8])
@pytest.mark.parametrize("text", CENTRED)
def test_cells_of_two_lines_beside_cells_of_one_in_their_middle(text: str, gap: int) -> None:
    page, rows = PdfPage(), rows_in(text)
    cells_of_lines(page, (30, 150, 270), 40, rows, gap=gap, middle=True)
    assert table_of(markdown(page)) == said(rows)


def test_columns_whose_lines_stand_half_a_line_apart_are_no_cells() -> None:
    left = (
        "The council met on Tuesday to",
        "discuss a new bridge over the",
        "river and asked how long it",
        "would take",
    )
    page = PdfPage()
    for number, text in enumerate(left):
        page.text(30, 40 + 10 * number, text, 8)
        page.text(220, 45 + 10 * number, text.upper(), 8)
    text = " ".join(markdown(page).split())
    assert text == " ".join(left) + " " + " ".join(left).upper()


@pytest.mark.parametrize(
    "text",
    [
        """Group;Item;Quantity;Price;Total
        Fruit;;;;
        ;Apples;12;0.50;6.00
        ;Pears;4;0.75;3.00
        Bread;;;;
        ;Rolls;20;0.30;6.00""",
        """Date;Order;Item;Status;Total
        01/03;A0;;OPEN;
        ;;IC-7;;$482.10
        ;;IC-8;;$0.00
        02/03;A1;;PAID;
        ;;IC-9;;$31.90""",
    ],
)
def test_groups_that_fill_other_columns_than_their_rows(text: str) -> None:
    page, rows = PdfPage(), rows_in(text)
    for number, row in enumerate(rows):
        for x, cell in zip((20, 100, 180, 260, 330), row, strict=True):
            if cell:
                page.text(x, 30 + 12 * number, cell, 8)
    assert table_of(markdown(page)) == rows


@pytest.mark.parametrize("away", [0.2, 0.5, 1.0])
def test_a_table_that_is_drawn_twice_is_read_once(away: float) -> None:
    rows = [
        ["Name", "Period", "Amount"],
        ["Water fee", "12.01-12.31", "400,00"],
        ["Drain fee", "12.01-12.31", "430,00"],
    ]
    page = PdfPage()
    frame(page, (30, 130, 230, 330), (40, 56, 72, 88))
    for shift in (0.0, away):
        for number, row in enumerate(rows):
            for x, text in zip((33, 133, 233), row, strict=True):
                page.text(x + shift, 51 + 16 * number, text, 9)
    assert table_of(markdown(page)) == rows


def test_a_name_of_two_lines_beside_names_of_one_is_one_head() -> None:
    page = PdfPage()
    xs = (20, 100, 180, 270)
    rows_of_text(page, xs, 48, [("", "SENIOR", "MIDDLE", "")])
    rows_of_text(page, xs, 57, [("", "LEADERSHIP", "MANAGEMENT", "TOTAL")])
    body = [
        ("Female", "39.0%", "51.3%", "44.0%"),
        ("Male", "61.0%", "48.7%", "56.0%"),
        ("Other", "0%", "0%", "0%"),
    ]
    for number, row in enumerate(body):
        rows_of_text(page, xs, 72 + 14 * number, [row])
    head = ["", "SENIOR LEADERSHIP", "MIDDLE MANAGEMENT", "TOTAL"]
    assert table_of(markdown(page)) == [head, *map(list, body)]


def test_rows_in_groups_stay_rows() -> None:
    rows = [("Name", "City", "Colour"), ("Maria", "Leeds", "Red"), ("Jonas", "York", "Blue")]
    rows += [("Anna", "Hull", "Green"), ("Peter", "Selby", "White"), ("Ruth", "Ripon", "Black")]
    page = PdfPage()
    for number, row in enumerate(rows):
        rows_of_text(page, (30, 150, 270), 40 + 12 * number + 8 * (number // 2), [row])
    assert table_of(markdown(page)) == [list(row) for row in rows]


@pytest.mark.parametrize("ruled", [True, False])
def test_a_text_too_long_for_its_cell_stays_in_it(ruled: bool) -> None:
    page = PdfPage()
    rows = [
        ("Name", "Code", "Price"),
        ("Steel beams for the bridge", "A1111", "10.50"),
        ("Concrete", "B2222", "20.00"),
    ]
    rows += [
        ("Northern stone and gravel", "C3333", "7.25"),
        ("Paint", "D4444", "9.00"),
        ("Ropes", "E5555", "12.10"),
    ]
    if ruled:
        frame(page, (30, 120, 200, 280), [40 + 16 * number for number in range(7)])
    for number, row in enumerate(rows):
        for x, text in zip((33, 123, 203), row, strict=True):
            page.text(x, 51 + 16 * number, text, 9)
    assert table_of(markdown(page)) == [list(row) for row in rows]


def test_a_text_may_run_through_its_neighbour() -> None:
    page = PdfPage()
    frame(page, (30, 100, 150, 260), (40, 60, 80, 100))
    rows = [
        ("Address", "No", "City"),
        ("Long street of the old harbour 12", "77", "Leeds"),
        ("High road", "8", "York"),
    ]
    for number, row in enumerate(rows):
        for x, text in zip((33, 103, 153), row, strict=True):
            page.text(x, 54 + 20 * number, text, 9)
    assert table_of(markdown(page)) == [list(row) for row in rows]


def test_a_head_without_rules_stands_once_in_a_table_over_pages() -> None:
    head = ("Date", "Text", "Amount")
    pages: list[PdfPage] = []
    rows: list[list[str]] = [[*head]]
    for first in (1, 16):
        page = PdfPage()
        for x, text in zip((33, 133, 253), head, strict=True):
            page.text(x, 25, text, 8, "Bold")
        frame(page, (30, 130, 250, 380), [30 + 14 * number for number in range(16)])
        for number in range(first, first + 15):
            row = [f"{number:02d}/03", f"Bread {number}", f"{number}.50"]
            rows_of_text(page, (33, 133, 253), 40 + 14 * (number - first), [row])
            rows.append(row)
        pages.append(page)
    assert table_of(READ(make_pdf(*pages)).to_markdown()) == rows


def test_prose_above_a_ruled_table_is_no_head() -> None:
    page = PdfPage().text(33, 40, "The table below shows what each of them has paid so far in this year.", 8)
    frame(page, (30, 150, 250, 380), [46 + 14 * number for number in range(4)])
    rows = [("Maria", "01/02/24", "12.50"), ("Jonas", "02/02/24", "8.00"), ("Anna", "03/02/24", "7.10")]
    rows_of_text(page, (33, 153, 253), 56, rows, step=14)
    text = markdown(page)
    assert text.startswith("The table below") and table_of(text)[-3:] == [list(row) for row in rows]


@pytest.mark.parametrize("ruled", [True, False])
@pytest.mark.parametrize("upwards", [True, False])
def test_a_table_on_its_side_is_read_as_it_is_held(upwards: bool, ruled: bool) -> None:
    rows = [("Country", "Capital", "People"), ("Norway", "Oslo", "5.4"), ("Spain", "Madrid", "47.4")]
    rows += [("Ghana", "Accra", "32.8"), ("Peru", "Lima", "33.7")]
    page = PdfPage()
    prose(page, 30, 20, 7, words=14)

    def place(along: float, across: float) -> tuple[float, float]:
        return (100 + across, 290 - along) if upwards else (300 - across, 110 + along)

    columns = (0, 60, 120, 170)
    if ruled:
        for y in range(6):
            page.line(*place(0, 14 * y), *place(170, 14 * y))
        for x in columns:
            page.line(*place(x, 0), *place(x, 70))
    matrix = "0 1 -1 0" if upwards else "0 -1 1 0"
    for number, row in enumerate(rows):
        for column, text in zip(columns, row):
            x, y = place(column + 3, 14 * number + 10)
            page.raw(f"BT /Regular 8 Tf {matrix} {x} {HEIGHT - y} Tm ({text}) Tj ET")
    assert table_of(markdown(page)) == [list(row) for row in rows]


def test_turned_heads_of_an_upright_table_stay_its_heads() -> None:
    page = PdfPage()
    xs = (30, 130, 150, 170)
    frame(page, (*xs, 190), (40, 100, 114, 128, 142))
    page.text(33, 96, "Country", 8)
    for x, text in zip(xs[1:], ("Area", "People", "Coast"), strict=True):
        page.raw(f"BT /Regular 8 Tf 0 1 -1 0 {x + 13} {HEIGHT - 97} Tm ({text}) Tj ET")
    rows = [("Norway", "385", "5", "yes"), ("Spain", "506", "47", "yes"), ("Chad", "1284", "17", "no")]
    for number, row in enumerate(rows):
        for x, text in zip(xs, row, strict=True):
            page.text(x + 2, 110 + 14 * number, text, 7)
    assert table_of(markdown(page)) == [["Country", "Area", "People", "Coast"], *map(list, rows)]


def test_a_full_head_tells_the_columns_of_a_sparse_table() -> None:
    names = "Date Suffix Line Item Description Status Cost Freight Tax Total"
    xs = (10, 50, 75, 105, 150, 190, 240, 275, 310, 345)
    rows: list[list[str]] = [[*names.split()]]
    for group in range(3):
        rows.append([f"2024-0{group + 1}-03", f"A{group}", "", "", "", "OPEN", *[""] * 4])
        rows.append([*[""] * 4, "see note", *[""] * 5])
        for text, cost in (("WIDGET", "$482,110"), ("BRACKET SET", "$0.00"), ("MODULE", "$31,905")):
            rows.append(["", "", "", "IC-7", text, "", cost, "$0.00", "$9,215", "$491,326"])
    page = PdfPage()
    for number, row in enumerate(rows):
        for x, text in zip(xs, row, strict=True):
            if text:
                page.text(x, 30 + 9 * number, text, 5)
    assert table_of(markdown(page)) == rows


def test_numbers_that_stand_a_little_higher_than_their_name_are_in_its_row() -> None:
    rows = [
        ("Bread with oil", "210", "4.5"),
        ("Soup of the day", "150", "2.0"),
        ("Grilled steak", "640", "40.1"),
    ]
    rows += [("Ice cream", "320", "18.0"), ("Fruit plate", "90", "0.3")]
    page = PdfPage()
    for number, (name, *values) in enumerate(rows):
        page.text(20, 54 + 12 * number + 2.6, name, 8)
        rows_of_text(page, (150, 250), 54 + 12 * number, [values])
    assert table_of(markdown(page))[-5:] == [list(row) for row in rows]


def test_questions_that_count_downwards_are_read_by_columns() -> None:
    page = PdfPage()
    for column, x in enumerate((20, 210)):
        for number in range(3):
            page.text(x, 30 + 70 * number, f"QUESTION {3 * column + number + 1}", 8, "Bold")
            prose(page, x, 40 + 70 * number, 5, words=5)
    text = markdown(page)
    places = [text.index(f"QUESTION {number}") for number in range(1, 7)]
    assert places == sorted(places)


@pytest.mark.parametrize("names", [("Port", "Boats", "Catch"), ("Port", "2019", "2020")])
@pytest.mark.parametrize("over", [(("", 0), ("Spring of that year", 110)), (("", 0), ("(tons)", 220))])
def test_a_head_of_two_rows_above_the_first_of_several_rules(
    names: tuple[str, ...], over: tuple[tuple[str, float], ...]
) -> None:
    """LaTeX's `\\hline` below the head and below each group, without one above all."""
    page = PdfPage()
    prose(page, 30, 30, 4)
    for text, x in over:
        if text:
            page.text(30 + x, 84, text, 8)
    rows_of_text(page, (30, 140, 250), 96, [names])
    groups = ([("Moss", "14", "120"), ("Bodo", "9", "88")], [("Lom", "22", "310"), ("Hov", "2", "31")])
    page.line(30, 100, 290, 100)
    for number, group in enumerate(groups):
        rows_of_text(page, (30, 140, 250), 110 + 28 * number, group)
        page.line(30, 127 + 28 * number, 290, 127 + 28 * number)
    prose(page, 30, 190, 4)
    (table,) = [
        block.content for block in READ(make_pdf(page)).pages[0].blocks if isinstance(block.content, Table)
    ]
    heads = {cell.text for cell in table.cells if cell.header and cell.text}
    assert heads == {*names, *(text for text, _ in over if text)}
    assert {cell.row for cell in table.cells if not cell.header} == {2, 3, 4, 5}


def test_a_paragraph_between_two_ruled_tables_parts_them() -> None:
    page, y = PdfPage(), 40.0
    for rows in (
        [["City", "People"], ["Alfa", "120"], ["Bravo", "95"]],
        [["City", "Boats"], ["Delta", "11"], ["Echo", "3"]],
    ):
        page.line(40, y - 10, 160, y - 10).line(40, y + 4, 160, y + 4)
        for row in rows:
            for x, said in zip((44, 110), row, strict=True):
                page.text(x, y, said, 8)
            y += 12
        page.line(40, y - 8, 160, y - 8)
        # A justified line, whose words stand far apart.
        said = "Some text between the tables goes on to the right"
        page.raw(f"BT /Regular 8 Tf 5 Tw 1 0 0 1 40 {HEIGHT - y - 14} Tm ({said}) Tj 0 Tw ET")
        y += 50
    text = markdown(page)
    assert text.count("Some text between the tables goes on to the right") == 2
    assert table_of(text) == [
        ["City", "People"],
        ["Alfa", "120"],
        ["Bravo", "95"],
        ["City", "Boats"],
        ["Delta", "11"],
        ["Echo", "3"],
    ]


def test_two_numbers_below_one_another_are_two_rows_beside_a_name_that_spans_both() -> None:
    page, y = PdfPage().line(40, 30, 260, 30), 40.0
    rows_of_text(page, (44, 110, 170, 230), y, [["Region", "City", "People", "Boats"]])
    page.line(40, y + 4, 260, y + 4)
    for name, rows in (
        ("North", [["Alfa", "120", "4"], ["Bravo", "95", "7"]]),
        ("South", [["Delta", "210", "11"], ["Echo", "48", "3"]]),
    ):
        rows_of_text(page, (110, 170, 230), y + 14, rows)
        page.text(44, y + 20, name, 8)
        y += 28
    page.line(40, y + 4, 260, y + 4)
    (table,) = READ(make_pdf(page)).tables
    cells = {(cell.row, cell.column): (cell.text, cell.rowspan) for cell in table.cells}
    assert (table.rows, table.columns) == (5, 4)
    assert cells[1, 0] == ("North", 2) and cells[3, 0] == ("South", 2)
    assert [cells[row, 1][0] for row in range(1, 5)] == ["Alfa", "Bravo", "Delta", "Echo"]
