"""jit.load of folders that were damaged, or made by hand: refused with file and line, not at the first call."""

from __future__ import annotations

import hashlib
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from framework import paddle
from framework.core.errors import FormatError, OarError
from framework.export import CONFIG

X = np.ones((2, 4), np.float32)


class Net(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.linear = paddle.nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return {"y": self.linear(x), "rest": [x.sum(), 3]}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jit") / "net"
    paddle.jit.save(Net(), str(path), [paddle.static.InputSpec([-1, 4], "float32", "x0")])
    return path


def changed(saved: Path, to: Path, **changes: Any) -> Path:
    """A copy with other settings under the key `paddle`; those that are None are taken out."""
    shutil.copytree(saved, to)
    config = yaml.safe_load((to / CONFIG).read_text(encoding="utf-8"))
    config["paddle"] = {k: v for k, v in {**config["paddle"], **changes}.items() if v is not None}
    (to / CONFIG).write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return to


def test_the_folder_is_read(saved: Path) -> None:
    found = paddle.jit.load(str(saved))(paddle.to_tensor(X))
    assert found["y"].shape == [2, 3]
    assert float(found["rest"][0]) == 8.0
    assert found["rest"][1] == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": None},
        {"inputs": [None]},
        {"inputs": [["x0", "float32"]]},
        {"inputs": [["x0", "float33", [-1, 4]]]},
        {"inputs": [["y0", "float32", [-1, 4]]]},
        {"inputs": "x0"},
        {"inputs": []},
        {"inpuds": 1},
        {"parameters": None},
        {"parameters": [{"a": 1}]},
        {"parameters": ["no.weight"]},
        {"outputs": None},
        {"outputs": []},
        {"outputs": "tensors"},
        {"outputs": ["list"]},
        {"outputs": ["tensor"]},
        {"outputs": ["dict", "tensor"]},
        {"outputs": ["dict", [1, "tensor"]]},
        {"outputs": ["value", ["tensor"]]},
        {"outputs": {"list": 3}},
        {"outputs": ["tuple", None]},
    ],
)
def test_damaged_settings(saved: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match=r"infer_cfg\.yml:\d+:\d+|with_gradient\.jax"):
        paddle.jit.load(str(changed(saved, tmp_path / "net", **changes)))


def test_settings_that_are_no_mapping(saved: Path, tmp_path: Path) -> None:
    copy = changed(saved, tmp_path / "net")
    config = yaml.safe_load((copy / CONFIG).read_text(encoding="utf-8")) | {"paddle": ["x0"]}
    (copy / CONFIG).write_text(yaml.safe_dump(config), encoding="utf-8")
    with pytest.raises(FormatError, match=r"infer_cfg\.yml:\d+"):
        paddle.jit.load(str(copy))


def with_program(saved: Path, to: Path, name: str, data: bytes) -> Path:
    """A copy with another program, whose hash fits, as anyone can write it."""
    shutil.copytree(saved, to)
    config = yaml.safe_load((to / CONFIG).read_text(encoding="utf-8"))
    (to / name).write_bytes(data)
    config["sha256"][name] = hashlib.sha256(data).hexdigest()
    (to / CONFIG).write_text(yaml.safe_dump(config), encoding="utf-8")
    return to


@pytest.mark.parametrize("name", ["with_gradient.jax", "model.jaxexp"])
@pytest.mark.parametrize("damage", ["empty", "cut", "text", "zeros"])
def test_a_program_that_is_none(saved: Path, tmp_path: Path, name: str, damage: str) -> None:
    whole = (saved / name).read_bytes()
    data = {"empty": b"", "cut": whole[: len(whole) // 2], "text": b"program" * 99, "zeros": bytes(999)}[
        damage
    ]
    copy = with_program(saved, tmp_path / "net", name, data)
    with pytest.raises(FormatError, match=f"{name}(?s:.*)" if damage != "cut" else name):
        if name == "model.jaxexp":
            from framework import jit

            jit.load(copy)(X)
        else:
            paddle.jit.load(str(copy))


def test_a_damaged_program_gives_no_error_of_others(saved: Path, tmp_path: Path) -> None:
    from framework import jit

    draw, refused = random.Random(3), 0
    whole = (saved / "model.jaxexp").read_bytes()
    for number in range(40):
        data = bytearray(whole)
        for _ in range(draw.choice((1, 3))):
            data[draw.randrange(200)] = draw.randrange(256)  # of jax's part: MLIR's reader may not come back
        copy = with_program(saved, tmp_path / str(number), "model.jaxexp", bytes(data))
        try:
            jit.load(copy)(X)
        except OarError as error:
            refused += 1
            assert copy.name in str(error) or "x0" in str(error)
    assert refused > 5


def test_inputs_that_are_not_needed_are_left_out(tmp_path: Path) -> None:
    """PaddleDetection's export saves with the inputs of the pruned program."""

    class Model(paddle.nn.Layer):
        def forward(self, inputs: Any) -> Any:
            return inputs["a"] * 2

    def spec(*names: str) -> list[Any]:
        return [{name: paddle.static.InputSpec([None, 3], "float32", name) for name in names}]

    model = paddle.jit.to_static(Model(), input_spec=spec("a", "b"))
    paddle.jit.save(model, str(tmp_path / "net"), spec("a"))
    layer = paddle.jit.load(str(tmp_path / "net"))
    assert [one.name for one in layer.input_spec()] == ["a"]
    assert layer(paddle.ones([1, 3])).tolist() == [[2, 2, 2]]


class _TwelveOutputs(paddle.nn.Layer):
    def forward(self, x: Any, i: Any) -> Any:
        numbers = [x + number for number in range(7)]
        return [x.argmax(-1), i * 3_000_000_000, i, paddle.shape(x), x.astype("float64") * 0.1, *numbers]


def test_outputs_have_their_types_and_their_order_in_predictors(tmp_path: Path) -> None:
    spec = paddle.static.InputSpec
    paddle.jit.save(
        _TwelveOutputs(), str(tmp_path / "m"), [spec([None, 4], "float32"), spec([None, 2], "int64")]
    )
    predictor = paddle.inference.create_predictor(paddle.inference.Config(str(tmp_path / "m")))
    x, i = np.array([[0, 3, 1, 2]], np.float32), np.array([[2, -1]], np.int64)
    results = predictor.run([x, i])
    assert isinstance(results, list)
    largest, product, same, sizes, tenth, *numbers = results
    assert [a.dtype.name for a in (largest, product, same, sizes)] == ["int64", "int64", "int64", "int32"]
    assert [a.tolist() for a in (largest, product, same, sizes)] == [
        [1],
        [[6_000_000_000, -3_000_000_000]],
        [[2, -1]],
        [1, 4],
    ]
    assert (tenth.dtype, tenth.tolist()) == (np.float64, (x.astype(np.float64) * 0.1).tolist())
    assert [float(a[0, 0]) for a in numbers] == list(range(7))
