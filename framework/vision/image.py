"""Image files and arrays to `[H, W, 3]` uint8 RGB and back, and the pixel operations other packages need of OpenCV.

A file that is cut off or damaged is an error and never a half-grey image, and the size in the header is checked
before anything is decoded. Only the formats of `framework.vision.image_formats` are ever decoded.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, runtime_checkable

import cv2
import numpy as np
from PIL import Image

from framework.core import bounded
from framework.core.disk import is_hidden, walk_files, write_file
from framework.core.errors import InputError, OarError, ShapeError
from framework.vision.deep_samples import (
    ValueRange,
    check_value_range,
    deep_samples,
    note_narrow_range,
    stated_range,
    to_8_bits,
)
from framework.vision.image_formats import FORMAT_NAMES, find_format
from framework.vision.image_formats import SUFFIXES as SUFFIXES

ImageSource = str | os.PathLike[str] | bytes | BinaryIO | np.ndarray | Image.Image
Interpolation = Literal["nearest", "linear", "cubic", "area", "lanczos"]
Ground = Literal["white", "contrast"]
"""What transparent images are laid on: white, or of white, black and grey that on which most of their edges show."""

_LIMIT = "OAR_MAX_PIXELS"


def _pixel_limit() -> int:
    text = os.environ.get(_LIMIT, "").strip() or "200_000_000"
    if not text.replace("_", "").isdecimal():
        raise InputError(
            "the limit must be a number of pixels", where=_LIMIT, received=text, allowed="such as 400_000_000"
        )
    return int(text)


MAX_PIXELS = _pixel_limit()
"""Pixels of one image; the environment variable OAR_MAX_PIXELS sets another limit."""
_LARGE, _PIXELS_A_BYTE = 50_000_000, 10_000
"""No format packs an image that shows something so tightly; a fax page of white does, and is not so large."""
_ORIENTATION_TAG = 0x0112

# "nearest" is the pixel-centre rule, so masks agree with images; cv2.INTER_NEAREST would shift them by half a pixel.
_RESIZE_FLAGS = {
    "nearest": cv2.INTER_NEAREST_EXACT,
    "linear": cv2.INTER_LINEAR,
    "cubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
    "lanczos": cv2.INTER_LANCZOS4,
}


@runtime_checkable
class Readable(Protocol):
    """An open file, or an object that is read like one."""

    def read(self) -> bytes: ...


def read(
    source: ImageSource,
    *,
    max_pixels: int = MAX_PIXELS,
    ground: Ground = "white",
    name: str | None = None,
    orient: bool = True,
    value_range: ValueRange | None = None,
) -> np.ndarray:
    """`source` as `[H, W, 3]` uint8 RGB.

    Files: JPEG (CMYK too), PNG, BMP, TIFF, WebP, GIF, PPM, JPEG 2000, AVIF, and HEIC with the extra `heif`; of several
    pages or frames the first (`framework.vision.image_pages` has all). The EXIF orientation is applied unless `orient`
    is False, transparency is laid on `ground`; colour profiles are ignored. `name` stands in messages.
    Arrays: `[H, W]`, `[H, W, 1]`, `[H, W, 3]` RGB or `[H, W, 4]` RGBA of uint8, uint16 or bool. A contiguous uint8 RGB
    array comes back as it is, uncopied.

    Samples of 16 bits lose their low byte; where a file's values stay far below that, one line of the log says so.
    `value_range` is (black, white) of samples of more than 8 bits, such as (0, 4095) of a camera of 12 bits; with it
    samples of 32 bits and float arrays are read too, which are refused without, as they do not say their range.

    Raises:
        InputError: the source is missing, empty, damaged, of another format, or larger than `max_pixels`.
    """
    if value_range is not None:
        check_value_range(value_range, name or "value_range")
    if isinstance(source, np.ndarray):
        deep = source.dtype != np.bool_ and source.dtype.itemsize > 1
        values = to_8_bits(source, value_range) if value_range is not None and deep else source
        return _from_array(values, max_pixels, ground)
    if isinstance(source, Image.Image):
        return read_opened(source, name or "PIL image", max_pixels, ground)
    data, where = read_bytes(source, "image")
    return _decode(data, name or where, max_pixels, ground, orient, value_range)


def read_opened(
    image: Image.Image, where: str, max_pixels: int = MAX_PIXELS, ground: Ground = "white"
) -> np.ndarray:
    """The current frame of an opened image as `[H, W, 3]` uint8 RGB. Raises: InputError, as `read`."""
    _check_size(image.size, max_pixels, where)
    return _from_pil(image, where, ground=ground)


def read_size(path: str | os.PathLike[str], *, orient: bool = True) -> tuple[int, int]:
    """(height, width) of an image file as its header says, without decoding it; a turn by EXIF is taken in, unless
    `orient` is False.

    Raises:
        InputError: it is no image.
    """
    try:
        with Image.open(path) as opened:
            width, height = opened.size
            turned = orient and _orientation(opened) >= 5
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError("the image cannot be read", where=path, received=error) from error
    return (width, height) if turned else (height, width)


def read_bytes(source: str | os.PathLike[str] | bytes | BinaryIO, kind: str) -> tuple[bytes, str]:
    """The bytes of a path, a byte string or an open binary file, and a name for them in messages.

    Raises:
        InputError: there is no such file, it is a folder, it cannot be read, or it is empty. `kind` names what
            was expected ("image", "PDF") in the message.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, where = bytes(source), "<bytes>"
    elif isinstance(source, (str, os.PathLike)):
        data, where = (
            bounded.read_bytes(os.fspath(source), bounded.DATASET, f"{kind} file", InputError),
            str(source),
        )
    elif isinstance(source, Readable):
        where = str(getattr(source, "name", "<file object>"))
        data = source.read()
        if not isinstance(data, bytes):
            raise InputError(
                "the file object gives text",
                where=where,
                received=type(data).__name__,
                fix='open it in binary mode: open(path, "rb")',
            )
    else:
        raise InputError(
            f"the {kind} must be a path, bytes or an open file",
            received=type(source).__name__,
            allowed="a path, bytes, a file opened in binary mode"
            + (", an array, a PIL image" if kind == "image" else ""),
        )
    if not data:
        raise InputError(f"the {kind} is empty", where=where, received="0 bytes")
    return data, where


