"""A reader of LMDB databases: the value of a key, and nothing else.

The library maps the file into memory and follows the page numbers and sizes in it, so a copy that was cut off or
damaged ends the process with SIGBUS or SIGSEGV, which nothing can catch. Here each page is read and checked.

Format: a file `data.mdb` of pages in this machine's byte order. Pages 0 and 1 describe the tree of the last two
commits, the one with the higher number counts. A branch has the first key and the number of each page below it, a leaf
has keys with values; a value that does not fit lies on pages of its own.
Source: mdb.c of LMDB 0.9, of 64-bit machines
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import weakref
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from framework.core.bounded import check_file
from framework.core.errors import FormatError, InputError

DATA = "data.mdb"
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_HEAD = 16  # bytes of a page before what it holds
_BRANCH, _LEAF, _OVERFLOW, _META = 0x01, 0x02, 0x04, 0x08
_KINDS = 0x0F
_BIG, _NESTED = 0x01, 0x06  # of a value: on pages of its own; a database, or several values of one key
_NO_ROOT = 2**64 - 1
_MAX_DEPTH = 32  # of a tree, as the library's
_PAGE_SIZES = range(512, 65537)
_KEPT_PAGES = 512


class _Tree(NamedTuple):
    commit: int
    root: int
    page_size: int


class LmdbFile:
    """The main database of an LMDB folder, opened for reading. May be used from several threads, and after a fork.

    Raises:
        InputError: the folder has no data.mdb. FormatError: it is no LMDB file of a 64-bit machine, or is cut off.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / DATA
        if not path.is_file():
            raise InputError("there is no LMDB folder", where=self.folder, received=f"no {DATA} in it")
        check_file(path, "LMDB database")
        self._file = path.open("rb", buffering=0)
        self._lock = threading.Lock()
        self._size = os.fstat(self._file.fileno()).st_size
        trees = [self._tree(0, None)]
        trees.append(self._tree(1, trees[0].page_size))
        self._root, self._page_size = max(trees)[1:]
        # Not its own method, so that the file is closed as soon as nobody has this reader.
        self._page = lru_cache(_KEPT_PAGES)(partial(LmdbFile._read_page, weakref.proxy(self)))

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None where there is none. Raises: FormatError, where the file is damaged."""
        number = self._root
        if number == _NO_ROOT:
            return None
        for _ in range(_MAX_DEPTH):
            page = self._page(number)
            kind = self._kind(page, number)
            starts = self._nodes(page, number)
            if kind == _LEAF:
                return self._value(page, number, starts, key)
            # The first key of a branch is empty: all that is below the second one is there.
            low, high = 1, len(starts)
            while low < high:
                middle = (low + high) // 2
                if self._key(page, number, starts[middle]) <= key:
                    low = middle + 1
                else:
                    high = middle
            low_half, high_half, top = struct.unpack_from("=HHH", page, starts[low - 1])
            number = low_half | high_half << 16 | top << 32
        raise self._damaged("a tree that does not end")

    def close(self) -> None:
        """Give the file back; `get` may not be called any more."""
        self._file.close()

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def _tree(self, number: int, page_size: int | None) -> _Tree:
        """The tree that a page of the first two describes; the first one says how large pages are."""
        size = _HEAD + 136
        data = self._read((page_size or 0) * number, size)
        if struct.unpack_from("=II", data, _HEAD) != (_MAGIC, _VERSION):
            raise FormatError(
                "this is no LMDB database that can be read",
                where=self.folder / DATA,
                received=f"begins with {data[_HEAD : _HEAD + 8].hex()} where its kind and version stand",
                allowed=f"version {_VERSION}, written by a 64-bit machine with {sys.byteorder}-endian numbers",
                fix="copy the folder again",
            )
        size = struct.unpack_from("=I", data, _HEAD + 24)[0]
        if size not in _PAGE_SIZES or page_size not in (None, size):
            raise self._damaged(f"pages of {size} bytes")
        (root,) = struct.unpack_from("=Q", data, _HEAD + 112)
        last, commit = struct.unpack_from("=QQ", data, _HEAD + 120)
        if number == 1 and commit == 0:  # never written to
            return _Tree(commit, _NO_ROOT, size)
        return _Tree(commit, root, size) if last < 2**48 else _Tree(-1, _NO_ROOT, size)

    def _read(self, start: int, size: int) -> bytes:
        if start + size > self._size:
            raise FormatError(
                "the LMDB database is cut off or damaged",
                where=self.folder / DATA,
                received=f"{self._size:,} bytes, and something at byte {start:,} of {size:,} bytes",
                fix="copy the folder again and compare its size with the first one",
            )
        if hasattr(os, "pread"):
            data = os.pread(self._file.fileno(), size, start)
        else:  # Windows
            with self._lock:
                self._file.seek(start)
                data = self._file.read(size)
        if len(data) != size:
            raise self._damaged(f"{len(data):,} of {size:,} bytes at byte {start:,}")
        return data

    def _read_page(self, number: int) -> bytes:
        return self._read(number * self._page_size, self._page_size)

    def _kind(self, page: bytes, number: int) -> int:
        name, _, flags = struct.unpack_from("=QHH", page)
        kind = flags & _KINDS
        if name != number or kind not in (_BRANCH, _LEAF):
            raise self._damaged(f"page {number} calls itself {name} of kind {kind}")
        return kind

    def _nodes(self, page: bytes, number: int) -> tuple[int, ...]:
        """Where the entries of a page begin."""
        (end,) = struct.unpack_from("=H", page, 12)
        count = (end - _HEAD) // 2
        if count < 1 or end > self._page_size:
            raise self._damaged(f"page {number} has {count} entries")
        starts = struct.unpack_from(f"={count}H", page, _HEAD)
        if not all(_HEAD <= start <= self._page_size - 8 for start in (min(starts), max(starts))):
            raise self._damaged(f"entries of page {number} are outside of it")
        return starts

    def _key(self, page: bytes, number: int, start: int) -> bytes:
        (size,) = struct.unpack_from("=H", page, start + 6)
        if start + 8 + size > self._page_size:
            raise self._damaged(f"a key of page {number} is longer than the page")
        return page[start + 8 : start + 8 + size]

    def _value(self, page: bytes, number: int, starts: tuple[int, ...], key: bytes) -> bytes | None:
        low, high = 0, len(starts)
        while low < high:
            middle = (low + high) // 2
            if self._key(page, number, starts[middle]) < key:
                low = middle + 1
            else:
                high = middle
        if low == len(starts) or self._key(page, number, starts[low]) != key:
            return None
        start = starts[low]
        low_half, high_half, flags = struct.unpack_from("=HHH", page, start)
        size, at = low_half | high_half << 16, start + 8 + len(key)
        if flags & _NESTED:
            raise self._damaged(f"the entry {key[:40]!r} is not one value")
        if not flags & _BIG:
            if at + size > self._page_size:
                raise self._damaged(f"the value of {key[:40]!r} is longer than its page")
            return page[at : at + size]
        if at + 8 > self._page_size:
            raise self._damaged(f"the entry {key[:40]!r} is longer than its page")
        (first,) = struct.unpack_from("=Q", page, at)
        name, _, kind = struct.unpack_from("=QHH", self._read(first * self._page_size, _HEAD))
        if name != first or kind & _KINDS != _OVERFLOW:
            raise self._damaged(f"the value of {key[:40]!r} is not where it should be")
        return self._read(first * self._page_size + _HEAD, size)

    def _damaged(self, received: str) -> FormatError:
        return FormatError(
            "the LMDB database is cut off or damaged",
            where=self.folder / DATA,
            received=received,
            fix="copy the folder again",
        )
