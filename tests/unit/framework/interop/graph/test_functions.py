"""The model's own functions (FunctionProto): calls become the functions' nodes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, TensorProto, helper, numpy_helper

from framework import jit, nn
from framework.core.errors import FormatError
from framework.interop.programs.onnx import load
from framework.interop.source import Source

from .conftest import model

node = helper.make_node
SETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def reference(name: str, attribute: str, kind: int) -> AttributeProto:
    return AttributeProto(name=name, ref_attr_name=attribute, type=kind)


def function(
    name: str, inputs: list[str], outputs: list[str], nodes: list, attributes=(), overload="", **defaults
) -> FunctionProto:
    made = helper.make_function(
        "own", name, inputs, outputs, nodes, SETS, attributes,
        [helper.make_attribute(key, value) for key, value in defaults.items()],
    )  # fmt: skip
    made.overload = overload
    return made


def referring(op: str, inputs: list[str], outputs: list[str], *attributes: AttributeProto, **fixed):
    made = node(op, inputs, outputs, **fixed)
    made.attribute.extend(attributes)
    return made


def scaled() -> FunctionProto:
    """y = x * factor + LeakyRelu(x, alpha); `factor` is demanded, `alpha` has a default."""
    nodes = [
        referring("Constant", [], ["f"], reference("value_float", "factor", AttributeProto.FLOAT)),
        node("Mul", ["x", "f"], ["t"]),
        referring("LeakyRelu", ["x"], ["u"], reference("alpha", "alpha", AttributeProto.FLOAT)),
        node("Add", ["t", "u"], ["y"]),
    ]
    return function("Scaled", ["x"], ["y"], nodes, ["factor"], alpha=0.5)


def twice() -> FunctionProto:
    """Calls another function with its own attribute; hands an input on, and returns a constant."""
    nodes = [
        referring("Scaled", ["a"], ["t"], reference("factor", "gain", AttributeProto.FLOAT), domain="own"),
        node("Scaled", ["t"], ["y"], factor=2.0, alpha=0.0, domain="own"),
        node("Constant", [], ["c"], value_floats=[1.0, 2.0]),
    ]
    return function("Twice", ["a"], ["y", "a", "c"], nodes, ["gain"])


def open_model(proto, operators=None):
    return load(Source("graph.onnx", memoryview(proto.SerializeToString())), operators)


def with_functions(nodes, functions, **options):
    proto = model(nodes, domains={"own": 1}, **options)
    proto.functions.extend(functions)
    return proto


def assert_outputs(proto, **expected: np.ndarray) -> None:
    layer = open_model(proto)
    assert [spec.name for spec in layer.outputs] == list(expected)
    for run in (layer, jit.to_static(layer)):
        got = run(X)
        got = got if isinstance(got, tuple) else (got,)
        for one, other in zip(got, expected.values(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


X = np.float32([[1, -2], [-3, 4]])


def scale(x: np.ndarray, factor: float, alpha: float = 0.5) -> np.ndarray:
    return x * factor + np.where(x > 0, x, alpha * x)


def test_attributes_by_reference_and_their_defaults():
    nodes = [
        node("Scaled", ["x"], ["t"], factor=3.0, domain="own"),
        node("Scaled", ["t"], ["y"], factor=0.25, alpha=0.125, domain="own"),
    ]
    assert_outputs(with_functions(nodes, [scaled()]), y=scale(scale(X, 3), 0.25, 0.125))


def test_functions_that_call_functions_and_hand_values_on():
    """`t` is a name of the graph and of both functions."""
    nodes = [node("Neg", ["x"], ["t"]), node("Twice", ["t"], ["y", "same", "c"], gain=4.0, domain="own")]
    proto = with_functions(nodes, [twice(), scaled()], outputs=["y", "same", "c"])
    assert_outputs(proto, y=scale(scale(-X, 4), 2, 0), same=-X, c=np.float32([1, 2]))


def test_overloads():
    double = function("Go", ["x"], ["y"], [node("Add", ["x", "x"], ["y"])], overload="double")
    square = function("Go", ["x"], ["y"], [node("Mul", ["x", "x"], ["y"])], overload="square")
    calls = [node("Go", ["x"], ["t"], domain="own"), node("Go", ["t"], ["y"], domain="own")]
    for call, name in zip(calls, ("double", "square")):
        call.overload = name
    layer = open_model(with_functions(calls, [double, square]))
    np.testing.assert_allclose(layer(X), (2 * X) ** 2)
    calls[0].overload = "triple"
    with pytest.raises(FormatError, match=r"operator that is not known(.|\n)*Go at node 'Go#0' \(own 1\)"):
        open_model(with_functions(calls, [double, square]))


def test_absent_inputs_and_outputs():
    """The bounds of Clip are inputs of the function that the call leaves out; its first output is not read."""
    nodes = [node("Clip", ["x", "low", "high"], ["y"]), node("Neg", ["y"], ["z"])]
    bounded = function("Bounded", ["x", "low", "high"], ["y", "z"], nodes)
    call = node("Bounded", ["x", "", "top"], ["", "out"], domain="own")
    short = node("Bounded", ["x"], ["plain"], domain="own")
    proto = with_functions(
        [call, short], [bounded], outputs=["out", "plain"], arrays={"top": np.float32(1.5)}
    )
    out, plain = open_model(proto)(X)
    np.testing.assert_allclose(out, -np.minimum(X, 1.5))
    np.testing.assert_allclose(plain, X)


def test_bodies_of_functions_and_bodies_given_to_them():
    """In the body `t` is the function's; the value of the graph that is called so is read through the input `x`."""

    def body(*nodes, output):
        value = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        return helper.make_graph(list(nodes), "body", [], [value])

    then = body(node("Neg", ["x"], ["t"]), node("Add", ["t", "x"], ["r"]), output="r")
    given = reference("else_branch", "other", AttributeProto.GRAPH)
    choose = function("Choose", ["flag", "x"], ["y"], [
        referring("If", ["flag"], ["y"], given, then_branch=then),
    ], ["other"])  # fmt: skip
    nodes = [
        node("Relu", ["x"], ["t"]),
        node("Choose", ["flag", "t"], ["y"], domain="own", other=body(node("Exp", ["t"], ["e"]), output="e")),
        node("Choose", ["flag", "y"], ["z"], domain="own", other=body(node("Abs", ["x"], ["e"]), output="e")),
    ]
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    proto = with_functions(nodes, [choose], inputs=["x", flag], outputs=["y", "z"])
    layer = open_model(proto)
    for run in (layer, jit.to_static(layer)):
        for value, first in ((True, 0 * X), (False, np.exp(np.maximum(X, 0)))):
            y, z = run(X, np.asarray(value))
            np.testing.assert_allclose(y, first, rtol=1e-6)
            np.testing.assert_allclose(z, 0 * X if value else np.abs(X), rtol=1e-6)