def check_file(path: str | os.PathLike[str], kind: str) -> Path:
    """`path` as a Path; InputError when there is no such file, or it is a folder, a device or an address."""
    return bounded.check_file(os.fspath(path), f"{kind} file", InputError)


def open_header(data: bytes, where: str, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """An image file with its pixels not yet decoded, found whole and not too large.

    Raises:
        InputError: it is of no format that is read, cut off, damaged, or larger than `max_pixels`.
        MissingExtraError: a package reads its format and is not installed.
    """
    known = find_format(data)
    if known is None:
        raise InputError(
            "the image is not of a known format",
            where=where,
            received=f"{len(data)} bytes that begin with {data[:16]!r}",
            allowed=FORMAT_NAMES,
            fix="this is a PDF: hand it to --pdf_file"
            if data[:1024].lstrip().startswith(b"%PDF-")
            else "this is an Office file or an archive: save it as PDF, or unpack it"
            if data.startswith(b"PK\x03\x04")
            else "convert the file; a name that ends in .png does not make it one",
        )
    try:
        image = known.open(io.BytesIO(data))
    except OarError:
        raise
    except Exception as error:  # damaged headers make the decoders raise anything
        raise damage_error(data, where, error) from error
    _check_size(image.size, max_pixels, where)
    if _LARGE < image.width * image.height > _PIXELS_A_BYTE * len(data):
        raise InputError(
            "the image has far more pixels than its bytes can tell",
            where=where,
            received=f"{image.width}x{image.height} pixels in {len(data):,} bytes",
            allowed=f"above {_LARGE:,} pixels at most {_PIXELS_A_BYTE:,} a byte",
            fix="open it in a viewer and save it anew at a smaller size",
        )
    if image.format in ("JPEG", "MPO") and not _jpeg_is_complete(data):
        raise damage_error(data, where, "the end of the JPEG is missing: the file is cut off")
    return image


def read_orientation(path: str | os.PathLike[str]) -> int:
    """The EXIF orientation of an image file, 1 to 8; 1 where it says none, or cannot be opened."""
    try:
        with Image.open(path) as opened:
            return _orientation(opened)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return 1


def _decode(
    data: bytes,
    where: str,
    max_pixels: int,
    ground: Ground,
    orient: bool = True,
    value_range: ValueRange | None = None,
) -> np.ndarray:
    image = open_header(data, where, max_pixels)
    try:
        values = deep_samples(image, data, with_floats=value_range is not None)
    except Exception as error:  # damaged files make the decoders raise anything
        raise damage_error(data, where, error) from error
    if values is not None:
        rgb = cv2.cvtColor(values, cv2.COLOR_GRAY2RGB) if values.ndim == 2 else values
        rgb = to_8_bits(rgb, value_range or stated_range(image, values, where))
        return _orient(rgb, _orientation(image)) if orient else rgb
    plain_jpeg = image.format == "JPEG" and image.mode in ("L", "RGB")
    opaque_png = image.mode in ("1", "L", "RGB") and "transparency" not in image.info
    plain_png = image.format == "PNG" and (opaque_png or image.mode.startswith("I")) and _png_is_whole(data)
    if plain_jpeg or plain_png:
        rgb = None
        with contextlib.suppress(cv2.error):
            rgb = cv2.imdecode(
                np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION
            )
        # OpenCV refuses some files that other viewers show; Pillow has the last word and the better message.
        if rgb is not None and rgb.shape[1::-1] == image.size:
            return _orient(rgb, _orientation(image)) if orient else rgb
    return _from_pil(image, where, data, ground, orient)


def _from_pil(
    image: Image.Image,
    where: str,
    data: bytes | None = None,
    ground: Ground = "white",
    orient: bool = True,
) -> np.ndarray:
    try:
        image.load()
        if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
            rgb = cv2.cvtColor((np.asarray(image) >> 8).astype(np.uint8), cv2.COLOR_GRAY2RGB)
        elif image.mode in ("I", "F"):
            raise InputError(
                "the image holds 32-bit samples, whose range is not known",
                where=where,
                received=f"mode {image.mode}",
                allowed="8 or 16 bits a sample, or a value range",
                fix="--value_range BLACK WHITE (value_range of the data set), or scale it to 8 bits first",
            )
        elif image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
            over = image.convert("RGBA")
            level = 255 if ground == "white" else _contrasting_level(np.asarray(over))
            under = Image.new("RGBA", over.size, (level, level, level, 255))
            rgb = np.asarray(Image.alpha_composite(under, over).convert("RGB"))
        else:
            rgb = np.asarray(image.convert("RGB"))
    except InputError:
        raise
    except Exception as error:  # as above
        raise damage_error(data, where, error) from error
    if 0 in rgb.shape:
        raise InputError("the image has no pixels", where=where, received=f"{image.width}x{image.height}")
    rgb = _orient(rgb, _orientation(image)) if orient else rgb
    return rgb if rgb.flags.writeable else rgb.copy()


_VISIBLE, _SHOWS, _RIM, _FEW = 96, 60, 7, 0.05


def _contrasting_level(rgba: np.ndarray) -> int:
    """The level of grey, 255, 0 or 128, on which most of what stands beside transparency shows; white where that does.

    White letters on a transparent ground are made for dark pages.
    """
    alpha = rgba[..., 3]
    clear = (alpha < _VISIBLE).astype(np.uint8)
    if not clear.any():
        return 255
    rim = (alpha >= _VISIBLE) & (cv2.dilate(clear, np.ones((_RIM, _RIM), np.uint8)) > 0)
    levels = cv2.cvtColor(np.ascontiguousarray(rgba[..., :3]), cv2.COLOR_RGB2GRAY)[rim].astype(np.float32)
    if not len(levels):
        return 255
    opaque = alpha[rim].astype(np.float32) / 255
    lost = {level: float((opaque * np.abs(levels - level) < _SHOWS).mean()) for level in (255, 0, 128)}
    return 255 if lost[255] < _FEW else min(lost, key=lambda level: lost[level])


def damage_error(data: bytes | None, where: str, reason: object) -> InputError:
    """The error for an image file whose pixels cannot be had."""
    return InputError(
        "the image could not be decoded",
        where=where,
        received=reason if data is None else f"{len(data)} bytes; {reason}",
        allowed=f"a complete {FORMAT_NAMES} file",
        fix="copy or download the file again, or open it in a viewer and save it anew",
    )


def _jpeg_is_complete(data: bytes) -> bool:
    """Whether the JPEG has its end marker. Decoders fill what is missing with grey and say nothing."""
    end = len(data)
    while end and data[end - 1] == 0:  # a download cut off in a preallocated file ends in zeros
        end -= 1
    if data[max(0, end - 2) : end] == b"\xff\xd9":
        return True
    # Something may follow the end marker (a phone's trailer, a second image), and an embedded thumbnail has one of
    # its own: walk the segments instead of searching.
    position = 2
    while match := _JPEG_MARKER.search(data, position):
        marker, position = data[match.end() - 1], match.end()
        if marker == 0xD9:
            return True
        if marker != 0x01 and marker != 0xD8:
            position += int.from_bytes(data[position : position + 2], "big")
    return False


# It skips stuffed bytes and restarts in scans.
_JPEG_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]", re.DOTALL)


