"""Operators of Paddle's older programs: sequences with lengths, recurrences over them, updates, metrics, matching."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import OarError, ShapeError
from framework.paddle._kernel.operators import is_operator, run_operator
from framework.paddle.legacy_operators import Levels

X = np.arange(10.0).reshape(5, 2)
LOD = [[2, 0, 3]]


def _run(
    op: str,
    attrs: dict[str, object] | None = None,
    lod: dict[str, Levels] | None = None,
    slots: dict[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    inputs = {"X": X} if slots is None else slots
    tensors = {slot: [paddle.to_tensor(array)] for slot, array in inputs.items()}
    lengths = {slot: [levels] for slot, levels in (lod if lod is not None else {"X": LOD}).items()}
    results = run_operator(op, tensors, attrs or {}, {"Out": 1}, lengths)
    return {slot: values[0].numpy() for slot, values in results.items()}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("SUM", [[2, 4], [9, 9], [18, 21]]),
        ("AVERAGE", [[1, 2], [9, 9], [6, 7]]),
        ("MAX", [[2, 3], [9, 9], [8, 9]]),
        ("FIRST", [[0, 1], [9, 9], [4, 5]]),
        ("LAST", [[2, 3], [9, 9], [8, 9]]),
    ],
)
def test_sequences_are_pooled(kind: str, expected: list[list[float]]):
    assert _run("sequence_pool", {"pooltype": kind, "pad_value": 9.0})["Out"].tolist() == expected


def test_sequences_are_padded_reversed_and_cut():
    padded = _run("sequence_pad", slots={"X": X, "PadValue": np.array([7.0])})
    assert padded["Out"].shape == (3, 3, 2) and padded["Out"][0].tolist() == [[0, 1], [2, 3], [7, 7]]
    assert padded["Length"].tolist() == [2, 0, 3]
    assert _run("sequence_reverse")["Y"][:, 0].tolist() == [2, 0, 8, 6, 4]
    cut = {"X": X, "Offset": np.array([[1], [0], [0]]), "Length": np.array([[1], [0], [2]])}
    assert _run("sequence_slice", slots=cut)["Out"][:, 0].tolist() == [2, 4, 6]
    softmax = _run("sequence_softmax", slots={"X": X[:, :1]})["Out"]
    np.testing.assert_allclose([softmax[:2].sum(), softmax[2:].sum()], [1, 1])


def test_a_convolution_does_not_cross_the_ends_of_sequences():
    weight = np.eye(2).repeat(2, 0)[[0, 2, 1, 3]]  # the row before, and the row
    out = _run("sequence_conv", {"contextStart": -1, "contextLength": 2}, slots={"X": X, "Filter": weight})
    assert out["Out"][:, 0].tolist() == [0, 2, 4, 10, 14]


def test_lengths_that_are_missing_or_do_not_add_up_are_told():
    cases: list[dict[str, Levels]] = [{}, {"X": [[2, 2]]}]
    for lod in cases:
        with pytest.raises(ShapeError, match="lengths of the sequences of 'X' must add up"):
            _run("sequence_pool", lod=lod)
    with pytest.raises(OarError, match="not known"):
        run_operator("no_such_operator", {}, {}, {"Out": 1})


def test_recurrences_agree_with_one_sequence_alone():
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(5, 12)), rng.normal(size=(3, 12))
    both = _run("lstm", {"use_peepholes": False}, {"Input": LOD}, {"Input": x, "Weight": weight})["Hidden"]
    last = _run("lstm", {"use_peepholes": False}, {"Input": [[3]]}, {"Input": x[2:], "Weight": weight})
    np.testing.assert_allclose(both[2:], last["Hidden"], rtol=1e-12)
    gru = {"Input": x[:, :9], "Weight": weight[:, :9]}
    ahead = _run("gru", {}, {"Input": LOD}, gru)["Hidden"]
    gru["Input"] = np.concatenate([x[1::-1, :9], x[:1:-1, :9]])
    behind = _run("gru", {"is_reverse": True}, {"Input": LOD}, gru)["Hidden"]
    np.testing.assert_allclose(ahead[[1, 0, 4, 3, 2]], behind, rtol=1e-12)


def test_gradients_pass_through_and_the_program_is_compiled_once(monkeypatch: pytest.MonkeyPatch):
    from framework.paddle._kernel import operators

    x = paddle.to_tensor(X, stop_gradient=False)
    monkeypatch.setattr(operators, "_programs", {})
    for _ in range(2):
        run_operator("sequence_pool", {"X": [x]}, {"pooltype": "AVERAGE"}, {"Out": 1}, {"X": [LOD]})["Out"][
            0
        ].sum().backward()
    assert len(operators._programs) == 1
    np.testing.assert_allclose(x.grad.numpy()[:, 0], np.array([0.5, 0.5, 1 / 3, 1 / 3, 1 / 3]) * 2)


def test_updates_metrics_and_matching():
    update = {"Param": X, "Grad": np.ones_like(X), "LearningRate": np.array([0.5])}
    assert _run("sgd", slots=update)["ParamOut"][0].tolist() == [-0.5, 0.5]
    distance = np.array([[0.9, 0.2, 0.6], [0.8, 0.1, 0.0]])
    match = _run("bipartite_match", {"match_type": "per_prediction"}, {}, {"DistMat": distance})
    assert match["ColToRowMatchIndices"].tolist() == [[0, 1, 0]]
    tags = np.array([0, 1, 2, 0])  # IOB, one type: B I O B
    chunks = {"Inference": tags, "Label": np.array([0, 1, 2, 2])}
    counts = _run("chunk_eval", {"chunk_scheme": "IOB", "num_chunk_types": 1}, {"Label": [[4]]}, chunks)
    assert [counts[f"Num{kind}Chunks"].item() for kind in ("Infer", "Label", "Correct")] == [2, 1, 1]
    align = _run(
        "ctc_align", {}, {"Input": [[4, 3]]}, {"Input": np.array([[0], [1], [1], [2], [3], [0], [3]])}
    )
    assert align["Output"].ravel().tolist() == [1, 2, 3, 3]


def test_a_linear_chain_sums_to_one_over_all_labels():
    emission, transition = np.random.default_rng(1).normal(size=(2, 2)), np.zeros((4, 2))
    total = 0.0
    for labels in ((0, 0), (0, 1), (1, 0), (1, 1)):
        inputs = {"Emission": emission, "Transition": transition, "Label": np.array(labels)[:, None]}
        lod: dict[str, Levels] = {"Emission": [[2]], "Label": [[2]]}
        total += float(np.exp(-_run("linear_chain_crf", {}, lod, inputs)["LogLikelihood"]).item())
    assert total == pytest.approx(1)


def test_operators_stand_under_their_names():
    names = ("attention_lstm", "var_conv_2d", "fusion_gru", "data_norm", "nce", "density_prior_box", "ftrl")
    assert all(map(is_operator, names))


def test_an_operator_runs_on_the_values_of_a_scope():
    from framework.paddle.op_test import Operator
    from framework.paddle.static.scope import Scope

    scope = Scope()
    for name, value in (("w", np.ones((4, 2), np.float32)), ("rate", np.array([0.5], np.float32))):
        scope.var(name).get_tensor().set(value, None)
    rows = scope.var("g").get_selected_rows()
    rows.set_height(4)
    rows.set_rows([1, 1])
    rows.get_tensor().set(np.ones((2, 2), np.float32), None)
    Operator("sgd", Param="w", Grad="g", LearningRate="rate", ParamOut="w").run(scope, None)
    assert np.array(scope.var("w").get_tensor())[:, 0].tolist() == [1, 0, 1, 1]
    Operator("scale", X="g", Out="g", scale=3.0).run(scope, None)
    assert np.array(rows.get_tensor()).tolist() == [[3, 3], [3, 3]] and rows.rows() == [1, 1]
    with pytest.raises(OarError, match="not known"):
        Operator("no_such_operator", X="w", Out="w").run(scope, None)


def test_activations_are_fused_along_an_axis():
    x, y = np.ones((2, 3, 4), np.float32), np.array([[1.0, -1, 2]] * 2, np.float32)
    attrs: dict[str, object] = {"functor_list": ["elementwise_add", "relu"], "axis": 0}
    out = _run("fused_elemwise_activation", attrs, {}, {"X": x, "Y": y})
    assert out["Out"][0, :, 0].tolist() == [2, 1, 3] and out["IntermediateOut"].shape == (2, 3)


def test_beam_search_goes_on_with_the_best_of_each_source():
    """The first source has a prefix that ended, the second one has no other; the values are those of Paddle 2.6.2."""
    from framework.paddle.base import core
    from framework.paddle.op_test import Operator

    scope = core.Scope()
    arrays = {
        "pre_ids": np.array([[1], [0], [0], [4]]),
        "pre_scores": np.float32([[0.1], [1.2], [0.5], [0.4]]),
        "ids": np.array([[4, 2], [7, 3], [3, 5], [8, 1]]),
        "scores": np.float32([[0.6, 0.9], [0.5, 0.3], [0.9, 0.5], [0.6, 0.7]]),
    }
    for name, array in arrays.items():
        scope.var(name).get_tensor().set(array, None)
        scope.var(name).get_tensor().set_lod([[0, 2, 3, 4], [0, 1, 2, 3, 4]])
    slots = {name: name for name in (*arrays, "selected_ids", "selected_scores", "parent_idx")}
    Operator("beam_search", **slots, level=0, beam_size=2, end_id=0, is_accumulated=True).run(scope, None)
    ids = scope.find_var("selected_ids").get_tensor()
    assert np.asarray(ids).ravel().tolist() == [2, 0, 1, 8]
    assert ids.lod() == [[0, 2, 3, 4], [0, 1, 2, 2, 4]]
    np.testing.assert_array_equal(
        np.asarray(scope.find_var("selected_scores").get_tensor()).ravel(), np.float32([0.9, 1.2, 0.7, 0.6])
    )
    assert np.asarray(scope.find_var("parent_idx").get_tensor()).tolist() == [0, 1, 3, 3]


def _run_recorded(kind: str, slot: str, inputs: dict[str, np.ndarray], **attrs: object) -> np.ndarray:
    """The output `slot` of an operator of a static program."""
    paddle.enable_static()
    try:
        program = paddle.static.Program()
        with paddle.static.program_guard(program):
            block = program.global_block()
            names = {name: paddle.static.data(name, one.shape, one.dtype) for name, one in inputs.items()}
            out = block.create_var(name="out", dtype="float32")
            block.append_op(type=kind, inputs=names, outputs={slot: out}, attrs=attrs)
            return paddle.static.Executor().run(program, feed=inputs, fetch_list=["out"])[0]
    finally:
        paddle.disable_static()


def test_images_with_sizes_of_their_own_are_refused() -> None:
    sizes = np.full((2, 2), 4, np.float32)
    with pytest.raises(ShapeError, match="2 images with sizes of their own"):
        _run_recorded(
            "im2sequence",
            "Out",
            {"X": np.zeros((2, 1, 3, 4), np.float32), "Y": sizes},
            kernels=[2, 2],
            strides=[1, 1],
            paddings=[0, 0, 0, 0],
            out_stride=[2, 2],
        )


def test_recorded_positions_of_no_numbers_gather_the_whole() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    picked = _run_recorded("gather_nd", "Out", {"X": x, "Index": np.zeros((2, 0), np.int32)})
    np.testing.assert_array_equal(picked, np.stack([x, x]))
