import contextlib
import dataclasses
import io
import re
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from framework.core.errors import InputError
from ocr.exporters._pdf import PdfFile, font_file, number
from ocr.pages.sideways import Rotation
from ocr.results.pages import Char, Document, Line, Page, Word

pdfium = pytest.importorskip("pypdfium2", reason="pypdfium2 reads the PDFs back")

SIZE = (800, 1000)  # at 200 dpi: 288 x 360 points, 0.36 points a pixel


def quad(left, top, right, bottom):
    return ((left, top), (right, top), (right, bottom), (left, bottom))


def turned(polygon, degrees, centre):
    angle = np.deg2rad(degrees)
    matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (np.array(polygon) - centre) @ matrix.T + centre


def line_of(text, *boxes, vertical=None):
    """A line whose words stand in the boxes."""
    words = tuple(Word(word, 1.0, quad(*box)) for word, box in zip(text.split(), boxes, strict=True))
    around = np.array(boxes)
    return Line(
        text, 1.0, quad(*around[:, :2].min(axis=0), *around[:, 2:].max(axis=0)), words, vertical=vertical
    )


def blank_page(lines, size, source, number=1):
    """A white page of (width, height)."""
    image = np.full((size[1], size[0], 3), 255, np.uint8)
    return Page(lines, number, source=source, width=size[0], height=size[1], image=image)


def write(path, *lines, size=SIZE, **options):
    Document((blank_page(lines, size, "scan"),), "scan").to_searchable_pdf(path, **options)
    return path


def read(path, index=0):
    """The text, the size, and each character with its box (left, top, right, bottom), in points from the upper left."""
    with pdfium.PdfDocument(path) as pdf:
        page = pdf[index]
        width, height = page.get_size()
        text_page = page.get_textpage()
        text = text_page.get_text_range()
        chars = []
        for position in range(text_page.count_chars()):
            left, bottom, right, top = text_page.get_charbox(position)
            chars.append(
                (
                    text_page.get_text_range(position, 1),
                    np.array([left, height - top, right, height - bottom]),
                )
            )
        text_page.close()
        page.close()
    return text.rstrip(" "), (width, height), chars  # every line ends in a space


def box_of(chars, text):
    """The box around the characters of the first place where `text` stands, in points."""
    start = "".join(char or " " for char, _ in chars).index(text)
    boxes = np.array([box for _, box in chars[start : start + len(text)]])
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])


def test_words_are_found_where_they_stand(tmp_path):
    path = write(
        tmp_path / "new folder" / "out.pdf",
        line_of("Hello World", (100, 100, 280, 140), (330, 104, 510, 138)),
        line_of("Größe: 5 µm", (50, 700, 200, 720), (210, 700, 220, 720), (240, 700, 300, 720)),
    )
    text, size, chars = read(path)
    assert text == "Hello World \r\nGröße: 5 µm"
    assert size == (288.0, 360.0)
    np.testing.assert_allclose(box_of(chars, "Hello"), np.array([100, 100, 280, 140]) * 0.36, atol=0.3)
    np.testing.assert_allclose(box_of(chars, "World"), np.array([330, 104, 510, 138]) * 0.36, atol=0.3)
    np.testing.assert_allclose(box_of(chars, "Größe:"), np.array([50, 700, 200, 720]) * 0.36, atol=0.3)
    assert [entry.name for entry in path.parent.iterdir()] == ["out.pdf"]  # nothing temporary is left


@pytest.mark.parametrize(
    "text", ["中文字符测试", "a😀b 🎉", "e\u0301 नमस्ते", "한국어 문장", "ไทย", "<&>()\\ %", "fi \u00ad x"]
)
def test_text_of_any_script_comes_back(tmp_path, text):
    boxes = [(100 + 200 * index, 100, 250 + 200 * index, 140) for index in range(len(text.split()))]
    found, _, _ = read(write(tmp_path / "out.pdf", line_of(text, *boxes)))
    # PDFium marks a soft hyphen with a character of its own.
    assert found.replace("\ufffe", "\u00ad").replace("\x02", "\u00ad") == text