def _png_is_whole(data: bytes) -> bool:
    """Whether the PNG's chunks lead to its end. OpenCV allocates what a chunk says it is long, up to 4 GB."""
    position = 8
    while position + 12 <= len(data):
        if data[position + 4 : position + 8] == b"IEND":
            return True
        position += 12 + int.from_bytes(data[position : position + 4], "big")
    return False


def _check_size(size_wh: tuple[int, int], max_pixels: int, where: str) -> None:
    width, height = size_wh
    if width * height > max_pixels:
        raise InputError(
            "the image has too many pixels",
            where=where,
            received=f"{width}x{height} = {width * height:,} pixels",
            allowed=f"at most {max_pixels:,}",
            fix=f"shrink or tile the image, or set {_LIMIT} (or max_pixels) higher if the source can be trusted",
        )


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:  # a damaged EXIF block is no reason to refuse the image
        return 1


def _orient(rgb: np.ndarray, orientation: int) -> np.ndarray:
    step = _ORIENT.get(orientation)
    return rgb if step is None else step(rgb)


# EXIF 2.32, tag 0x0112: what undoes each way the camera may have been held.
_ORIENT = {
    2: lambda rgb: cv2.flip(rgb, 1),
    3: lambda rgb: cv2.rotate(rgb, cv2.ROTATE_180),
    4: lambda rgb: cv2.flip(rgb, 0),
    5: cv2.transpose,
    6: lambda rgb: cv2.rotate(rgb, cv2.ROTATE_90_CLOCKWISE),
    7: lambda rgb: cv2.rotate(cv2.transpose(rgb), cv2.ROTATE_180),
    8: lambda rgb: cv2.rotate(rgb, cv2.ROTATE_90_COUNTERCLOCKWISE),
}


