"""Files of tokens: what is written is read, damage is told, and older PaddleNLP's arrays are read too."""

import struct
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from nlp.data.token_files import MAGIC, TokenFileWriter, read_token_file, smallest_dtype, write_token_file

DOCUMENTS = [np.array([5, 6, 7]), np.array([], np.int64), np.array([300, 1])]


def test_written_documents_are_read(tmp_path: Path) -> None:
    file = write_token_file(tmp_path / "folder" / "x.bin", DOCUMENTS, "<u2")
    assert len(file) == 3 and file.tokens.dtype == np.uint16
    for index, expected in enumerate(DOCUMENTS):
        np.testing.assert_array_equal(file.document(index), expected)
    again = read_token_file(tmp_path / "folder" / "x.idx")
    np.testing.assert_array_equal(again.starts, [0, 3, 3, 5])


def test_the_bytes_are_those_of_megatron(tmp_path: Path) -> None:
    write_token_file(tmp_path / "x", DOCUMENTS, "<i4")
    expected = (
        MAGIC
        + struct.pack("<QBQQ", 1, 4, 3, 4)
        + np.array([3, 0, 2], "<i4").tobytes()
        + np.array([0, 12, 12], "<i8").tobytes()
        + np.array([0, 1, 2, 3], "<i8").tobytes()
    )
    assert (tmp_path / "x.idx").read_bytes() == expected
    assert (tmp_path / "x.bin").read_bytes() == np.array([5, 6, 7, 300, 1], "<i4").tobytes()


def test_a_document_of_several_sequences_is_one(tmp_path: Path) -> None:
    with TokenFileWriter(tmp_path / "x") as writer:
        writer.add([np.array([1, 2]), np.array([3])])
        writer.add([np.array([4])])
    np.testing.assert_array_equal(read_token_file(tmp_path / "x").starts, [0, 3, 4])


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not fit"):
        write_token_file(tmp_path / "x", [np.array([70000])], "<u2")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="cannot be written so"):
        TokenFileWriter(tmp_path / "x", "<f4")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda index, data: (b"NOTMIDX\0\0" + index[9:], data), "first bytes"),
        (lambda index, data: (index[:20], data), "first bytes"),
        (lambda index, data: (index[:17] + b"\x07" + index[18:], data), "type 7"),
        (lambda index, data: (index[:-30], data), "bytes"),
        (lambda index, data: (index, data[:-2]), "x.bin"),
        (lambda index, data: (index[:34] + struct.pack("<i", 4) + index[38:], data), "gaps"),
    ],
)
def test_damage_is_told(tmp_path: Path, damage, message: str) -> None:
    write_token_file(tmp_path / "x", DOCUMENTS)
    index, data = damage((tmp_path / "x.idx").read_bytes(), (tmp_path / "x.bin").read_bytes())
    (tmp_path / "x.idx").write_bytes(index)
    (tmp_path / "x.bin").write_bytes(data)
    with pytest.raises(FormatError, match=message):
        read_token_file(tmp_path / "x")


def test_arrays_of_older_paddlenlp(tmp_path: Path) -> None:
    np.save(tmp_path / "y_ids.npy", np.arange(7, dtype=np.uint16))
    np.savez(
        tmp_path / "y_idx.npz",
        lens=np.array([2, 3, 2], np.int32),
        sents=np.arange(4),
        docs=np.array([0, 2, 3]),
    )
    file = read_token_file(tmp_path / "y")
    np.testing.assert_array_equal(file.document(0), [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(file.document(1), [5, 6])
    np.savez(tmp_path / "y_idx.npz", lens=np.array([2, 3], np.int32), docs=np.array([0, 2]))
    with pytest.raises(FormatError, match="5"):
        read_token_file(tmp_path / "y_ids.npy")


def test_missing_files_and_sizes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no files of tokens"):
        read_token_file(tmp_path / "z")
    assert (smallest_dtype(50304), smallest_dtype(128256)) == ("<u2", "<i4")
