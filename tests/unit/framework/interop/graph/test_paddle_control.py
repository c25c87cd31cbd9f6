"""What Paddle's control flow and its suppression of boxes refuse, on programs of a few nodes."""

import jax
import numpy as np
import pytest

from framework import jit
from framework.core.errors import FormatError, ShapeError, TraceError
from framework.interop.graph.paddle import build_paddle_layer
from framework.interop.programs.program import Node, Program, Signature, TensorSpec


def op(name, inputs="", outputs="", *, blocks=(), signatures=(), **attrs):
    """A node; inputs and outputs as "Slot:name ..."."""
    slots = [[pair.split(":") for pair in text.split()] for text in (inputs, outputs)]
    names, kinds = ([tuple(pair[at] for pair in side) for side in slots] for at in (1, 0))
    return Node(name, f"{name}#0", names[0], names[1], attrs, kinds[0], kinds[1], blocks, signatures)


def program(*nodes, inputs=("x",), outputs=("y",)):
    def specs(names):
        return tuple(TensorSpec(name, (), "float32") for name in names)

    return Program("pdmodel", "2.6.2", nodes, {}, specs(inputs), specs(outputs), name="m.pdmodel")


def layer_of(*nodes, **ends):
    return build_paddle_layer(program(*nodes, **ends))


def number(name, value, dtype=3):
    return op("fill_constant", "", f"Out:{name}", shape=(1,), value=float(value), dtype=dtype)


X = np.ones((2, 3), np.float32)
COUNT = op("increment", "X:i", "Out:i", step=1.0)
BELOW = op("less_than", "X:i Y:n", "Out:go")


def loop(*body, rounds=50, state=()):
    """i counts to `rounds`; the loop's other state is what the body writes."""
    inner = (*body, COUNT, BELOW)
    outputs = "".join(f" Out:{name}" for name in ("i", *state))
    return [number("i", 0), number("n", rounds), BELOW, op("while", "Condition:go", outputs, blocks=(inner,))]


APPEND = (
    op("lod_array_length", "X:list", "Out:end"),
    op("write_to_array", "X:x I:end", "Out:list"),
)
JOIN = op("tensor_array_to_tensor", "X:list", "Out:y", axis=0, use_stack=True)
BRANCH = (op("reduce_sum", "X:x", "Out:sum", reduce_all=True), number("zero", 0, 5),
          op("greater_than", "X:sum Y:zero", "Out:flag"))  # fmt: skip


def test_a_list_of_a_loop_that_is_compiled():
    layer = layer_of(*loop(*APPEND, *APPEND), JOIN)
    for run in (layer, jit.to_static(layer)):
        np.testing.assert_array_equal(run(X), np.ones((100, 2, 3)))


def test_a_list_goes_on_behind_what_was_in_it():
    first = [number("at", 0), op("scale", "X:x", "Out:two", scale=2.0),
             op("write_to_array", "X:two I:at", "Out:list")]  # fmt: skip
    layer = layer_of(*first, *loop(*APPEND), number("which", 50),
                     op("read_from_array", "X:list I:at", "Out:a"),
                     op("read_from_array", "X:list I:which", "Out:b"), outputs=("a", "b"))  # fmt: skip
    for a, b in (layer(X), jit.to_static(layer)(X)):
        np.testing.assert_array_equal([a, b], [2 * X, X])


def test_a_loop_of_many_rounds_goes_on_compiled():
    twice = op("scale", "X:v", "Out:v", scale=1.0, bias=1.0)
    copy = op("assign", "X:x", "Out:v")
    layer = layer_of(copy, *loop(twice, rounds=5000, state=("v",)), op("assign", "X:v", "Out:y"))
    np.testing.assert_array_equal(layer(X), X + 5000)


WRITE_ANYWHERE = (number("at", 3), op("write_to_array", "X:x I:at", "Out:list"))
GROW = op("concat", "X:v X:x", "Out:v", axis=0)
OPEN_LOOP = (op("reduce_sum", "X:x", "Out:n", reduce_all=True), number("i", 0, 5), BELOW)


@pytest.mark.parametrize(
    ("nodes", "kind", "message"),
    [
        ([*loop(*WRITE_ANYWHERE), JOIN], TraceError, "how often it runs, or where it writes, is not known"),
        ([*OPEN_LOOP, op("while", "Condition:go", "Out:i", blocks=((*APPEND, COUNT, BELOW),)), JOIN],
         TraceError, "how often it runs, or where it writes, is not known"),
        ([*loop(*APPEND, op("read_from_array", "X:list I:i", "Out:z")), JOIN],
         TraceError, "a loop reads an array of tensors that it writes"),
        ([op("assign", "X:x", "Out:v"), *loop(GROW, state=("v",)), op("assign", "X:v", "Out:y")],
         TraceError, r"a loop changes the shape of a value\n  received: v: \(2, 3\), then \(4, 3\)"),
        ([*BRANCH, op("conditional_block", "Cond:flag", "Out:list", blocks=(APPEND,)), JOIN],
         TraceError, "a block gives arrays of tensors, and the condition is not known"),
        ([*BRANCH, op("assign", "X:x", "Out:v"),
          op("conditional_block", "Cond:flag", "Out:v", blocks=((GROW,),)), op("assign", "X:v", "Out:y")],
         TraceError, r"branches give arrays of different shapes(.|\n)*received: \(4, 3\) and \(2, 3\)"),
        ([*BRANCH, *APPEND, op("assign", "X:list", "Out:other"), *APPEND,
          op("select_input", "X:list X:other Mask:flag", "Out:z"), op("assign", "X:x", "Out:y")],
         TraceError, "branches give arrays of tensors, and the condition is not known"),
    ],
)  # fmt: skip
def test_what_does_not_compile(nodes, kind, message):
    with pytest.raises(kind, match=message):
        jit.to_static(layer_of(*nodes))(X)