def _from_array(array: np.ndarray, max_pixels: int, ground: Ground) -> np.ndarray:
    allowed = "[H, W], [H, W, 1], [H, W, 2] grey and alpha, [H, W, 3] RGB or [H, W, 4] RGBA of uint8, uint16 or bool"
    received = f"{array.dtype} {list(array.shape)}"
    if array.dtype.kind == "f":
        raise InputError(
            "a float array is no image: its range is not known",
            received=received,
            allowed=allowed,
            fix="value_range=(0, 1), or convert it: (array * 255).round().astype(np.uint8), for values in 0..1",
        )
    if array.dtype not in (np.uint8, np.uint16, np.bool_):
        raise InputError("the array has a dtype that is no image's", received=received, allowed=allowed)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 2, 3, 4)):
        channels_first = array.ndim == 3 and array.shape[0] in (1, 3, 4)
        fix = "channels come last: array.transpose(1, 2, 0)" if channels_first else None
        raise InputError(
            "the array has a shape that is no image's", received=received, allowed=allowed, fix=fix
        )
    if array.size == 0:
        raise InputError("the image has no pixels", received=received, allowed=allowed)
    _check_size((array.shape[1], array.shape[0]), max_pixels, "array")
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * np.uint8(255)
    elif array.dtype == np.uint16:
        note_narrow_range(array, "an array")
        array = (array >> 8).astype(np.uint8)
    array = np.ascontiguousarray(array)
    if array.ndim == 2 or array.shape[2] == 1:
        return cv2.cvtColor(array, cv2.COLOR_GRAY2RGB)
    if array.shape[2] == 2:
        array = np.ascontiguousarray(array[..., [0, 0, 0, 1]])
    return array if array.shape[2] == 3 else _from_pil(Image.fromarray(array), "array", ground=ground)


