import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop.source import bfloat16, read_source, view_array


def test_an_array_is_a_read_only_view(source):
    made = source(b"\x00\x00\x80\x3f\x00\x00\x00\x40")
    array = made.array(0, made.data, np.dtype("f4"), (2, 1), "a tensor")
    assert array.tolist() == [[1.0], [2.0]]
    assert np.shares_memory(array, np.frombuffer(made.data, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 3


def test_scalar_empty_and_bfloat16():
    assert view_array(memoryview(b"\x05"), np.dtype("u1"), ()).item() == 5
    assert view_array(memoryview(b""), np.dtype("f4"), (0, 7)).shape == (0, 7)
    assert view_array(memoryview(b"\x80\x3f"), bfloat16, (1,)).tolist() == [1.0]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3,), r"the shape \[3\] of float32 takes 12 bytes, 8 are there"),
        ((2**40, 2**40), "the shape is impossible: 2 dimensions"),
        ((0, 2**62), "the shape is impossible"),
        ((-1,), "the shape is impossible"),
        ((1,) * 33, "the shape is impossible: 33 dimensions"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(source, shape, message):
    made = source(bytes(8))
    with pytest.raises(FormatError, match=message) as error:
        made.array(0, made.data, np.dtype("f4"), shape, "the tensor 'w'")
    assert "made.bin, byte 0: the tensor 'w': " in str(error.value)


@pytest.mark.parametrize(
    ("start", "size", "allowed"), [(4, 5, "5 bytes"), (0, -1, "not negative"), (9, 0, "0 bytes")]
)
def test_a_view_stays_inside_the_file(source, start, size, allowed):
    with pytest.raises(FormatError, match=f"the file ends inside a header(.|\n)*{allowed}"):
        source(bytes(8)).view(start, size, "a header")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FormatError, match=r"there is no such file(.|\n)*check the path"):
        read_source(tmp_path / "no.onnx")
    with pytest.raises(FormatError, match=r"this is a folder(.|\n)*name the file inside it"):
        read_source(tmp_path)
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(FormatError, match="the file is empty"):
        read_source(tmp_path / "empty.onnx")
