import pickle

import ml_dtypes
import numpy as np
import pytest

from framework.core.errors import WeightError
from framework.interop import read_pdparams, write_pdparams
from framework.interop.weights.pdparams import NAME_TABLE

ARRAYS = {
    "fc.weight": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "big_endian": np.arange(3, dtype=">f8"),
    "scalar": np.asarray(3.5, np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "bool": np.array([True, False]),
    **{name: np.arange(4).astype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "float16")},
    **{name: np.array([1 + 2j], name) for name in ("complex64", "complex128")},
    "字": np.ones(1, np.float32),
}


def test_numpy_and_pickle_read_it_as_a_dict_of_arrays(tmp_path):
    """As paddle.load does it: `pickle.load(file, encoding="latin1")`."""
    write_pdparams(tmp_path / "a.pdparams", ARRAYS)
    with (tmp_path / "a.pdparams").open("rb") as file:
        state = pickle.load(file, encoding="latin1")
        assert file.read() == b""
    assert state.pop(NAME_TABLE) == {name: name for name in ARRAYS}
    assert list(state) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(state[name], array.astype(array.dtype.newbyteorder("=")), strict=True)


def test_our_reader_reads_it(tmp_path):
    bf16 = np.array([1.0, -2.5], ml_dtypes.bfloat16)
    write_pdparams(tmp_path / "a.pdparams", {**ARRAYS, "bf16": bf16})
    state, names = read_pdparams(tmp_path / "a.pdparams")
    assert names["bf16"] == "bf16" and state["bf16"].dtype == bf16.dtype
    for name, array in {**ARRAYS, "bf16": bf16}.items():
        np.testing.assert_array_equal(state[name], array)
    assert read_pdparams(tmp_path / "a.pdparams", uint16_is_bfloat16=False)[0]["bf16"].dtype == np.uint16


def test_no_private_module_of_numpy_2_is_named(tmp_path):
    """numpy 1, which Paddle 2.6 needs, cannot read what numpy 2 pickles."""
    write_pdparams(tmp_path / "a.pdparams", ARRAYS)
    data = (tmp_path / "a.pdparams").read_bytes()
    assert b"numpy.core.multiarray" in data and b"numpy._core" not in data


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64, ml_dtypes.float8_e4m3fn])
def test_types_that_paddle_does_not_have(dtype, tmp_path):
    with pytest.raises(WeightError, match=r"'a' cannot be written[\s\S]*bfloat16[\s\S]*float32"):
        write_pdparams(tmp_path / "a.pdparams", {"a": np.zeros(2, dtype)})
    assert not list(tmp_path.iterdir())
