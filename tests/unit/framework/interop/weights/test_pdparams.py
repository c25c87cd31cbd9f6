import pickle
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop import TensorSpec, load_program, read_pdiparams, read_pdparams
from framework.interop.weights.pdparams import NAME_TABLE, SLICE_TABLE, read_tensor

SHAPES = {
    "conv.weight": (3, 2, 3, 3),
    "conv.bias": (3,),
    "bn.weight": (3,),
    "bn.bias": (3,),
    "bn._mean": (3,),
    "bn._variance": (3,),
    "fc.weight": (3, 2),
    "fc.bias": (2,),
}


class Call:
    """Pickles as a call of whatever it is given."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def save(path: Path, value: object, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(value, protocol))
    return path


# .pdparams and .pdopt ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["state_p2.pdparams", "state_p4.pdparams", "state_numpy2.pdparams"])
def test_state_dicts_of_paddle(data, values, name):
    state, names = read_pdparams(data / name)
    assert list(state) == list(SHAPES)
    for key, shape in SHAPES.items():
        assert state[key].dtype == np.float32 and not state[key].flags.writeable
        np.testing.assert_array_equal(state[key], values(key, shape), strict=True)
    assert names["conv.weight"] == "conv2d_0.w_0" and names["bn._mean"] == "batch_norm2d_0.w_1"
    assert set(names) == set(SHAPES)


def test_the_bytes_of_a_linear_layer(source):
    """nn.Linear(2, 3) as Paddle writes it with protocol 2 and numpy 1, put together by hand."""

    def array(shape: bytes, content: np.ndarray) -> bytes:
        raw = content.astype("<f4").tobytes().decode("latin-1").encode("utf-8")
        build = b"U\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        return (
            b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
            + shape
            + b"cnumpy\ndtype\n"
            + build
            + b"c_codecs\nencode\nX"
            + len(raw).to_bytes(4, "little")
            + raw
            + b"X\x06\x00\x00\x00latin1\x86Rtb"
        )

    weight, bias = np.arange(6, dtype="f4").reshape(2, 3) / 7, np.float32([1, -2, 3])
    content = b"\x80\x02}(X\x06\x00\x00\x00weight" + array(b"K\x02K\x03\x86", weight)
    content += b"X\x04\x00\x00\x00bias" + array(b"K\x03\x85", bias) + b"u."
    state, names = read_pdparams(source(content))
    np.testing.assert_array_equal(state["weight"], weight, strict=True)
    np.testing.assert_array_equal(state["bias"], bias, strict=True)
    assert names == {}


def test_a_nested_state_keeps_its_tensors_and_drops_their_variable_names(data, values):
    state, names = read_pdparams(data / "nested.pdparams")
    assert state["epoch"] == 3 and names == {}
    np.testing.assert_array_equal(state["model"]["fc.weight"], values("fc.weight", (3, 2)))


def test_the_eval_that_paddle_writes_is_looked_up(data, values):
    assert b"eval" in (data / "static.pdparams").read_bytes()
    state, _ = read_pdparams(data / "static.pdparams")
    assert state["epoch"] == 1
    np.testing.assert_array_equal(state["model"]["static_weight"], values("static_weight", (2, 2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("__import__('os').system('echo harm')",), "missing 1 required positional argument"),
        (("__import__('os')", {}), "eval is called on something other than 'data'; it was not run"),
        (("data", {"data": 1, "__builtins__": {}}), "it was not run"),
        (("data", {"other": 1}), "it was not run"),
        (("data.real", {"data": 1}), "it was not run"),
        (("data", None), "it was not run"),
        (("data", {"data": 1}, {}), "takes 2 positional arguments"),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_any_other_eval_is_refused(tmp_path, arguments, message, protocol):
    path = save(tmp_path / "evil.pdparams", {"w": Call(eval, *arguments)}, protocol)
    with pytest.raises(FormatError, match=message) as error:
        read_pdparams(path)
    assert "evil.pdparams, byte" in str(error.value) and "may have been made to run code" in str(error.value)


def test_tuple_is_called_on_tuples_only(tmp_path):
    with pytest.raises(FormatError, match=r"tuple\(\) is called on something that is not a tuple"):
        read_pdparams(save(tmp_path / "x", {"w": Call(tuple, [1])}))
    state, _ = read_pdparams(save(tmp_path / "x", {"w": Call(tuple, ("linear_0.w_0", np.float32([1])))}))
    assert state["w"].tolist() == [1]
    assert read_pdparams(save(tmp_path / "x", {"w": Call(tuple, (1, 2, 3))}))[0] == {"w": (1, 2, 3)}


def test_bfloat16_is_stored_as_uint16(data):
    state, _ = read_pdparams(data / "bfloat16.pdparams")
    assert state["w"].dtype.name == "bfloat16" and state["w"].astype(float).tolist() == [1, -2.5, 3]
    raw, _ = read_pdparams(data / "bfloat16.pdparams", uint16_is_bfloat16=False)
    assert raw["w"].dtype == np.uint16 and raw["w"].tolist() == [0x3F80, 0xC020, 0x4040]


def test_optimizer_state(data):
    state, _ = read_pdparams(data / "adam.pdopt")
    assert state["LR_Scheduler"] == {"last_epoch": 1, "last_lr": 0.5}
    np.testing.assert_allclose(
        state["linear_0.w_0_moment1_0"], np.full((3, 2), 0.1), rtol=1e-6
    )  # (1 - 0.9) * 1
    np.testing.assert_allclose(state["linear_0.b_0_beta2_pow_acc_0"], [0.999**2], rtol=1e-6)


def test_a_large_array_in_slices(tmp_path):
    whole = np.arange(6, dtype="f4")
    state = {
        "w@@.0": whole[:4],
        "w@@.1": whole[4:],
        "b": whole[:1],
        SLICE_TABLE: {"w": {"OriginShape": (2, 3), "slices": ["w@@.0", "w@@.1"]}},
    }
    read, _ = read_pdparams(save(tmp_path / "big.pdparams", state, 2))
    assert set(read) == {"b", "w"}
    np.testing.assert_array_equal(read["w"], whole.reshape(2, 3), strict=True)
    for damage in (
        {"slices": ["w@@.0"]},
        {"slices": ["no"]},
        {"OriginShape": None},
        {"OriginShape": (10**9, 10**9)},
    ):
        table = {SLICE_TABLE: {"w": state[SLICE_TABLE]["w"] | damage}}
        with pytest.raises(FormatError, match="the slices of a large array do not fit together"):
            read_pdparams(save(tmp_path / "big.pdparams", state | table, 2))
    with pytest.raises(FormatError, match="the slices of a large array do not fit together"):
        read_pdparams(save(tmp_path / "big.pdparams", {SLICE_TABLE: 1}, 2))


def test_other_contents(tmp_path):
    with pytest.raises(
        FormatError, match=r"this pickle is not a state dict(.|\n)*received: a list(.|\n)*a dict"
    ):
        read_pdparams(save(tmp_path / "x", [1, 2]))
    with pytest.raises(FormatError, match=f"{NAME_TABLE} is not a table of names"):
        read_pdparams(save(tmp_path / "x", {NAME_TABLE: {"w": 1}}))
    with pytest.raises(FormatError, match=f"{NAME_TABLE} is not a table of names"):
        read_pdparams(save(tmp_path / "x", {NAME_TABLE: 1}))
    path = save(tmp_path / "x", {})
    assert read_pdparams(path) == ({}, {})
    path.write_bytes(path.read_bytes() + b"\0\0")
    with pytest.raises(FormatError, match=r"the file goes on behind its pickle\n  received: 2 bytes"):
        read_pdparams(path)


# .pdiparams ----------------------------------------------------------------------------------------------------------

LINEAR = bytes.fromhex(  # nn.Linear(2, 3): bias, then weight, as Paddle 2.6.2 writes them
    "00000000 0000000000000000 00000000 04000000 08051003 0000803f00000040 00004040"
    "00000000 0000000000000000 00000000 06000000 080510021003"
    "00000000 0000803f 00000040 00004040 00008040 0000a040"
)
SPECS = {
    "linear_0.w_0": TensorSpec("linear_0.w_0", (2, 3), "float32"),
    "linear_0.b_0": TensorSpec("linear_0.b_0", (3,), "float32"),
}


def test_the_bytes_of_a_combined_stream(source):
    arrays = read_pdiparams(source(LINEAR), SPECS)
    assert arrays["linear_0.b_0"].tolist() == [1, 2, 3]
    assert arrays["linear_0.w_0"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not arrays["linear_0.w_0"].flags.writeable


def test_names_are_sorted_as_bytes(source):
    record = LINEAR[:36]
    second = record[:-4] + np.float32(9).tobytes()
    specs = {name: TensorSpec(name, (3,), "float32") for name in ("linear_2.b_0", "linear_10.b_0")}
    arrays = read_pdiparams(source(record + second), specs)
    assert arrays["linear_10.b_0"].tolist() == [1, 2, 3] and arrays["linear_2.b_0"].tolist() == [1, 2, 9]


@pytest.mark.parametrize(
    ("code", "dtype"),
    [
        *enumerate(("bool", "int16", "int32", "int64", "float16", "float32", "float64")),
        *((20, "uint8"), (21, "int8"), (22, "bfloat16"), (23, "complex64"), (24, "complex128")),
    ],
)
def test_data_types_of_the_stream(source, wire, code, dtype):
    content = bytes(16) + b"\x02\x00\x00\x00" + wire.number(1, code) + np.zeros(1, dtype).tobytes()
    array, end = read_tensor(source(content), 0)
    assert array.dtype.name == dtype and array.shape == () and end == len(content)


def test_sequence_levels_are_skipped(source):
    levels = (1).to_bytes(8, "little") + (16).to_bytes(8, "little") + bytes(16)
    array, end = read_tensor(source(bytes(4) + levels + LINEAR[12:36]), 0)
    assert array.tolist() == [1, 2, 3] and end == 36 + 24


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            LINEAR[:36],
            "ends before the program's last parameter(.|\n)*1 tensors(.|\n)*the next one is 'linear_0.w_0'",
        ),
        (LINEAR + b"\0", "goes on behind the program's last parameter(.|\n)*1 bytes behind 2 tensors"),
        (LINEAR[36:] + LINEAR[:36], "in the place of 'linear_0.b_0'(.|\n)*float32 .2, 3.(.|\n)*float32 .3."),
        (b"\x01" + LINEAR[1:], "unknown version of a tensor record(.|\n)*received: 1"),
        (LINEAR[:12] + b"\x07" + LINEAR[13:], "byte 12: unknown version of a tensor\n  received: 7"),
        (LINEAR[:4] + b"\xff" + LINEAR[5:], "too many sequence levels(.|\n)*255(.|\n)*at most 8"),
        (
            LINEAR[:4] + b"\x01" + bytes(7) + b"\xff" * 8 + LINEAR[12:],
            "the file ends inside the offsets of a sequence",
        ),
        (LINEAR[:21] + b"\x0a" + LINEAR[22:], "unknown data type of a tensor(.|\n)*received: 10"),
        (LINEAR[:16] + b"\xff\xff\xff\x7f" + LINEAR[20:], "the file ends inside the description of a tensor"),
        (
            LINEAR[:22] + b"\x10\x7f" + LINEAR[24:],
            "the file ends inside the values of a tensor(.|\n)*508 bytes",
        ),
    ],
)
def test_damaged_streams(source, content, message):
    with pytest.raises(FormatError, match=message):
        read_pdiparams(source(content), SPECS)


def test_a_shape_beyond_memory_is_refused(source, wire):
    for dims in ((2**40, 2**40), (2**62, 2**62, 2**62), (-1, -5)):
        shape = b"".join(wire.number(2, size) for size in dims)
        description = wire.number(1, 5) + shape
        content = bytes(16) + len(description).to_bytes(4, "little") + description + bytes(8)
        with pytest.raises(FormatError):
            read_tensor(source(content), 0)


def test_real_parameter_files(weights):
    for folder, tensors, elements in (
        ("ppocr_v3_det_ch", 288, 592_625),
        ("ppocr_v2_cls", 213, 133_628),
        ("ppocr_v2_rec_japan", 229, 871_712),
    ):
        program = load_program(weights / folder / "inference.pdmodel")
        assert len(program.parameters) == tensors
        assert sum(array.size for array in program.parameters.values()) == elements
        assert all(np.isfinite(array).all() for array in program.parameters.values())
