"""The sizes of a graph that is converted: shared ones, tables of positions, and advice that works."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from framework.commands.convert import parser
from framework.core.errors import InputError, ShapeError
from framework.workflow.convert.graph import compare_with_graph, convert_graph
from tests.unit.framework.interop.graph.conftest import model, value

node = helper.make_node
LONG = TensorProto.INT64


def product(tmp_path: Path, first: list, second: list) -> Path:
    nodes = [
        node("Cast", ["ids"], ["f"], to=1), node("Cast", ["mask"], ["m"], to=1), node("Mul", ["f", "m"], ["y"]),
    ]  # fmt: skip
    path = tmp_path / "m.onnx"
    path.write_bytes(
        model(nodes, [value("ids", first, LONG), value("mask", second, LONG)]).SerializeToString()
    )
    return path


@pytest.mark.parametrize("second", [["n", "t"], ["other", "length"], [None, None]])
def test_inputs_share_the_sizes_that_the_graph_shares(second: list, tmp_path: Path) -> None:
    made = convert_graph(product(tmp_path, ["n", "t"], second))
    assert compare_with_graph(made) == 0
    assert made.inputs["ids"].shape == made.inputs["mask"].shape


def test_a_table_of_positions_bounds_the_length(tmp_path: Path) -> None:
    table = np.random.default_rng(0).normal(size=(1, 64, 8)).astype(np.float32)
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Slice", ["shape", "one", "two"], ["t"]),
        node("Slice", ["table", "zero", "t", "one"], ["rows"]),
        node("Add", ["x", "rows"], ["y"]),
    ]
    arrays = {"zero": np.int64([0]), "one": np.int64([1]), "two": np.int64([2]), "table": table}
    (tmp_path / "m.onnx").write_bytes(
        model(nodes, [value("x", ["n", "t", 8])], arrays=arrays).SerializeToString()
    )
    made = convert_graph(tmp_path / "m.onnx")
    assert made.limits == ("t <= 64",) and compare_with_graph(made) < 1e-6
    x = np.zeros((2, 64, 8), np.float32)
    np.testing.assert_allclose(made.engine({"x": x})["y"], np.repeat(table, 2, 0))
    with pytest.raises(ShapeError, match="does not take these shapes"):
        made.engine({"x": np.zeros((2, 65, 8), np.float32)})
    made.write(tmp_path / "out.onnx")


def test_the_advice_of_a_refusal_works(tmp_path: Path) -> None:
    nodes = [
        node("Reshape", ["x", "shape"], ["a"]),
        node("Reshape", ["z", "shape"], ["b"]),
        node("Add", ["a", "b"], ["y"]),
    ]
    (tmp_path / "m.onnx").write_bytes(
        model(
            nodes, [value("x", ["n", "t"]), value("z", ["k", 2, "s"])], arrays={"shape": np.int64([1, 12])}
        ).SerializeToString()
    )
    with pytest.raises(InputError) as caught:
        convert_graph(tmp_path / "m.onnx")
    fix = str(caught.value.fix)
    if fix.startswith("say the sizes"):
        args = parser().parse_args(["m", "o", *shlex.split(fix.partition(": ")[2])])
        sizes = dict(text.split("=") for text in args.shape)
        shapes = {name: tuple(map(int, text.split(","))) for name, text in sizes.items()}
        convert_graph(tmp_path / "m.onnx", shapes=shapes)
    else:
        assert fix.startswith("no sizes help") and "Config(" in fix


def test_a_graph_whose_sizes_are_values_is_not_sent_for_sizes(tmp_path: Path) -> None:
    nodes = [node("NonZero", ["x"], ["y"])]
    (tmp_path / "m.onnx").write_bytes(model(nodes, [value("x", ["n", "t"])]).SerializeToString())
    with pytest.raises(InputError, match=r"no sizes help \((.|\n)*NonZero(.|\n)*Config\("):
        convert_graph(tmp_path / "m.onnx")


def test_sizes_that_do_not_fit_one_another_get_sizes_that_do(tmp_path: Path) -> None:
    path = product(tmp_path, ["n", "t"], ["n", "t"])
    with pytest.raises(InputError) as caught:
        convert_graph(path, shapes={"ids": (2, 7), "mask": (2, 5)})
    assert caught.value.fix == "say the sizes of your inputs as numbers: --shape ids=1,12 --shape mask=1,12"


def test_an_input_may_be_a_number(tmp_path: Path) -> None:
    nodes = [node("Mul", ["x", "scale"], ["y"])]
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, [value("x", ["n", 3]), value("scale", [])]).SerializeToString())
    assert compare_with_graph(convert_graph(path)) == 0
