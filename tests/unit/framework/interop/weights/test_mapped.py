"""Weights that are mapped, not read."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop import write_safetensors
from framework.interop.weights.mapped import MappedWeights

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.asarray([1.5, -2.0], ml_dtypes.bfloat16),
    "scalar": np.asarray(3, np.int32),
    "empty": np.zeros((0, 4), np.float16),
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git-lfs pointer(.|\n)*git lfs pull"),
        (b"<!DOCTYPE html>\n<html>", "this is a web page"),
    ],
)
def test_a_file_that_stands_for_the_weights(tmp_path: Path, text: bytes, message: str) -> None:
    """transformers#27923: a clone without git-lfs."""
    (tmp_path / "model.safetensors").write_bytes(text)
    with pytest.raises(FormatError, match=message):
        MappedWeights(tmp_path / "model.safetensors")


def test_one_file(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", ARRAYS, {"format": "pt"})
    mapped = MappedWeights(tmp_path / "model.safetensors")
    assert set(mapped) == set(ARRAYS) and mapped.metadata == {"format": "pt"}
    for name, array in ARRAYS.items():
        assert mapped[name].dtype == array.dtype
        np.testing.assert_array_equal(mapped[name], array)
    assert not mapped["a"].flags.writeable


def test_shards(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "one.safetensors", {"a": ARRAYS["a"]})
    write_safetensors(tmp_path / "two.safetensors", {"b": ARRAYS["b"]})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}), "utf-8")
    np.testing.assert_array_equal(MappedWeights(index)["b"], ARRAYS["b"])
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(FormatError, match=r"no two\.safetensors"):
        MappedWeights(index)
    write_safetensors(tmp_path / "two.safetensors", {"c": ARRAYS["b"]})
    with pytest.raises(FormatError, match="without b"):
        MappedWeights(index)


def _file(path: Path, header: object, body: bytes = b"\0" * 8) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return path


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 16]}}, "not where the header says"),
        ({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, "not where the header says"),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}}, "not where the header says"),
        ({"a": {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]}}, "does not describe"),
        ({"a": {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}}, "does not describe"),
        (
            {"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 8]}},
            "not where the header says",
        ),
        ({"a": 3}, "does not describe"),
        ([], "no JSON object"),
        (b"{" * 3000, "no JSON"),
    ],
)
def test_damaged_headers_are_told(tmp_path: Path, header: object, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        MappedWeights(_file(tmp_path / "model.safetensors", header))


@pytest.mark.parametrize("size", [1, 7, 8, 20])
def test_cut_files_are_told(tmp_path: Path, size: int) -> None:
    write_safetensors(tmp_path / "model.safetensors", ARRAYS)
    (tmp_path / "model.safetensors").write_bytes((tmp_path / "model.safetensors").read_bytes()[:size])
    with pytest.raises(FormatError):
        MappedWeights(tmp_path / "model.safetensors")
