"""Masks whose values are not known, sizes that are not known, and memory that Tensors share."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from framework import paddle


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("rows", [False, True])
def test_a_mask_of_a_program_puts_values_where_it_is_true(accumulate: bool, rows: bool):
    x = np.arange(6, dtype="float32").reshape(3, 2)
    mask = np.array([True, False, True]) if rows else np.array([[True, False], [True, True], [False, False]])
    value = np.array([[10.0, 20.0], [30.0, 40.0]] if rows else [10.0, 20.0, 30.0], "float32")
    want = x.copy()
    want[mask] = want[mask] + value if accumulate else value
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program()):
        inputs = {"x": x, "mask": mask, "value": value}
        a, b, c = (paddle.static.data(n, list(v.shape), str(v.dtype)) for n, v in inputs.items())
        (out,) = paddle.static.Executor().run(
            feed=inputs, fetch_list=[paddle.index_put(a, [b], c, accumulate)]
        )
    paddle.disable_static()
    assert out.tolist() == want.tolist()
    eager = [paddle.to_tensor(v) for v in (x, mask, value)]
    assert paddle.index_put(eager[0], [eager[1]], eager[2], accumulate).tolist() == want.tolist()


def test_booleans_are_put_and_added():
    x, index = paddle.to_tensor([True, False, False]), paddle.to_tensor([0, 1])
    value = paddle.to_tensor([False, True])
    assert paddle.index_put(x, [index], value, True).tolist() == [True, True, False]
    assert paddle.index_put(x, [index], value).tolist() == [False, True, False]


def test_unknown_sizes_broadcast():
    assert paddle.broadcast_shape([-1, 1, 3], [1, 3, 1]) == [-1, 3, 3]
    assert paddle.broadcast_shape([-1, 2], [3, 2]) == [3, 2]
    with pytest.raises(ValueError):
        paddle.broadcast_shape([2, 1, 3], [3, 3, 1])


def test_tensors_share_memory_and_count_changes():
    source, target = paddle.ones([2, 3]), paddle.zeros([2, 3])
    source._share_buffer_to(target)
    assert source._is_shared_buffer_with(target) and target.tolist() == source.tolist()
    assert source.data_ptr() == target.data_ptr()
    paddle.arange(6)._share_buffer_to(target)
    assert target.tolist() == [[0, 1, 2], [3, 4, 5]]  # its own shape, as in Paddle 2.6.2
    before = source._inplace_version()
    source._bump_inplace_version()
    assert source.inplace_version == before + 1
    assert source._slice(1, 2).shape == [1, 3] and source._offset() == 0


def test_spawn_refuses_options_and_backends_that_there_are_not():
    for options in ({"backend": "something"}, {"nothing": 1}):
        with pytest.raises(ValueError, match=r"something|nothing"):
            paddle.distributed.spawn(print, nprocs=2, **options)
    with pytest.raises(TypeError, match="four"):
        paddle.nn.functional.zeropad2d(paddle.ones([1, 1, 2, 2]), 1)


def test_numbers_and_scalars_take_the_shapes_of_paddle():
    assert paddle.assign(2.0).shape == [1] and paddle.assign(np.float32(2)).shape == []
    assert paddle.diag(paddle.to_tensor(3.0)).tolist() == [[3]]
    for function in (paddle.outer, paddle.inner):
        with pytest.raises(TypeError, match="Tensor"):
            function(np.ones(2), paddle.ones([2]))
    with pytest.raises(AssertionError, match="n_fft"):
        paddle.signal.stft(paddle.ones([8]), 4, win_length=5)


def test_ranges_of_time():
    helper = importlib.import_module("framework.paddle.profiler.statistic_helper")
    first, second = [(1, 10), (12, 15)], [(9, 11), (3, 7)]
    assert helper.subtract_ranges(first, second) == [(1, 3), (7, 9), (12, 15)]
    assert helper.intersection_ranges(first, second) == [(3, 7), (9, 10)]
    assert helper.merge_ranges(first, second) == [(1, 11), (12, 15)] and helper.sum_ranges(first) == 12


def test_types_that_paddle_refuses():
    whole = paddle.to_tensor([1, 2])
    for function, kind in (
        (paddle.var, ValueError),
        (paddle.std, ValueError),
        (paddle.nan_to_num, AssertionError),
    ):
        with pytest.raises(kind, match="fraction"):
            function(whole)
    with pytest.raises(TypeError, match="int32, int64"):
        paddle.frac(whole.astype("int16"))
    with pytest.raises(ValueError, match="another type"):
        whole.log_()
    with pytest.raises(ValueError, match="Tensor"):
        paddle.bucketize(np.ones(2), paddle.ones([2]))
    assert list(range(paddle.to_tensor(2.0))) == [0, 1]  # a number of any type counts


def test_scopes_hold_arrays():
    core = importlib.import_module("framework.paddle.base.core")
    variable = core.Scope().var("array")
    variable.get_lod_tensor_array().append(core.LoDTensor())
    assert len(variable.get_lod_tensor_array()) == len(variable.get_fetch_list()) == 1
    rows = core.SelectedRows([0, 4], 10)
    assert rows.rows() == [0, 4] and rows.height() == 10
