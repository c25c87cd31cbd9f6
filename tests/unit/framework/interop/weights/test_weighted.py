from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from framework.core.errors import FormatError
from framework.interop import Node, Program, load_program, weighted_ops

RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.standard_normal(shape).astype("f4")


def program(nodes, parameters, form="onnx", outputs=()):
    return Program(form, "", tuple(nodes), dict(parameters), (), tuple(outputs), name="made")


def node(op, inputs, output, slots="", out_slot="", **attrs):
    return Node(
        op, output, tuple(inputs), (output,), attrs, tuple(slots.split()), (out_slot,) if out_slot else ()
    )


def kinds(ops):
    return [(op.kind, {key: array.shape for key, array in op.arrays.items()}) for op in ops]


def assert_same(a, b):
    assert kinds(a) == kinds(b)
    for x, y in zip(a, b):
        assert list(x.arrays) == list(y.arrays)
        for key, array in x.arrays.items():
            np.testing.assert_array_equal(array, y.arrays[key], strict=True, err_msg=f"{x.node} {key}")


# Whole programs ------------------------------------------------------------------------------------------------------


def test_three_formats_of_one_network(data, values):
    lists = [
        weighted_ops(load_program(data / n)) for n in ("network.pdmodel", "network_pir.json", "network.onnx")
    ]
    for other in lists[1:]:
        assert_same(lists[0], other)
    assert [op.kind for op in lists[0]] == (
        ["conv", "batch_norm", "affine", "conv", "conv_transpose", "conv", "lstm", "layer_norm", "linear"]
    )
    structured = {
        0: {"weight": "conv.weight"},
        1: {"weight": "bn.weight", "bias": "bn.bias", "_mean": "bn._mean", "_variance": "bn._variance"},
        2: {"scale": "lab.scale", "bias": "lab.bias"},
        3: {"weight": "depthwise.weight", "bias": "depthwise.bias"},
        4: {"weight": "up.weight", "bias": "up.bias"},
        5: {"weight": "one.weight", "bias": "one.bias"},
        7: {"weight": "norm.weight", "bias": "norm.bias"},
        8: {"weight": "fc.weight", "bias": "fc.bias"},
    }
    for place, names in structured.items():
        assert list(lists[0][place].arrays) == list(names)
        for key, name in names.items():
            array = lists[0][place].arrays[key]
            np.testing.assert_array_equal(array, values(name, array.shape), strict=True)
    lstm = lists[0][6].arrays
    assert len(lstm) == 16 and lstm["weight_ih_l1_reverse"].shape == (12, 6)


def test_source_names(data):
    ops = weighted_ops(load_program(data / "network.pdmodel"))
    assert ops[2].source == {"scale": "learnable_affine_block_0.w_0", "bias": "learnable_affine_block_0.w_1"}
    assert ops[3].source == {"weight": "conv2d_2.w_0", "bias": "conv2d_2.b_0"}
    assert ops[6].source["bias_hh_l1_reverse"] == "lstm_cell_3.b_1"
    assert ops[3].node == "depthwise_conv2d#6"


@pytest.mark.parametrize(
    ("folder", "model", "tensors", "elements"),
    [
        ("ppocr_v2_cls", "ch_ppocr_mobile_v2.0_cls_infer.onnx", 213, 133_628),
        ("ppocr_v3_det_ch", "ch_PP-OCRv3_det_infer.onnx", 288, 592_625),
    ],
)
def test_real_pairs_of_paddle_and_onnx(weights, folder, model, tensors, elements):
    paddle = weighted_ops(load_program(weights / folder / "inference.pdmodel"))
    assert_same(paddle, weighted_ops(load_program(weights / folder / model)))
    arrays = [array for op in paddle for array in op.arrays.values()]
    assert (len(arrays), sum(array.size for array in arrays)) == (tensors, elements)
    assert "other" not in {op.kind for op in paddle}


