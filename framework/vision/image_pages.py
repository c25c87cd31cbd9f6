"""Image files of several pages or frames: TIFF as fax machines and scanners write it, animations, stereo photos."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from PIL import Image

from framework.core.errors import InputError
from framework.vision import image as vision_image
from framework.vision.image import Ground, ImageSource

_SUBFILE, _REDUCED, _MASK = 254, 1, 4  # TIFF 6.0: the tag, and the bits of what is no page of its own
_MP_ENTRIES, _THUMBNAIL = 0xB002, "Large Thumbnail"
_SAME = 1.0  # mean difference in grey levels: frames that are closer show the same


class ImagePages:
    """The pages of an image: one of most; several of a TIFF, an animation or a file of several photographs.

    A page is decoded when it is asked for. Reduced copies of pages, masks, thumbnails and gain maps are no pages.

    Args:
        source: As of `framework.vision.image.read`.
        ground: What transparent pages are laid on.

    Attributes:
        numbers: Of the pages, from 1, as the file counts its frames.
        notes: What the file holds besides and is not read, a sentence each.

    Raises: InputError, as `read`; damage of a later page when it is read.
    """

    def __init__(
        self, source: ImageSource, *, ground: Ground = "white", max_pixels: int = vision_image.MAX_PIXELS
    ) -> None:
        self._ground: Ground = ground
        self._max_pixels = max_pixels
        self._array: np.ndarray | None = None
        self._image: Image.Image | None = None
        self._where, self._data = "PIL image", b""
        self.numbers: tuple[int, ...] = (1,)
        self.notes: tuple[str, ...] = ()
        if isinstance(source, np.ndarray):
            self._array = vision_image.read(source, max_pixels=max_pixels, ground=ground)
            return
        if isinstance(source, Image.Image):
            opened = source
        else:
            self._data, self._where = vision_image.read_bytes(source, "image")
            opened = vision_image.open_header(self._data, self._where, max_pixels)
        if _frame_count(opened) > 1:
            self._image = opened
            self.numbers, self.notes = _pages(opened)
        if len(self.numbers) == 1:
            first = source if isinstance(source, Image.Image) else self._data
            self._array = vision_image.read(first, max_pixels=max_pixels, ground=ground, name=self._where)

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.read(number) for number in self.numbers)

    @property
    def is_animation(self) -> bool:
        """Whether the pages follow one another in time."""
        return len(self) > 1 and getattr(self._image, "format", None) in ("GIF", "WEBP", "PNG", "AVIF")

    def read(self, number: int) -> np.ndarray:
        """A page, [H, W, 3] uint8 RGB. Raises: InputError, where it is damaged or too large."""
        if self._array is not None:
            return self._array
        assert self._image is not None
        where = f"{self._where}, page {number}"
        try:
            self._image.seek(number - 1)
        except Exception as error:  # damaged tables make the decoders raise anything
            raise vision_image.damage_error(self._data or None, where, error) from error
        return vision_image.read_opened(self._image, where, self._max_pixels, self._ground)

    def changes(self) -> Iterator[tuple[int, np.ndarray]]:
        """Number and pixels of each page, but for frames of an animation that show what the one before showed.

        Raises: InputError, where one is damaged.
        """
        before: np.ndarray | None = None
        for number in self.numbers:
            pixels = self.read(number)
            if self.is_animation and _show_the_same(before, pixels):
                continue
            before = pixels  # the last that was given, so that what fades in slowly is not lost
            yield number, pixels


def _show_the_same(before: np.ndarray | None, pixels: np.ndarray) -> bool:
    if before is None or before.shape != pixels.shape:
        return False
    return bool(np.abs(pixels.astype(np.int16) - before).mean() < _SAME)


def _frame_count(opened: Image.Image) -> int:
    try:
        return int(getattr(opened, "n_frames", 1))
    except Exception:  # the table of pages is damaged: the first one may be whole
        return 1


def _pages(opened: Image.Image) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The frames that are pages, and what is to be said of the others."""
    count = _frame_count(opened)
    if opened.format == "TIFF":
        pages = [number for number in range(1, count + 1) if _is_tiff_page(opened, number)]
        others = "reduced copies or masks"
    elif opened.format == "MPO":
        pages = _mpo_pages(opened, count)
        others = "thumbnails or gain maps"
    else:
        return tuple(range(1, count + 1)), ()
    pages = pages or [1]
    left = [number for number in range(1, count + 1) if number not in pages]
    note = f"images {', '.join(map(str, left))} of the file are {others} and not read"
    return tuple(pages), ((note,) if left else ())


def _is_tiff_page(opened: Image.Image, number: int) -> bool:
    try:
        opened.seek(number - 1)
        kind = opened.tag_v2.get(_SUBFILE, 0)  # type: ignore[attr-defined]
    except Exception:  # it is said when the page is read
        return True
    return not (isinstance(kind, int) and kind & (_REDUCED | _MASK))


def _mpo_pages(opened: Image.Image, count: int) -> list[int]:
    """Photographs of the size of the first one."""
    try:
        entries = opened.mpinfo[_MP_ENTRIES]  # type: ignore[attr-defined]
    except (AttributeError, KeyError, TypeError):
        return list(range(1, count + 1))
    first, pages = opened.size, []
    for number in range(1, count + 1):
        try:
            opened.seek(number - 1)
            kind = str(entries[number - 1]["Attribute"]["MPType"])
        except (EOFError, LookupError, OSError, ValueError, SyntaxError, TypeError):
            continue
        if number == 1 or (opened.size == first and not kind.startswith(_THUMBNAIL)):
            pages.append(number)
    opened.seek(0)
    return pages


def count_note(source: ImageSource) -> str | None:
    """What to say of an image of which only the first page is read; None where there is one alone. Decodes none."""
    try:
        if isinstance(source, np.ndarray):
            return None
        if isinstance(source, Image.Image):
            opened = source
        else:
            opened = vision_image.open_header(*vision_image.read_bytes(source, "image"))
        count = len(_pages(opened)[0]) if _frame_count(opened) > 1 else 1
    except InputError:  # which the reader of the first page says better
        return None
    return None if count == 1 else f"the first of {count} pages is read"