@pytest.mark.parametrize("text", ["שלום עולם", "مرحبا بالعالم"])
def test_right_to_left_text_keeps_its_order_and_its_places(tmp_path, text):
    first, second = text.split()
    text_found, _, chars = read(
        write(tmp_path / "out.pdf", line_of(text, (400, 100, 500, 140), (250, 100, 380, 140)))
    )
    assert text_found == text
    np.testing.assert_allclose(box_of(chars, first), np.array([400, 100, 500, 140]) * 0.36, atol=0.3)
    starts = [box[0] for _, box in chars[: len(first)]]
    assert starts == sorted(starts, reverse=True)
    assert box_of(chars, second)[2] == pytest.approx(380 * 0.36, abs=0.1)


def test_right_to_left_words_are_not_torn_by_uneven_characters(tmp_path):
    chars = tuple(
        Char(char, 1.0, quad(right - 5, 50, right, 80)) for char, right in zip("שלום", (200, 180, 130, 120))
    )
    word = Word("שלום", 1.0, quad(100, 50, 200, 80), chars)
    found, _, placed = read(write(tmp_path / "out.pdf", Line("שלום", 1.0, word.polygon, (word,))))
    assert found == "שלום"
    np.testing.assert_allclose(
        [box[2] for _, box in placed[:4]], np.array([200, 175, 150, 125]) * 0.36, atol=0.05
    )


def word_of(text, starts, end):
    """A word at y 50 to 80 whose characters begin at `starts` and are 5 wide."""
    chars = tuple(
        Char(char, 1.0, quad(left, 50, left + 5, 80)) for char, left in zip(text, starts, strict=True)
    )
    return Line(
        text, 1.0, quad(starts[0], 50, end, 80), (Word(text, 1.0, quad(starts[0], 50, end, 80), chars),)
    )


@pytest.mark.parametrize("text", ["wide", "lllo", "11.5", "中中文字"])
def test_characters_stand_at_their_own_places(tmp_path, text):
    found, _, chars = read(write(tmp_path / "out.pdf", word_of(text, (100, 112, 160, 170), 190)))
    assert found == text  # the gap of 48 is no space
    boxes = np.array([box for _, box in chars[:4]])
    np.testing.assert_allclose(boxes[:, 0], np.array([100, 112, 160, 170]) * 0.36, atol=0.05)
    np.testing.assert_allclose(boxes[:, 2], np.array([112, 160, 170, 190]) * 0.36, atol=0.05)


def test_characters_in_no_order_are_spread_evenly(tmp_path):
    found, _, chars = read(write(tmp_path / "out.pdf", word_of("abcd", (100, 150, 120, 170), 180)))
    assert found == "abcd"
    np.testing.assert_allclose(
        [box[0] for _, box in chars[:4]], np.array([100, 120, 140, 160]) * 0.36, atol=0.05
    )


@pytest.mark.parametrize("degrees", [5, -30])
def test_turned_words_are_found_in_their_quads(tmp_path, degrees):
    polygon = turned(quad(300, 480, 500, 520), degrees, (400, 500))
    text, _, chars = read(write(tmp_path / "out.pdf", Line("turned", 1.0, polygon)))
    assert text == "turned"
    bounds = np.concatenate([polygon.min(axis=0), polygon.max(axis=0)]) * 0.36
    np.testing.assert_allclose(box_of(chars, "turned"), bounds, atol=0.3)
    centres = np.array([(box[:2] + box[2:]) / 2 for _, box in chars])
    along = np.array([np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))])
    np.testing.assert_allclose(np.diff(centres @ along), 200 / 6 * 0.36, atol=0.3)


def test_lines_that_touch_are_kept_apart(tmp_path):
    lines = (Line("号：100", 1.0, quad(100, 100, 200, 130)), Line("临床", 1.0, quad(200, 100, 260, 130)))
    assert read(write(tmp_path / "out.pdf", *lines))[0] == "号：100 临床"


def test_vertical_text_runs_down_its_column(tmp_path):
    text, _, chars = read(
        write(
            tmp_path / "out.pdf", line_of("縦書き", (600, 100, 640, 220)), line_of("次", (540, 100, 580, 140))
        )
    )
    assert text.split() == ["縦書き", "次"]
    boxes = np.array([box for _, box in chars[:3]])
    np.testing.assert_allclose(boxes[:, 1], np.array([100, 140, 180]) * 0.36, atol=0.3)
    np.testing.assert_allclose(boxes[:, ::2], np.array([[600, 640]] * 3) * 0.36, atol=0.3)


