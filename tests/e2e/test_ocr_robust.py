"""One predictor on odd images, turned pages, long lines and from many threads."""

from __future__ import annotations

import importlib.util
import io
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framework.core.errors import InputError
from framework.vision import image as vision_image
from framework.vision.fonts import text_alpha
from framework.vision.image import rotate90
from ocr import predictor
from ocr.pipeline.predictor import OCRPredictor
from ocr.results.pages import Line, Page
from ocr.text.curved_lines import find_band

RECEIPT = Path(__file__).resolve().parents[2] / "docs" / "images" / "receipt.png"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("rapidocr") is None,
    reason="the weights are in the wheel of rapidocr: pip install -e '.[ocr]'",
)


@pytest.fixture(scope="module")
def read() -> OCRPredictor:
    return predictor()


@pytest.fixture(scope="module")
def receipt() -> np.ndarray:
    return vision_image.read(RECEIPT)


@pytest.fixture(scope="module")
def upright(read: OCRPredictor, receipt: np.ndarray) -> Page:
    return read(receipt).pages[0]


def words(page: Page) -> list[str]:
    return page.text.split()


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def as_grey(slip: Image.Image) -> bytes:
    return saved(slip.convert("L"), "PNG")


def as_rgba(slip: Image.Image) -> bytes:
    return saved(slip.convert("RGBA"), "PNG")


def as_palette(slip: Image.Image) -> bytes:
    return saved(slip.quantize(64), "PNG")


def as_sixteen_bits(slip: Image.Image) -> bytes:
    return saved(Image.fromarray(np.asarray(slip.convert("L")).astype(np.uint16) * 257), "PNG")


def as_bilevel_tiff(slip: Image.Image) -> bytes:
    return saved(Image.fromarray(np.asarray(slip.convert("L")) > 110), "TIFF")


def as_cmyk(slip: Image.Image) -> bytes:
    return saved(slip.convert("CMYK"), "JPEG", quality=92)


def as_exif_turned(slip: Image.Image) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be shown turned clockwise by a quarter
    return saved(slip.transpose(Image.Transpose.ROTATE_90), "JPEG", exif=exif, quality=92)


@pytest.mark.parametrize(
    "encode",
    [as_grey, as_rgba, as_palette, as_sixteen_bits, as_bilevel_tiff, as_cmyk, as_exif_turned],
    ids=lambda encode: encode.__name__,
)
def test_every_kind_of_file(
    encode: Callable[[Image.Image], bytes], read: OCRPredictor, receipt: np.ndarray, upright: Page
) -> None:
    page = read(encode(Image.fromarray(receipt))).pages[0]
    assert page.size_hw == upright.size_hw
    common = Counter(words(page)) & Counter(words(upright))
    assert common.total() >= 0.9 * len(words(upright))
    assert "33.62" in words(page)


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_a_turned_page_reads_as_the_upright_one(
    quarter: int, read: OCRPredictor, receipt: np.ndarray, upright: Page
) -> None:
    page = read(np.ascontiguousarray(rotate90(receipt, quarter))).pages[0]
    # A crop of one line tells "S" and "s" apart by their size alone, and a turned page is sampled on another grid; by
    # engine and grid the dashed rule of the receipt is a line of text or none: its dashes, 3 pixels high, are bars in
    # the recogniser's 48.
    rule = re.compile(r".*--.*|1+")
    lines, others = ([line for line in one.lines if not rule.fullmatch(line.text)] for one in (page, upright))
    assert [line.text.casefold() for line in lines] == [line.text.casefold() for line in others]
    assert {line.orientation for line in lines} == {90 * quarter}
    for line, expected in zip(lines, others, strict=True):
        height, width = receipt.shape[:2]
        x, y = np.array(expected.polygon).T
        for _ in range(quarter):  # one quarter clockwise: what was below is now on the left
            x, y = height - y, x
            height, width = width, height
        found = np.array(line.polygon)
        assert np.abs(found - np.stack([x, y], axis=1)).max() < 12, line.text


def test_small_and_empty_images(read: OCRPredictor, receipt: np.ndarray) -> None:
    for image in (
        np.zeros((1, 1, 3), np.uint8),
        np.full((1, 900, 3), 255, np.uint8),
        np.full((900, 1, 3), 7, np.uint8),
        np.full((480, 640, 3), 255, np.uint8),
        np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8),
    ):
        page = read(image).pages[0]
        assert page.lines == ()
        assert page.size_hw == image.shape[:2]
        assert page.draw().shape[2] == 3
        assert page.to_dict()["lines"] == []
    thumbnail = Image.fromarray(receipt)
    thumbnail.thumbnail((200, 200))
    assert "33.62" in words(read(np.asarray(thumbnail)).pages[0])


