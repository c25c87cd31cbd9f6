"""framework.vision.ops whose results have any length: their padded forms say the same, and run in a program."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError, TraceError
from framework.vision import ops
from framework.vision.ops import suppression
from tools.golden.cases import draw_boxes, op_cases

BY_NAME = {case.name: case for case in op_cases()}


def arrays(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    case = BY_NAME[name]
    return {key: jnp.asarray(value) for key, value in case.inputs().items()}, dict(case.options)


@pytest.mark.parametrize("name", ["nms/scores", "nms/top_k"])
def test_nms(name: str) -> None:
    inputs, options = arrays(name)
    expected = np.asarray(ops.nms(**inputs, **options))
    found = np.asarray(jax.jit(lambda **inputs: ops.nms(**inputs, **options, padded=True))(**inputs))
    assert found.shape == (options.get("top_k", len(inputs["boxes"])),)
    assert found[: len(expected)].tolist() == expected.tolist() and (found[len(expected) :] == -1).all()


def test_nms_by_hand() -> None:
    boxes = jnp.asarray(
        [[0, 0, 10, 10], [1, 0, 10, 10], [20, 0, 30, 10], [0, 0, 0, 0], [0, 0, 0, 0]], jnp.float32
    )
    scores = jnp.asarray([0.5, 0.9, 0.1, 0.3, 0.2])
    assert ops.nms(boxes, 0.5, scores).tolist() == [1, 3, 4, 2]
    assert ops.nms(boxes, 0.5, scores, top_k=2).tolist() == [1, 3]
    assert ops.nms(boxes, 0.5).tolist() == [0, 2, 3, 4]
    assert ops.nms(jnp.zeros((0, 4)), 0.5).tolist() == []
    assert ops.nms(jnp.zeros((0, 4)), 0.5, jnp.zeros(0), jnp.zeros(0, jnp.int32), [1]).tolist() == []


def test_matrix_nms() -> None:
    inputs, options = arrays("matrix_nms/linear")
    rows, counts, index = ops.matrix_nms(**inputs, **options, return_index=True)
    assert counts is not None and index is not None
    padded = jax.jit(lambda **inputs: ops.matrix_nms(**inputs, **options, return_index=True, padded=True))(
        **inputs
    )
    assert padded[0].shape == (2, options["keep_top_k"], 6)
    for image, count in enumerate(np.asarray(counts)):
        start = int(np.asarray(counts)[:image].sum())
        np.testing.assert_allclose(padded[0][image, :count], rows[start : start + count], rtol=1e-6)
        assert not padded[0][image, count:].any()
        places = np.asarray(padded[2][image, :count]) + image * inputs["bboxes"].shape[1]
        assert places.tolist() == np.asarray(index)[start : start + count, 0].tolist()
    assert ops.matrix_nms(**inputs, **options, return_rois_num=False)[1:] == (None, None)


def test_distribute_fpn_proposals() -> None:
    inputs, options = arrays("distribute_fpn_proposals/offset")
    levels, restore, counts = ops.distribute_fpn_proposals(**inputs, **options)
    np.testing.assert_array_equal(jnp.concatenate(levels)[restore[:, 0]], inputs["fpn_rois"])
    padded = jax.jit(lambda **inputs: ops.distribute_fpn_proposals(**inputs, **options, padded=True))(
        **inputs
    )
    np.testing.assert_array_equal(jnp.concatenate(padded[0])[padded[1][:, 0]], inputs["fpn_rois"])
    assert [count.tolist() for count in padded[2]] == [count.tolist() for count in counts]
    empty = ops.distribute_fpn_proposals(jnp.zeros((0, 4)), 2, 3, 3, 224)
    assert [level.shape for level in empty[0]] == [(0, 4)] * 2 and empty[1].shape == (0, 1)


def test_generate_proposals() -> None:
    inputs, options = arrays("generate_proposals/plain")
    boxes, scores, counts = ops.generate_proposals(**inputs, **options)
    padded = jax.jit(lambda **inputs: ops.generate_proposals(**inputs, **options, padded=True))(**inputs)
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
    with pytest.raises(ShapeError, match="these are no boxes"):
        ops.nms(jnp.zeros((3, 5)))
    with pytest.raises(ShapeError, match=r"nms\.scores"):
        ops.nms(boxes, 0.3, jnp.zeros(2))
    with pytest.raises(ConfigError, match="categories need scores"):
        ops.nms(boxes, 0.3, scores, category_idxs=jnp.zeros(3, jnp.int32))
    with pytest.raises(ConfigError, match="more than there are boxes"):
        ops.nms(boxes, 0.3, scores, top_k=4)
    with pytest.raises(ShapeError, match=r"\[N, C, M\]"):
        ops.matrix_nms(boxes[None], jnp.zeros((1, 2, 4)), 0.0, 0.0, 1, 1)
    with pytest.raises(ConfigError, match="these are no levels"):
        ops.distribute_fpn_proposals(boxes, 3, 3, 3, 224)
    with pytest.raises(ShapeError, match="do not belong together"):
        ops.generate_proposals(
            jnp.zeros((1, 2, 2, 3)), jnp.zeros((1, 2, 2, 4)), jnp.ones((1, 2)), boxes, boxes
        )


def test_nms_compiles_few_programs() -> None:
    before = suppression._nms._cache_size()  # pyright: ignore[reportFunctionMemberAccess]
    rng = np.random.default_rng(0)
    for count in (0, 1, 7, 63, 64):
        boxes = jnp.asarray(draw_boxes(rng, count)) if count else jnp.zeros((0, 4))
        scores = jnp.asarray(rng.normal(size=count), jnp.float32)  # padding scores more than some
        found = ops.nms(boxes, 0.4, scores).tolist()
        assert found == [i for i in ops.nms(boxes, 0.4, scores, padded=True).tolist() if i >= 0]
        assert found == sorted(found, key=lambda place: -float(scores[place]))
    programs = suppression._nms._cache_size() - before  # pyright: ignore[reportFunctionMemberAccess]
    assert programs <= 6  # one for all, and one for each padded=True
