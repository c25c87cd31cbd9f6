"""hOCR, ALTO, Markdown and images; the searchable PDF has a file of its own."""

from xml.etree import ElementTree

import numpy as np
import pytest

from ocr.exporters._xml import pixel_box, xml_text
from ocr.results.pages import Char, Document, Line, Page, Word

HTML = "{http://www.w3.org/1999/xhtml}"
ALTO = "{http://www.loc.gov/standards/alto/ns-v4#}"


def quad(left, top, right, bottom):
    return ((left, top), (right, top), (right, bottom), (left, bottom))


def chars_of(text, left, top, width=10, height=20):
    return tuple(
        Char(char, 0.5, quad(left + width * i, top, left + width * (i + 1), top + height))
        for i, char in enumerate(text)
    )


def document():
    words = (
        Word("a<&", 0.956, quad(10.2, 5, 40.7, 25), chars_of("a<&", 10, 5)),
        Word("b", 1.5, quad(60, 5, 70, 25)),
    )
    lines = (
        Line("a<& b", 0.9, quad(10.2, 5, 70, 25), words),
        Line("no words \x00\x1b\ud800\uffff", 0.4, quad(10, 40, 90, 60)),
        Line("", 0.0, quad(0, 0, 3, 3)),
    )
    return Document(
        (Page(lines, source='my "scan".png', width=100, height=80), Page((), 2, width=10, height=20)),
        "my scan",
    )


def by_class(root, name):
    return [element for element in root.iter() if element.get("class") == name]


def test_xml_text():
    assert xml_text("a\t\n\r é中\U0001f600") == "a\t\n\r é中\U0001f600"
    assert xml_text("\x00\x08\x0b\x1f\ud800\udfff\ufffe\uffff") == "\ufffd" * 8


def test_pixel_box_rounds_outwards_within_the_page():
    assert pixel_box([quad(1.2, 2.9, 7.1, 8.0), quad(3, -4, 5, 6)], (100, 100)) == (1, 0, 8, 8)
    assert pixel_box([quad(90, 90, 120, 130)], (100, 95)) == (90, 90, 100, 95)
    assert pixel_box([quad(200, 200, 300, 300)], (100, 100)) == (100, 100, 100, 100)


def test_hocr_structure():
    text = document().to_hocr()
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html PUBLIC')
    root = ElementTree.fromstring(text.encode("utf-8"))
    assert root.tag == HTML + "html" and root.findtext(f"{HTML}head/{HTML}title") == "my scan"
    meta = {element.get("name"): element.get("content") for element in root.iter(HTML + "meta")}
    assert meta["ocr-capabilities"] == "ocr_page ocr_carea ocr_par ocr_line ocrx_word ocrp_wconf ocrp_dir"
    assert meta["ocr-number-of-pages"] == "2"
    pages = by_class(root, "ocr_page")
    assert pages[0].get("title") == "image \"my 'scan'.png\"; bbox 0 0 100 80; ppageno 0"
    assert pages[1].get("title") == 'image ""; bbox 0 0 10 20; ppageno 1'
    assert by_class(pages[1], "ocr_line") == []
    lines = by_class(pages[0], "ocr_line")
    assert [line.get("title") for line in lines] == [
        "bbox 10 5 70 25; baseline 0 0.0",
        "bbox 10 40 90 60; baseline 0 0.0",
    ]
    words = by_class(lines[0], "ocrx_word")
    assert [(word.text, word.get("title")) for word in words] == [
        ("a<&", "bbox 10 5 41 25; x_wconf 96"),
        ("b", "bbox 60 5 70 25; x_wconf 100"),
    ]
    assert "".join(lines[0].itertext()) == "a<& b"
    assert "".join(lines[1].itertext()) == "no words \ufffd\ufffd\ufffd\ufffd"
    names = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(names) == len(set(names)) == 2 + 1 + 1 + 2 + 3


def test_hocr_characters():
    root = ElementTree.fromstring(document().to_hocr(chars=True).encode("utf-8"))
    words = by_class(root, "ocrx_word")
    found = [(char.text, char.get("title")) for char in by_class(words[0], "ocrx_cinfo")]
    assert found[1] == ("<", "x_bboxes 20 5 30 25; x_confs 50") and len(found) == 3
    assert words[1].text == "b" and by_class(words[1], "ocrx_cinfo") == []


