"""Databases as the library `lmdb` writes them, whole, cut off and damaged; each is read in this very process."""

from __future__ import annotations

import gc
import random
from pathlib import Path

import pytest

from framework.core.errors import FormatError, InputError, OarError
from framework.io.lmdb_file import DATA, LmdbFile
from ocr.data.lines import TextLineLMDB

lmdb = pytest.importorskip("lmdb")


def write(folder: Path, count: int, size: int) -> dict[bytes, bytes]:
    """`count` images and labels, some of which were deleted again; returns what is there."""
    draw = random.Random(0)
    values = {b"num-samples": str(count).encode()}
    for number in range(1, count + 1):
        values[b"image-%09d" % number] = draw.randbytes(draw.randint(0, size))
        values[b"label-%09d" % number] = b"word %d" % number
    with lmdb.open(str(folder), map_size=1 << 28) as database:
        with database.begin(write=True) as view:
            for key, value in values.items():
                view.put(key, value)
        with database.begin(write=True) as view:
            for key in list(values)[3::7]:
                view.delete(key)
                del values[key]
    return values


@pytest.mark.parametrize(("count", "size"), [(0, 0), (3, 9000), (4000, 300), (300, 20_000)])
def test_reads_what_the_library_writes(tmp_path: Path, count: int, size: int) -> None:
    values = write(tmp_path, count, size)
    opened = LmdbFile(tmp_path)
    assert all(opened.get(key) == value for key, value in values.items())
    assert opened.get(b"image-999999999") is None
    assert opened.get(b"") is None
    opened.close()


def test_the_file_is_closed_with_its_last_reader(tmp_path: Path) -> None:
    write(tmp_path, 3, 10)
    opened = LmdbFile(tmp_path)
    assert opened.get(b"num-samples") is not None
    file = opened._file
    gc.disable()
    try:
        del opened
        assert file.closed
    finally:
        gc.enable()


def test_an_empty_database(tmp_path: Path) -> None:
    lmdb.open(str(tmp_path), map_size=1 << 20).close()
    assert LmdbFile(tmp_path).get(b"num-samples") is None


@pytest.mark.parametrize("left", [0, 100, 4096, 8192, 12_288, 40_000, -4096, -1])
def test_a_copy_that_was_cut_off(tmp_path: Path, left: int) -> None:
    values = write(tmp_path, 300, 20_000)
    path = tmp_path / DATA
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(FormatError, match="cut off or damaged") as error:
        opened = LmdbFile(tmp_path)
        for key in values:
            opened.get(key)
        raise opened._damaged("nothing of it was missing")  # free pages at the end
    assert DATA in str(error.value)


def test_damage_never_ends_the_process(tmp_path: Path) -> None:
    values = write(tmp_path, 200, 3000)
    path = tmp_path / DATA
    whole = path.read_bytes()
    draw, refused = random.Random(1), 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draw.choice((1, 20))):
            page = draw.randrange(len(data) // 4096) * 4096
            data[page + draw.choice((draw.randrange(64), draw.randrange(4096)))] = draw.randrange(256)
        path.write_bytes(data)
        try:
            opened = LmdbFile(tmp_path)
            for key in values:
                opened.get(key)
        except OarError as error:
            refused += 1
            assert DATA in str(error)
    assert refused > 50


def test_another_file_and_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no data\.mdb in it"):
        LmdbFile(tmp_path)
    (tmp_path / DATA).write_bytes(bytes(8192))
    with pytest.raises(FormatError, match="no LMDB database that can be read"):
        LmdbFile(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (b"num-samples", b"9" * 5000, "does not say how many"),
        (b"num-samples", b"many", "does not say how many"),
        (b"label-000000001", b"\xff\xfe", "not UTF-8"),
        (b"image-000000001", b"no pixels", "image"),
    ],
)
def test_values_that_are_none(tmp_path: Path, key: bytes, value: bytes, message: str) -> None:
    write(tmp_path, 2, 10)
    with lmdb.open(str(tmp_path), map_size=1 << 28) as database, database.begin(write=True) as view:
        view.put(b"label-000000001", b"a")
        view.put(key, value)
    lines = TextLineLMDB(tmp_path)
    with pytest.raises(OarError, match=message):
        _ = len(lines), lines[0]
