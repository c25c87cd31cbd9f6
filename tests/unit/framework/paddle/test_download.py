"""paddle.utils.download: archives are unpacked once, whole, and never outside their folder."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import FormatError

get_path_from_url = paddle.utils.download.get_path_from_url


def pack(path: Path, files: dict[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(path, "w:gz") as archive:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"net/a.txt": b"1", "net/b/c.txt": b"2"}, "net"),
        ({"a.txt": b"1", "b/c.txt": b"2"}, "data"),
        ({"one.pdparams": b"1"}, "one.pdparams"),
    ],
)
def test_what_an_archive_holds(tmp_path: Path, kind: str, files: dict[str, bytes], expected: str) -> None:
    archive = pack(tmp_path / f"data.{kind}", files)
    path = Path(get_path_from_url(f"https://example.org/data.{kind}", str(tmp_path)))
    assert path == tmp_path / expected
    root = tmp_path if expected != "data" else path
    assert {name: (root / name).read_bytes() for name in files} == files
    archive.unlink()
    pack(archive, {name: b"other" for name in files})
    assert get_path_from_url(f"https://example.org/data.{kind}", str(tmp_path)) == str(path)  # it was there
    assert (root / next(iter(files))).read_bytes() == b"1"
    as_it_is = get_path_from_url(f"https://example.org/data.{kind}", str(tmp_path), decompress=False)
    assert as_it_is == str(archive)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({archive.name, expected})


def test_nothing_is_written_outside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    pack(root / "data.tar.gz", {"a/b": b"1", "../evil.txt": b"2"})
    with pytest.raises(FormatError, match="damaged"):
        get_path_from_url("https://example.org/data.tar.gz", str(root))
    pack(root / "data.zip", {"a/b": b"1", "../evil.txt": b"2"})
    get_path_from_url("https://example.org/data.zip", str(root))
    assert not (tmp_path / "evil.txt").exists()
    data = bytearray(pack(root / "bad.tar.gz", {"x": np.random.default_rng(0).bytes(100_000)}).read_bytes())
    data[50_000:50_060] = bytes(60)
    (root / "bad.tar.gz").write_bytes(data)
    with pytest.raises(FormatError, match="damaged"):
        get_path_from_url("https://example.org/bad.tar.gz", str(root))
    (root / "cut.zip").write_bytes(
        pack(root / "whole.zip", {"x/y": bytes(1000)}).read_bytes()[:-30] + bytes(30)
    )
    assert get_path_from_url("https://example.org/cut.zip", str(root)) == str(
        root / "cut.zip"
    )  # no archive: a file