def test_hocr_baseline_and_textangle():
    def title(line):
        root = ElementTree.fromstring(
            Document((Page((line,), width=200, height=200),)).to_hocr().encode("utf-8")
        )
        return by_class(root, "ocr_line")[0].get("title")

    # Rises by 10 over 100: the lower edge meets the left side of the box 0 above its bottom.
    assert (
        title(Line("up", 1.0, ((0, 60), (100, 50), (100, 70), (0, 80))))
        == "bbox 0 50 100 80; baseline -0.1 0.0"
    )
    # Falls: at the left side the lower edge is 10 above the bottom.
    assert (
        title(Line("dn", 1.0, ((0, 50), (100, 60), (100, 80), (0, 70))))
        == "bbox 0 50 100 80; baseline 0.1 -10.0"
    )
    # Reads upwards: turned counter-clockwise by 90 degrees.
    assert title(Line("up", 1.0, ((0, 100), (0, 0), (20, 0), (20, 100)))) == "bbox 0 0 20 100; textangle 90"
    assert title(Line("dn", 1.0, ((20, 0), (20, 100), (0, 100), (0, 0)))) == "bbox 0 0 20 100; textangle 270"
    assert (
        title(Line("head", 1.0, ((100, 20), (0, 20), (0, 0), (100, 0)))) == "bbox 0 0 100 20; textangle 180"
    )
    assert title(Line("縦書き", 1.0, quad(0, 0, 20, 100))) == "bbox 0 0 20 100"


def test_areas_follow_the_columns():
    left = [Line("left", 1.0, quad(0, 24 * row, 300, 24 * row + 20)) for row in range(4)]
    right = [Line("right", 1.0, quad(330, 24 * row, 630, 24 * row + 20)) for row in range(4)]
    two = Document((Page((*left, *right), width=630, height=100),))
    areas = by_class(ElementTree.fromstring(two.to_hocr().encode("utf-8")), "ocr_carea")
    assert [area.get("title") for area in areas] == ["bbox 0 0 300 92", "bbox 330 0 630 92"]
    blocks = ElementTree.fromstring(two.to_alto().encode("utf-8")).iter(ALTO + "TextBlock")
    assert [(block.get("HPOS"), len(block)) for block in blocks] == [("0", 4), ("330", 4)]


def test_alto_structure():
    root = ElementTree.fromstring(document().to_alto().encode("utf-8"))
    assert root.tag == ALTO + "alto"
    assert root.findtext(f"{ALTO}Description/{ALTO}MeasurementUnit") == "pixel"
    first, second = root.iter(ALTO + "Page")
    assert (first.get("WIDTH"), first.get("HEIGHT"), first.get("PHYSICAL_IMG_NR")) == ("100", "80", "1")
    assert len(second[0]) == 0 and second.get("PHYSICAL_IMG_NR") == "2"
    lines = list(first.iter(ALTO + "TextLine"))
    assert [child.tag.removeprefix(ALTO) for child in lines[0]] == ["Shape", "String", "SP", "String"]
    assert lines[0].get("BASELINE") == "10.2,25 70,25"
    assert lines[0][1].attrib == {
        "ID": "word_1_1",
        "CONTENT": "a<&",
        "HPOS": "10.2",
        "VPOS": "5",
        "WIDTH": "30.5",
        "HEIGHT": "20",
        "WC": "0.956",
    }
    assert lines[0][2].attrib == {"HPOS": "40.7", "VPOS": "5", "WIDTH": "19.3", "HEIGHT": "20"}
    assert lines[0][3].get("WC") == "1"
    shape = lines[0][1].find(f"{ALTO}Shape/{ALTO}Polygon")
    assert shape is not None and shape.get("POINTS") == "10.2,5 40.7,5 40.7,25 10.2,25"
    assert [string.get("CONTENT") for string in lines[1].iter(ALTO + "String")] == [
        "no words \ufffd\ufffd\ufffd\ufffd"
    ]
    assert list(root.iter(ALTO + "Glyph")) == []