def test_real_recognisers_of_one_architecture(weights):
    japan = weighted_ops(load_program(weights / "ppocr_v2_rec_japan" / "inference.pdmodel"))
    english = weighted_ops(
        load_program(weights / "ppocr_v2_rec_en_number" / "en_number_mobile_v2.0_rec_infer.onnx")
    )
    assert sum(array.size for op in japan for array in op.arrays.values()) == 871_712
    assert kinds(japan)[:-1] == kinds(english)[:-1]
    assert [op.kind for op in japan[-2:]] == [op.kind for op in english[-2:]] == ["lstm", "linear"]
    assert english[-2].source == japan[-2].source


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ppocr_v6_tiny_det/det.onnx", {"conv": 83, "conv_transpose": 2}),
        ("picodet_s_320/picodet_s_320_coco_sim.onnx", {"conv": 133}),
        ("yolox_nano/yolox_nano.onnx", {"conv": 113}),
    ],
)
def test_real_models_of_folded_convolutions(weights, path, expected):
    ops = weighted_ops(load_program(weights / path))
    assert {kind: sum(op.kind == kind for op in ops) for kind in {op.kind for op in ops}} == expected


def test_the_real_recogniser_with_attention():
    rapidocr = pytest.importorskip(
        "rapidocr", reason="the wheel that carries the PP-OCRv6 models is not installed"
    )
    path = Path(rapidocr.__file__).parent / "models" / "PP-OCRv6_rec_small.onnx"
    if not path.is_file():
        pytest.skip("this rapidocr wheel carries no PP-OCRv6 recogniser")
    ops = weighted_ops(load_program(path))
    counts = {kind: sum(op.kind == kind for op in ops) for kind in {op.kind for op in ops}}
    assert counts == {"conv": 57, "linear": 9, "layer_norm": 5, "batch_norm": 3}
    assert all("bias" in op.arrays for op in ops if op.kind in ("linear", "layer_norm"))
    assert ops[-1].arrays["weight"].shape == (120, 18_710)


# Convolutions --------------------------------------------------------------------------------------------------------

CONV = node("Conv", ["x", "w"], "c")
W = random(4, 3, 3, 3)


@pytest.mark.parametrize("shape", [(1, 4, 1, 1), (4, 1, 1)])
@pytest.mark.parametrize("order", [("c", "b"), ("b", "c")])
def test_an_add_of_one_number_a_channel_is_the_bias(shape, order):
    bias = random(*shape)
    ops = weighted_ops(program([CONV, node("Add", order, "y")], {"w": W, "b": bias}))
    assert kinds(ops) == [("conv", {"weight": (4, 3, 3, 3), "bias": (4,)})]
    np.testing.assert_array_equal(ops[0].arrays["bias"], bias.ravel())


@pytest.mark.parametrize("shape", [(4,), (1, 1, 4), (1, 4), (1, 4, 1, 2), (2, 4, 1, 1), ()])
def test_an_add_of_another_shape_is_not(shape):
    ops = weighted_ops(program([CONV, node("Add", ["c", "b"], "y")], {"w": W, "b": random(*shape)}))
    assert [op.kind for op in ops] == ["conv", "affine"] and "bias" not in ops[0].arrays


def test_a_bias_through_reshape_and_unsqueeze_nodes():
    bias = random(4)
    shape = np.array([1, -1, 1, 1])
    reshape = [CONV, node("Reshape", ["b", "s"], "r"), node("Add", ["c", "r"], "y")]
    unsqueeze = [node("Unsqueeze", ["b"], "r", axes=(0, 2, 3)), CONV, node("Add", ["c", "r"], "y")]
    for nodes in (reshape, unsqueeze):
        ops = weighted_ops(program(nodes, {"w": W, "b": bias, "s": shape}))
        assert ops[0].arrays["bias"].tolist() == bias.tolist() and ops[0].source["bias"] == "b"
        assert len(ops) == 1


def test_a_shared_bias_belongs_to_both():
    nodes = [CONV, node("Add", ["c", "b"], "y"), node("Conv", ["y", "v"], "d"), node("Add", ["d", "b"], "z")]
    ops = weighted_ops(program(nodes, {"w": W, "v": random(4, 4, 1, 1), "b": random(1, 4, 1, 1)}))
    assert [list(op.arrays) for op in ops] == [["weight", "bias"]] * 2