def test_text_is_invisible_and_the_image_is_whole(tmp_path):
    rng = np.random.default_rng(0)
    image = np.asarray(
        Image.fromarray(rng.integers(0, 255, (10, 8, 3), np.uint8)).resize(
            (400, 500), Image.Resampling.BICUBIC
        )
    )
    page = Page((line_of("Text", (50, 50, 350, 450)),), width=400, height=500, image=image)
    path = tmp_path / "out.pdf"
    Document((page,)).to_searchable_pdf(path, dpi=72, quality=95)
    with pdfium.PdfDocument(path) as pdf:
        rendered = pdf[0].render(scale=1).to_numpy()[..., ::-1].astype(int)
    assert rendered.shape == (500, 400, 3)
    assert abs(rendered - image).mean() < 3


def test_gray_pages_are_stored_gray(tmp_path):
    path = write(tmp_path / "gray.pdf")
    assert b"/DeviceGray" in path.read_bytes()
    image = np.zeros((10, 20, 3), np.uint8)
    image[..., 0] = 200
    Document((Page((), width=20, height=10, image=image),)).to_searchable_pdf(tmp_path / "red.pdf")
    assert b"/DeviceRGB" in (tmp_path / "red.pdf").read_bytes()


def test_several_pages_share_one_font_and_empty_lines_are_left_out(tmp_path):
    image = np.zeros((1000, 800, 3), np.uint8)
    lines = (
        line_of("same", (0, 0, 100, 20)),
        Line("", 0.0, quad(0, 0, 9, 9)),
        Line("flat", 1.0, quad(0, 5, 50, 5)),
    )
    pages = tuple(
        Page(lines[: 3 * count], count + 1, width=800, height=1000, image=image) for count in range(3)
    )
    path = tmp_path / "out.pdf"
    Document(pages, "ünï").to_searchable_pdf(path)
    assert [read(path, index)[0] for index in range(3)] == ["", "same", "same"]
    assert path.read_bytes().count(b"/FontFile2") == 1
    with pdfium.PdfDocument(path) as pdf:
        assert pdf.get_metadata_dict()["Title"] == "ünï"


def test_control_characters_become_replacement_characters(tmp_path):
    text, _, _ = read(write(tmp_path / "out.pdf", Line("a\x00\ud800b", 1.0, quad(0, 0, 100, 20))))
    assert text == "a\ufffd\ufffdb"


def test_paper_size_from_resolution_and_from_the_source(tmp_path):
    assert read(write(tmp_path / "a.pdf", dpi=400))[1] == (144.0, 180.0)
    source = tmp_path / "source.pdf"
    with pdfium.PdfDocument.new() as pdf:
        pdf.new_page(612, 792)
        pdf.new_page(400, 500)
        pdf.save(source)

    def paper(size, number):
        page = blank_page((), size, str(source), number)
        Document((page,)).to_searchable_pdf(tmp_path / "out.pdf", dpi=72)
        return read(tmp_path / "out.pdf")[1]

    assert paper((1224, 1584), 1) == (612, 792)
    assert paper((800, 1000), 2) == (400, 500)
    assert paper((1000, 800), 2) == (1000, 800)  # turned since: the source's paper no longer fits
    assert paper((800, 1000), 3) == (800, 1000)  # no such page


def test_what_cannot_be_written_is_refused(tmp_path):
    page = Page((), 3, source="scan.png", width=10, height=10)
    path = tmp_path / "out.pdf"
    with pytest.raises(
        InputError, match=r"(?s)page 3 of scan\.png: the page has no image.*dataclasses\.replace"
    ):
        Document((page,)).to_searchable_pdf(path)
    with pytest.raises(InputError, match="the document has no pages"):
        Document(()).to_searchable_pdf(path)
    with pytest.raises(InputError, match="the resolution is not positive"):
        Document((page,)).to_searchable_pdf(path, dpi=0)
    wide = dataclasses.replace(page, width=65_501, height=1, image=np.zeros((1, 65_501, 3), np.uint8))
    with pytest.raises(InputError, match=r"(?s)cannot be stored as JPEG.*65501x1"):
        Document((wide,)).to_searchable_pdf(path)
    assert list(tmp_path.iterdir()) == []