def test_alto_glyphs_and_vertical_text():
    root = ElementTree.fromstring(document().to_alto(chars=True).encode("utf-8"))
    glyphs = list(root.iter(ALTO + "Glyph"))
    assert [(glyph.get("CONTENT"), glyph.get("HPOS"), glyph.get("GC")) for glyph in glyphs] == [
        ("a", "10", "0.5"),
        ("<", "20", "0.5"),
        ("&", "30", "0.5"),
    ]
    # A Glyph is one character, so a word with a cluster has none.
    cluster = (Char("e\u0301", 1.0, quad(0, 0, 10, 20)), Char("x", 1.0, quad(10, 0, 20, 20)))
    word = Word("e\u0301x", 1.0, quad(0, 0, 20, 20), cluster)
    lines = (Line("e\u0301x", 1.0, quad(0, 0, 20, 20), (word,)), Line("縦書き", 1.0, quad(80, 0, 100, 60)))
    root = ElementTree.fromstring(
        Document((Page(lines, width=100, height=100),)).to_alto(chars=True).encode("utf-8")
    )
    assert list(root.iter(ALTO + "Glyph")) == []
    assert [line.get("BASEDIRECTION") for line in root.iter(ALTO + "TextLine")] == [None, "ttb"]


def right_to_left():
    """Two words of Hebrew and a year, read from the right, above a line of Latin."""
    words = (
        Word("שלום", 1.0, quad(240, 40, 300, 60)),
        Word("עולם", 1.0, quad(170, 40, 230, 60)),
        Word("2024", 1.0, quad(100, 40, 160, 60)),
    )
    lines = (
        Line("שלום עולם 2024", 1.0, quad(100, 40, 300, 60), words),
        Line("אבג דהו זחט יכל", 1.0, quad(100, 64, 300, 84)),
        Line("Latin", 1.0, quad(100, 88, 300, 108)),
    )
    return Document((Page(lines, width=400, height=200),))


def test_text_from_right_to_left_says_so():
    # read by ocrmypdf's HocrParser (17.13): paragraph and lines "rtl", the last one "ltr"
    root = ElementTree.fromstring(right_to_left().to_hocr().encode("utf-8"))
    assert [par.get("dir") for par in by_class(root, "ocr_par")] == ["rtl"]
    assert [line.get("dir") for line in by_class(root, "ocr_line")] == [None, None, "ltr"]
    # ALTO 4.3 and later; valid against alto-4-4.xsd
    root = ElementTree.fromstring(right_to_left().to_alto().encode("utf-8"))
    lines = list(root.iter(ALTO + "TextLine"))
    assert [line.get("BASEDIRECTION") for line in lines] == ["rtl", "rtl", None]
    assert [(space.get("HPOS"), space.get("WIDTH")) for space in lines[0].iter(ALTO + "SP")] == [
        ("230", "10"),
        ("160", "10"),
    ]


def test_alto_space_in_a_column():
    words = (Word("縦書", 1.0, quad(80, 0, 100, 40)), Word("文字", 1.0, quad(80, 50, 100, 90)))
    line = Line("縦書 文字", 1.0, quad(80, 0, 100, 90), words)
    root = ElementTree.fromstring(Document((Page((line,), width=100, height=100),)).to_alto().encode("utf-8"))
    (space,) = root.iter(ALTO + "SP")
    assert space.attrib == {"HPOS": "80", "VPOS": "40", "WIDTH": "20", "HEIGHT": "10"}


def test_alto_stays_within_the_page():
    word = Word("ab", 1.0, quad(-20, -10, 80, 12), chars_of("ab", -20, -10, 50))
    line = Line("ab", 1.0, quad(-20, -10, 80, 12), (word,))
    text = Document((Page((line,), width=60, height=100),)).to_alto(chars=True)
    root = ElementTree.fromstring(text.encode("utf-8"))
    boxes = [
        [element.get(name) for name in ("HPOS", "VPOS", "WIDTH", "HEIGHT")]
        for element in root.iter()
        if element.tag.removeprefix(ALTO) in ("TextBlock", "TextLine", "String")
    ]
    assert boxes == [["0", "0", "60", "12"]] * 3
    assert [glyph.get("WIDTH") for glyph in root.iter(ALTO + "Glyph")] == ["30", "30"]
    assert "-" not in "".join(shape.get("POINTS", "") for shape in root.iter(ALTO + "Polygon"))