def test_identity_nodes_between_vanish():
    nodes = [CONV, node("Identity", ["c"], "i"), node("Add", ["i", "b"], "a"), node("Identity", ["a"], "y")]
    assert kinds(weighted_ops(program(nodes, {"w": W, "b": random(1, 4, 1, 1)})))[0][1].keys() == {
        "weight",
        "bias",
    }


def test_a_result_that_is_used_twice_has_no_bias_behind_it():
    nodes = [CONV, node("Add", ["c", "b"], "y"), node("Relu", ["c"], "z")]
    ops = weighted_ops(program(nodes, {"w": W, "b": random(1, 4, 1, 1)}))
    assert [(op.kind, list(op.arrays)) for op in ops] == [("conv", ["weight"]), ("affine", ["bias"])]


def test_two_biases_stay_two():
    nodes = [node("Conv", ["x", "w", "b"], "c"), node("Add", ["c", "d"], "y")]
    ops = weighted_ops(program(nodes, {"w": W, "b": random(4), "d": random(1, 4, 1, 1)}))
    assert [(op.kind, list(op.arrays)) for op in ops] == [("conv", ["weight", "bias"]), ("affine", ["bias"])]


@pytest.mark.parametrize(
    ("name", "shape", "is_bias"),
    [
        ("helper.constant.1", (), False),
        ("p2o.helper.constant.1", (1,), False),
        ("Constant_1", (), False),
        ("conv2d_transpose_1.b_0", (1,), True),
        ("p2o.pd_op.reshape.2.0", (1, 1, 1, 1), True),
    ],
)
def test_one_channel_and_one_number(name, shape, is_bias):
    """hard-swish adds 3 to its input: behind a convolution with one channel that looks like a bias."""
    nodes = [CONV, node("Add", ["c", name], "y")]
    ops = weighted_ops(program(nodes, {"w": random(1, 3, 1, 1), name: np.full(shape, 3, "f4")}))
    assert len(ops) == 1 and ("bias" in ops[0].arrays) == is_bias


def test_transposed_convolutions_and_groups():
    for groups, channels in ((1, 2), (4, 8)):
        nodes = [node("ConvTranspose", ["x", "w"], "c", group=groups), node("Add", ["c", "b"], "y")]
        ops = weighted_ops(program(nodes, {"w": random(4, 2, 2, 2), "b": random(1, channels, 1, 1)}))
        assert kinds(ops) == [("conv_transpose", {"weight": (4, 2, 2, 2), "bias": (channels,)})]


def test_batch_norm_stays_its_own_operation():
    parameters = {name: random(4) for name in "gbmv"}
    nodes = [CONV, node("BatchNormalization", ["c", "g", "b", "m", "v"], "y")]
    ops = weighted_ops(program(nodes, {"w": W, **parameters}))
    assert [op.kind for op in ops] == ["conv", "batch_norm"]
    assert ops[1].source == {"weight": "g", "bias": "b", "_mean": "m", "_variance": "v"}


def test_slots_of_a_program_desc():
    parameters = {"w": W, "b": random(4)}
    conv = node("conv2d", ["w", "x"], "c", "Filter Input", "Output", groups=1)
    along = node("elementwise_add", ["c", "b"], "y", "X Y", "Out", axis=1)
    assert list(weighted_ops(program([conv, along], parameters, "pdmodel"))[0].arrays) == ["weight", "bias"]
    across = node("elementwise_add", ["c", "b"], "y", "X Y", "Out", axis=-1)
    ops = weighted_ops(program([conv, across], parameters, "pdmodel"))
    assert [op.kind for op in ops] == ["conv", "affine"]
    fused = node("conv2d", ["w", "x", "b"], "c", "Filter Input Bias", "Output")
    assert list(weighted_ops(program([fused], parameters, "pdmodel"))[0].arrays) == ["weight", "bias"]


def test_a_variable_that_is_written_twice():
    nodes = [
        node("conv2d", ["w", "x"], "t", "Filter Input", "Output"),
        node("relu", ["t"], "t", "X", "Out"),
        node("elementwise_add", ["t", "b"], "t", "X Y", "Out", axis=1),
    ]
    ops = weighted_ops(program(nodes, {"w": W, "b": random(4)}, "pdmodel"))
    assert [op.kind for op in ops] == [
        "conv",
        "affine",
    ]  # the sum is with relu's result, not with the convolution's


