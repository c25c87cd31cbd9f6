"""Pages as browsers and LaTeX print them: drawn bullets, initials, rows without rules, captions, tight words."""

from __future__ import annotations

import pytest

from framework.workflow.files.pdf import PdfReader
from ocr.documents.drawn_bullets import MOST, add_drawn_bullets
from ocr.results.page_text import read_text_layer
from tests.unit.ocr.documents.pdf_pages import HEIGHT, WIDTH, PdfPage, make_pdf
from tests.unit.ocr.documents.test_pages_of_others import WORDS, markdown, prose, rows_of_text, table_of


def dot(page: PdfPage, x: float, y: float, radius: float = 1.4, paint: str = "f") -> PdfPage:
    """A circle of four curves around a point, filled ("f") or as a ring ("S")."""
    y, k = HEIGHT - y, 0.5523 * radius
    curves = (
        f"{x + radius} {y + k} {x + k} {y + radius} {x} {y + radius} c "
        f"{x - k} {y + radius} {x - radius} {y + k} {x - radius} {y} c "
        f"{x - radius} {y - k} {x - k} {y - radius} {x} {y - radius} c "
        f"{x + k} {y - radius} {x + radius} {y - k} {x + radius} {y} c"
    )
    return page.raw(f"q 0.5 w 0 g 0 G {x + radius} {y} m {curves} h {paint} Q")


def test_drawn_bullets_begin_items() -> None:
    page = PdfPage()
    prose(page, 40, 30, 3)
    marks = [(60, "f"), (80, "S"), (80, "S"), (60, "f")]
    texts = ["Fruit and nuts", "Apple", "Pear", "Bread"]
    for number, ((x, paint), said) in enumerate(zip(marks, texts, strict=True)):
        y = 80 + 14 * number
        dot(page, x - 10, y - 2.6, paint=paint).text(x, y, said, 9)
    page.fill(86, 80 + 56 - 4.4, 89, 80 + 56 - 1.4, grey=0).text(100, 136, "Rye", 9)
    assert markdown(page).rstrip().split("\n\n")[1].split("\n") == [
        "- Fruit and nuts",
        "    - Apple",
        "    - Pear",
        "- Bread",
        "    - Rye",
    ]


def test_other_small_shapes_are_no_bullets() -> None:
    """Dots that lead to a number, points of a chart, a white dot, one that is far away, and one after a text."""
    page = PdfPage()
    page.text(40, 40, "Harbour", 9)
    for x in range(90, 300, 6):
        dot(page, x, 38, 0.6)
    page.text(305, 40, "12", 9).text(40, 80, "Boats of Bergen", 9)
    dot(page, 12, 78)
    dot(page, 110, 78).text(116, 80, "red", 9)
    page.raw(f"q 1 g 30 {HEIGHT - 100} 3 3 re f Q").text(40, 101, "On white", 9)
    assert "- " not in markdown(page)