def test_hocr_baseline_has_no_exponent():
    line = Line("flat", 1.0, ((0, 50), (1000, 50.02), (1000, 70.02), (0, 70)))
    text = Document((Page((line,), width=1000, height=100),)).to_hocr()
    assert "baseline 0 " in text and "e-" not in text.split("<body>")[1]


def markdown(*lines, size=(700, 1000)):
    found = tuple(Line(text, 1.0, quad(*box)) for text, box in lines)
    return Document((Page(found, width=size[0], height=size[1]),)).to_markdown()


def test_markdown_of_nothing():
    assert Document(()).to_markdown() == ""
    assert markdown() == "" and markdown((" ", (0, 0, 10, 10))) == ""


def test_markdown_paragraphs():
    # 300 wide: "word" would have needed 40 more, so the first line runs on; after "short" there was room.
    assert markdown(
        ("The first line is almost full", (0, 0, 290, 20)),
        ("words and this one ends ear-", (0, 24, 300, 44)),
        ("ly here", (0, 48, 70, 68)),
        ("Address 1", (0, 72, 90, 92)),
        ("After a gap", (0, 130, 110, 150)),
        ("Next", (0, 154, 40, 174)),
    ) == (
        "The first line is almost full words and this one ends early here  \nAddress 1\n\nAfter a gap  \nNext\n"
    )


def test_markdown_indent_begins_a_paragraph():
    lines = [
        ("one one one one one one one one", (0, 0, 300, 20)),
        ("two two two two two two two two", (0, 24, 300, 44)),
        ("three three three three three", (25, 48, 300, 68)),
        ("four four", (0, 72, 90, 92)),
    ]
    assert markdown(*lines) == (
        "one one one one one one one one two two two two two two two two\n\nthree three three three three four four\n"
    )


def test_markdown_joins_chinese_without_a_space():
    assert (
        markdown(("这是第一行文字", (0, 0, 140, 20)), ("这是第二行", (0, 24, 100, 44)))
        == "这是第一行文字这是第二行\n"
    )
    assert (
        markdown(("한국어 문장", (0, 0, 140, 20)), ("다음줄문장이길다", (0, 24, 140, 44)))
        == "한국어 문장 다음줄문장이길다\n"
    )


def test_markdown_headings_are_clearly_larger_lines():
    body = [("body text that is long", (0, 200 + 24 * row, 220, 220 + 24 * row)) for row in range(4)]
    assert markdown(("Title", (0, 0, 200, 50)), *body).startswith("# Title\n\nbody")
    assert markdown(("Section #", (0, 0, 200, 32)), *body).startswith("## Section \\#\n\nbody")
    assert markdown(("A bit larger", (0, 0, 200, 28)), *body).startswith("A bit larger\n\nbody")
    assert markdown(("12.50", (0, 0, 200, 50)), *body).startswith("12.50\n\nbody")
    assert markdown(("Title", (0, 0, 200, 50)), *body[:1]).startswith("Title\n\nbody")


def test_markdown_rows():
    assert (
        markdown(
            ("12.50", (400, 2, 450, 20)),
            ("Coffee", (0, 0, 60, 20)),
            ("large", (70, 0, 120, 20)),
            ("TOTAL", (0, 24, 60, 44)),
            ("a|b", (400, 24, 430, 44)),
        )
        == "Coffee large | 12.50  \nTOTAL | a\\|b\n"
    )