def write(path: str | os.PathLike[str], image: np.ndarray, *, quality: int = 95) -> None:
    """Writes uint8 `[H, W, 3]` RGB or `[H, W]` grey as PNG or JPEG, by the suffix; makes the folder.

    The file appears whole or not at all. `quality` (1 to 100) counts for JPEG alone.

    Raises:
        InputError: the suffix is another one, or the format cannot hold the image.
        ShapeError: the array is no such image.
        DiskError: the disk is full, or may not be written to.
    """
    write_file(Path(path), encode(image, Path(path).suffix, quality=quality, where=path))


def encode(image: np.ndarray, suffix: str, *, quality: int = 95, where: object = "encode") -> bytes:
    """The bytes of the file that `write` writes under a name of this suffix. Raises: InputError, ShapeError, as it."""
    kind = suffix.lower()
    if kind not in (".png", ".jpg", ".jpeg"):
        raise InputError(
            "images are written as PNG or JPEG", where=where, received=repr(suffix), allowed=".png, .jpg"
        )
    if image.dtype != np.uint8 or image.size == 0 or not (image.ndim == 2 or image.shape[2:] == (3,)):
        raise ShapeError(
            "this array cannot be written as an image",
            where=where,
            received=f"{image.dtype} {list(image.shape)}",
            allowed="uint8 [H, W, 3] RGB or [H, W] grey, not empty",
        )
    try:
        options = [cv2.IMWRITE_JPEG_QUALITY, quality] if kind != ".png" else []
        done, data = cv2.imencode(kind, image if image.ndim == 2 else to_bgr(image), options)
    except cv2.error:
        done, data = False, np.empty(0, np.uint8)
    if not done:
        raise InputError(
            f"the image cannot be stored as {kind}",
            where=where,
            received=f"{image.shape[1]}x{image.shape[0]}",
            allowed="JPEG: at most 65,500 pixels a side",
            fix="write a .png, or shrink it",
        )
    return data.tobytes()