ARRAY = op("create_array", "", "Out:list")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([number("at", -1), op("write_to_array", "X:x I:at", "Out:list"), JOIN],
         r"the index of the array is out of range(.|\n)*received: -1"),
        ([ARRAY, number("at", 2), op("read_from_array", "X:list I:at", "Out:y")],
         r"the index of the array is out of range(.|\n)*received: 2(.|\n)*below 0"),
        ([ARRAY, JOIN], "an array of tensors with nothing in it"),
        ([op("lod_array_length", "X:x", "Out:y")], "an array of tensors is needed"),
        ([number("m", 5), op("select_input", "X:x X:x Mask:m", "Out:y")],
         r"the branch that is selected gave nothing(.|\n)*received: 5"),
        ([ARRAY, op("while", "Condition:list", "", blocks=((),)), op("assign", "X:x", "Out:y")],
         "the condition must be a tensor"),
        ([op("set_value", "Input:x ValueTensor:x", "Out:y", axes=(7,), starts=(0,), ends=(1,))],
         r"the axis is out of range(.|\n)*received: \[7\]"),
        ([op("set_value", "Input:x ValueTensor:x", "Out:y", none_axes=(0,))],
         "new axes in an assignment are not supported"),
        ([op("put_along_axis", "Input:x Index:x Value:x", "Result:y", Reduce="mean")],
         r"this way of joining is not supported(.|\n)*received: mean"),
        ([op("multiclass_nms3", "BBoxes:x Scores:x", "Out:y")], "boxes and scores do not belong together"),
    ],
)  # fmt: skip
def test_what_cannot_run(nodes, message):
    with pytest.raises((ShapeError, FormatError), match=message):
        layer_of(*nodes)(X)


def test_maps_that_do_not_fit_their_anchors():
    layer = layer_of(
        op("yolo_box", "X:x ImgSize:s", "Boxes:y", anchors=(1, 2), class_num=2), inputs=("x", "s")
    )
    with pytest.raises(ShapeError, match=r"does not fit the anchors\n(.|\n)*8 channels(.|\n)*\[N, 7, H, W\]"):
        layer(np.ones((1, 8, 2, 2), np.float32), np.ones((1, 2), np.int32))


REGIONS = op("multiclass_nms3", "BBoxes:b Scores:s RoisNum:n", "Out:y Index:at NmsRoisNum:found",
             score_threshold=0.1, nms_threshold=0.5, background_label=-1, keep_top_k=10)  # fmt: skip


def test_suppression_of_regions():
    """Boxes of each class of each region, as two-stage detectors have them; [label, score, box], in their own order."""
    layer = layer_of(REGIONS, inputs=("b", "s", "n"), outputs=("y", "at", "found"))
    box = np.array([0, 0, 4, 4], np.float32)
    boxes = np.stack([[box, box + 9], [box + 0.1, box + 20], [box, box]]).astype(np.float32)
    scores = np.array([[0.5, 0.3], [0.9, 0.05], [0.4, 0.2]], np.float32)
    rows, index, counts = layer(boxes, scores, np.array([2, 1], np.int32))
    np.testing.assert_allclose(rows[:, :2], [[0, 0.9], [1, 0.3], [0, 0.4], [1, 0.2]])
    assert index.ravel().tolist() == [2, 1, 4, 5] and counts.tolist() == [2, 2]
    with pytest.raises(
        ShapeError, match=r"RoisNum does not count the regions\n(.|\n)*\[1, 1\](.|\n)*allowed: 3"
    ):
        layer(boxes, scores, np.array([1, 1], np.int32))
    with pytest.raises(TraceError, match="suppression of regions in a compiled program"):
        jax.jit(lambda *a: layer(*a))(boxes, scores, np.array([2, 1], np.int32))


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (op("write_to_array", "X:x", "Out:list"), r"without saying which, what or where\n(.|\n)*received: \['X'\]"),
        (op("while", "Condition:x"), r"another number of blocks, or no condition(.|\n)*0 blocks, 1 inputs"),
        (op("while", "Condition:x X:x", "Out:y", blocks=((),), signatures=(Signature("", (), ("x",)),)),
         r"takes, changes and gives different numbers of values\n(.|\n)*received: 1, 0, 0, 1"),
        (op("if", "Condition:x", "Out:y", blocks=((), ()), signatures=(Signature("", (), ()),) * 2),
         r"a branch gives another number of values than its condition\n(.|\n)*received: \[0, 0\]"),
    ],
)  # fmt: skip
def test_damaged_control_flow(node, message):
    with pytest.raises(FormatError, match=message):
        layer_of(node)


def test_an_output_that_nothing_makes():
    with pytest.raises(
        FormatError, match=r"m.pdmodel: nothing makes an output of the graph\n  received: \['z'\]"
    ):
        layer_of(op("assign", "X:x", "Out:y"), outputs=("z",))


def test_a_node_of_pir_that_bears_a_name_of_a_program_desc():
    node = Node("relu", "relu#0", ("x",), ("y",))  # pd_op.relu there, without slots
    with pytest.raises(FormatError, match=r"not known here\n  received: relu at relu#0"):
        layer_of(node)
