from __future__ import annotations

import io
import struct
from typing import Literal

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image

from framework.core.errors import InputError
from framework.vision.raw_images import read_bands

RNG = np.random.default_rng(0)


def plain(
    values: np.ndarray, *, order: Literal["<", ">"] = "<", separate: bool = False, sample_format: int = 1
) -> bytes:
    """An uncompressed TIFF of `values` [H, W, C] in one strip, or in one a band."""
    height, width, bands = values.shape
    values = values.astype(values.dtype.newbyteorder(order))
    planes = [values[..., band] for band in range(bands)] if separate else [values]
    strips = [np.ascontiguousarray(plane).tobytes() for plane in planes]
    bits = 8 * values.dtype.itemsize
    tags: list[tuple[int, str, list[int]]] = [
        (256, "I", [width]),
        (257, "I", [height]),
        (258, "H", [bits] * bands),
        (259, "H", [1]),
        (262, "H", [1]),
        (273, "I", [0] * len(strips)),
        (277, "H", [bands]),
        (278, "I", [height]),
        (279, "I", [len(strip) for strip in strips]),
        (284, "H", [2 if separate else 1]),
        (339, "H", [sample_format] * bands),
    ]
    after = 8 + 2 + 12 * len(tags) + 4
    sizes = [struct.calcsize(f"{len(numbers)}{kind}") for _, kind, numbers in tags]
    start = after + sum(size for size in sizes if size > 4)
    tags[5][2][:] = [start + sum(map(len, strips[:index])) for index in range(len(strips))]
    entries, extra = b"", b""
    for tag, kind, numbers in tags:
        packed = struct.pack(f"{order}{len(numbers)}{kind}", *numbers)
        if len(packed) > 4:
            packed, extra = struct.pack(order + "I", after + len(extra)), extra + packed
        entries += struct.pack(order + "HHI", tag, {"H": 3, "I": 4}[kind], len(numbers)) + packed.ljust(
            4, b"\0"
        )
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    return head + struct.pack(order + "H", len(tags)) + entries + b"\0" * 4 + extra + b"".join(strips)


def by_pillow(*pages: np.ndarray, **options: object) -> bytes:
    out = io.BytesIO()
    first, *rest = [Image.fromarray(page) for page in pages]
    first.save(out, "TIFF", save_all=True, append_images=rest, **options)  # pyright: ignore[reportArgumentType]
    return out.getvalue()


@pytest.mark.parametrize("bands", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("separate", [False, True])
def test_any_number_of_bands(bands: int, dtype: type, order: Literal["<", ">"], separate: bool) -> None:
    values = RNG.integers(0, np.iinfo(dtype).max, (6, 7, bands)).astype(dtype)
    found = read_bands(plain(values, order=order, separate=separate), "a.tif")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)


def test_numbers_with_a_sign_and_reals() -> None:
    signed = RNG.integers(-30000, 30000, (6, 7, 5)).astype(np.int16)
    np.testing.assert_array_equal(read_bands(plain(signed, sample_format=2), "a.tif"), signed)
    reals = RNG.standard_normal((6, 7, 5)).astype(np.float32)
    np.testing.assert_array_equal(read_bands(plain(reals, sample_format=3), "a.tif"), reals)


@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_pages_are_channels(compression: str) -> None:
    pages = RNG.integers(0, 65535, (6, 33, 40)).astype(np.uint16)
    found = read_bands(by_pillow(*pages, compression=compression), "a.tif")
    np.testing.assert_array_equal(found, pages.transpose(1, 2, 0))


def test_differences_are_added_up() -> None:
    pixels = RNG.integers(0, 255, (40, 30, 3)).astype(np.uint8)
    data = by_pillow(pixels, compression="tiff_lzw", tiffinfo={317: 2})
    np.testing.assert_array_equal(read_bands(data, "a.tif"), pixels)


def test_opencvs_files() -> None:
    reals = RNG.random((9, 7)).astype(np.float32)
    np.testing.assert_array_equal(
        read_bands(cv2.imencode(".tif", reals)[1].tobytes(), "a.tif")[..., 0], reals
    )


def test_what_is_not_read() -> None:
    for data, received in (
        (plain(np.zeros((6, 7, 5), np.uint32)), "32 bits"),
        (by_pillow(np.zeros((16, 16, 3), np.uint8), compression="jpeg"), "compression 7"),
    ):
        with pytest.raises(InputError, match="this kind of TIFF is not read") as caught:
            read_bands(data, "a.tif")
        assert received in str(caught.value) and "numpy.save" in str(caught.value)


def test_tiles_in_a_large_file() -> None:
    values = RNG.integers(0, 65535, (40, 50, 6)).astype(np.uint16)
    file = io.BytesIO()
    tifffile.imwrite(
        file,
        values,
        bigtiff=True,
        tile=(16, 32),
        compression="zlib",
        photometric="minisblack",
        planarconfig="contig",
    )
    np.testing.assert_array_equal(read_bands(file.getvalue(), "a.tif"), values)


@pytest.mark.parametrize("cut", [10, 60, -1])
def test_cut_off(cut: int) -> None:
    with pytest.raises(InputError, match="could not be decoded") as caught:
        read_bands(plain(np.zeros((6, 7, 5), np.uint8))[:cut], "a.tif")
    assert caught.value.where == "a.tif"


def test_a_chain_of_pages_without_end() -> None:
    data = bytearray(plain(np.zeros((2, 2, 1), np.uint8)))
    data[8 + 2 + 12 * 11 : 8 + 2 + 12 * 11 + 4] = struct.pack("<I", 8)
    with pytest.raises(InputError, match="could not be decoded"):
        read_bands(bytes(data), "a.tif")


def test_pages_of_two_sizes() -> None:
    with pytest.raises(InputError, match="cannot be the channels of one image"):
        read_bands(by_pillow(np.zeros((4, 5), np.uint8), np.zeros((5, 4), np.uint8)), "a.tif")


def test_too_large() -> None:
    with pytest.raises(InputError, match="too many values"):
        read_bands(plain(np.zeros((6, 7, 5), np.uint8)), "a.tif", 6 * 7 * 5 - 1)
