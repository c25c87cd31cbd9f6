"""framework.vision.image: every format to uint8 RGB, every bad input to a clear error."""

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framework.core.errors import InputError, ShapeError
from framework.vision import image

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).parents[5] / "shared"))

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
CORNERS = np.array(
    [[RED, GREEN, BLUE], [(10, 20, 30), (40, 50, 60), (70, 80, 90)]], np.uint8
)  # 2 x 3, all different


def encoded(source_image: Image.Image | np.ndarray, kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    (Image.fromarray(source_image) if isinstance(source_image, np.ndarray) else source_image).save(
        buffer, kind, **options
    )
    return buffer.getvalue()


def noise(height: int = 48, width: int = 64) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


# ---- formats ----


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("BMP", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("TIFF", {"compression": "tiff_adobe_deflate"}),
        ("WEBP", {"lossless": True}),
    ],
)
def test_lossless_formats_come_back_exactly(kind, options):
    rgb = image.read(encoded(CORNERS, kind, **options))
    assert rgb.dtype == np.uint8 and rgb.flags.c_contiguous and rgb.flags.writeable
    np.testing.assert_array_equal(rgb, CORNERS)


@pytest.mark.parametrize("options", [{}, {"progressive": True}])
def test_jpeg_channels_are_rgb(options):
    flat = np.full((16, 16, 3), (200, 30, 90), np.uint8)
    np.testing.assert_allclose(
        image.read(encoded(flat, "JPEG", quality=95, **options))[8, 8], (200, 30, 90), atol=3
    )


def test_one_pixel():
    pixel = np.array([[(1, 2, 3)]], np.uint8)
    np.testing.assert_array_equal(image.read(encoded(pixel, "PNG")), pixel)


def test_grey_and_bilevel_get_three_channels():
    grey = np.array([[0, 128, 255]], np.uint8)
    np.testing.assert_array_equal(image.read(encoded(grey, "PNG")), np.stack([grey] * 3, axis=-1))
    bilevel = Image.fromarray(np.array([[0, 255, 255, 0]], np.uint8)).convert("1")
    for kind, options in (("PNG", {}), ("TIFF", {"compression": "group4"}), ("BMP", {})):
        assert image.read(encoded(bilevel, kind, **options))[0, :, 0].tolist() == [0, 255, 255, 0], kind


def test_palette_and_first_gif_frame():
    first = Image.new("P", (2, 1))
    first.putpalette([*RED, *BLUE])
    first.putdata([0, 1])
    np.testing.assert_array_equal(image.read(encoded(first, "PNG")), [[RED, BLUE]])
    other = Image.new("RGB", (2, 1), GREEN)
    np.testing.assert_array_equal(
        image.read(encoded(first, "GIF", save_all=True, append_images=[other])), [[RED, BLUE]]
    )


def test_transparency_is_laid_on_white():
    rgba = np.array([[(255, 0, 0, 255), (255, 0, 0, 0), (0, 0, 0, 128)]], np.uint8)
    expected = [[RED, WHITE, (127, 127, 127)]]
    np.testing.assert_array_equal(image.read(encoded(rgba, "PNG")), expected)
    np.testing.assert_array_equal(image.read(rgba), expected)
    grey_alpha = Image.fromarray(rgba).convert("LA")
    assert image.read(encoded(grey_alpha, "PNG"))[0, 1].tolist() == list(WHITE)
    keyed = encoded(CORNERS, "PNG", transparency=GREEN)
    assert image.read(keyed)[0].tolist() == [list(RED), list(WHITE), list(BLUE)]


def test_cmyk_jpeg():
    cmyk = Image.new("CMYK", (16, 16), (0, 255, 255, 0))  # magenta and yellow ink: red
    np.testing.assert_allclose(image.read(encoded(cmyk, "JPEG", quality=95))[8, 8], RED, atol=4)


def test_16_bits_lose_their_low_byte():
    values = np.array([[0, 255, 256, 511, 32768, 65535]], np.uint16)
    expected = [0, 0, 1, 1, 128, 255]
    for kind in ("PNG", "TIFF"):
        assert image.read(encoded(values, kind))[0, :, 1].tolist() == expected, kind
    assert image.read(values)[0, :, 2].tolist() == expected
    assert image.read(_png16_rgb(values))[0, :, 0].tolist() == expected