@pytest.mark.parametrize(
    "data", [b"", b"Dear all,", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0cut", b"%PDF-1.7"]
)
def test_broken_bytes(data: bytes, read: OCRPredictor) -> None:
    with pytest.raises(InputError):
        read(data)


def write_on(canvas: np.ndarray, text: str, left: int, top: int, size: int = 40) -> int:
    """Black letters on `canvas [H, W]`; returns where they end."""
    alpha = text_alpha(text, size)
    high, wide = alpha.shape
    canvas[top : top + high, left : left + wide] = 255 - alpha
    return left + wide


def test_words_of_a_panorama_are_read_once(read: OCRPredictor) -> None:
    """A line through all tiles, and separate words at every place that a cut may have; wider than OpenCV's 32,766."""
    width, count = 33_000, 0
    canvas = np.full((500, width), 255, np.uint8)
    for top, gap in ((80, 16), (240, 90)):
        left = 40 + top
        while left < width - 400:
            left = write_on(canvas, f"word{count:03d}", left, top) + gap
            count += 1
    page = read(canvas).pages[0]
    found = Counter(words(page))
    expected = Counter(f"word{number:03d}" for number in range(count))
    assert (found - expected).total() <= 0.02 * count, found - expected
    assert (expected - found).total() <= 0.02 * count, expected - found
    assert max(found.values()) == 1


def test_spaces_and_boxes_of_words(upright: Page) -> None:
    """Words stand side by side in their line, in the order of the text, and none is as long as the line."""
    lines = [line for line in upright.lines if len(line.words) > 1]
    assert any(line.text == "Tomatoes 0.745 kg x 3.20" for line in lines)
    for line in lines:
        assert " ".join(word.text for word in line.words) == line.text
        middles = [np.mean(word.polygon, axis=0)[0] for word in line.words]
        assert middles == sorted(middles)
        lefts = [min(x for x, _ in word.polygon) for word in line.words]
        rights = [max(x for x, _ in word.polygon) for word in line.words]
        overlaps = [right - left for right, left in zip(rights, lefts[1:])]
        assert max(overlaps) < 0.2 * max(y for _, y in line.polygon)
        for word in line.words:
            xs = [np.mean(char.polygon, axis=0)[0] for char in word.chars]
            assert xs == sorted(xs)


def test_eight_threads_read_as_one(read: OCRPredictor, receipt: np.ndarray) -> None:
    images = [np.ascontiguousarray(receipt[100 * k : 100 * k + 400]) for k in range(8)]
    serial = [read(image).pages[0].lines for image in images]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda image: read(image).pages[0].lines, images))
    assert together == serial
    assert all(isinstance(line, Line) for lines in serial for line in lines) and sum(map(len, serial)) > 40


def test_exports_hold_what_was_read(read: OCRPredictor, receipt: np.ndarray, tmp_path: Path) -> None:
    pdfium = pytest.importorskip("pypdfium2")
    document = read([receipt, receipt])
    document.to_searchable_pdf(tmp_path / "slips.pdf")
    pdf = pdfium.PdfDocument(str(tmp_path / "slips.pdf"))
    try:
        for number, page in enumerate(document.pages):
            inside = pdf[number].get_textpage().get_text_range()
            assert Counter(inside.split()) == Counter(words(page))
    finally:
        pdf.close()
    for text in (document.to_hocr(), document.to_alto()):
        assert text.count("33.62") == 2


def test_a_scan_on_its_head(read: OCRPredictor, shared: Path) -> None:
    folder = shared / "data" / "tesseract_pages"
    if not folder.is_dir():
        pytest.skip(f"no pages at {folder}")
    upright, turned = (read(folder / name).text for name in ("phototest.tif", "phototest-rotated-180.png"))
    assert turned == upright
    assert upright.startswith("This is a lot of 12 point text to test the\n")


def test_columns_of_a_scan_on_its_side(read: OCRPredictor, shared: Path) -> None:
    """The detector runs columns of text on its side into one another: the page is turned and looked at again."""
    scan = shared / "data" / "tesseract_pages" / "8071_093.3B.tif"
    if not scan.is_file():
        pytest.skip(f"no page at {scan}")
    image = vision_image.read(scan)
    upright = read(image).pages[0]
    turned = read(np.ascontiguousarray(rotate90(image, 1))).pages[0]
    same = sum(a.text == b.text for a, b in zip(turned.lines, upright.lines))
    assert same >= 0.95 * len(upright.lines)


def test_shapes_stay_within_the_buckets(read: OCRPredictor, upright: Page) -> None:
    """Last: it counts what all the tests above have compiled."""
    assert read.bucket_count is not None
    assert 0 < read.compile_count <= read.bucket_count


def ring_of_letters(text: str, span: float, side: int = 520, radius: float = 190.0) -> np.ndarray:
    """Letters on the upper part of a ring, as on a seal."""
    image, centre = Image.new("RGB", (side, side), (250, 248, 244)), side / 2
    glyphs = [text_alpha(letter, 60) if letter.strip() else np.zeros((60, 20), np.uint8) for letter in text]
    widths = np.array([glyph.shape[1] for glyph in glyphs], float)
    places = (np.cumsum(widths) - widths / 2) / widths.sum()
    for glyph, place in zip(glyphs, places):
        angle = -90 + (place - 0.5) * span
        canvas = Image.new("L", (160, 160))
        canvas.paste(Image.fromarray(glyph), (80 - glyph.shape[1] // 2, 80 - glyph.shape[0] // 2))
        canvas = canvas.rotate(-(angle + 90), Image.Resampling.BICUBIC)
        x, y = centre + radius * np.cos(np.radians(angle)), centre + radius * np.sin(np.radians(angle))
        image.paste(Image.new("RGB", canvas.size, (190, 30, 40)), (round(x) - 80, round(y) - 80), canvas)
    return np.asarray(image)


def test_a_seal_is_read_along_its_ring(read: OCRPredictor) -> None:
    image, angles = ring_of_letters("HARBOUR STREET", 170), np.radians(np.linspace(-178, -2, 60))
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    band = find_band(np.concatenate([260 + 230 * circle, 260 + 150 * circle[::-1]]))
    assert band is not None
    ((text, _, _),) = read.pipeline.recognizer([band.warp(image.shape[:2]).image(image)])
    assert text.text.replace(" ", "") == "HARBOURSTREET" and text.score > 0.8
