"""Static programs of sequences with lengths, against the values of paddlepaddle 2.6.2."""

import numpy as np
import pytest

from framework import paddle
from framework.paddle import base
from framework.paddle.static.nn import sequence_lod

ROWS = np.arange(14, dtype="float32").reshape(7, 2)
LENGTHS = [[2, 3, 2]]


@pytest.fixture(autouse=True)
def program():
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program()):
        yield
    paddle.disable_static()


def _fed(lengths=LENGTHS, rows=ROWS):
    return base.create_lod_tensor(rows, lengths, base.CPUPlace())


def _run(feed, *fetches):
    return base.Executor().run(feed=feed, fetch_list=list(fetches), return_numpy=False)


def test_rows_are_pooled_by_the_lengths_that_are_fed():
    x = paddle.static.data("x", [-1, 2], "float32", lod_level=1)
    x.stop_gradient = False
    total, last = sequence_lod.sequence_pool(x, "sum"), sequence_lod.sequence_last_step(x)
    (gradient,) = paddle.static.gradients([paddle.mean(sequence_lod.sequence_pool(x, "max"))], [x])
    for lengths, sums, rows in (
        (LENGTHS, [[2, 4], [18, 21], [22, 24]], [1, 4, 6]),
        ([[1, 2, 4]], [[0, 1], [6, 8], [36, 40]], [0, 2, 6]),
    ):
        out = _run({"x": _fed(lengths)}, total, last, gradient)
        np.testing.assert_array_equal(np.asarray(out[0]), sums)
        np.testing.assert_array_equal(np.asarray(out[1]), ROWS[rows])
        assert out[2].recursive_sequence_lengths() == lengths
        expected = np.zeros_like(ROWS)
        expected[rows] = 1 / 6
        np.testing.assert_allclose(np.asarray(out[2]), expected, rtol=1e-6)


def test_padded_sequences_come_back_with_their_lengths():
    x = paddle.static.data("x", [-1, 2], "float32", lod_level=1)
    padded, length = sequence_lod.sequence_pad(x, paddle.assign(np.array([0.5], "float32")))
    out = _run({"x": _fed()}, padded, length, sequence_lod.sequence_unpad(padded, length))
    assert np.asarray(out[0]).shape == (3, 3, 2)
    np.testing.assert_array_equal(np.asarray(out[0])[0, 2], [0.5, 0.5])
    np.testing.assert_array_equal(np.asarray(out[1]), LENGTHS[0])
    np.testing.assert_array_equal(np.asarray(out[2]), ROWS)
    assert out[2].recursive_sequence_lengths() == LENGTHS
    assert length.dtype == paddle.int64


def test_lengths_go_through_operations_on_rows():
    x = paddle.static.data("x", [-1, 2], "float32", lod_level=1)
    doubled, summed = x * 2, paddle.sum(x, 1, keepdim=True)
    reverse, joined = sequence_lod.sequence_reverse(doubled), sequence_lod.sequence_concat([x, doubled])
    out = _run({"x": _fed()}, reverse, joined, summed)
    np.testing.assert_array_equal(np.asarray(out[0]), 2 * ROWS[[1, 0, 4, 3, 2, 6, 5]])
    assert out[1].recursive_sequence_lengths() == [[4, 6, 4]]
    assert isinstance(out[2], paddle.Tensor)  # a reduction has no lengths
    assert (doubled.lod_level, summed.lod_level) == (1, 0)
    with pytest.raises(RuntimeError, match="hold LoD information"):
        base.Executor().run(feed={"x": _fed()}, fetch_list=[doubled])


def test_windows_of_sequences():
    ids = paddle.static.data("ids", [-1, 1], "int64", lod_level=1)
    x = paddle.static.data("x", [-1, 2], "float32", lod_level=1)
    half = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.5))
    convolved = sequence_lod.sequence_conv(x, 1, 3, param_attr=half, bias_attr=False)
    windows = sequence_lod.sequence_enumerate(ids, 2, 9)
    first, count = (paddle.assign(np.array(values, "int64")) for values in ([[0], [1], [0]], [[1], [1], [2]]))
    cut = sequence_lod.sequence_slice(x, first, count)
    feed = {"x": _fed(), "ids": _fed(rows=np.arange(7).reshape(7, 1))}
    out = _run(feed, convolved, windows, cut, sequence_lod.sequence_reshape(x, 1))
    np.testing.assert_allclose(np.asarray(out[0]).ravel(), [3, 3, 11, 19.5, 15, 23, 23])
    assert np.asarray(out[1]).tolist() == [[0, 1], [1, 9], [2, 3], [3, 4], [4, 9], [5, 6], [6, 9]]
    np.testing.assert_array_equal(np.asarray(out[2]), ROWS[[0, 3, 5, 6]])
    assert out[3].recursive_sequence_lengths() == [[4, 6, 4]]


def test_rows_repeat_by_lengths():
    x = paddle.static.data("x", [-1, 2], "float32", lod_level=1)
    first = sequence_lod.sequence_first_step(x)
    for repeated in (sequence_lod.sequence_expand_as(first, x), sequence_lod.sequence_expand(first, x)):
        np.testing.assert_array_equal(
            np.asarray(_run({"x": _fed()}, repeated)[0]), ROWS[[0, 0, 2, 2, 2, 5, 5]]
        )


def test_what_has_no_lengths_is_refused():
    x = paddle.static.data("x", [-1, 2], "float32")
    with pytest.raises(ValueError, match="lengths of the sequences"):
        _run({"x": ROWS}, sequence_lod.sequence_pool(x, "sum"))
    with pytest.raises(TypeError, match="static mode"):
        sequence_lod.sequence_pool(ROWS, "sum")
    paddle.disable_static()
    with pytest.raises(AssertionError, match="for static mode"):
        sequence_lod.sequence_reverse(paddle.ones([2, 2]))
    paddle.enable_static()
