"""The numbers that PDFium has for each character of a page's text, read in few steps of Python.

A page has thousands of characters and PDFium answers about one at a time. What costs is not its answer but what ctypes
makes of the arguments, so they are made once for BLOCK characters and `map` calls PDFium with them. The functions keep
Python's lock: none takes longer than to give it up and get it back.
"""

from __future__ import annotations

import ctypes
from collections import deque
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from framework.workflow.files.pdf_handles import Handle

if TYPE_CHECKING:
    from _ctypes import CFuncPtr
    from _ctypes import _CArgObject as Argument

BLOCK = 1024


class CharValues(NamedTuple):
    """What PDFium says of N characters: UTF-16 `codes`, whether the font gives no such code (`unmapped`), addresses of
    their text objects (None where there is none), and in points of the page `ink` [N, 4] (left, bottom, right, top),
    `loose` [N, 4] (left, top, right, bottom) and `origins` [N, 2]; `has_ink` [N] tells whether `ink` is known.
    """

    codes: list[int]
    unmapped: list[int]
    objects: list[int | None]
    ink: NDArray[np.float64]
    loose: NDArray[np.float32]
    origins: NDArray[np.float64]
    has_ink: NDArray[np.bool_]


class _Block:
    """Memory for the boxes of BLOCK characters, with the arguments that say where each of them goes."""

    def __init__(self) -> None:
        self.ink, self.loose = np.zeros((BLOCK, 4)), np.zeros((BLOCK, 4), np.float32)
        self.origins = np.zeros((BLOCK, 2))

        def arguments(memory: np.ndarray, offset: int) -> list[Argument]:
            first = ctypes.c_char.from_buffer(memory.data)
            return [ctypes.byref(first, memory.strides[0] * number + offset) for number in range(BLOCK)]

        # PDFium gives left, right, bottom and top.
        self.ink_at = [arguments(self.ink, offset) for offset in (0, 16, 8, 24)]
        self.loose_at = [arguments(self.loose, 0)]
        self.origins_at = [arguments(self.origins, offset) for offset in (0, 8)]


_block = cache(_Block)


@cache
def _functions() -> tuple[CFuncPtr, ...]:
    import pypdfium2.raw as raw

    def plain(function: CFuncPtr, result: type) -> CFuncPtr:
        # Without types of its arguments: these are made already, and a character's number is a C int.
        return ctypes.PYFUNCTYPE(result)(ctypes.cast(function, ctypes.c_void_p).value or 0)

    return (
        plain(raw.FPDFText_GetUnicode, ctypes.c_uint),
        plain(raw.FPDFText_HasUnicodeMapError, ctypes.c_int),
        plain(raw.FPDFText_GetTextObject, ctypes.c_void_p),
        plain(raw.FPDFText_GetCharBox, ctypes.c_int),
        plain(raw.FPDFText_GetLooseCharBox, ctypes.c_int),
        plain(raw.FPDFText_GetCharOrigin, ctypes.c_int),
        plain(raw.FPDFText_IsGenerated, ctypes.c_int),
    )


def read_char_values(handle: Handle, count: int) -> CharValues:
    """The values of the first `count` characters of an open text page. The caller holds PDFium's lock."""
    get_code, is_unmapped, get_object, get_ink, get_loose, get_origin, _ = _functions()
    page, block = ctypes.byref(handle.contents), _block()
    ink, loose = np.zeros((count, 4)), np.zeros((count, 4), np.float32)
    origins, has_ink = np.zeros((count, 2)), np.zeros(count, bool)
    for start in range(0, count, BLOCK):
        end = min(start + BLOCK, count)
        numbers, size = range(start, end), end - start
        for array in (block.ink, block.loose, block.origins):
            array[:size] = 0  # PDFium leaves what it does not know
        has_ink[start:end] = list(map(get_ink, repeat(page), numbers, *block.ink_at))
        deque(map(get_loose, repeat(page), numbers, *block.loose_at), 0)
        deque(map(get_origin, repeat(page), numbers, *block.origins_at), 0)
        ink[start:end], loose[start:end] = block.ink[:size], block.loose[:size]
        origins[start:end] = block.origins[:size]
    every = range(count)
    return CharValues(
        list(map(get_code, repeat(page), every)),
        list(map(is_unmapped, repeat(page), every)),
        list(map(get_object, repeat(page), every)),
        ink,
        loose,
        origins,
        has_ink,
    )


def which_generated(handle: Handle, numbers: list[int]) -> list[bool]:
    """Which of some characters PDFium has put in itself."""
    page = ctypes.byref(handle.contents)
    return [answer == 1 for answer in map(_functions()[-1], repeat(page), numbers)]
