"""Files of several pages or frames, drawn here: which of them are pages, and what is said of the others."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from PIL import Image, ImageDraw, TiffImagePlugin, features

from framework.core.errors import InputError, MissingExtraError
from framework.vision import image
from framework.vision.image_pages import ImagePages, count_note


def pages(*levels: int, size: tuple[int, int] = (40, 30)) -> list[Image.Image]:
    return [Image.new("RGB", size, (level,) * 3) for level in levels]


def encoded(images: list[Image.Image], kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    images[0].save(buffer, kind, save_all=True, append_images=images[1:], **options)
    return buffer.getvalue()


def levels(data: bytes) -> list[int]:
    return [int(pixels[5, 5, 0]) for pixels in ImagePages(data)]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("GIF", {}),
        ("WEBP", {"lossless": True}),
        ("PNG", {}),
        ("MPO", {}),
    ],
)
def test_every_page_of_a_file(kind, options):
    data = encoded(pages(10, 120, 250), kind, **options)
    assert levels(data) == pytest.approx([10, 120, 250], abs=2)
    assert count_note(data) == "the first of 3 pages is read"
    assert image.read(data)[5, 5, 0] == pytest.approx(10, abs=2)


def test_pages_of_a_fax():
    data = encoded([page.convert("1") for page in pages(0, 255)], "TIFF", compression="group4")
    assert levels(data) == [0, 255]


def test_one_page():
    for source in (encoded(pages(7), "TIFF"), np.full((3, 4), 7, np.uint8), pages(7)[0]):
        opened = ImagePages(source)
        assert (len(opened), opened.notes, int(opened.read(1)[0, 0, 0])) == (1, (), 7)
    assert count_note(encoded(pages(7), "TIFF")) is None and count_note(b"nothing") is None


def test_reduced_copies_are_no_pages():
    buffer = io.BytesIO()
    reduced = TiffImagePlugin.ImageFileDirectory_v2()
    reduced[254] = 1
    with TiffImagePlugin.AppendingTiffWriter(buffer, new=True) as writer:
        for page, tags in zip(pages(10, 60, 200), (None, reduced, None)):
            page.save(writer, "TIFF", **({"tiffinfo": tags} if tags else {}))
            writer.newFrame()
    opened = ImagePages(buffer.getvalue())
    assert opened.numbers == (1, 3) and [int(p[5, 5, 0]) for p in opened] == [10, 200]
    assert opened.notes == ("images 2 of the file are reduced copies or masks and not read",)


def test_thumbnails_of_a_stereo_photo_are_no_pages():
    data = encoded([*pages(10, 250), *pages(99, size=(20, 15))], "MPO")
    assert (
        ImagePages(data).numbers == (1, 2)
        and "images 3 of the file are thumbnails" in ImagePages(data).notes[0]
    )


def test_frames_that_show_the_same_are_given_once():
    data = encoded(pages(10, 200), "GIF")
    assert [number for number, _ in ImagePages(data).changes()] == [1, 2]
    moved = pages(10, 10, 200, 200, 10)
    for number, page in enumerate(moved):  # GIF's writer joins frames that are equal
        page.putpixel((number, 0), (255, 0, 0))
    opened = ImagePages(encoded(moved, "WEBP", lossless=True))
    assert len(opened) == 5 and [number for number, _ in opened.changes()] == [1, 3, 5]
    same = ImagePages(encoded(pages(9, 9), "TIFF"))  # pages are never left out
    assert [number for number, _ in same.changes()] == [1, 2]


def test_a_damaged_page_does_not_hide_the_others():
    data = bytearray(encoded(pages(10, 120, 250), "TIFF", compression="tiff_adobe_deflate"))
    with Image.open(io.BytesIO(data)) as tiff:
        tiff.seek(1)
        start = tiff.tag_v2[273][0]  # type: ignore[attr-defined]  # of its first strip
    data[start : start + 12] = bytes(12)
    opened = ImagePages(bytes(data))
    with pytest.raises(InputError, match="page 2"):
        opened.read(2)
    assert [int(opened.read(number)[5, 5, 0]) for number in (1, 3)] == [10, 250]


# ---- further formats ----


@pytest.mark.parametrize(
    ("kind", "options", "feature"),
    [("PPM", {}, None), ("JPEG2000", {}, "jpg_2000"), ("AVIF", {"quality": 100}, "avif")],
)
def test_further_formats(kind, options, feature):
    if feature and not features.check(feature):
        pytest.skip(f"this Pillow is without {feature}")
    buffer = io.BytesIO()
    Image.new("RGB", (32, 24), (200, 40, 90)).save(buffer, kind, **options)
    np.testing.assert_allclose(image.read(buffer.getvalue())[9, 9], (200, 40, 90), atol=4)


def test_a_format_of_a_package_that_is_missing_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(MissingExtraError, match="pillow-heif"):
        image.read(b"\x00\x00\x00\x18ftypheic" + bytes(100))
    monkeypatch.setattr(features, "check", lambda name: False)
    monkeypatch.setitem(sys.modules, "pillow_avif", None)
    with pytest.raises(InputError, match="AVIF"):
        image.read(b"\x00\x00\x00\x1cftypavif" + bytes(100))
    with pytest.raises(InputError, match="JPEG 2000"):
        image.read(b"\xff\x4f\xff\x51" + bytes(100))


# ---- transparency ----


def letters(*colours: tuple[int, ...], ground: tuple[int, ...] = (0, 0, 0, 0)) -> Image.Image:
    drawn = Image.new("RGBA", (220, 60 * len(colours)), ground)
    for row, colour in enumerate(colours):
        ImageDraw.Draw(drawn).text((10, 10 + 60 * row), "Order", font_size=40, fill=colour)
    return drawn


def contrast(drawn: Image.Image, colour: tuple[int, ...]) -> int:
    """Grey levels between the letters of a colour and what they lie on."""
    rgb = image.read(drawn, ground="contrast").astype(int)
    here = (np.asarray(drawn) == colour).all(axis=2)
    return int(abs(rgb[here].mean() - rgb[0, 0].mean()))


WHITE, BLACK = (255, 255, 255, 255), (0, 0, 0, 255)


@pytest.mark.parametrize("ground", [(0, 0, 0, 0), (255, 255, 255, 0)])
@pytest.mark.parametrize(
    "colour", [WHITE, (255, 250, 190, 255), (255, 255, 255, 170), BLACK, (20, 40, 160, 255)]
)
def test_letters_on_a_transparent_ground_show(colour, ground):
    assert contrast(letters(colour, ground=ground), colour) > 100


def test_white_and_black_letters_of_one_image_show():
    both = letters(WHITE, BLACK)
    assert min(contrast(both, WHITE), contrast(both, BLACK)) > 80


def test_transparency_is_laid_on_white_where_nothing_else_is_asked_for():
    assert (image.read(letters(WHITE)) == 255).all()
    assert image.read(letters(BLACK), ground="contrast")[0, 0].tolist() == [255] * 3


def test_the_note_of_further_pages_decodes_none(monkeypatch):
    """What counts pages of each image that is predicted must not decode it a second time."""
    files = [encoded(pages(7), kind) for kind in ("PNG", "MPO", "TIFF", "GIF")]
    several = encoded(pages(1, 2), "TIFF")

    def decode(*args, **options):
        raise AssertionError("decoded")

    monkeypatch.setattr(Image.Image, "load", decode)
    monkeypatch.setattr(image, "read", decode)
    assert [count_note(data) for data in files] == [None] * 4
    assert count_note(several) == "the first of 2 pages is read"
    assert count_note(b"no image") is None and count_note(files[0][:20]) is None
