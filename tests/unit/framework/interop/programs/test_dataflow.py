import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop import Node, Program, TensorSpec
from framework.interop.programs.dataflow import Dataflow


def flow(nodes, parameters, form="onnx"):
    return Dataflow(Program(form, "", tuple(nodes), dict(parameters), (), (), name="made"))


def node(op, inputs, output, slots="", **attrs):
    out_slots = ("Out",) if slots else ()
    return Node(op, output, tuple(inputs), (output,), attrs, tuple(slots.split()), out_slots)


A = np.arange(12, dtype="f4").reshape(3, 4)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (node("Identity", ["a"], "y"), A),
        (node("Cast", ["a"], "y", to=10), A.astype("f2")),
        (node("Reshape", ["a", "s"], "y"), A.reshape(3, 2, 2)),
        (node("Unsqueeze", ["a", "two"], "y"), A[:, :, None]),
        (node("Unsqueeze", ["a"], "y", axes=(0,)), A[None]),
        (node("Squeeze", ["e"], "y"), A[0]),
        (node("Squeeze", ["e"], "y", axes=(0,)), A[0]),
        (node("Transpose", ["a"], "y"), A.T),
        (node("Transpose", ["a"], "y", perm=(1, 0)), A.T),
        (node("Slice", ["a", "one", "two"], "y"), A[1:2]),
        (node("Slice", ["a", "one", "two", "one"], "y"), A[:, 1:2]),
        (node("Slice", ["a", "one", "big", "one", "two"], "y"), A[:, 1::2]),
        (node("Slice", ["a"], "y", starts=(0,), ends=(-1,), axes=(0,)), A[:-1]),
        (node("Concat", ["a", "a"], "y", axis=1), np.concatenate([A, A], 1)),
    ],
)
def test_what_moves_or_copies_numbers_is_folded(made, expected):
    made_from = {"a": A, "e": A[:1], "s": np.array([0, 2, -1]), "one": np.array([1]), "two": np.array([2])}
    result = flow([made], {**made_from, "big": np.array([2**62])}).consts["y"]
    np.testing.assert_array_equal(result.array, expected, strict=True)
    assert result.names == (("e",) if "e" in made.inputs else ("a",)) and result.trained


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (node("reshape2", ["a"], "y", "X", shape=(2, -1)), A.reshape(2, 6)),
        (node("unsqueeze2", ["a"], "y", "X", axes=(0,)), A[None]),
        (node("transpose2", ["a"], "y", "X", axis=(1, 0)), A.T),
        (node("cast", ["a"], "y", "X", out_dtype=4), A.astype("f2")),
        (node("assign", ["a"], "y", "X"), A),
    ],
)
def test_folding_in_a_program_desc(made, expected):
    np.testing.assert_array_equal(flow([made], {"a": A}, "pdmodel").consts["y"].array, expected, strict=True)


def test_folding_in_pir():
    nodes = [node("pd_op.full_int_array", [], "s", value=(2, -1)), node("pd_op.reshape", ["a", "s"], "y")]
    np.testing.assert_array_equal(flow(nodes, {"a": A}, "pir").consts["y"].array, A.reshape(2, 6))


def test_what_computes_is_not_folded():
    assert "y" not in flow([node("Mul", ["a", "a"], "y")], {"a": A}).consts


@pytest.mark.parametrize(
    "made",
    [
        node("Reshape", ["a", "s"], "y"),
        node("Reshape", ["a"], "y"),
        node("Transpose", ["a"], "y", perm=(0, 7)),
        node("Concat", ["a"], "y", axis=9),
        node("Cast", ["a"], "y", to=999),
        node("Cast", ["a"], "y"),
        node("Unsqueeze", ["a"], "y", axes=(99,)),
        node("Slice", ["a", "s", "one"], "y"),
        node("Slice", ["a", "one", "one", "zero", "minus"], "y"),
    ],
)
def test_constants_that_do_not_fit(made):
    parameters = {
        "a": A,
        "s": np.array([5, 5]),
        "one": np.array([1]),
        "zero": np.array([0]),
        "minus": np.array([-1]),
    }
    with pytest.raises(
        FormatError, match=r"made: the operation 'y' .\w+. does not fit its weights(.|\n)*export the m"
    ):
        flow([made], parameters)


def test_a_program_that_doubles_its_constants_is_refused():
    nodes = [node("Concat", [f"v{i}", f"v{i}"], f"v{i + 1}", axis=0) for i in range(60)]
    with pytest.raises(FormatError, match="the constants of the program multiply far beyond its parameters"):
        flow(nodes, {"v0": A})
    with pytest.raises(FormatError, match="multiply far beyond"):  # and that in time linear in the inputs
        flow([node("Concat", ["a"] * 200_000, "y", axis=0)], {"a": A})


def test_views_cost_nothing():
    nodes = [node("Reshape", ["a", "s"], f"y{i}") for i in range(1000)]
    big = np.zeros(2_000_000, "f4")
    assert len(flow(nodes, {"a": big, "s": np.array([2, -1])}).consts) == 1002


def test_parameters_without_values():
    with pytest.raises(FormatError, match=r"read without its parameters(.|\n)*only the shape of 'w'"):
        flow([], {"w": TensorSpec("w", (1,), "float32")})
