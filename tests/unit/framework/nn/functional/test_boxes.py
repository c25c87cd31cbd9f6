"""Boxes in programs: IoU by hand, suppression in all its forms; forms of fixed shapes say what the others do."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError, TraceError
from framework.nn.functional import boxes as F
from framework.nn.functional import proposals
from framework.vision import boxes as host_boxes
from framework.vision import ops
from tools.golden.cases import draw_boxes, op_cases

BY_NAME = {case.name: case for case in op_cases()}


def arrays(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    case = BY_NAME[name]
    options = {key: value for key, value in case.options.items() if key != "return_rois_num"}
    return {key: jnp.asarray(value) for key, value in case.inputs().items()}, options


A = jnp.asarray([0.0, 0, 4, 4])
B = jnp.asarray([2.0, 2, 6, 6])  # shares 4 of 28, in a hull of 36
FAR = jnp.asarray([8.0, 0, 12, 4])


def test_area_of_inverted_boxes_is_zero() -> None:
    boxes = jnp.asarray([[0.0, 0, 3, 2], [3, 0, 0, 2], [1, 1, 1, 1]])
    assert F.area(boxes).tolist() == [6, 0, 0]


def test_iou_and_giou_by_hand() -> None:
    assert float(F.iou(A, B)) == pytest.approx(4 / 28)
    assert float(F.iou(A, B, "giou")) == pytest.approx(4 / 28 - 8 / 36)
    assert float(F.iou(A, FAR, "giou")) == pytest.approx(-16 / 48)  # hull 12 x 4
    assert float(F.iou(A, A, "giou")) == pytest.approx(1)


def test_pairs_are_rows_by_columns() -> None:
    ious = F.pairwise_iou(jnp.stack([A, B]), jnp.stack([A, B, FAR]))
    np.testing.assert_allclose(ious, [[1, 1 / 7, 0], [1 / 7, 1, 0]], atol=1e-6)
    gious = F.pairwise_iou(jnp.stack([A]), jnp.stack([FAR, A]), "giou")
    np.testing.assert_allclose(gious, [[-1 / 3, 1]], atol=1e-6)


def test_empty_boxes_have_finite_gradients() -> None:
    empty = jnp.zeros(4)
    assert float(F.iou(empty, empty)) == 0
    assert float(F.iou(empty, empty, "giou")) == 0
    assert np.isfinite(jax.grad(lambda a: F.iou(a, empty, "giou"))(empty)).all()


def test_inclusive_pixels_count_one_more() -> None:
    """Of 5 x 5 pixels each two boxes share 3 x 3; those a pixel apart share nothing, in both twins."""
    a, others = (
        jnp.asarray([0.0, 0, 4, 4]),
        jnp.asarray([[2.0, 2, 6, 6], [4, 0, 8, 4], [4.5, 0, 8, 4], [3, 3, 1, 1]]),
    )
    found = F.iou(a, others, offset=1, exact=True)
    np.testing.assert_allclose(found, [9 / 41, 5 / 45, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(
        host_boxes.iou(np.asarray(a)[None], np.asarray(others), 1.0)[0], found, rtol=1e-6
    )


def greedy(boxes: np.ndarray, threshold: float, eta: float, offset: float) -> list[int]:
    """The rule as a loop: a box is held against all that stayed, by the threshold of its turn."""
    overlap = np.asarray(F.iou(jnp.asarray(boxes)[:, None], jnp.asarray(boxes), offset=offset, exact=True))
    limit, kept = np.float32(threshold), []
    for one in range(len(boxes)):
        if (overlap[one, kept] <= limit).all():
            kept.append(one)
            limit = limit * np.float32(eta) if limit > 0.5 else limit
    return kept


@pytest.mark.parametrize(
    ("threshold", "eta", "offset"), [(0.4, 1.0, 0.0), (0.9, 0.8, 0.0), (0.7, 0.9, 1.0), (0.0, 1.0, 1.0)]
)
def test_twins_suppress_alike(threshold: float, eta: float, offset: float) -> None:
    boxes = draw_boxes(np.random.default_rng(3), 80, empty=4)
    want = greedy(boxes, threshold, eta, offset)
    limits = {"eta": np.float32(eta), "offset": offset}
    assert 5 < len(want) < 80
    assert host_boxes.suppress(boxes, np.float32(threshold), **limits).tolist() == want
    assert host_boxes.suppress(boxes, threshold, count=3, **limits).tolist() == want[:3]
    picked = F.pick_boxes(jnp.asarray(boxes), jnp.ones(80, bool), 80, threshold, eta, offset)
    assert picked.tolist() == want + [-1] * (80 - len(want))
    if eta == 1 and not offset:
        assert (
            np.flatnonzero(F.suppress_boxes(jnp.asarray(boxes), jnp.ones(80, bool), threshold)).tolist()
            == want
        )


def test_invalid_boxes_neither_stay_nor_suppress() -> None:
    boxes = jnp.asarray([[0, 0, 10, 10], [0, 0, 10, 8], [20, 20, 30, 30]], jnp.float32)
    valid = jnp.asarray([False, True, True])
    assert F.suppress_boxes(boxes, valid, 0.5).tolist() == [False, True, True]
    assert F.pick_boxes(boxes, valid, 3, 0.5).tolist() == [1, 2, -1]
    assert F.pick_boxes(boxes, valid, 1, 0.5).tolist() == [1]
    assert F.pick_boxes(jnp.zeros((0, 4)), jnp.zeros(0, bool), 2, 0.5).tolist() == [-1, -1]


@pytest.mark.parametrize("name", ["nms/scores", "nms/top_k"])
def test_nms(name: str) -> None:
    inputs, options = arrays(name)
    expected = np.asarray(F.nms(**inputs, **options))
    found = np.asarray(jax.jit(lambda **inputs: F.nms(**inputs, **options, padded=True))(**inputs))
    assert found.shape == (options.get("top_k", len(inputs["boxes"])),)
    assert found[: len(expected)].tolist() == expected.tolist() and (found[len(expected) :] == -1).all()


def test_nms_by_hand() -> None:
    boxes = jnp.asarray(
        [[0, 0, 10, 10], [1, 0, 10, 10], [20, 0, 30, 10], [0, 0, 0, 0], [0, 0, 0, 0]], jnp.float32
    )
    scores = jnp.asarray([0.5, 0.9, 0.1, 0.3, 0.2])
    assert F.nms(boxes, 0.5, scores).tolist() == [1, 3, 4, 2]
    assert F.nms(boxes, 0.5, scores, top_k=2).tolist() == [1, 3]
    assert F.nms(boxes, 0.5).tolist() == [0, 2, 3, 4]
    assert F.nms(jnp.zeros((0, 4)), 0.5).tolist() == []
    assert F.nms(jnp.zeros((0, 4)), 0.5, jnp.zeros(0), jnp.zeros(0, jnp.int32), [1]).tolist() == []


def test_matrix_nms() -> None:
    inputs, options = arrays("matrix_nms/linear")
    rows, counts, index = F.matrix_nms(**inputs, **options)
    padded = jax.jit(lambda **inputs: F.matrix_nms(**inputs, **options, padded=True))(**inputs)
    assert padded[0].shape == (2, options["keep_top_k"], 6)
    for image, count in enumerate(np.asarray(counts)):
        start = int(np.asarray(counts)[:image].sum())
        np.testing.assert_allclose(padded[0][image, :count], rows[start : start + count], rtol=1e-6)
        assert not padded[0][image, count:].any()
        places = np.asarray(padded[2][image, :count]) + image * inputs["bboxes"].shape[1]
        assert places.tolist() == np.asarray(index)[start : start + count, 0].tolist()


def test_distribute_fpn_proposals() -> None:
    inputs, options = arrays("distribute_fpn_proposals/offset")
    levels, restore, counts = proposals.distribute_fpn_proposals(**inputs, **options)
    np.testing.assert_array_equal(jnp.concatenate(levels)[restore[:, 0]], inputs["fpn_rois"])
    padded = jax.jit(lambda **inputs: proposals.distribute_fpn_proposals(**inputs, **options, padded=True))(
        **inputs
    )
    np.testing.assert_array_equal(jnp.concatenate(padded[0])[padded[1][:, 0]], inputs["fpn_rois"])
    assert [count.tolist() for count in padded[2]] == [count.tolist() for count in counts]
    empty = proposals.distribute_fpn_proposals(jnp.zeros((0, 4)), 2, 3, 3, 224)
    assert [level.shape for level in empty[0]] == [(0, 4)] * 2 and empty[1].shape == (0, 1)


def test_generate_proposals() -> None:
    inputs, options = arrays("generate_proposals/plain")
    boxes, scores, counts = proposals.generate_proposals(**inputs, **options)
    padded = jax.jit(lambda **inputs: proposals.generate_proposals(**inputs, **options, padded=True))(
        **inputs
    )
    assert padded[2].tolist() == np.asarray(counts).tolist() and padded[0].shape == (2, 45, 4)
    first = int(padded[2][0])
    np.testing.assert_allclose(padded[0][0, :first], boxes[:first], rtol=1e-6)
    np.testing.assert_allclose(padded[1][1, : len(scores) - first], scores[first:, 0], rtol=1e-6)
    assert not padded[0][0, first:].any() and not padded[1][0, first:].any()


@pytest.mark.parametrize(
    "name", ["nms/scores", "matrix_nms/linear", "distribute_fpn_proposals/plain", "generate_proposals/plain"]
)
def test_without_padding_a_trace_is_refused(name: str) -> None:
    inputs, options = arrays(name)
    with pytest.raises(TraceError, match="padded=True"):
        jax.jit(lambda **inputs: getattr(ops, BY_NAME[name].op)(**inputs, **options))(**inputs)


def test_messages() -> None:
    boxes, scores = jnp.zeros((3, 4)), jnp.zeros(3)
    with pytest.raises(ShapeError, match="boxes must be an array"):
        F.nms(jnp.zeros((3, 5)))
    with pytest.raises(ShapeError, match=r"nms\.scores"):
        F.nms(boxes, 0.3, jnp.zeros(2))
    with pytest.raises(ConfigError, match="categories need scores"):
        F.nms(boxes, 0.3, scores, category_idxs=jnp.zeros(3, jnp.int32))
    with pytest.raises(ConfigError, match="more than there are boxes"):
        F.nms(boxes, 0.3, scores, top_k=4)
    with pytest.raises(ShapeError, match=r"\[N, C, M\]"):
        F.matrix_nms(boxes[None], jnp.zeros((1, 2, 4)), 0.0, 0.0, 1, 1)
    with pytest.raises(ConfigError, match="the levels must ascend from 1"):
        proposals.distribute_fpn_proposals(boxes, 3, 3, 3, 224)
    with pytest.raises(ShapeError, match="do not belong together"):
        proposals.generate_proposals(
            jnp.zeros((1, 2, 2, 3)), jnp.zeros((1, 2, 2, 4)), jnp.ones((1, 2)), boxes, boxes
        )


def test_nms_compiles_few_programs() -> None:
    before = F._nms._cache_size()  # pyright: ignore[reportFunctionMemberAccess]
    rng = np.random.default_rng(0)
    for count in (0, 1, 7, 63, 64):
        boxes = jnp.asarray(draw_boxes(rng, count)) if count else jnp.zeros((0, 4))
        scores = jnp.asarray(rng.normal(size=count), jnp.float32)  # padding scores more than some
        found = F.nms(boxes, 0.4, scores).tolist()
        assert found == [i for i in F.nms(boxes, 0.4, scores, padded=True).tolist() if i >= 0]
        assert found == sorted(found, key=lambda place: -float(scores[place]))
    programs = F._nms._cache_size() - before  # pyright: ignore[reportFunctionMemberAccess]
    assert programs <= 6  # one for all, and one for each padded=True