def test_numbers():
    assert [number(value) for value in (0.0, -0.00001, 1.0, 100, -2.5, 0.12345, 1e-7, 123456.0)] == [
        "0", "0", "1", "100", "-2.5", "0.1235", "0", "123456",
    ]  # fmt: skip


def test_file_structure():
    pdf = PdfFile()
    later = pdf.reserve()
    root = pdf.add("<< /Type /Catalog >>")
    stream = pdf.add_stream("/A 1", b"data", compress=True)
    pdf.add("(late)", to=later)
    data = pdf.to_bytes(root, later)
    table = int(re.search(rb"startxref\n(\d+)\n%%EOF\n$", data).group(1))  # type: ignore[union-attr]
    assert data[table : table + 9] == b"xref\n0 4\n"
    offsets = [int(entry) for entry in re.findall(rb"(\d{10}) 00000 n \n", data[table:])]
    for index, offset in enumerate(offsets, 1):
        assert data[offset:].startswith(b"%d 0 obj\n" % index)
    body = data[offsets[stream - 1] :].split(b"stream\n", 1)[1]
    assert zlib.decompressobj().decompress(body) == b"data"
    assert b"(late)" in data[offsets[later - 1] :].split(b"endobj")[0]


def test_an_object_that_was_never_written_is_found():
    pdf = PdfFile()
    pdf.reserve()
    with pytest.raises(RuntimeError, match="object 1 was reserved"):
        pdf.to_bytes(1, 1)


def test_font_is_a_sound_truetype_file():
    font = font_file()
    count = struct.unpack(">H", font[4:6])[0]
    tables = {}
    for index in range(count):
        tag, checksum, offset, length = struct.unpack(">4sIII", font[12 + 16 * index : 28 + 16 * index])
        tables[tag] = font[offset : offset + length]
        padded = tables[tag] + bytes(-length % 4)
        if tag == b"head":
            padded = padded[:8] + bytes(4) + padded[12:]
        assert sum(struct.unpack(f">{len(padded) // 4}I", padded)) & 0xFFFFFFFF == checksum, tag
    assert list(tables) == sorted(tables) and {b"head", b"hhea", b"hmtx", b"loca", b"glyf", b"maxp"} <= set(
        tables
    )
    # The whole file adds up to the constant that the head table is adjusted for.
    assert sum(struct.unpack(f">{len(font) // 4}I", font)) & 0xFFFFFFFF == 0xB1B0AFBA
    assert struct.unpack(">HHH", tables[b"loca"]) == (0, 0, len(tables[b"glyf"]) // 2)
    from PIL import ImageFont

    assert ImageFont.truetype(io.BytesIO(font), 100).getlength("\0") == 50.0


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_turned_page_is_shown_upright_and_its_text_is_found_in_order(tmp_path, degrees):
    """The page of `lines` is turned; a dark corner shows that its image is turned back with it."""
    words = ("Terms of the lease", "The rent is due", "in cash")
    upright = [
        quad(100, 100 + 80 * row, 100 + 20 * len(text), 140 + 80 * row) for row, text in enumerate(words)
    ]
    image = np.full((400, 600, 3), 255, np.uint8)
    image[:60, :60] = 0
    rotation = Rotation((360 - degrees) % 360, 600, 400)
    lines = [rotation.line(Line(text, 1.0, box)) for text, box in zip(words, upright)]
    shown = np.ascontiguousarray(np.rot90(image, -degrees // 90))
    height, width = shown.shape[:2]
    page = Page(tuple(lines), width=width, height=height, image=shown)
    assert {line.orientation for line in page.lines} == {degrees}
    path = tmp_path / "out.pdf"
    Document((page,)).to_searchable_pdf(path, dpi=72)
    with contextlib.closing(pdfium.PdfDocument(path)) as pdf:
        first = pdf[0]
        found = first.get_textpage().get_text_range().split("\r\n")
        assert [line.strip() for line in found] == list(words)
        rendered = first.render(scale=1).to_numpy()
        assert (
            rendered.shape[:2] == (400, 600)
            and rendered[20, 20].max() < 40
            and rendered[-20, -20].min() > 200
        )
