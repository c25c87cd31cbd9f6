import json

import numpy as np
import pytest
import safetensors.numpy

from framework.core.errors import FormatError, WeightError
from framework.interop import read_safetensors, read_safetensors_metadata, write_safetensors
from framework.interop import source as src

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
]
DTYPES += ["float64", "complex64", src.bfloat16, src.float8_e4m3fn, src.float8_e5m2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_round_trips(tmp_path, dtype):
    array = np.array([[0, 1, 2], [3, 0, 1]]).astype(dtype)
    arrays = {"w": array, "scalar": np.array(1).astype(dtype), "empty": array[:0], "one": array[:1, :1]}
    write_safetensors(tmp_path / "x.safetensors", arrays)
    read = read_safetensors(tmp_path / "x.safetensors")
    assert set(read) == set(arrays)
    for name, value in arrays.items():
        np.testing.assert_array_equal(read[name], value, strict=True)
        assert not read[name].flags.writeable


def test_any_layout_in_memory_is_written_in_c_order(tmp_path):
    base = np.arange(24, dtype="f4").reshape(2, 3, 4)
    arrays = {
        "t": base.transpose(2, 0, 1),
        "s": base[:, ::2, 1:3],
        "r": base[::-1],
        "big": base.astype(">f4"),
    }
    write_safetensors(tmp_path / "x", arrays)
    theirs = safetensors.numpy.load_file(tmp_path / "x")
    for name, value in arrays.items():
        np.testing.assert_array_equal(theirs[name], value)
        np.testing.assert_array_equal(read_safetensors(tmp_path / "x")[name], value)


def test_metadata(tmp_path):
    write_safetensors(tmp_path / "x", {"w": np.zeros(1, "f4")}, {"format": "oar", "字": "é"})
    assert read_safetensors_metadata(tmp_path / "x") == {"format": "oar", "字": "é"}
    write_safetensors(tmp_path / "x", {})
    assert read_safetensors_metadata(tmp_path / "x") == {} and read_safetensors(tmp_path / "x") == {}


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    write_safetensors(path, {"w": np.float32([1])})

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        write_safetensors(path, {"w": np.float32([2])})
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.safetensors"]
    assert read_safetensors(path)["w"].tolist() == [1]


def test_others_may_read_what_they_may_read_of_any_file(tmp_path):
    (tmp_path / "any").touch()
    write_safetensors(tmp_path / "a.safetensors", {"x": np.zeros(2)})
    assert (tmp_path / "a.safetensors").stat().st_mode == (tmp_path / "any").stat().st_mode


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([None]), np.zeros(1, "c16"), np.zeros(1, "M8[s]")]
)
def test_what_safetensors_cannot_hold(tmp_path, array):
    with pytest.raises(
        WeightError, match=r"'w' cannot be written to a safetensors file(.|\n)*bfloat16(.|\n)*convert"
    ):
        write_safetensors(tmp_path / "x", {"w": array})
    assert list(tmp_path.iterdir()) == []


def made(header: dict, content: bytes) -> bytes:
    text = json.dumps(header).encode("utf-8")
    return len(text).to_bytes(8, "little") + text + content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            made({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(7)),
            "not a complete safetensors file",
        ),
        (
            made({"w": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}, bytes(8)),
            "not a complete",
        ),
        (made({"w": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, bytes(8)), "not a complete"),
        ((2**60).to_bytes(8, "little") + b"{}", "not a complete safetensors file"),
        (
            made({"w": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}, bytes(2)),
            "the tensor 'w' is of a type that numpy cannot hold(.|\n)*F4",
        ),
    ],
)
def test_damaged_files(tmp_path, source, content, message):
    with pytest.raises(FormatError, match=message):
        read_safetensors(source(content))


def test_damaged_metadata(tmp_path):
    (tmp_path / "x").write_bytes(b"\x05\0\0\0\0\0\0\0{")
    with pytest.raises(FormatError, match="not a complete safetensors file"):
        read_safetensors_metadata(tmp_path / "x")
