"""paddle.save and paddle.load: layouts of Paddle's files, and what is refused."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import FormatError


def _trained():
    layer = paddle.nn.Linear(2, 3)
    optimizer = paddle.optimizer.Adam(paddle.optimizer.lr.NoamDecay(8, 4), parameters=layer.parameters())
    layer(paddle.ones([1, 2])).sum().backward()
    optimizer.step()
    return layer, optimizer


@pytest.mark.parametrize("shape", [[], [3], [2, 300], [129, 1]])
def test_one_tensor_in_paddles_binary_format(shape, tmp_path):
    tensor = paddle.to_tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
    paddle.save(tensor, str(tmp_path / "a"), use_binary_format=True)
    again = paddle.load(str(tmp_path / "a"))
    assert again.shape == shape
    np.testing.assert_array_equal(again.numpy(), tensor.numpy())


def test_a_state_dict_is_laid_out_as_paddles(tmp_path):
    layer, optimizer = _trained()
    paddle.save(layer.state_dict(), str(tmp_path / "new" / "a.pdparams"))
    paddle.save(optimizer.state_dict(), str(tmp_path / "a.pdopt"))
    with (tmp_path / "new" / "a.pdparams").open("rb") as file:
        raw = pickle.load(file, encoding="latin1")
    assert raw["StructuredToParameterName@@"] == {"weight": layer.weight.name, "bias": layer.bias.name}
    np.testing.assert_array_equal(raw["weight"], layer.weight.numpy())
    loaded = paddle.load(str(tmp_path / "new" / "a.pdparams"))
    assert loaded["weight"].name == layer.weight.name and list(loaded) == ["weight", "bias"]
    state = paddle.load(str(tmp_path / "a.pdopt"))
    assert state["LR_Scheduler"] == optimizer.state_dict()["LR_Scheduler"]
    assert list(state) == list(optimizer.state_dict())
    arrays = paddle.load(str(tmp_path / "new" / "a.pdparams"), return_numpy=True, keep_name_table=True)
    assert isinstance(arrays["weight"], np.ndarray) and "StructuredToParameterName@@" in arrays


def test_nested_values_keep_names_and_types(tmp_path):
    tensor = paddle.to_tensor([1.0, 2.0])
    value = OrderedDict(
        state={"w": tensor},
        epoch=3,
        rate=0.5,
        big=2**70,
        text="字",
        none=None,
        flags=[True, (1, "a")],
        array=np.arange(3),
    )
    paddle.save(value, str(tmp_path / "v"))
    with (tmp_path / "v").open("rb") as file:
        raw = pickle.load(file)
    assert raw["state"]["w"][0] == tensor.name and raw["big"] == 2**70 and raw["text"] == "字"
    loaded = paddle.load(str(tmp_path / "v"))
    assert loaded["state"]["w"].tolist() == [1.0, 2.0] and loaded["state"]["w"].name == tensor.name
    assert isinstance(loaded["array"], np.ndarray) and loaded["flags"] == [True, (1, "a")]
    assert loaded["none"] is None and loaded["epoch"] == 3 and loaded["rate"] == 0.5


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float64", "int64", "bool", "complex64"])
def test_types_and_memory(kind):
    tensor = paddle.ones([2, 0, 3] if kind == "int64" else [], "float32").astype(kind)
    buffer = io.BytesIO()
    for options in ({}, {"use_binary_format": True}):
        paddle.save(tensor, buffer, **options)
    buffer.seek(0)
    for _ in range(2):
        loaded = paddle.load(buffer)
        assert loaded.dtype == tensor.dtype and loaded.shape == tensor.shape
        np.testing.assert_array_equal(
            loaded.astype("complex64").numpy(), tensor.astype("complex64").numpy(), strict=True
        )


def test_a_layer_is_refused_and_no_file_is_left(tmp_path):
    with pytest.raises(ValueError, match="state_dict"):
        paddle.save({"net": paddle.nn.Linear(2, 2)}, str(tmp_path / "a"))
    for value in (lambda x: x, range(3)):
        with pytest.raises(TypeError, match=f"received {type(value).__name__}"):
            paddle.save({"x": value}, str(tmp_path / "a"))
    with pytest.raises(ValueError):
        paddle.save({}, str(tmp_path / "a"), protocol=5)
    with pytest.raises(ValueError, match="no option"):
        paddle.save({}, str(tmp_path / "a"), compress=True)
    assert not list(tmp_path.iterdir())


class Arguments:
    """As the arguments that PaddleNLP's Trainer saves beside its checkpoints."""

    def __init__(self):
        self.rate, self.names = 0.1, ["a", "b"]
        self.mask = paddle.to_tensor([1.0, 2.0])


def test_objects_of_other_classes_are_pickled_as_in_paddle(tmp_path):
    file, arguments = tmp_path / "args.bin", Arguments()
    paddle.save({"x": paddle.ones([1]), "args": [arguments, Arguments()]}, str(file))
    read = pickle.loads(file.read_bytes())
    assert read["x"][1].tolist() == [1]
    for loaded in read["args"]:
        assert (loaded.rate, loaded.names) == (0.1, ["a", "b"])
        assert loaded.mask[1].tolist() == [1, 2]
    assert read["args"][0].mask[0] == arguments.mask.name
    with pytest.raises(FormatError, match="Arguments"):
        paddle.load(str(file))


def test_what_is_no_data_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    (tmp_path / "evil").write_bytes(pickle.dumps({"x": Evil()}, protocol=4))
    with pytest.raises(FormatError, match=r"builtins\.print"):
        paddle.load(str(tmp_path / "evil"))
    (tmp_path / "a.pdparams").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"a\.pdparams"):
        paddle.load(str(tmp_path / "a"))


def test_programs_are_told_where_they_are_saved_and_loaded(tmp_path):
    with pytest.raises(TypeError, match=r"received Program: paddle.static.save_inference_model"):
        paddle.save({"program": paddle.static.Program()}, str(tmp_path / "net.pdmodel"))
    (tmp_path / "net.pdmodel").write_bytes(b"\x0a\x8a\x1e\x08")  # the descriptor of a program begins so
    for name in ("net.pdmodel", "net"):
        with pytest.raises(FormatError, match=r"(?s)an exported program.*load_inference_model"):
            paddle.load(str(tmp_path / name))
