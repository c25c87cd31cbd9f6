"""What a graph becomes: parameters, buffers, layouts, errors; and how it compiles, trains and exports."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from onnx import TensorProto, helper

from framework import jit, nn
from framework.core.errors import FormatError, InputError, ShapeError, TraceError
from framework.export import TensorSpec, lower_layer

RNG = np.random.default_rng(0)
node = helper.make_node


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def tensor(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


BLOCK = [
    node("Conv", ["x", "/conv/weight", "bias"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
    node("BatchNormalization", ["a", "bn.weight", "bn.bias", "bn.mean", "bn.var"], ["b"]),
    node("Relu", ["b"], ["c"]),
    node("Mul", ["c", "share"], ["d"]),
    node("GlobalAveragePool", ["d"], ["e"]),
    node("Reshape", ["e", "shape"], ["f"]),
    node("Gemm", ["f", "0"], ["y"], transB=1),
]
ARRAYS = {
    "/conv/weight": numbers(6, 3, 3, 3),
    "bias": numbers(6),
    "bn.weight": numbers(6),
    "bn.bias": numbers(6),
    "bn.mean": numbers(6),
    "bn.var": np.abs(numbers(6)) + 0.5,
    "share": np.float32(0.5),
    "shape": np.int64([0, -1]),
    "0": numbers(4, 6),
}


def expected(x):
    """The block by numpy, in float64."""
    wide = {name: array.astype(np.float64) for name, array in ARRAYS.items()}
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (1, 1), (1, 1)])
    out = (x.shape[2] + 1) // 2, (x.shape[3] + 1) // 2
    y = np.zeros((len(x), 6, *out))
    for i in range(3):
        for j in range(3):
            view = padded[:, :, i : i + 2 * out[0] : 2, j : j + 2 * out[1] : 2][:, :, : out[0], : out[1]]
            y += np.einsum("nchw,oc->nohw", view, wide["/conv/weight"][:, :, i, j])
    shape = (1, -1, 1, 1)
    y = y + wide["bias"].reshape(shape) - wide["bn.mean"].reshape(shape)
    y = y / np.sqrt(wide["bn.var"].reshape(shape) + 1e-5) * wide["bn.weight"].reshape(shape)
    y = np.maximum(y + wide["bn.bias"].reshape(shape), 0) * 0.5
    return y.mean((2, 3)) @ wide["0"].T


@pytest.fixture
def block(open_graph):
    return open_graph(BLOCK, [tensor("x", ["n", 3, "h", "w"])], arrays=ARRAYS)


def test_uneven_padding_counts_in_an_inclusive_mean(open_graph) -> None:
    pads = {"kernel_shape": [2, 2], "pads": [0, 0, 1, 1], "count_include_pad": 1}
    layer = open_graph([node("AveragePool", ["x"], ["y"], **pads)], [tensor("x", [1, 1, 2, 2])])
    found = layer(jnp.asarray(np.float32([[[[4, 8], [12, 16]]]])))
    np.testing.assert_allclose(np.ravel(found), [10, 6, 7, 4])


@pytest.mark.parametrize("rows", [1, 3])
def test_a_large_transposed_matrix_of_gemm(rows, open_graph, monkeypatch):
    arrays = {"w": numbers(5, 7), "b": numbers(5)}
    x = jnp.asarray(numbers(rows, 7))
    nodes = [node("Gemm", ["x", "w", "b"], ["y"], transB=1, alpha=0.5)]
    layer = open_graph(nodes, [tensor("x", ["n", 7])], arrays=arrays)
    monkeypatch.setattr("framework.interop.graph.onnx.linear._LARGE", 0)
    expected = 0.5 * np.asarray(x) @ arrays["w"].T + arrays["b"]
    np.testing.assert_allclose(jnp.asarray(layer(x)).reshape(expected.shape), expected, atol=1e-5)
    assert "f32[7,5]" not in str(jax.make_jaxpr(lambda x: layer(x))(x))  # the matrix itself stays as it lies


def test_weights_are_parameters_under_valid_names(block):
    assert {name: p.trainable for name, p in block.named_parameters()} == {
        **{"conv_weight": True, "bias": True, "bn.weight": True, "bn.bias": True, "w0": True},
    }
    assert [name for name, _ in block.named_buffers()] == ["bn.mean", "bn.var"]
    assert set(block.graph.constants) == {"share", "shape"}
    assert block.conv_kernels == ("conv_weight",) and not block.training
    assert [spec.name for spec in block.inputs] == ["x"] and block.outputs[0].name == "y"
    np.testing.assert_array_equal(block.state_dict()["conv_weight"], ARRAYS["/conv/weight"])


def test_eager_static_and_functional_agree(block):
    x = numbers(2, 3, 7, 10)
    want = expected(x)
    graphdef, params, buffers = nn.split(block)
    for got in (
        block(x),
        block(x=x),
        jit.to_static(block)(x),
        nn.apply(graphdef, params, buffers, None, x)[0],
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_images_are_moved_at_the_edges_alone(open_graph):
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        node("Add", ["a", "b"], ["s"]),
        node("MaxPool", ["s"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Resize", ["p", "", "", "size"], ["r"], mode="linear"),
        node("Concat", ["r", "s"], ["c"], axis=1),
        node("ReduceMean", ["c"], ["m"], axes=[2, 3], keepdims=1),
        node("Sub", ["c", "m"], ["d"]),
        node("Softmax", ["d"], ["y"], axis=1),
    ]
    arrays = {"w": numbers(4, 3, 3, 3), "b": numbers(4, 1, 1), "size": np.int64([2, 4, 8, 6])}
    layer = open_graph(nodes, arrays=arrays)
    text = str(jax.make_jaxpr(lambda x: layer(x))(jnp.asarray(numbers(2, 3, 8, 6))))
    moves = [line for line in text.splitlines() if "transpose[" in line and ":f32[2," in line]
    assert len(moves) == 2, moves


def test_transposes_of_the_graph_are_names_alone(open_graph):
    """A graph of TensorFlow: channels-last outside, so that nothing moves at all."""
    nodes = [
        node("Transpose", ["x"], ["a"], perm=[0, 3, 1, 2]),
        node("Conv", ["a", "w"], ["b"]),
        node("Transpose", ["b"], ["y"], perm=[0, 2, 3, 1]),
    ]
    layer = open_graph(nodes, arrays={"w": numbers(4, 3, 1, 1)})
    text = str(jax.make_jaxpr(lambda x: layer(x))(jnp.asarray(numbers(2, 5, 6, 3))))
    assert not [line for line in text.splitlines() if "transpose[" in line and ":f32[2," in line]


def test_the_inputs_are_those_of_the_graph(block):
    x = numbers(1, 3, 4, 4)
    for call in (lambda: block(), lambda: block(x, x), lambda: block(x, x=x)):
        with pytest.raises(
            InputError,
            match=r"graph.onnx: the arguments do not match the inputs of the graph(.|\n)*\['x'\] once",
        ):
            call()
    with pytest.raises(
        ShapeError,
        match=r"graph.onnx, input 'x': an input of the graph has another number of axes(.|\n)*4 axes",
    ):
        block(x[0])


def test_a_mistake_is_told_with_its_node(block):
    with pytest.raises(ShapeError) as caught:
        block(numbers(1, 5, 4, 4))
    text = str(caught.value)
    assert text.startswith(
        "graph.onnx, node 'Conv#0' (Conv, opset 17): conv2d: input, weight and groups do not agree"
    )


def test_training_takes_the_statistics_of_the_batch(block):
    x = numbers(4, 3, 8, 8)
    before = np.asarray(block.state_dict()["bn.mean"])
    loss, grads = nn.value_and_grad(block.train(), lambda net, x: (net(x) ** 2).mean())(x)
    assert float(loss) > 0 and all(np.abs(grad).max() > 0 for name, grad in grads.items() if name != "bias")
    assert set(grads) == {"conv_weight", "bias", "bn.weight", "bn.bias", "w0"}
    after = np.asarray(block.state_dict()["bn.mean"])
    assert np.abs(after - before).max() > 0
    block.eval()(x)
    np.testing.assert_array_equal(block.state_dict()["bn.mean"], after)


SHAPED = [
    node("Conv", ["x", "w"], ["a"]),
    node("Shape", ["a"], ["s"]),
    node("Gather", ["s", "zero"], ["n"]),
    node("Slice", ["s", "two", "four"], ["hw"]),
    node("Mul", ["hw", "twice"], ["double"]),
    node("Unsqueeze", ["n", "zero1"], ["n1"]),
    node("Concat", ["n1", "channels", "double"], ["size"], axis=0),
    node(
        "Resize",
        ["a", "", "", "size"],
        ["big"],
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    ),
    node("Concat", ["n1", "channels", "rest"], ["flat"], axis=0),
    node("Reshape", ["big", "flat"], ["tokens"]),
    node("Transpose", ["tokens"], ["y"], perm=[0, 2, 1]),
]
SHAPED_ARRAYS = {
    "w": numbers(5, 3, 1, 1),
    "zero": np.int64(0),
    "zero1": np.int64([0]),
    "two": np.int64([2]),
    "four": np.int64([4]),
    "twice": np.int64([2, 2]),
    "channels": np.int64([5]),
    "rest": np.int64([-1]),
}


def test_symbolic_sizes_go_through_arithmetic(open_graph):
    layer = open_graph(SHAPED, arrays=SHAPED_ARRAYS)
    program, weights = lower_layer(layer, {"x": TensorSpec(("n", 3, "h", "2*w"))}, platforms=("cpu",))
    assert weights["w"].shape == (1, 1, 3, 5)  # as a convolution reads it
    assert str(program.out_avals[0].shape) == "(n, 8*h*w, 5)"
    for shape in ((1, 3, 4, 6), (2, 3, 5, 2)):
        x = numbers(*shape)
        got = program.call(weights, {"x": x})["output"]
        a = np.einsum("nchw,oc->nohw", x, SHAPED_ARRAYS["w"][:, :, 0, 0])
        want = a.repeat(2, 2).repeat(2, 3).reshape(len(x), 5, -1).transpose(0, 2, 1)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(layer(x), want, rtol=1e-5, atol=1e-5)


def test_values_that_decide_about_shapes_run_eagerly_and_say_so_in_a_program(open_graph):
    layer = open_graph([node("NonZero", ["x"], ["y"])])
    x = np.float32([[0, 1], [2, 0]])
    np.testing.assert_array_equal(layer(x), [[0, 1], [1, 0]])
    with pytest.raises(
        TraceError, match=r"node 'NonZero#0' \(NonZero(.|\n)*: the values of NonZero must be known"
    ):
        jit.to_static(layer)(x)


# -- what is refused ----------------------------------------------------------------------------------------------


def test_unknown_operators_are_named_all_at_once(open_graph):
    nodes = [
        node("Frobnicate", ["x"], ["a"], name="first", domain="com.example"),
        node("ImageDecoder", ["a"], ["b"], name="second"),
        node("Relu", ["b"], ["y"]),
    ]
    with pytest.raises(FormatError) as caught:
        open_graph(nodes, domains={"com.example": 3})
    text = str(caught.value)
    assert "Frobnicate at node 'first' (com.example 3); ImageDecoder at node 'second' (ai.onnx 17)" in text
    assert 'load(path, operators={"Name": function})' in text


def test_functions_of_the_user_are_operators(open_graph):
    nodes = [node("Scale", ["x", ""], ["y"], domain="com.example", factor=3.0)]
    own = {"com.example.Scale": lambda x, absent, *, factor: x * factor}
    layer = open_graph(nodes, domains={"com.example": 1}, operators=own)
    np.testing.assert_allclose(layer(np.float32([1, 2])), [3, 6])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opset": 99}, r"newer operator set(.|\n)*ai.onnx 99(.|\n)*up to 28"),
        ({"outputs": ["nowhere"]}, r"nothing makes an output of the graph(.|\n)*nowhere"),
    ],
)
def test_graphs_that_cannot_run(open_graph, options, message):
    with pytest.raises(FormatError, match=message):
        open_graph([node("Relu", ["x"], ["y"])], **options)


HUGE = np.int64([1 << 20, 1 << 20])


@pytest.mark.parametrize(
    "nodes",
    [
        [node("ConstantOfShape", ["huge"], ["y"])],
        [node("Expand", ["x", "huge"], ["y"])],
        [node("Tile", ["x", "huge"], ["y"])],
        [node("Resize", ["x", "", "", "huge"], ["y"])],
        [node("Pad", ["x", "pads"], ["y"])],
        [node("Range", ["zero", "far", "one"], ["y"])],
        [
            node("Unsqueeze", ["line", "one1"], ["a"]),
            node("Transpose", ["a"], ["b"]),
            node("Add", ["a", "b"], ["y"]),
        ],
        [node("RandomNormal", [], ["y"], shape=[1 << 20, 1 << 20], seed=1.0)],
        [node("HannWindow", ["far"], ["y"])],
    ],
    ids=lambda nodes: nodes[-1].op_type,
)
def test_huge_sizes_are_refused_before_they_are_made(open_graph, nodes):
    arrays = {
        "huge": HUGE,
        "pads": np.int64([0, 0, 1 << 40, 1 << 40]),
        "zero": np.int64(0),
        "one": np.int64(1),
        "one1": np.int64([1]),
        "far": np.int64(1 << 40),
        "line": np.zeros(1 << 14, np.int64),
    }
    with pytest.raises(ShapeError, match="impossible size"):
        open_graph(nodes, [tensor("x", [2, 3])], arrays=arrays)(numbers(2, 3))


@pytest.mark.parametrize(
    ("op", "inputs", "opset"), [("Resize", ["x", "", "scales"], 17), ("Upsample", ["x", "scales"], 9)]
)
def test_an_axis_that_a_resize_makes_a_million_times_as_long_is_refused(open_graph, op, inputs, opset):
    """It is within the limit of all values, and takes minutes: a damaged file must not."""
    layer = open_graph(
        [node(op, inputs, ["y"], mode="nearest")], [tensor("x", [2, 3])], opset=opset,
        arrays={"scales": np.float32([1 << 20, 1])},
    )  # fmt: skip
    with pytest.raises(
        ShapeError, match=r"longer than any image needs(.|\n)*\[2097152, 3\](.|\n)*16,384 times"
    ):
        layer(numbers(2, 3))


def test_an_axis_that_is_padded_to_a_million_times_its_size_is_refused(open_graph):
    pads = {"pads": np.array([0, 0, 1 << 24, 0])}
    layer = open_graph([node("Pad", ["x", "pads"], ["y"])], [tensor("x", [2, 3])], arrays=pads)
    with pytest.raises(ShapeError, match=r"more than any model needs(.|\n)*\[16777218, 3\]"):
        layer(numbers(2, 3))
    wide = open_graph([node("Pad", ["x", "pads"], ["y"])], [tensor("x", [1, 1])], arrays=pads)
    assert wide(numbers(1, 1)).shape == ((1 << 24) + 1, 1)  # as long, but small enough


@pytest.mark.parametrize("kind", [MemoryError, jax.errors.JaxRuntimeError])
def test_what_does_not_fit_into_memory_is_an_error_of_its_node(open_graph, kind, monkeypatch):
    def refuse(x, k):
        raise kind("RESOURCE_EXHAUSTED: Out of memory allocating 469762048 bytes.")

    layer = open_graph([node("TopK", ["x", "k"], ["y", "places"])], ["x"], arrays={"k": np.int64([1])})
    monkeypatch.setattr(jax.lax, "top_k", refuse)
    with pytest.raises(
        ShapeError, match=r"TopK(.|\n)*does not fit into memory(.|\n)*float32\[2, 3\](.|\n)*469762048"
    ):
        layer(numbers(2, 3))


def test_constants_that_double_are_refused(open_graph):
    nodes = [node("Concat", [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0) for i in range(40)]
    with pytest.raises(ShapeError, match="impossible size"):
        open_graph(nodes, ["x"], ["v40"], arrays={"v0": np.zeros(256, np.int8)})(numbers(1))


@pytest.mark.parametrize(
    ("op", "index"), [("ScatterElements", [[0, 1, 2], [1, 0, 0]]), ("ScatterND", [[1], [0]])]
)
def test_updates_have_the_shape_of_their_indices(open_graph, op, index):
    graph = open_graph(
        [helper.make_node(op, ["x", "i", "u"], ["y"])], ["x", "u"], arrays={"i": np.int64(index)}
    )
    x, row = np.zeros((4, 3), np.float32), np.ones((1, 3), np.float32)
    with pytest.raises(ShapeError, match=r"updates of another shape(?s:.*)allowed: \(2, 3\)"):
        graph(x, row)
    assert float(graph(x, np.ones((2, 3), np.float32)).sum()) >= 5


def test_an_axis_that_is_added_twice_is_an_error(open_graph):
    """As -3 and 1 of a matrix, which are two names of one axis."""
    layer = open_graph([node("Unsqueeze", ["x", "axes"], ["y"])], arrays={"axes": np.int64([-3, 1])})
    with pytest.raises(ShapeError, match=r"(?s)Unsqueeze.*added twice.*received: \[-3, 1\]"):
        layer(np.ones((2, 3), np.float32))