def test_weights_given_to_functions_are_trained():
    dense = function("Dense", ["x", "w"], ["y"], [node("MatMul", ["x", "w"], ["y"])])
    proto = with_functions(
        [node("Dense", ["x", "fc.weight"], ["y"], domain="own")], [dense],
        arrays={"fc.weight": np.float32([[1, 2], [3, 4]])},
    )  # fmt: skip
    layer = open_model(proto)
    assert [name for name, _ in layer.named_parameters()] == ["fc.weight"]
    _, grads = nn.value_and_grad(layer, lambda net, x: net(x).sum())(X)
    np.testing.assert_allclose(grads["fc.weight"], X.sum(0)[:, None].repeat(2, 1))


def test_a_function_of_the_user_comes_first():
    nodes = [node("Scaled", ["x"], ["y"], factor=3.0, domain="own")]
    layer = open_model(with_functions(nodes, [scaled()]), {"own.Scaled": lambda x, *, factor: x - factor})
    np.testing.assert_allclose(layer(X), X - 3)


def test_what_is_wrong_with_functions():
    circle = [
        function(one, ["x"], ["y"], [node(other, ["x"], ["y"], domain="own")])
        for one, other in (("A", "B"), ("B", "A"))
    ]
    call = [node("A", ["x"], ["y"], domain="own")]
    with pytest.raises(
        FormatError, match=r"the function 'A' of the model calls itself\n  received: A#0/B#0/A#0"
    ):
        open_model(with_functions(call, circle))
    with pytest.raises(
        FormatError, match=r"two functions of the model are called 'Scaled'\n  received: domain 'own'"
    ):
        open_model(with_functions(call, [scaled(), scaled()]))
    two = [node("Scaled", ["x", "x"], ["y"], factor=1.0, domain="own")]
    with pytest.raises(FormatError, match=r"'Scaled#0' does not fit (.|\n)*received: 2 inputs, 1 outputs"):
        open_model(with_functions(two, [scaled()]))
    hollow = function("A", ["x"], ["y"], [node("Neg", ["x"], ["z"])])
    with pytest.raises(FormatError, match="nothing makes the output 'y' of the function 'A'"):
        open_model(with_functions(call, [hollow]))
    unmade = function("A", ["x"], ["y"], [node("Add", ["x", "q"], ["y"])])
    with pytest.raises(FormatError, match=r"node 'A#0/Add#0' uses a value before(.|\n)*received: q"):
        open_model(with_functions(call, [unmade]))


def test_functions_that_double_again_and_again_are_refused():
    """12 functions, each with ten calls of the next."""
    letters = "ABCDEFGHIJKL"
    functions = []
    for one, other in zip(letters, (*letters[1:], "Neg")):
        domain = "" if other == "Neg" else "own"
        nodes = [node(other, [f"x{i}"], [f"x{i + 1}"], domain=domain) for i in range(10)]
        functions.append(function(one, ["x0"], ["x10"], nodes))
    with pytest.raises(FormatError, match=r"too many nodes\n(.|\n)*allowed: 200,000"):
        open_model(with_functions([node("A", ["x"], ["y"], domain="own")], functions))


def test_constants_of_calls_side_by_side():
    table = numpy_helper.from_array(np.arange(4, dtype=np.float32).reshape(2, 2), "table")
    plus = function(
        "Plus", ["x"], ["y"], [node("Constant", [], ["c"], value=table), node("Add", ["x", "c"], ["y"])]
    )
    nodes = [node("Plus", ["x"], ["t"], domain="own"), node("Plus", ["t"], ["y"], domain="own")]
    assert_outputs(with_functions(nodes, [plus]), y=X + 2 * np.arange(4).reshape(2, 2))
