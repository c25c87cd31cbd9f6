import pickle

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop.weights.pickled import NUMPY, to_plain
from framework.interop.weights.pickles import PickleReader


@pytest.fixture
def load(source):
    def load(content: bytes):
        made = source(content)
        return to_plain(made, PickleReader(made, NUMPY, fix="resave").run()[0])

    return load


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "<i2", ">i2", "<i8", "f2", "<f4", ">f4", "f8", "c8"])
def test_arrays_of_numpy(load, protocol, dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    for kind in (array, np.asfortranarray(array), array[:, :0], np.array(1, dtype)):
        read = load(pickle.dumps(kind, protocol))
        np.testing.assert_array_equal(read, kind)
        assert read.dtype.isnative and read.dtype == kind.dtype.newbyteorder("=") and not read.flags.writeable
    assert load(pickle.dumps(array[1, 2], protocol)) == array[1, 2]


def test_numpy_1_and_2_name_their_functions_differently(load):
    content = pickle.dumps(np.float32([1, 2]), 2)
    one = content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    two = one.replace(b"numpy.core.multiarray", b"numpy._core.multiarray")
    assert one != two
    assert load(one).tolist() == load(two).tolist() == [1, 2]


def test_an_array_is_a_view_of_the_file(load, source):
    made = source(pickle.dumps(np.arange(100, dtype="f4"), 4))
    array = to_plain(made, PickleReader(made, NUMPY, fix="").run()[0])
    assert np.shares_memory(array, np.frombuffer(made.data, np.uint8))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([None, 1], object), "the dtype 'O8' is not a plain number type"),
        (np.array(["a"]), "the dtype 'U1' is not a plain number type"),
        (np.zeros(1, [("a", "f4")]), "the dtype 'V4' is not a plain number type"),
        (np.datetime64("2020-01-01"), "the dtype 'M8' is not a plain number type"),
    ],
)
def test_only_numbers(load, value, message):
    with pytest.raises(FormatError, match=message):
        load(pickle.dumps(value, 2))


def test_a_shape_larger_than_the_data_is_refused_before_memory_is_taken(load):
    content = pickle.dumps(np.zeros((2, 3), "f4"), 4)
    bomb = content.replace(b"K\x02K\x03\x86", b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86")
    assert bomb != content
    with pytest.raises(FormatError, match="the shape is impossible"):
        load(bomb)
    with pytest.raises(FormatError, match=r"takes 2040 bytes, 24 are there"):
        load(content.replace(b"K\x02K\x03\x86", b"K\x02K\xff\x86"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cnumpy.core.multiarray\n_reconstruct\nN\x85R.", "something other than a plain ndarray is built"),
        (
            b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n\x85R.",
            "an array is created and never filled",
        ),
        (
            b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n\x85R(K\x01K\x02NNNtb.",
            r"the state of an array is not \(version, shape, dtype, order, bytes\)",
        ),
        (b"cnumpy.core.multiarray\nscalar\nNN\x86R.", r"a number is not given as \(dtype, bytes\)"),
        (b"cnumpy\ndtype\nN\x85R.", "the dtype 'NoneType' is not a plain number type"),
        (
            b"cnumpy\ndtype\nU\x02f4\x85R(K\x03U\x01?NNNtb.",
            "the state of a dtype is not that of a plain number type",
        ),
    ],
)
def test_hostile_use_of_the_allowed_names(load, content, message):
    with pytest.raises(FormatError, match=message):
        load(b"\x80\x02" + content)


def test_classes_that_nobody_calls_become_their_names(load):
    assert load(b"\x80\x02cnumpy\nndarray\n.") == "numpy.ndarray"