def _png16_rgb(values: np.ndarray) -> bytes:
    import struct
    import zlib

    rows = b"".join(b"\0" + np.repeat(row, 3).astype(">u2").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], 16, 2, 0, 0, 0)
    out = b"\x89PNG\r\n\x1a\n"
    for name, data in ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        out += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return out


# What each orientation does to a stored image, as NumPy says it (EXIF 2.32, tag 0x0112).
ORIENTATIONS = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_exif_orientation(kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(CORNERS, kind, exif=exif, **options)
    np.testing.assert_array_equal(image.read(data), ORIENTATIONS[orientation](CORNERS))
    if kind == "PNG":
        np.testing.assert_array_equal(
            image.read(Image.open(io.BytesIO(data))), ORIENTATIONS[orientation](CORNERS)
        )


def test_exif_orientation_of_jpeg():
    exif = Image.Exif()
    exif[0x0112] = 6
    rgb = image.read(encoded(noise(16, 40), "JPEG", exif=exif))
    assert rgb.shape == (40, 16, 3)
    np.testing.assert_array_equal(rgb, np.rot90(image.read(encoded(noise(16, 40), "JPEG")), -1))


# ---- sources ----


def test_sources(tmp_path):
    path = tmp_path / "снимок 图片 é.png"
    path.write_bytes(encoded(CORNERS, "PNG"))
    with path.open("rb") as file:
        for source in (
            path,
            str(path),
            path.read_bytes(),
            bytearray(path.read_bytes()),
            file,
            Image.open(path),
        ):
            np.testing.assert_array_equal(image.read(source), CORNERS)  # pyright: ignore


def test_arrays():
    assert image.read(CORNERS) is CORNERS
    np.testing.assert_array_equal(image.read(CORNERS[:, ::-1]), CORNERS[:, ::-1])
    assert image.read(CORNERS[:, ::-1]).flags.c_contiguous
    assert image.read(CORNERS[..., 0])[0, 0].tolist() == [255, 255, 255]
    assert image.read(CORNERS[..., :1]).shape == (2, 3, 3)
    assert image.read(np.array([[True, False]]))[0].tolist() == [[255] * 3, [0] * 3]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2, 3), np.float32), "a float array is no image"),
        (np.zeros((2, 2, 3), np.int64), "a dtype that is no image's"),
        (np.zeros(4, np.uint8), "a shape that is no image's"),
        (np.zeros((1, 2, 2, 3), np.uint8), "a shape that is no image's"),
        (np.zeros((2, 2, 5), np.uint8), "a shape that is no image's"),
        (np.zeros((3, 8, 9), np.uint8), "channels come last"),
        (np.zeros((0, 5, 3), np.uint8), "no pixels"),
    ],
)
def test_array_errors(array, message):
    with pytest.raises(InputError, match=message):
        image.read(array)


def test_source_errors(tmp_path):
    empty, text = tmp_path / "empty.jpg", tmp_path / "text.png"
    empty.write_bytes(b"")
    text.write_text("not an image at all", encoding="utf-8")
    for source, message in (
        (tmp_path / "gone.jpg", "gone.jpg: there is no such image file"),
        (tmp_path, "a folder, not one image file"),
        (empty, "empty.jpg: the image is empty"),
        (text, "text.png: the image is not of a known format"),
        (b"", "<bytes>: the image is empty"),
        (b"%PDF-1.7", "known format"),
        (b"PK\x03\x04 word/document.xml", "known format(?s:.)*an Office file or an archive: save it as PDF"),
        (io.BytesIO(), "the image is empty"),
        (io.StringIO("x"), "gives text"),
        (7, "the image must be a path"),
    ):
        with pytest.raises(InputError, match=message):
            image.read(source)  # pyright: ignore[reportArgumentType]