@pytest.mark.parametrize(("count", "said"), [(1, "• Label of a point"), (MOST + 1, "Label of a point")])
def test_a_drawing_of_many_points_is_no_list(count: int, said: str) -> None:
    page = PdfPage().text(40, 40, "Label of a point", 9)
    for number in range(count):
        dot(page, 30 + number % 50, 37.4 if number == 0 else 100 + number // 50)
    with PdfReader(make_pdf(page), dpi=72) as reader:
        content = reader.content(0, dpi=72)
        assert [line.text for line in add_drawn_bullets(read_text_layer(content).lines, content)] == [said]


@pytest.mark.parametrize("mark", [("i.", "ii.", "iii."), ("(i)", "(ii)", "(iii)"), ("1.", "2.", "3.")])
def test_numbered_items_of_a_deeper_level_are_apart(mark: tuple[str, ...]) -> None:
    page = PdfPage().text(40, 40, "a. Make sure that", 9)
    for number, (sign, said) in enumerate(
        zip(mark, ("no one is hurt,", "the road is free, and", "all is well"), strict=True)
    ):
        page.text(60, 53 + 13 * number, f"{sign} {said}", 9)
    page.text(40, 92, "b. Write a report.", 9)
    items = [line.strip() for line in markdown(page).splitlines()]
    assert len(items) == 5 and items[2].endswith(f"{mark[1]} the road is free, and")


@pytest.mark.parametrize(
    ("initial", "text"), [("T", "he council"), ("A", "council of"), ("\x93O", "n the hill")]
)
def test_initials_stand_before_their_line(initial: str, text: str) -> None:
    page = PdfPage()
    shift = 18.0 * len(initial)
    page.text(40, 62, initial, 32, "Bold")
    words = WORDS[3:]
    rows = [
        f"{text} {' '.join(words[:8])}",
        " ".join(words[8:17]),
        " ".join(words[17:26]),
        " ".join(words[26:38]),
    ]
    for number, row in enumerate(rows):
        page.text(40 + shift * (number < 3) + 6, 40 + 11 * number, row, 9)
    page.text(40, 110, "The council of the town is another one.", 9)
    space = " " if initial == "A" else ""
    said = " ".join(markdown(page).split())
    assert said.replace("“", "\x93").startswith(f"{initial}{space}{text} {' '.join(words[:10])}")


def test_a_large_letter_that_stands_alone_is_no_initial() -> None:
    page = PdfPage().text(40, 60, "B", 30, "Bold").text(90, 60, "Harbour street", 9)
    assert "BHarbour" not in markdown(page)


def ruled(page: PdfPage, xs: list[float], ys: list[float]) -> PdfPage:
    for x in xs:
        page.line(x, ys[0], x, ys[-1])
    for y in ys:
        page.line(xs[0], y, xs[-1], y)
    return page


@pytest.mark.parametrize(
    "rows",
    [
        [("1990", "12", "4"), ("1991", "40", "5")],
        [("Oslo", "Norway", "700,000"), ("Turin", "", "850,000"), ("Rome", "Italy", "2,800,000")],
        [("Oslo", "Norway", "king"), ("Rome", "Italy", "president"), ("Bern", "Schweiz", "council")],
    ],
)
def test_rows_between_rules_of_head_and_body(rows: list[tuple[str, ...]]) -> None:
    """As LaTeX's `|l|r|` with `\\hline` around its head and its end."""
    page = PdfPage()
    ruled(page, [30, 130, 230, 330], [30, 45, 49 + 12.0 * len(rows)])
    rows_of_text(page, (36, 136, 236), 41, [("Place", "Land", "Number")], step=12)
    rows_of_text(page, (36, 136, 236), 56, rows)
    assert table_of(markdown(page)) == [["Place", "Land", "Number"], *map(list, rows)]


@pytest.mark.parametrize(
    "row",
    [
        [
            ("Removal of old plaster", "barn at the river", "120"),
            ("from walls and ceilings", "and the mill", ""),
        ],
        [("Income of households", "0.52", "0.61"), ("of two", "(0.03)", "(0.02)")],
        [("Mary Jones", "Main Street 4", "12"), ("Dock Road 3", "Porttown", "")],
    ],
)
def test_cells_of_several_lines_stay_whole(row: list[tuple[str, ...]]) -> None:
    page = PdfPage()
    ruled(page, [30, 130, 230, 330], [30, 45, 75, 90, 105])
    rows_of_text(page, (36, 136, 236), 41, [("Work", "Place", "Amount")])
    rows_of_text(page, (36, 136, 236), 56, row)
    rows_of_text(page, (36, 136, 236), 86, [("Painting", "hall", "340"), ("Tiles", "bath", "50")], step=15)
    said = markdown(page)
    assert said.count("<tr>") == 4 or len(table_of(said)) == 4


@pytest.mark.parametrize("above", [True, False])
def test_captions_between_two_tables(above: bool) -> None:
    """Each goes with the table on the side where the other one has its own."""
    page = PdfPage()
    prose(page, 30, 20, 2)
    for number in range(2):
        top = 60 + 90.0 * number
        ruled(page, [30, 130, 230], [top, top + 15, top + 30])
        rows_of_text(page, (36, 136), top + 11, [("Year", "Oil"), (f"202{number}", "70")], step=15)
        page.text(30, top - 9 if above else top + 45, f"Table {number + 6}: Prices of the year.", 8)
    said = markdown(page)
    assert said.index("Table 6") < said.index("2020") < said.index("Table 7") < said.index("2021")


def test_a_number_in_the_middle_of_the_foot_is_the_page_s() -> None:
    """LaTeX's pages for letter paper, printed on A4, have theirs above the last tenth."""
    page = PdfPage()
    prose(page, 40, 40, 6)
    low = 0.88 * HEIGHT
    page.text(WIDTH / 2 - 2.2, low, "1", 8)
    assert markdown(page).rstrip().endswith(".")
    other = PdfPage()
    prose(other, 40, 40, 6)
    other.text(60, low, "17", 8)
    assert markdown(other).rstrip().endswith("17")


def test_stops_of_a_smaller_type_are_not_lowered() -> None:
    page = (
        PdfPage().text(40, 40, "The book has 340 pages", 11).text(155.5, 42, ",", 8).text(161, 40, "and", 11)
    )
    assert "<sub>" not in markdown(page)
    water = PdfPage().text(40, 40, "H", 11).text(48, 42.5, "2", 7).text(52, 40, "O is water", 11)
    assert "H<sub>2</sub>O" in markdown(water)


def lines_of(page: PdfPage) -> list[str]:
    with PdfReader(make_pdf(page), dpi=72) as reader:
        return [line.text for line in read_text_layer(reader.content(0, dpi=72)).lines]


def test_words_that_stand_close() -> None:
    """TeX shrinks the white between words; letters stand as they are."""
    parts = " -150 ".join(f"({word})" for word in WORDS[:9])
    page = PdfPage().raw(f"BT /Regular 10 Tf 1 0 0 1 40 200 Tm [{parts}] TJ ET")
    assert lines_of(page) == [" ".join(WORDS[:9])]
    kerned = PdfPage().raw(
        "BT /Regular 10 Tf 1 0 0 1 40 200 Tm [(A) 60 (V) -60 (A) 60 (TAR of the s) -90 (ea)] TJ ET"
    )
    assert lines_of(kerned) == ["AVATAR of the sea"]


def test_words_that_lie_on_one_another() -> None:
    """Words that were placed for a narrower font, without a space character."""
    page, x = PdfPage(), 40.0
    widths = (
        dict.fromkeys("bdeghnopu12", 556)
        | {"H": 722, "a": 556, "m": 833, "r": 333}
        | dict.fromkeys("ilt", 222)
    )
    for word in ["Het", "besluit", "van", "de", "minister", "is", "genomen", "op", "12", "mei"]:
        page.text(x, 50, word, 10)
        x += 0.0082 * (sum(widths.get(char, 500) for char in word) + 278)
    assert lines_of(page) == ["Het besluit van de minister is genomen op 12 mei"]


@pytest.mark.parametrize("name", ["City", "City of Europe"])
def test_a_name_beside_a_head_of_two_rows_spans_both(name: str) -> None:
    """Browsers centre it, and no line parts the head's rows."""
    page = PdfPage()
    for y in (30, 58, 106):
        page.line(30, y, 350, y)
    page.text(36, 47, name, 8)
    for x, season in ((140, "Summer"), (270, "Winter")):
        page.text(x, 41, season, 8).text(x - 14, 53, "Day", 8).text(x + 18, 53, "Night", 8)
    rows = [
        ("Oslo", "21", "12", "-2", "-7"),
        ("Rome", "31", "19", "12", "4"),
        ("Cairo", "36", "23", "19", "10"),
    ]
    rows_of_text(page, (36, 128, 160, 258, 290), 70, rows, step=15)
    said = markdown(page)
    assert f'<td rowspan="2">{name}</td><td colspan="2">Summer</td><td colspan="2">Winter</td></tr>' in said
    assert said.count("<tr>") == 5 and "<tr><td>Day</td><td>Night</td><td>Day</td><td>Night</td></tr>" in said


def halves(start: str, end: str, *, indent: float = 0, on_pages: bool = False) -> list[PdfPage]:
    """A paragraph of two lines, a ruled table, and a paragraph of two lines, which may stand on the next page."""
    first = PdfPage()
    first.text(
        30, 40, "The council met on Tuesday and asked how long the work would take and who was to pay", 8
    )
    first.text(
        30, 50, f"for it while the engineer said that two summers would be enough if the weather {end}", 8
    )
    second = PdfPage() if on_pages else first
    ruled(second, [30, 130, 230], [80, 95, 110])
    rows_of_text(second, (36, 136), 91, [("Place", "Number"), ("Moss", "14")], step=15)
    second.text(
        30 + indent, 140, f"{start} shops on the east bank hope for more visitors once the road is open", 8
    )
    second.text(30, 150, "again and the old ferry is sold.", 8)
    return [first, second] if on_pages else [first]


@pytest.mark.parametrize("on_pages", [False, True])
def test_a_paragraph_that_a_table_cuts_is_whole(on_pages: bool) -> None:
    said = markdown(*halves("and", "is kind", on_pages=on_pages))
    assert "weather is kind and shops on" in " ".join(said.split())
    assert said.index("ferry is sold.") < said.index("Moss")


@pytest.mark.parametrize(
    ("start", "end", "indent"),
    [("and", "is kind.", 0), ("The", "is kind", 0), ("and", "is this:", 0), ("and", "is kind", 14)],
)
def test_paragraphs_around_a_table_stay_two(start: str, end: str, indent: float) -> None:
    said = markdown(*halves(start, end, indent=indent))
    assert said.index("Moss") < said.index("shops on")


def test_a_short_title_in_the_middle_of_three_columns_comes_first() -> None:
    page = PdfPage().text(158, 30, "Harbour News", 13)
    for number, x in enumerate((20, 140, 260)):
        page.text(x, 60, f"Story {'ABC'[number]}", 10, "Bold")
        prose(page, x, 74, 12, words=5)
    said = markdown(page)
    places = [said.index(text) for text in ("Harbour News", "Story A", "Story B", "Story C")]
    assert places == sorted(places)