def list_images(folder: str | os.PathLike[str], *, recursive: bool = False) -> list[Path]:
    """The image files of a folder by suffix, in natural order (`page2` before `page10`); hidden files are left out.

    Raises:
        InputError: there is no such folder. An empty one gives an empty list.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("there is no such folder", where=folder, fix=f"the current folder is {Path.cwd()}")
    found = [
        path
        for path in (map(Path, walk_files(folder)) if recursive else folder.iterdir())
        if path.suffix.lower() in SUFFIXES and not is_hidden(path.name) and path.is_file()
    ]
    return sorted(found, key=lambda path: [_natural_key(part) for part in path.relative_to(folder).parts])


def _natural_key(name: str) -> tuple[list[str | int], str]:
    pieces = re.split(r"([0-9]+)", name.casefold())  # text and digits alternate, so like meets like
    return [int(piece) if index % 2 else piece for index, piece in enumerate(pieces)], name


def check_pixels(image: np.ndarray, where: str) -> None:
    """ShapeError unless `image` is a non-empty `[H, W]` or `[H, W, C]`."""
    if image.ndim not in (2, 3) or image.size == 0:
        raise ShapeError(
            "the array must have the shape of an image",
            where=where,
            received=list(image.shape),
            allowed="[H, W] or [H, W, C], not empty",
        )


def resize(
    image: np.ndarray, size_hw: tuple[int, int], interpolation: Interpolation = "linear"
) -> np.ndarray:
    """`image [H, W(, C)]` at `size_hw`, pixel centres at half-integers, without antialiasing except by "area".

    dtypes: uint8, uint16, int16, float32, float64; for "nearest" also bool and int32.

    Raises:
        ShapeError: the image is empty or not `[H, W(, C)]`, the size is not positive, or the dtype is not taken.
    """
    check_pixels(image, "resize")
    if min(size_hw) < 1:
        raise ShapeError(
            "an image cannot be resized to nothing", where="resize", received=size_hw, allowed="sides >= 1"
        )
    if size_hw[0] * size_hw[1] > 16 * MAX_PIXELS:  # beyond that OpenCV runs out of memory or of 32 bits
        raise ShapeError(
            "an image cannot be resized to so many pixels",
            where="resize",
            received=size_hw,
            allowed=f"at most {16 * MAX_PIXELS:,} pixels",
        )
    if image.shape[:2] == tuple(size_hw):
        return image.copy()
    as_bool = image.dtype == np.bool_
    source = image.view(np.uint8) if as_bool else image
    try:
        out = cv2.resize(source, (size_hw[1], size_hw[0]), interpolation=_RESIZE_FLAGS[interpolation])
    except cv2.error as error:
        raise ShapeError(
            f"{interpolation} resizing does not take this dtype", where="resize", received=image.dtype
        ) from error
    out = out.reshape(*size_hw, *image.shape[2:])
    return out.view(np.bool_) if as_bool else out


def to_bgr(image: np.ndarray) -> np.ndarray:
    """RGB to BGR, or BGR to RGB: a new array with channels 0 and 2 of `[H, W, 3]` exchanged."""
    return cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2BGR)


def to_gray(rgb: np.ndarray) -> np.ndarray:
    """RGB to grey `[H, W]`: 0.299 R + 0.587 G + 0.114 B."""
    return cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2GRAY)


def rotate90(image: np.ndarray, turns: int) -> np.ndarray:
    """`image` turned clockwise by `turns` quarter turns (negative: counter-clockwise); a new contiguous array."""
    if turns % 4 == 0:
        return np.array(image, order="C")
    if image.dtype == np.uint8 and (image.ndim == 2 or image.shape[2] == 3):  # OpenCV is 5 times faster here
        return cv2.rotate(
            image, (cv2.ROTATE_90_CLOCKWISE, cv2.ROTATE_180, cv2.ROTATE_90_COUNTERCLOCKWISE)[turns % 4 - 1]
        )
    return np.ascontiguousarray(np.rot90(image, -turns))


def pad(
    image: np.ndarray,
    left: int,
    top: int,
    right: int,
    bottom: int,
    *,
    value: int | float | Sequence[float] | None = 0,
) -> np.ndarray:
    """`image` with a border of `value` (one number, or one a channel); None repeats the edge pixels.

    Raises:
        ShapeError: a width is negative, or the result has too many pixels.
    """
    check_pixels(image, "pad")
    if min(left, top, right, bottom) < 0:
        raise ShapeError(
            "a border cannot be negative",
            where="pad",
            received=(left, top, right, bottom),
            allowed="left, top, right, bottom >= 0",
        )
    pixels = (image.shape[0] + top + bottom) * (image.shape[1] + left + right)
    if pixels > 16 * MAX_PIXELS:
        raise ShapeError(
            "an image cannot be extended to so many pixels",
            where="pad",
            received=(left, top, right, bottom),
            allowed=f"at most {16 * MAX_PIXELS:,} pixels",
        )
    widths = ((top, bottom), (left, right), *((0, 0),) * (image.ndim - 2))
    if value is None:
        return np.pad(image, widths, mode="edge")
    out = np.empty(
        (image.shape[0] + top + bottom, image.shape[1] + left + right, *image.shape[2:]), image.dtype
    )
    out[...] = np.asarray(value).astype(image.dtype)
    out[top : top + image.shape[0], left : left + image.shape[1]] = image
    return out