def test_half_precision_weights_behind_a_cast():
    half = W.astype("f2")
    nodes = [node("Cast", ["w"], "f", to=TensorProto.FLOAT), node("Conv", ["x", "f"], "y")]
    ops = weighted_ops(program(nodes, {"w": half}))
    np.testing.assert_array_equal(ops[0].arrays["weight"], half.astype("f4"), strict=True)
    nodes = [node("pd_op.cast", ["w"], "f", dtype="bfloat16"), node("pd_op.conv2d", ["x", "f"], "y")]
    assert weighted_ops(program(nodes, {"w": W}, "pir"))[0].arrays["weight"].dtype.name == "bfloat16"


# Linear --------------------------------------------------------------------------------------------------------------

M = random(3, 5)


def test_matmul_and_gemm():
    bias = random(5)
    plain = [node("MatMul", ["x", "m"], "c"), node("Add", ["c", "b"], "y")]
    gemm = [node("Gemm", ["x", "m", "b"], "y")]
    for nodes in (plain, gemm):
        ops = weighted_ops(program(nodes, {"m": M, "b": bias}))
        assert kinds(ops) == [("linear", {"weight": (3, 5), "bias": (5,)})]
    transposed = weighted_ops(program([node("Gemm", ["x", "m"], "c", transB=1)], {"m": M.T.copy()}))
    np.testing.assert_array_equal(transposed[0].arrays["weight"], M)
    assert transposed[0].arrays["weight"].flags.c_contiguous
    scaled = weighted_ops(
        program([node("Gemm", ["x", "m", "b"], "c", alpha=0.5, beta=2.0)], {"m": M, "b": bias})
    )
    np.testing.assert_array_equal(scaled[0].arrays["weight"], M / 2)
    np.testing.assert_array_equal(scaled[0].arrays["bias"], bias * 2)


@pytest.mark.parametrize(
    ("op", "slots", "out", "attrs", "transposed"),
    [
        ("mul", "X Y", "Out", {"x_num_col_dims": 1}, False),
        ("matmul", "X Y", "Out", {"transpose_Y": False, "alpha": 1.0}, False),
        ("matmul_v2", "X Y", "Out", {"trans_y": True}, True),
        ("fc", "Input W", "Out", {}, False),
    ],
)
def test_the_products_of_a_program_desc(op, slots, out, attrs, transposed):
    nodes = [
        node(op, ["x", "m"], "c", slots, out, **attrs),
        node("elementwise_add", ["c", "b"], "y", "X Y", "Out", axis=2),
    ]
    parameters = {"m": M.T.copy() if transposed else M, "b": random(5)}
    ops = weighted_ops(program(nodes, parameters, "pdmodel"))
    assert list(ops[0].arrays) == ["weight", "bias"] and len(ops) == 1
    np.testing.assert_array_equal(ops[0].arrays["weight"], M)


def test_products_that_are_not_linear_layers():
    dynamic = weighted_ops(program([node("MatMul", ["q", "k"], "y")], {}))
    assert dynamic == []
    left = weighted_ops(program([node("MatMul", ["onnx::MatMul_1", "x"], "y")], {"onnx::MatMul_1": M}))
    assert kinds(left) == [("other", {"x": (3, 5)})]


# Normalisation -------------------------------------------------------------------------------------------------------


def layer_norm(square):
    return [
        node("ReduceMean", ["x"], "mean", axes=(-1,)),
        node("Sub", ["x", "mean"], "d"),
        node("Pow", ["d", "two"], "q") if square == "Pow" else node("Mul", ["d", "d"], "q"),
        node("ReduceMean", ["q"], "var", axes=(-1,)),
        node("Add", ["var", "eps"], "e"),
        node("Sqrt", ["e"], "s"),
        node("Div", ["d", "s"], "n"),
    ]


LN = {
    "two": np.float32(2),
    "eps": np.float32(1e-5),
    "helper.reshape.0": random(6),
    "helper.reshape.1": random(6),
}