def test_a_small_file_that_claims_a_huge_image():
    gif = b"GIF89a" + struct.pack("<HH", 17000, 17000) + b"\x80\0\0" + b"\0\0\0\xff\xff\xff"
    gif += b"," + struct.pack("<HHHH", 0, 0, 17000, 17000) + b"\0" + b"\x02\x02L\x01\0;"
    with pytest.raises(InputError, match=r"too many pixels[\s\S]*OAR_MAX_PIXELS"):
        image.read(gif)
    for size in (9000, 14000):
        small = gif.replace(struct.pack("<H", 17000), struct.pack("<H", size))
        with pytest.raises(InputError, match="far more pixels than its bytes can tell"):
            image.read(small)


def test_resizing_to_what_no_memory_holds():
    with pytest.raises(ShapeError, match="cannot be resized to so many pixels"):
        image.resize(np.zeros((4, 4, 3), np.uint8), (10**6, 10**6))


def test_the_limit_is_an_environment_variable(monkeypatch):
    monkeypatch.setenv("OAR_MAX_PIXELS", "400_000_000")
    assert image._pixel_limit() == 400_000_000
    monkeypatch.setenv("OAR_MAX_PIXELS", "many")
    with pytest.raises(InputError, match=r"OAR_MAX_PIXELS: .*[\s\S]*received: many"):
        image._pixel_limit()


def test_an_address_says_what_to_do():
    with pytest.raises(InputError, match=r"address, not a file[\s\S]*curl -LO https://example\.org/a\.png"):
        image.read("https://example.org/a.png")


def test_unreadable_file(tmp_path, monkeypatch):
    path = tmp_path / "locked.png"
    path.write_bytes(b"x")

    def refuse(self, mode):
        raise PermissionError(13, "denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=r"cannot be read[\s\S]*denied"):
        image.read(path)


# ---- damage ----


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow on cut-off TIFF headers
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("PNG", {}),
        ("BMP", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("TIFF", {"compression": "jpeg"}),
        ("WEBP", {}),
        ("GIF", {}),
    ],
)
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.97])
def test_truncated_files_are_errors(kind, options, share):
    data = encoded(noise(), kind, **options)
    with pytest.raises(InputError, match=r"could not be decoded|known format"):
        image.read(data[: int(len(data) * share)])


