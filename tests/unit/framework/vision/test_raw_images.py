from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from framework.core.errors import InputError
from framework.vision.raw_images import read_channels, read_labels

VALUES = np.array([[0, 1, 2], [3, 255, 1]], np.uint8)


def png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def four_bits(rows: list[bytes]) -> bytes:
    """A grey PNG of 4 bits a pixel, two pixels a row."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 2, len(rows), 4, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_grey_and_palette_indices() -> None:
    indexed = Image.fromarray(VALUES, "L").convert("P")
    indexed.putdata(VALUES.ravel().tolist())
    indexed.putpalette([200, 10, 30] * 256)
    for data in (png(Image.fromarray(VALUES)), png(indexed), npy(VALUES)):
        found = read_labels(data)
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, VALUES)


def test_other_depths() -> None:
    np.testing.assert_array_equal(read_labels(png(Image.fromarray(VALUES == 1))), VALUES == 1)
    np.testing.assert_array_equal(read_labels(four_bits([b"\x01", b"\xf3"])), [[0, 1], [15, 3]])
    wide = VALUES.astype(np.uint16) * 257
    found = read_labels(png(Image.fromarray(wide)))
    np.testing.assert_array_equal(found, wide)
    signed = np.array([[-1, 2**40, 7]])
    np.testing.assert_array_equal(read_labels(npy(signed)), [[-1, 2**31 - 1, 7]])


def test_opacity_is_not_looked_at() -> None:
    gray = Image.merge("LA", (Image.fromarray(VALUES), Image.fromarray(255 - VALUES)))
    np.testing.assert_array_equal(read_labels(png(gray)), VALUES)
    colors = np.zeros((2, 3, 4), np.uint8)
    colors[..., 0], colors[..., 3] = VALUES, 9
    np.testing.assert_array_equal(read_labels(png(Image.fromarray(colors)))[..., 0], VALUES)


def test_no_mask(tmp_path: Path) -> None:
    for array in (np.zeros((2, 2), np.float32), np.zeros((1, 2, 2), int), np.zeros((0, 3), int)):
        with pytest.raises(InputError, match="a mask must be whole numbers"):
            read_labels(npy(array))
    (tmp_path / "a.png").write_bytes(png(Image.effect_noise((300, 300), 50))[:9000])
    with pytest.raises(InputError, match="could not be decoded") as caught:
        read_labels(tmp_path / "a.png")
    assert "a.png" in str(caught.value)


@pytest.mark.parametrize(
    ("channels", "dtype"),
    [
        (1, np.uint8),
        (2, np.uint8),
        (3, np.uint8),
        (4, np.uint8),
        (1, np.uint16),
        (3, np.uint16),
        (4, np.uint16),
    ],
)
def test_channels_of_png(channels: int, dtype: type) -> None:
    values = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (5, 6, channels)).astype(dtype)
    if channels == 2:
        data = png(Image.merge("LA", [Image.fromarray(values[..., one]) for one in range(2)]))
    else:
        order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[channels]
        data = cv2.imencode(".png", np.ascontiguousarray(values[..., order]))[1].tobytes()
    found = read_channels(data)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)


def test_arrays() -> None:
    for dtype, kept in (
        (np.uint16, np.uint16),
        (np.int16, np.float32),
        (np.float64, np.float32),
        (bool, np.uint8),
    ):
        found = read_channels(npy(np.ones((4, 5, 7), dtype)))
        assert found.dtype == kept and found.shape == (4, 5, 7)
    assert read_channels(npy(np.ones((4, 5)))).shape == (4, 5, 1)


def test_a_photo_is_rgb_and_a_tiff_has_its_bands(tmp_path: Path) -> None:
    pixels = np.full((8, 8, 3), (200, 30, 90), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.jpg", quality=100)
    assert np.abs(read_channels(tmp_path / "a.jpg").astype(int) - pixels).max() < 4
    Image.fromarray(pixels).save(tmp_path / "a.tif")
    np.testing.assert_array_equal(read_channels(tmp_path / "a.tif"), pixels)


def test_no_array() -> None:
    objects = io.BytesIO()
    np.save(objects, np.array([{}]), allow_pickle=True)
    for data in (objects.getvalue(), npy(np.ones((40, 50)))[:-9], b"\x93NUMPY"):
        with pytest.raises(InputError, match="the array could not be read"):
            read_channels(data)
    with pytest.raises(InputError, match="an image must be numbers"):
        read_channels(npy(np.ones((2, 2, 2, 2))))
    with pytest.raises(InputError, match="an image must be numbers"):
        read_channels(npy(np.array([["a"]])))


def test_a_damaged_16_bit_png() -> None:
    data = cv2.imencode(".png", np.random.default_rng(0).integers(0, 65535, (50, 60)).astype(np.uint16))[
        1
    ].tobytes()
    with pytest.raises(InputError, match="could not be decoded"):
        read_channels(data[:1000])


def test_an_array_that_claims_more_than_its_file_holds():
    data = io.BytesIO()
    np.save(data, np.zeros((2, 3), np.uint8))
    huge = data.getvalue().replace(b"(2, 3), ", b"(9999999999, 9999), ".ljust(8))
    for damaged in (
        huge,
        data.getvalue()[:-1],
        data.getvalue()[:40],
        data.getvalue().replace(b"|u1", b"|O8"),
    ):
        with pytest.raises(InputError, match=r"<bytes>: the array could not be read"):
            read_labels(damaged)