@pytest.mark.parametrize("square", ["Pow", "Mul"])
def test_layer_norm_taken_apart(square):
    scale = node("Mul", ["n", "helper.reshape.0"], "m")
    nodes = [*layer_norm(square), scale, node("Add", ["m", "helper.reshape.1"], "y")]
    ops = weighted_ops(program(nodes, LN))
    assert kinds(ops) == [("layer_norm", {"weight": (6,), "bias": (6,)})]
    assert kinds(weighted_ops(program([*layer_norm(square), scale], LN))) == [
        ("layer_norm", {"weight": (6,)})
    ]
    assert weighted_ops(program(layer_norm(square), {"two": LN["two"], "eps": LN["eps"]})) == []


def test_something_like_layer_norm_is_not():
    nodes = layer_norm("Mul")
    nodes[2] = node("Mul", ["d", "x"], "q")
    ops = weighted_ops(
        program([*nodes, node("Mul", ["n", "weight"], "y")], {"eps": LN["eps"], "weight": random(6)})
    )
    assert kinds(ops) == [("affine", {"bias": ()}), ("affine", {"scale": (6,)})]


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("LayerNormalization", "layer_norm"),
        ("InstanceNormalization", "instance_norm"),
        ("GroupNormalization", "group_norm"),
        ("pd_op.group_norm", "group_norm"),
    ],
)
def test_normalisations_in_one_operation(op, kind):
    form = "pir" if op.startswith("pd_op") else "onnx"
    ops = weighted_ops(program([node(op, ["x", "g", "b"], "y")], {"g": random(4), "b": random(4)}, form))
    assert kinds(ops) == [(kind, {"weight": (4,), "bias": (4,)})]


# Affine, embedding, PReLU, the rest ----------------------------------------------------------------------------------


def test_a_learnable_affine_and_constants_that_are_none():
    scalars = {
        "learnable_affine_block_0.w_0": np.float32([1.5]),
        "learnable_affine_block_0.w_1": np.float32([0.25]),
        "helper.constant.0": np.float32(1.4142135),
        "auto.cast.74": np.float32([0.258]),
        "p2o.pd_op.full.2.0": np.float32([0.5]),
        "/model/Constant_3_output_0": np.float32(2),
        "Constant@1": np.float32(3),
        "712": np.float32(6),
        "const_fold_opt__12": np.float32(6),
        "val_7": np.float32(6),
    }
    nodes = [
        node("Mul", ["learnable_affine_block_0.w_0", "x"], "a"),
        node("Add", ["a", "learnable_affine_block_0.w_1"], "b"),
        node("Div", ["b", "helper.constant.0"], "c"),
        node("Mul", ["c", "auto.cast.74"], "d"),
        node("Add", ["d", "p2o.pd_op.full.2.0"], "e"),
        node("Mul", ["e", "/model/Constant_3_output_0"], "f"),
        node("Add", ["f", "Constant@1"], "g"),
        node("Div", ["g", "712"], "h"),
        node("Mul", ["h", "const_fold_opt__12"], "i"),
        node("Mul", ["i", "val_7"], "y"),
    ]
    ops = weighted_ops(program(nodes, scalars))
    assert kinds(ops) == [("affine", {"scale": (1,), "bias": (1,)})]
    assert ops[0].arrays["scale"] == 1.5 and ops[0].arrays["bias"] == 0.25


def test_a_name_that_only_contains_const_is_trained():
    ops = weighted_ops(
        program([node("Mul", ["x", "reconstruct.gamma"], "y")], {"reconstruct.gamma": random(1, 4, 1, 1)})
    )
    assert kinds(ops) == [("affine", {"scale": (1, 4, 1, 1)})]


def test_a_position_embedding_is_a_summand():
    ops = weighted_ops(program([node("Add", ["pos_embed", "x"], "y")], {"pos_embed": random(1, 10, 6)}))
    assert kinds(ops) == [("affine", {"bias": (1, 10, 6)})]


