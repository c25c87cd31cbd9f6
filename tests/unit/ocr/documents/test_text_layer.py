"""What a PDF's own text holds besides words: what is hidden, marked, a form's, drawn, or wrong."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from framework.core.errors import HubError, InputError
from framework.workflow.files.pdf import PdfReader
from ocr.documents.lazy import Lazy
from ocr.documents.reader import DocumentReader
from ocr.fields.rules import find_fields
from ocr.results.geometry import box_polygon
from ocr.results.layer_check import is_usable, outlined_text
from ocr.results.lines import Line
from ocr.results.page_text import read_text_layer
from ocr.results.pages import Document, Page
from ocr.text.rows import Row, join_rows
from tests.unit.ocr.documents.pdf_pages import HEIGHT, PdfPage, make_pdf


def no_ocr():
    raise AssertionError("a page with a text layer was read by OCR")


READ = DocumentReader(Lazy(no_ocr), dpi=72.0)


def read(*pages: PdfPage, **settings) -> Document:
    return replace(READ, **settings)(make_pdf(*pages))


def ocr_says(*texts: str) -> Lazy:
    """OCR that reads these lines on any image."""

    class Fake:
        def predict_prepared(self, item):
            box = (4.0, 5.0, 44.0, 15.0)
            lines = tuple(Line(text, 0.9, box_polygon(box)) for text in texts)
            height, width = item.image.shape[:2]
            return Page(lines, width=width, height=height), None

    return Lazy(Fake)


# ---- hidden text


def hidden_page() -> PdfPage:
    page = PdfPage().text(30, 30, "SEEN on white").raw("1 g").text(30, 50, "GONE white on white").raw("0 g")
    page.fill(20, 60, 200, 80, 0.2).raw("1 g").text(30, 74, "SEEN white on grey")
    page.raw("0.2 g").fill(20, 85, 200, 105, 0.2).text(30, 99, "GONE grey on grey").raw("0 g")
    page.text(30, 120, "GONE below a box").fill(20, 108, 200, 128, 0.0)
    page.text(30, 145, "GONE below a image").raw(f"q 180 0 0 20 20 {HEIGHT - 152} cm /Image Do Q")
    page.raw("q 3 Tr").text(30, 170, "GONE in mode three").raw("Q q /Clear gs").text(
        30, 190, "GONE clear"
    ).raw("Q")
    return page.text(30, 210, "GONE too small", 0.8).text(30, 240, "SEEN at the end")


def test_text_that_nobody_can_see_is_kept_apart():
    found = read(hidden_page())
    (page,) = found.pages
    assert "GONE" not in found.to_markdown() + page.text and page.text.count("SEEN") == 3
    assert sum("GONE" in line.text for line in page.hidden) == len(page.hidden) == 7
    (warning,) = page.warnings
    assert "nobody can see" in warning and "invisible" in warning and "too small" in warning
    plain = page.to_dict()
    assert "GONE" not in json.dumps([plain["lines"], plain["blocks"]]) and len(plain["hidden"]) == 7
    assert [line.text for line in Page.from_dict(plain).hidden] == [line.text for line in page.hidden]


def test_hidden_text_can_be_kept():
    found = read(hidden_page(), hidden="keep")
    assert found.to_markdown().count("GONE") == 7 and not found.pages[0].hidden
    with pytest.raises(InputError, match="no such way to treat hidden text"):
        replace(READ, hidden="show")  # type: ignore[arg-type]


def test_text_that_a_clip_cuts_off_is_hidden():
    page = PdfPage().text(30, 30, "SEEN on the page").raw(f"q 30 {HEIGHT - 60} 60 20 re W n")
    page.text(30, 50, "SEEN").text(30, 90, "GONE below the clip").text(120, 50, "GONE beside it").raw("Q")
    page.raw("q 0 0 1 1 re W n").text(30, 120, "GONE outside").raw("Q").text(30, 150, "SEEN after it")
    (found,) = READ(make_pdf(page)).pages
    assert "GONE" not in found.text and found.text.count("SEEN") == 3
    assert sorted(line.text for line in found.hidden) == [
        "GONE below the clip",
        "GONE beside it",
        "GONE outside",
    ]
    assert "cut off" in found.warnings[0]


def test_text_in_layers_that_are_off_is_hidden():
    page = PdfPage().text(30, 30, "SEEN on the page").raw("/OC /Off BDC").text(30, 60, "GONE with its layer")
    page.raw("EMC /OC /On BDC").text(30, 90, "SEEN in a layer").raw("EMC q /Form Do Q")
    data = make_pdf(page, form="BT /Regular 10 Tf 1 0 0 1 30 150 Tm (GONE in a form) Tj ET")
    (found,) = READ(data).pages
    assert "GONE" not in found.text and found.text.count("SEEN") == 2
    assert sorted(line.text for line in found.hidden) == ["GONE in a form", "GONE with its layer"]
    assert replace(READ, hidden="keep")(data).pages[0].text.count("GONE") == 2


def test_text_below_what_lets_it_through_is_seen():
    page = PdfPage().text(30, 50, "marked").raw(f"q /Marker gs 1 1 0 rg 20 {HEIGHT - 60} 100 20 re f Q")
    data = make_pdf(page).replace(b"/Clear << /ca 0 >>", b"/Marker << /ca .4 >>")
    found = READ(data)
    assert found.pages[0].text == "marked" and not found.pages[0].warnings


# ---- order


def test_right_to_left_text_is_in_the_order_in_which_it_is_read():
    """The glyphs stand in the content as they do on the page, from left to right."""
    hebrew = {chr(0x5D0 + n): chr(0x61 + n) for n in range(23)}

    def visual(text: str) -> str:
        return "".join(hebrew.get(char, char) for char in text)

    said = "\u05d0\u05d1\u05d2 250 \u05d3\u05d4 \u05d5\u05d6"  # three letters, a number, two words
    shown = " ".join(word if word.isdigit() else word[::-1] for word in reversed(said.split()))
    page, x = PdfPage(), 30
    for word in shown.split():
        page.text(x, 50, visual(word), font="Mono" if word.isdigit() else "Hebrew")
        x += 6 * len(word) + 6  # the width of Courier's letters
    assert read(page).pages[0].text == said


def test_right_to_left_lines_end_where_the_next_word_had_room():
    words = ["\u05d0\u05d1\u05d2\u05d3", "\u05d4\u05d5\u05d6"]
    boxes = [(60.0, 0.0, 100.0, 10.0), (0.0, 12.0, 100.0, 22.0), (5.0, 24.0, 100.0, 34.0)]
    texts = [words[0], " ".join(words * 3), " ".join(words * 3)]
    rows = [Row.of([Line(text, 1.0, box_polygon(box))]) for text, box in zip(texts, boxes, strict=True)]
    assert join_rows(rows, 0, 100) == f"{texts[0]}\n{texts[1]} {texts[2]}"


def test_overlapping_texts_stay_whole():
    page = (
        PdfPage()
        .text(30, 50, "Page 7")
        .text(58, 50, "van 12")
        .text(30, 80, "Amount due")
        .text(80, 80, "1,250.00")
    )
    assert [line.text for line in read(page).pages[0].lines] == ["Page 7 van 12", "Amount due 1,250.00"]


def test_a_word_that_is_set_in_parts_stays_one():
    page = PdfPage().text(30, 50, "Intellectua").text(76, 50, "l property")
    assert read(page).pages[0].lines[0].text == "Intellectual property"


def test_text_that_is_drawn_twice_is_read_once():
    page = PdfPage().text(30, 50, "Heavy").text(30.3, 50, "Heavy").text(30, 80, "and light")
    assert [line.text for line in read(page).pages[0].lines] == ["Heavy", "and light"]


# ---- marks


def marked_page() -> PdfPage:
    page = (
        PdfPage().text(30, 50, "Area 25 m").text(75, 46, "2", 6).text(80, 50, "and H").text(106, 52, "2", 6)
    )
    page.text(110, 50, "O. The price is 900 euros now.")
    page.raw(f"0.5 w 179 {HEIGHT - 47} m 224 {HEIGHT - 47} l S")
    page.text(30, 80, "See the report for more.").raw(f"0.5 w 30 {HEIGHT - 82} m 90 {HEIGHT - 82} l S")
    return page.annotate(48, 70, 95, 83, "/Subtype /Link /A << /S /URI /URI (https://example.org/a\\(b) >>")


def test_raised_struck_and_linked_text():
    found = read(marked_page())
    said = found.to_markdown()
    assert "25 m<sup>2</sup> and H<sub>2</sub>O." in said
    assert "The price is ~~900 euros~~ now." in said
    assert (
        "See [the report](https://example.org/a%28b) for more." in said
    )  # and what is underlined is not struck
    html = found.to_html()
    assert "m<sup>2</sup>" in html and "<s>900 euros</s>" in html
    assert '<a href="https://example.org/a(b">the report</a>' in html
    assert found.pages[0].text.splitlines()[0] == "Area 25 m\u00b2 and H\u2082O. The price is 900 euros now."
    spans = [span for block in found.to_dict()["pages"][0]["blocks"] for span in block["spans"]]
    assert [span["style"] for span in spans] == ["superscript", "subscript", "strike", "link"]
    assert Document.from_dict(found.to_dict()).to_markdown() == said


def test_marks_in_word(tmp_path):
    docx = pytest.importorskip("docx")
    read(marked_page()).to_docx(tmp_path / "a.docx")
    word = docx.Document(str(tmp_path / "a.docx"))
    runs = [run for paragraph in word.paragraphs for run in paragraph.runs]
    assert [run.text for run in runs if run.font.superscript] == ["2"]
    assert [run.text for run in runs if run.font.subscript] == ["2"]
    assert [run.text for run in runs if run.font.strike] == ["900 euros"]
    (link,) = [link for paragraph in word.paragraphs for link in paragraph.hyperlinks]
    assert (link.text, link.address) == ("the report", "https://example.org/a(b")


def test_marks_in_the_cells_of_a_table():
    page = PdfPage().text(55, 114, "Area").text(155, 114, "25 m").text(174, 110, "2", 6).text(55, 134, "Fee")
    page.text(155, 134, "12").annotate(
        150, 124, 170, 138, "/Subtype /Link /A << /S /URI /URI (https://a.org) >>"
    )
    for y in (100, 120, 140):
        page.line(50, y, 250, y)
    for x in (50, 150, 250):
        page.line(x, 100, x, 140)
    said = read(page).to_markdown()
    assert "25 m<sup>2</sup>" in said and "[12](https://a.org)" in said


def test_a_script_is_no_link():
    page = (
        PdfPage()
        .text(30, 50, "click")
        .annotate(25, 40, 60, 55, "/Subtype /Link /A << /S /URI /URI (javascript:alert\\(1\\)) >>")
    )
    found = read(page)
    assert found.to_markdown() == "click\n" and "javascript" not in found.to_html()


# ---- contents, watermarks, program text, hyphens


def test_contents_have_a_line_for_each_entry():
    page = PdfPage().text(30, 30, "Contents", 14, "Bold")
    for n, (title, number) in enumerate((("1 Aims of the study", "3"), ("2 Methods", "12"), ("Notes", "iv"))):
        page.text(30, 60 + 14 * n, title + " " + "." * (60 - len(title))).text(350, 60 + 14 * n, number)
    said = read(page).to_markdown().split("\n")
    lines = [line.strip() for line in said if line.strip()]
    assert lines == ["# Contents", "1 Aims of the study \u2026 3", "2 Methods \u2026 12", "Notes \u2026 iv"]


BODY = (
    "The council met on Tuesday to discuss the new bridge",
    "over the river, and several members asked how long",
)


@pytest.mark.parametrize("angle", [0, 45])
def test_watermarks_are_put_aside(angle):
    cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    page = PdfPage().raw(
        f"q 0.9 g BT /Bold 60 Tf {cos:.4f} {sin:.4f} {-sin:.4f} {cos:.4f} 60 90 Tm (DRAFT) Tj ET Q"
    )
    for n in range(16):
        page.text(30, 40 + 14 * n, BODY[n % 2])
    found = read(page)
    assert found.to_markdown() == " ".join(BODY * 8) + "\n"
    (aside,) = [block for block in found.pages[0].blocks if block.label == "aside_text"]
    assert aside.text == "DRAFT" and found.pages[0].text.endswith("DRAFT")


def test_program_text_keeps_its_indentation():
    page = PdfPage()
    for n in range(3):
        page.text(30, 40 + 12 * n, BODY[n % 2])
    rows = [
        "def f(x):",
        "    for y in x:",
        "        if y > 2:",
        "            return [y]",
        "",
        "    return `x`",
    ]
    for n, row in enumerate(rows):
        page.text(30, 100 + 11 * n, row, 9, "Mono") if row else None
    said = read(page).to_markdown()
    assert "```\n" + "\n".join(rows) + "\n```" in said
    assert "<pre><code>" in read(page).to_html().replace(' id="b2"', "")
    (block,) = [block for block in read(page).pages[0].blocks if block.label == "algorithm"]
    assert block.text == "\n".join(rows)


def test_a_table_in_a_fixed_width_font_is_no_program():
    page = PdfPage()
    for n, row in enumerate(
        ("Item         Price", "Apples        1.20", "Pears         0.80", "Plums         2.10")
    ):
        page.text(30, 60 + 12 * n, row, 10, "Mono")
    assert "```" not in read(page).to_markdown()


# ---- forms and check boxes


def test_what_was_filled_into_a_form():
    font = "/DA (/Helv 10 Tf 0 g)"
    on = "/AS /Yes /V /Yes /AP << /N << /Yes null /Off null >> >>"
    page = (
        PdfPage()
        .text(30, 50, "Surname:")
        .text(30, 80, "Country:")
        .text(50, 110, "I agree")
        .text(50, 130, "News")
    )
    page.annotate(90, 40, 200, 54, f"/Subtype /Widget /FT /Tx /T (Surname) /V (Example) {font}")
    page.annotate(
        90,
        70,
        200,
        84,
        f"/Subtype /Widget /FT /Ch /Ff 131072 /T (Country) /V (Norway) /Opt [(Norway) (Peru)] {font}",
    )
    page.annotate(30, 101, 42, 113, f"/Subtype /Widget /FT /Btn /T (agree) {on}")
    page.annotate(
        30,
        121,
        42,
        133,
        "/Subtype /Widget /FT /Btn /T (news) /AS /Off /AP << /N << /Yes null /Off null >> >>",
    )
    page.annotate(220, 40, 380, 54, f"/Subtype /FreeText /Contents (Checked on 4 May) {font}")
    page.annotate(220, 70, 380, 84, f"/Subtype /Widget /FT /Tx /Ff 8192 /T (pin) /V (4711) {font}")
    found = read(page)
    said = found.to_markdown()
    assert "Surname: Example" in said and "Country: Norway" in said and "Checked on 4 May" in said
    assert "- [x] I agree\n- [ ] News" in said and "4711" not in said
    fields = {field.name: field.value for field in find_fields(found.pages)}
    assert fields["surname"] == "Example" and fields["country"] == "Norway"
    assert fields["agree"] == "checked" and fields["news"] == "unchecked"
    assert Page.from_dict(found.pages[0].to_dict()).fields == found.pages[0].fields


def test_text_that_was_stamped_on_a_page():
    stamp = (
        "0 0 120 40 re S BT /Bold 14 Tf 8 24 Td (APPROVED) Tj /Regular 7 Tf 0 -14 Td (by J. Doe, 4 May) Tj ET"
    )
    page = PdfPage().text(30, 50, "The sum of all parts").text(30, 70, "is said to be the whole")
    page.annotate(220, 100, 340, 140, "/Subtype /Stamp /Contents (a note)", stamp)
    page.annotate(220, 160, 340, 200, "/Subtype /Stamp", "0 0 120 40 re S")
    page.annotate(220, 210, 340, 230, "/Subtype /FreeText", "BT /Regular 10 Tf 4 6 Td (typed beside) Tj ET")
    first = PdfPage().text(30, 50, "Another page")
    found = read(first, page).pages
    # as PDFium reads the page when its annotations are drawn into it
    assert [line.text for line in found[1].lines] == [
        "The sum of all parts",
        "is said to be the whole",
        "APPROVED",
        "by J. Doe, 4 May",
        "typed beside",
    ]
    stamped = {line.text: line.polygon for line in found[1].lines}
    scale = found[1].width / 400
    (left, top), _, (right, bottom), _ = stamped["APPROVED"]
    assert 220 * scale <= left < right <= 340 * scale and 100 * scale <= top < bottom <= 140 * scale
    assert found[1].fields == () and [line.text for line in found[0].lines] == ["Another page"]
    with PdfReader(make_pdf(first, page), dpi=72) as reader:  # the document stays as it was
        assert reader.content(1).annotations.fields == reader.content(1).annotations.fields
        assert "APPROVED" not in "".join(reader.content(-1).text.text)


def test_notes_of_readers_are_named():
    page = PdfPage().text(20, 40, "The sum of all parts")
    page.annotate(200, 30, 220, 50, "/Subtype /Text /Contents (Check\nthe sum)")
    page.annotate(20, 30, 60, 44, "/Subtype /Highlight /Contents ()")
    read_page = read(page).pages[0]
    assert [line.text for line in read_page.lines] == ["The sum of all parts"]
    assert read_page.warnings == (
        "notes of readers are not read as text: 1, the first of them 'Check the sum'",
    )


def box(page: PdfPage, x: float, y: float, mark: str = "") -> PdfPage:
    low = HEIGHT - y
    page.raw(f"0.7 w {x} {low} 9 9 re S")
    if mark == "cross":
        page.raw(f"{x + 1} {low + 1} m {x + 8} {low + 8} l S {x + 1} {low + 8} m {x + 8} {low + 1} l S")
    if mark == "fill":
        page.raw(f"{x + 2} {low + 2} 5 5 re f")
    return page.text(x + 1.5, y - 1.5, "x", 8) if mark == "letter" else page


def test_check_boxes_that_are_drawn():
    page = PdfPage()
    for n, (label, mark) in enumerate(
        (("I agree", "cross"), ("News", ""), ("Over 18", "letter"), ("Paid", "fill"))
    ):
        box(page, 30, 60 + 20 * n, mark).text(46, 60 + 20 * n, label)
    found = read(page)
    assert (
        found.to_markdown() == "- [x] I agree\n- [ ] News\n- [x] Over 18\n- [x] Paid\n" and not found.tables
    )
    assert found.to_html().count("checkbox") == 4 and found.to_html().count("checked>") == 3


def test_squares_that_are_no_check_boxes():
    page = PdfPage().text(30, 40, "Enter the number:")
    for n in range(4):  # a comb of fields
        box(page, 130 + 9 * n, 42)
    box(page, 300, 90).text(302, 88, "7", 8).text(320, 90, "a key of the board")  # holds another text
    box(page, 350, 200)  # stands alone
    assert not any(char in read(page).to_markdown() for char in "\u2610\u2612[")


# ---- what is read by OCR


def outlines(page: PdfPage, x: float, y: float, count: int, together: bool) -> PdfPage:
    """Shapes like letters: of different widths, with curves."""
    commands, low = [], HEIGHT - y
    for n in range(count):
        wide = 3 + 2 * (n % 4)
        commands.append(f"{x} {low} m {x} {low + 9} {x + wide} {low + 9} {x + wide} {low} c h")
        commands += [] if together else ["f"]
        x += wide + 1
    return page.raw("\n".join(commands) + ("\nf" if together else ""))


@pytest.mark.parametrize("together", [True, False])
def test_a_page_of_outlines_is_read_by_ocr(together):
    page = outlines(PdfPage(), 30, 60, 30, together)
    with PdfReader(make_pdf(page), dpi=72) as reader:
        content = reader.content(0)
        check = is_usable(read_text_layer(content), content)
    assert not check and "outlines" in check.reason
    (found,) = read(page, ocr=ocr_says("Certificate of origin")).pages
    assert found.text == "Certificate of origin" and "outlines" in found.warnings[0]


def test_outlines_beside_text_are_read_where_they_stand():
    page = outlines(PdfPage().text(30, 40, BODY[0]).text(30, 54, BODY[1]), 30, 150, 30, True)
    (found,) = read(page, ocr=ocr_says("Received with thanks")).pages
    assert [line.text for line in found.lines] == [
        *BODY,
        "Received with thanks",
    ] and found.text_from == "text-layer"
    assert "1 lines are drawn as outlines" in found.warnings[0]
    assert found.lines[-1].polygon[0][1] > 130
    chart = PdfPage().text(30, 40, BODY[0]).text(30, 54, BODY[1])
    for n in range(30):  # the dots of a chart
        low = 100 + n
        chart.raw(
            f"{30 + 8 * n} {low} m {30 + 8 * n} {low + 4} {34 + 8 * n} {low + 4} {34 + 8 * n} {low} c h f"
        )
    with PdfReader(make_pdf(chart), dpi=72) as reader:
        content = reader.content(0)
        assert outlined_text(read_text_layer(content), content) == ()


def image_page() -> PdfPage:
    page = PdfPage().text(30, 30, BODY[0]).text(30, 44, BODY[1])
    return page.raw(f"q 200 0 0 80 30 {HEIGHT - 150} cm /Image Do Q")


def test_text_in_images_is_in_their_block():
    reader = {"ocr": ocr_says("Step 1: open the valve", "?"), "figure_text": "always"}
    (page,) = read(image_page(), **reader).pages
    (figure,) = [block for block in page.blocks if block.label == "image"]
    assert figure.text == "Step 1: open the valve" and figure.lines[0].polygon[0] == (34.0, 75.0)
    assert "Step 1: open the valve" in read(image_page(), **reader).to_markdown()
    assert not read(image_page()).pages[0].warnings  # an even image holds no text: OCR is not opened
    assert read(image_page(), figure_text="never").pages[0].text_from == "text-layer"


def test_images_are_left_where_ocr_cannot_be_opened():
    def broken():
        raise HubError("no weights")

    (page,) = read(image_page(), ocr=Lazy(broken), figure_text="always").pages
    assert page.lines and "images may hold text that is not read" in page.warnings[0]


def wrong_page() -> PdfPage:
    page = PdfPage()
    for n in range(6):
        page.text(30, 40 + 14 * n, BODY[n % 2].lower().replace(",", ""), 10, "Wrong")
    return page


def test_a_font_that_says_other_letters_than_it_shows():
    (page,) = read(wrong_page(), ocr=ocr_says("the council met on tuesday")).pages
    assert (
        page.text == "the council met on tuesday" and "says other letters than it shows" in page.warnings[0]
    )
    # OCR of the same letters keeps the layer, and so does one that cannot be opened.
    with PdfReader(make_pdf(wrong_page()), dpi=72) as reader:
        said = read_text_layer(reader.content(0)).lines[0].text
    (page,) = read(wrong_page(), ocr=ocr_says(said)).pages
    assert page.text_from == "text-layer" and not page.warnings

    def broken():
        raise HubError("no weights")

    (page,) = read(wrong_page(), ocr=Lazy(broken)).pages
    assert page.text_from == "text-layer" and "make no words" in page.warnings[0]


# ---- letters that the font does not name, letters upside down


def test_letters_whose_code_is_zero_are_marked_and_counted() -> None:
    page = PdfPage().text(30, 30, "no words are lost here" + 5 * " and others stay", 8)
    page.text(30, 60, "awful", font="Lost")
    (only,) = read(page).pages
    assert "a\ufffdful" in only.text
    assert "1 character" in only.warnings[0] and "text_layer=never" in only.warnings[0]


def test_a_page_with_many_such_letters_is_read_by_ocr() -> None:
    page = PdfPage().text(30, 60, "awful wow", font="Lost")
    (only,) = read(page, ocr=ocr_says("awful wow")).pages
    assert only.text.strip() == "awful wow"
    assert only.warnings == ("read by OCR: 3 of 8 characters have no Unicode map",)


def test_a_negative_size_turns_letters_by_half_a_turn() -> None:
    page = PdfPage().raw(f"BT /Regular -10 Tf -1 0 0 -1 30 {HEIGHT - 30} Tm (Upright text) Tj ET")
    assert read(page).pages[0].text.strip() == "Upright text"
