"""paddle.dataset: files, their sums, and the reader of digits."""

from __future__ import annotations

import gzip
import hashlib
import importlib
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import HubError

common = importlib.import_module("framework.paddle.dataset.common")


def test_the_reader_of_digits(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3 * 2, dtype=np.uint8) * 20
    with gzip.open(tmp_path / "images.gz", "wb") as file:
        file.write(np.array([2051, 2, 3, 2], ">i4").tobytes() + pixels.tobytes())
    with gzip.open(tmp_path / "labels.gz", "wb") as file:
        file.write(np.array([2049, 2], ">i4").tobytes() + bytes([7, 1]))
    reader = paddle.dataset.mnist.reader_creator(
        str(tmp_path / "images.gz"), str(tmp_path / "labels.gz"), 100
    )
    (first, label), (_, second) = reader()
    assert (label, second, first.dtype) == (7, 1, np.float32)
    np.testing.assert_allclose(first, np.arange(6) * 20 / 255 * 2 - 1, rtol=1e-6)


def test_a_file_that_is_there_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.txt").write_bytes(b"abc")
    digest = hashlib.md5(b"abc").hexdigest()
    assert common.md5file(str(tmp_path / "set" / "a.txt")) == digest
    assert common.download("https://host/a.txt", "set", digest) == str(tmp_path / "set" / "a.txt")
    other = tmp_path / "other"
    other.write_bytes(b"abcd")
    monkeypatch.setattr(common, "resolve", lambda url: other)
    with pytest.raises(HubError, match="another one"):
        common.download("https://host/b.txt", "set", digest)
    total = hashlib.md5(b"abcd").hexdigest()
    assert Path(common.download("https://host/b.txt", "set", total)).read_bytes() == b"abcd"