def test_embedding_and_prelu():
    gather = node("Gather", ["onnx::Gather_7", "ids"], "y")
    assert kinds(weighted_ops(program([gather], {"onnx::Gather_7": M}))) == [
        ("embedding", {"weight": (3, 5)})
    ]
    table = node("lookup_table_v2", ["ids", "m"], "y", "Ids W", "Out")
    assert kinds(weighted_ops(program([table], {"m": M}, "pdmodel"))) == [("embedding", {"weight": (3, 5)})]
    prelu = node("PRelu", ["x", "s"], "y")
    assert kinds(weighted_ops(program([prelu], {"s": random(4, 1, 1)}))) == [("prelu", {"weight": (4,)})]


def test_nothing_trained_is_lost():
    ops = weighted_ops(program([node("Einsum", ["x", "blocks.0.w"], "y")], {"blocks.0.w": random(2, 3, 4)}))
    assert kinds(ops) == [("other", {"input_1": (2, 3, 4)})] and ops[0].source == {"input_1": "blocks.0.w"}
    fused = node("fused_thing", ["x", "a", "b"], "y", "X Weights Weights", "Out")
    ops = weighted_ops(program([fused], {"a": random(2), "b": random(3)}, "pdmodel"))
    assert kinds(ops) == [("other", {"Weights_0": (2,), "Weights_1": (3,)})]


def test_integers_are_no_weights():
    assert weighted_ops(program([node("Gather", ["x", "i"], "y")], {"i": np.arange(3)})) == []


# Recurrent layers ----------------------------------------------------------------------------------------------------