def test_jpeg_without_its_last_bytes():
    data = encoded(noise(), "JPEG")
    for cut in (1, 2, 10):
        with pytest.raises(InputError, match="the end of the JPEG is missing"):
            image.read(data[:-cut])
    with pytest.raises(InputError, match="the end of the JPEG is missing"):
        image.read(data[: len(data) // 2] + bytes(len(data) // 2))  # a preallocated download


def test_truncated_jpeg_with_a_whole_thumbnail():
    plain, thumbnail = encoded(noise(), "JPEG"), encoded(noise(8, 8), "JPEG")
    data = plain[:2] + b"\xff\xe2" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail + plain[2:]
    assert data.count(b"\xff\xd9") == 2
    np.testing.assert_array_equal(image.read(data + b"a trailer"), image.read(plain))
    with pytest.raises(InputError, match="the end of the JPEG is missing"):
        image.read(data[:-40])


def test_jpeg_with_something_after_its_end():
    data = encoded(noise(), "JPEG")
    np.testing.assert_array_equal(image.read(data + b"trailer" * 9), image.read(data))
    np.testing.assert_array_equal(image.read(data + data[:300]), image.read(data))


def test_damaged_png_is_an_error():
    data = bytearray(encoded(noise(), "PNG"))
    data[len(data) // 2] ^= 0x55
    with pytest.raises(InputError, match="could not be decoded"):
        image.read(bytes(data))


def test_png_chunk_of_false_length_never_reaches_opencv(monkeypatch):
    """Some releases of OpenCV allocate the 4 GB that this chunk says it has."""
    data = bytearray(encoded(CORNERS, "PNG"))
    data[33:37] = b"\xf0\0\0\0"
    monkeypatch.setattr(image.cv2, "imdecode", lambda *_: pytest.fail("OpenCV was asked"))
    np.testing.assert_array_equal(image.read(bytes(data)), CORNERS)  # Pillow finds all of its pixels
    with pytest.raises(InputError, match="could not be decoded"):
        image.read(bytes(data[:50]))


def test_damaged_header_is_an_error():
    with pytest.raises(InputError, match=r"broken\.png: the image could not be decoded"):
        file = io.BytesIO(b"\x89PNG\r\n\x1a\n" + bytes(30))
        file.name = "broken.png"
        image.read(file)


def test_pixel_limit_is_checked_before_decoding():
    data = bytearray(encoded(CORNERS, "PNG"))
    data[16:24] = (100_000).to_bytes(4, "big") * 2  # the header alone promises 10 gigapixels
    import zlib

    data[29:33] = zlib.crc32(bytes(data[12:29])).to_bytes(4, "big")
    with pytest.raises(InputError, match="100000x100000 = 10,000,000,000 pixels"):
        image.read(bytes(data))
    for source in (encoded(CORNERS, "BMP"), CORNERS, Image.fromarray(CORNERS)):
        with pytest.raises(InputError, match=r"too many pixels[\s\S]*3x2 = 6 pixels[\s\S]*at most 5"):
            image.read(source, max_pixels=5)


def test_float_images_are_refused():
    source_image = Image.fromarray(np.zeros((2, 2), np.float32))
    for source in (source_image, encoded(source_image, "TIFF")):
        with pytest.raises(InputError, match="32-bit samples"):
            image.read(source)


def test_pil_image_without_pixels():
    with pytest.raises(InputError, match="no pixels"):
        image.read(Image.new("RGB", (0, 4)))


# ---- writing and listing ----


def test_write_and_read_back(tmp_path):
    path = tmp_path / "new" / "папка" / "图.png"
    image.write(path, CORNERS)
    np.testing.assert_array_equal(image.read(path), CORNERS)
    image.write(path, CORNERS[..., 0])  # replaces; grey
    np.testing.assert_array_equal(image.read(path)[..., 1], CORNERS[..., 0])
    smooth = np.full((16, 16, 3), (200, 30, 90), np.uint8)
    image.write(tmp_path / "a.JPG", smooth)
    np.testing.assert_allclose(image.read(tmp_path / "a.JPG"), smooth, atol=3)
    image.write(tmp_path / "noise90.jpg", noise(), quality=90)
    image.write(tmp_path / "noise10.jpg", noise(), quality=10)
    assert (tmp_path / "noise10.jpg").stat().st_size < (tmp_path / "noise90.jpg").stat().st_size
    assert sorted(p.name for p in path.parent.iterdir()) == ["图.png"]


def test_write_errors(tmp_path):
    with pytest.raises(InputError, match=r"written as PNG or JPEG[\s\S]*'.gif'"):
        image.write(tmp_path / "a.gif", CORNERS)
    for wrong in (CORNERS.astype(float), np.zeros((0, 3, 3), np.uint8), np.zeros((2, 2, 4), np.uint8)):
        with pytest.raises(ShapeError, match="cannot be written as an image"):
            image.write(tmp_path / "a.png", wrong)
    with pytest.raises(InputError, match=r"cannot be stored as \.jpg"):
        image.write(tmp_path / "a.jpg", np.zeros((1, 70_000, 3), np.uint8))
    assert list(tmp_path.iterdir()) == []


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    image.write(path, CORNERS)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        image.write(path, CORNERS[::-1])
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
    np.testing.assert_array_equal(image.read(path), CORNERS)


def test_list_images(tmp_path):
    for name in (
        "page10.png",
        "page2.PNG",
        "b.jpeg",
        "notes.txt",
        ".hidden.png",
        "sub/page1.tif",
        ".git/x.png",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "folder.png").mkdir()
    assert [p.name for p in image.list_images(tmp_path)] == ["b.jpeg", "page2.PNG", "page10.png"]
    names = [p.relative_to(tmp_path).as_posix() for p in image.list_images(tmp_path, recursive=True)]
    assert names == ["b.jpeg", "page2.PNG", "page10.png", "sub/page1.tif"]
    assert image.list_images(tmp_path / "folder.png") == []
    with pytest.raises(InputError, match="no such folder"):
        image.list_images(tmp_path / "gone")


# ---- pixel operations ----


def test_resize():
    row = np.array([[0, 100]], np.uint8)
    assert image.resize(row, (1, 4)).tolist() == [
        [0, 25, 75, 100]
    ]  # centres at 1/4, 3/4, 5/4, 7/4 of a pixel
    assert image.resize(row, (1, 4), "nearest").tolist() == [[0, 0, 100, 100]]
    assert image.resize(np.array([[0, 100, 20, 60]], np.uint8), (1, 2), "area").tolist() == [[50, 40]]
    assert image.resize(np.array([[0, 1, 2, 3]], np.int32), (1, 2), "nearest").tolist() == [[1, 3]]
    mask = image.resize(np.array([[True, False]]), (2, 2), "nearest")
    assert mask.dtype == np.bool_ and mask.tolist() == [[True, False], [True, False]]
    assert image.resize(CORNERS[..., :1], (4, 4)).shape == (4, 4, 1)
    same = image.resize(CORNERS, (2, 3))
    assert same is not CORNERS and np.array_equal(same, CORNERS)
    for name in ("cubic", "lanczos"):
        assert (image.resize(np.full((3, 3), 7, np.uint8), (5, 5), name) == 7).all()


def test_resize_errors():
    with pytest.raises(ShapeError, match="resized to nothing"):
        image.resize(CORNERS, (0, 3))
    with pytest.raises(ShapeError, match="must have the shape of an image"):
        image.resize(np.zeros((0, 3)), (2, 2))
    with pytest.raises(ShapeError, match="linear resizing does not take this dtype"):
        image.resize(np.zeros((2, 2), np.int32), (4, 4))


def test_colors():
    np.testing.assert_array_equal(image.to_bgr(CORNERS), CORNERS[..., ::-1])
    np.testing.assert_array_equal(image.to_bgr(image.to_bgr(CORNERS)), CORNERS)
    assert image.to_gray(CORNERS)[0].tolist() == [76, 150, 29]  # 255 * 0.299, 0.587, 0.114


@pytest.mark.parametrize("array", [CORNERS, CORNERS[..., 0], CORNERS.astype(np.float64), CORNERS[..., :1]])
def test_rotate90(array):
    for turns in range(-4, 5):
        turned = image.rotate90(array, turns)
        np.testing.assert_array_equal(turned, np.rot90(array, -turns))
        assert turned.flags.c_contiguous and not np.shares_memory(turned, array)


def test_pad():
    one = np.array([[5]], np.uint8)
    assert image.pad(one, 1, 0, 2, 1).tolist() == [[0, 5, 0, 0], [0, 0, 0, 0]]
    assert image.pad(one, 1, 1, 0, 0, value=None).tolist() == [[5, 5], [5, 5]]
    assert image.pad(CORNERS, 0, 1, 0, 0, value=RED)[0].tolist() == [list(RED)] * 3
    with pytest.raises(ShapeError, match="a border cannot be negative"):
        image.pad(one, -1, 0, 0, 0)


def test_real_images():
    folder = SHARED / "data" / "tesseract_pages"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here (OAR_SHARED)")
    pages = [image.read(path) for path in image.list_images(folder)]
    assert len(pages) >= 6 and all(page.ndim == 3 and page.std() > 5 for page in pages)


def test_a_border_has_a_limit():
    with pytest.raises(ShapeError, match="cannot be extended to so many pixels"):
        image.pad(np.zeros((4, 4, 3), np.uint8), 0, 2**31, 0, 0)


def test_png_with_texts_that_are_too_large() -> None:
    """An image of a tool that keeps its state in it, or a hostile one: pixels and orientation stay."""
    pixels, exif = noise(), Image.Exif()
    exif[0x0112] = 3
    for name, content in (
        (b"zTXt", b"a\0\0" + zlib.compress(bytes(3 << 20))),
        (b"iCCP", b"a\0\0" + zlib.compress(bytes(3 << 20))),
        (b"iTXt", b"a\0\1\0en\0\0" + zlib.compress(bytes(3 << 20))),
        (b"iTXt", b"a\0\0\0en\0\0" + b"b" * 5000),
        (b"zTXt", b"no stream"),
    ):
        data = encoded(pixels, "PNG", exif=exif)
        chunk = len(content).to_bytes(4, "big") + name + content
        chunk += zlib.crc32(name + content).to_bytes(4, "big")
        for at in (33, len(data) - 12):  # behind the header, before the end
            np.testing.assert_array_equal(image.read(data[:at] + chunk + data[at:]), pixels[::-1, ::-1])