def test_markdown_two_columns():
    left = [(f"left {row}", (0, 24 * row, 300, 24 * row + 20)) for row in range(3)]
    right = [(f"right {row}", (330, 24 * row, 630, 24 * row + 20)) for row in range(3)]
    assert markdown(*left, *right) == "left 0 left 1 left 2\n\nright 0 right 1 right 2\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a*b_c [x](y) `z` <b> ~~s~~ \\", "a\\*b_c \\[x\\](y) \\`z\\` \\<b> \\~\\~s\\~\\~ \\\\"),
        ("_emphasis_ snake_case", "\\_emphasis\\_ snake_case"),
        ("# one", "\\# one"),
        ("#one", "#one"),
        ("1. first", "1\\. first"),
        ("1.50", "1.50"),
        ("- item", "\\- item"),
        ("-5", "-5"),
        ("> quote", "\\> quote"),
        ("---", "\\---"),
        ("===", "\\==="),
        ("&amp; & co", "\\&amp; & co"),
        ("a\r\nb", "a  b"),
    ],
)
def test_markdown_escapes(text, written):
    assert markdown((text, (0, 0, 100, 20))) == written + "\n"


def test_markdown_escapes_at_every_line_start():
    lines = [
        ("short", (0, 0, 50, 20)),
        ("+ plus", (0, 24, 60, 44)),
        ("and a line that is long", (0, 48, 230, 68)),
    ]
    assert markdown(*lines) == "short  \n\\+ plus  \nand a line that is long\n"


def test_markdown_pages():
    page = Page((Line("x", 1.0, quad(0, 0, 10, 20)),), width=20, height=20)
    assert Document((page, Page((), width=5, height=5), page)).to_markdown() == "x\n\n---\n\nx\n"


def test_drawing_shows_the_image_and_the_text_side_by_side():
    image = np.full((40, 200, 3), 90, np.uint8)
    page = Page((Line("Text", 1.0, quad(20, 10, 100, 30)),), width=200, height=40, image=image)
    alone = page.draw(side_by_side=False)
    assert alone.shape == (40, 200, 3) and alone.dtype == np.uint8
    assert (alone[36:] == 90).all() and (alone[10] != 90).any()
    both = page.draw()
    reading = both[:, -200:]
    np.testing.assert_array_equal(both[:, :200], alone)
    assert (reading[36:] == 255).all() and (
        reading[12:28, 24:96].sum(axis=2) < 150
    ).any()  # ink, inside the box
    assert (image == 90).all()


def test_drawing_enlarges_small_text_and_leaves_large_pages_as_they_are():
    small = Page((Line("tiny", 1.0, quad(5, 5, 40, 11)),), width=50, height=20)
    assert small.draw(side_by_side=False).shape == (60, 150, 3)  # 6 pixels of height become 18
    smallest = Page((Line("tiny", 1.0, quad(5, 5, 40, 7)),), width=50, height=20)
    assert smallest.draw(side_by_side=False).shape == (80, 200, 3)  # at most 4 times
    large = Page((Line("tiny", 1.0, quad(5, 5, 40, 11)),), width=5000, height=20)
    assert large.draw(side_by_side=False).shape == (20, 5000, 3)


@pytest.mark.parametrize(
    "line",
    [
        Line("", 1.0, quad(5, 5, 40, 20)),
        Line("\x00\u200b\U0001f600\ud800\ue000", 1.0, quad(5, 5, 90, 20)),
        Line("no area", 1.0, ((5, 5),) * 4),
        Line("outside", 1.0, quad(500, 500, 600, 520)),
        Line("partly outside", 1.0, quad(-50, -5, 40, 15)),
        Line("縦書き", 1.0, quad(5, 5, 25, 75)),
        Line("on its head", 1.0, ((90, 25), (5, 25), (5, 5), (90, 5))),
        Line("arc", 1.0, ((0, 10), (50, 0), (90, 10), (90, 30), (50, 20), (0, 30))),
    ],
)
def test_drawing_takes_any_line(line):
    usual = [Line("x", 1.0, quad(5, top, 25, top + 18)) for top in (40, 60)]
    drawn = Page((line, *usual), width=100, height=80).draw()
    assert drawn.shape == (80, 201, 3)
    assert (drawn[62:76, 107:124].sum(axis=2) < 150).any()  # the next line is written


def test_drawing_of_pages_without_lines():
    assert (Page((), width=30, height=20).draw(side_by_side=False) == 255).all()
    assert Page((), width=1, height=1).draw().shape == (1, 3, 3)