def run_onnx(nodes, parameters, x, outputs):
    """What the reference implementation of the onnx package computes."""
    from onnx.reference import ReferenceEvaluator

    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in parameters.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return model, ReferenceEvaluator(model).run(list(outputs), {"x": x})


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def paddle_lstm(arrays, x, end="l0"):
    """Paddle's cell: gates in the order i, f, g, o."""
    hidden = arrays[f"weight_hh_{end}"].shape[1]
    h = c = np.zeros((x.shape[1], hidden), "f4")
    out = []
    for step in x:
        gates = step @ arrays[f"weight_ih_{end}"].T + arrays[f"bias_ih_{end}"]
        i, f, g, o = np.split(gates + h @ arrays[f"weight_hh_{end}"].T + arrays[f"bias_hh_{end}"], 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.stack(out)


def paddle_gru(arrays, x, end="l0"):
    """Paddle's cell: gates in the order r, z, c, the reset gate behind the product."""
    hidden = arrays[f"weight_hh_{end}"].shape[1]
    h = np.zeros((x.shape[1], hidden), "f4")
    out = []
    for step in x:
        ri, zi, ci = np.split(step @ arrays[f"weight_ih_{end}"].T + arrays[f"bias_ih_{end}"], 3, -1)
        rh, zh, ch = np.split(h @ arrays[f"weight_hh_{end}"].T + arrays[f"bias_hh_{end}"], 3, -1)
        z = sigmoid(zi + zh)
        h = z * h + (1 - z) * np.tanh(ci + sigmoid(ri + rh) * ch)
        out.append(h)
    return np.stack(out)


@pytest.mark.parametrize(("op", "gates", "cell"), [("LSTM", 4, paddle_lstm), ("GRU", 3, paddle_gru)])
def test_the_order_of_gates_by_what_they_compute(tmp_path, op, gates, cell):
    rng = np.random.default_rng(1)
    size, hidden = 3, 2
    parameters = {
        "w": rng.standard_normal((1, gates * hidden, size)).astype("f4"),
        "r": rng.standard_normal((1, gates * hidden, hidden)).astype("f4"),
        "b": rng.standard_normal((1, 2 * gates * hidden)).astype("f4"),
    }
    x = rng.standard_normal((5, 1, size)).astype("f4")
    extra = {"linear_before_reset": 1} if op == "GRU" else {}
    nodes = [helper.make_node(op, ["x", "w", "r", "b"], ["y"], hidden_size=hidden, **extra)]
    model, (expected,) = run_onnx(nodes, parameters, x, ["y"])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    (found,) = weighted_ops(load_program(tmp_path / "m.onnx"))
    assert found.kind == op.lower()
    np.testing.assert_allclose(
        cell(found.arrays, x), np.asarray(expected).reshape(5, 1, hidden), rtol=1e-4, atol=1e-6
    )


def onnx_lstm(name, x, hidden=2, size=3, directions=1):
    rows = 4 * hidden
    parameters = {
        f"{name}.w": random(directions, rows, size),
        f"{name}.r": random(directions, rows, hidden),
        f"{name}.b": random(directions, 2 * rows),
    }
    return node("LSTM", [x, *parameters], f"{name}.y"), parameters


def test_stacked_layers_are_one_operation():
    (first, a), (second, b) = onnx_lstm("a", "x", directions=2), onnx_lstm("b", "r", size=4, directions=2)
    between = [node("Transpose", ["a.y"], "t", perm=(0, 2, 1, 3)), node("Reshape", ["t", "s"], "r")]
    parameters = {**a, **b, "s": np.array([0, 0, -1])}
    ops = weighted_ops(program([first, *between, second], parameters))
    assert len(ops) == 1 and len(ops[0].arrays) == 16
    assert ops[0].arrays["weight_ih_l1_reverse"].shape == (8, 4)
    assert ops[0].source["weight_ih_l1_reverse"] == "b.w"
    relu = node("Relu", ["t"], "u")
    between = [between[0], relu, node("Reshape", ["u", "s"], "r")]
    assert len(weighted_ops(program([first, *between, second], parameters))) == 2


@pytest.mark.parametrize("options", [{"hidden": 3}, {"directions": 2}])
def test_chained_layers_of_another_make_are_two_operations(options):
    (first, a), (second, b) = onnx_lstm("a", "x"), onnx_lstm("b", "a.y", **options)
    assert len(weighted_ops(program([first, second], {**a, **b}))) == 2


def test_recurrent_shapes_that_do_not_fit_are_reported_as_other():
    lstm, parameters = onnx_lstm("a", "x")
    ops = weighted_ops(program([lstm], {**parameters, "a.b": random(1, 3)}))
    assert [op.kind for op in ops] == ["other"] and set(ops[0].arrays) == {"w", "r", "b"}


@pytest.mark.parametrize(
    ("mode", "kind"), [("LSTM", "lstm"), ("GRU", "gru"), ("RNN_TANH", "rnn"), ("RNN_RELU", "rnn")]
)
def test_the_weight_list_of_paddle(mode, kind):
    names = ["w_ih", "w_hh", "b_ih", "b_hh"]
    parameters = {name: random(8, 2) if name[0] == "w" else random(8) for name in names}
    rnn = node("rnn", ["x", *names], "y", "Input" + " WeightList" * 4, "Out", mode=mode, num_layers=1)
    ops = weighted_ops(program([rnn], parameters, "pdmodel"))
    assert ops[0].kind == kind
    assert ops[0].source == dict(zip(["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"], names))
    short = node("rnn", ["x", *names[:3]], "y", "Input" + " WeightList" * 3, "Out", mode=mode, num_layers=1)
    assert [op.kind for op in weighted_ops(program([short], parameters, "pdmodel"))] == ["other"]


def test_control_flow_is_walked():
    body = (CONV, node("Add", ["c", "b"], "y"))
    loop = Node("If", "if", ("x",), ("z",), blocks=(body,))
    ops = weighted_ops(program([loop], {"w": W, "b": random(1, 4, 1, 1)}))
    assert kinds(ops) == [("conv", {"weight": (4, 3, 3, 3), "bias": (4,)})]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (node("Conv", ["x", "w"], "y", group="many"), None),
        (
            node("ConvTranspose", ["x", "w"], "y", group={}),
            "the operation 'y' .ConvTranspose. does not fit its weights",
        ),
        (node("Gemm", ["x", "m"], "y", alpha="half"), "the operation 'y' .Gemm. does not fit its weights"),
    ],
)
def test_attributes_of_a_damaged_program(made, message):
    if message is None:
        assert len(weighted_ops(program([made], {"w": W}))) == 1
        return
    with pytest.raises(FormatError, match=message):
        weighted_ops(program([made], {"w": W, "m": M}))
