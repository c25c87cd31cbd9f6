"""Sizes, axes and counts of a static program that are variables."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.paddle import static

X = np.arange(24, dtype="float32").reshape(2, 12)


@pytest.fixture(autouse=True)
def static_mode():
    paddle.enable_static()
    with static.program_guard(static.Program(), static.Program()):
        yield
    paddle.disable_static()


def numbers(*values):
    return np.array(values, "int32")


def run(outputs, **feed):
    return static.Executor().run(feed=feed, fetch_list=outputs)


def test_a_shape_that_is_fed_may_change():
    y = paddle.reshape(static.data("x", [2, 12]), static.data("sizes", [3], "int32"))
    assert y.shape == (-1, -1, -1)
    for sizes in ((2, 3, 4), (4, 6, 1)):
        (result,) = run([y + 0.0], x=X, sizes=numbers(*sizes))
        np.testing.assert_array_equal(result, X.reshape(sizes))


def test_a_number_in_a_shape_keeps_the_others_known():
    y = paddle.reshape(static.data("x", [2, 12]), [2, static.data("size", [1], "int32"), 4])
    assert y.shape == (2, -1, 4)
    np.testing.assert_array_equal(run([y], x=X, size=numbers(3))[0], X.reshape(2, 3, 4))


def test_a_computed_constant_gives_known_shapes():
    sizes = paddle.concat([paddle.full([1], 3, "int32"), paddle.full([1], -1, "int32")])
    y = paddle.reshape(static.data("x", [2, 12]), sizes)
    assert y.shape == (3, 8)
    np.testing.assert_array_equal(run([y], x=X)[0], X.reshape(3, 8))


def test_several_settings_of_one_call():
    start, end = static.data("start", [2], "int32"), static.data("end", [2], "int32")
    y = paddle.slice(static.data("x", [2, 12]), [0, 1], start, end)
    np.testing.assert_array_equal(run([y], x=X, start=numbers(0, 2), end=numbers(1, 9))[0], X[:1, 2:9])


def test_counts_axes_and_new_tensors():
    count = static.data("count", [1], "int32")
    x = static.data("x", [2, 12])
    outputs = [
        *paddle.topk(x, count),
        paddle.full([count, 2], 3.0),
        paddle.linspace(0, 1, count),
        paddle.unsqueeze(x, count),
    ]
    values, places, three, line, column = run(outputs, x=X, count=numbers(1))
    assert (values.tolist(), places.tolist()) == ([[11.0], [23.0]], [[11], [11]])
    assert (three.tolist(), line.tolist(), column.shape) == ([[3.0, 3.0]], [0.0], (2, 1, 12))


def test_gradients_pass():
    x = static.data("x", [2, 12])
    x.stop_gradient = False
    y = paddle.reshape(x, static.data("sizes", [2], "int32")) ** 2
    (slope,) = static.gradients(y, [x])
    np.testing.assert_array_equal(run([slope], x=X, sizes=numbers(8, 3))[0], 2 * X)


def test_unknown_sizes_go_with_known_ones():
    y = static.data("x", [None, 6]) + paddle.ones([5, 6])
    assert run([y], x=np.ones((5, 6), "float32"))[0].tolist() == [[2.0] * 6] * 5


def test_draws_of_parameters_of_unknown_sizes():
    low = static.data("low", [None, 3])
    for uniform in (paddle.distribution.Uniform(low, low + 1.0), paddle.distribution.Normal(low, 1.0)):
        assert run([uniform.sample([2])], low=np.zeros((5, 3), "float32"))[0].shape == (2, 5, 3)


def test_data_named_again_is_the_same_input():
    first = static.data("x", [2, 12]) + 1.0
    second = static.data("x", [2, 12]) + 2.0
    assert [y[0, 0].item() for y in run([first, second], x=X)] == [1.0, 2.0]


def test_lengths_as_a_mask_by_its_old_name():
    mask = static.nn.sequence_lod.sequence_mask(static.data("lengths", [2], "int32"), 3)
    assert run([mask], lengths=numbers(1, 2))[0].tolist() == [[1, 0, 0], [1, 1, 0]]


def test_the_entropy_of_an_exponential_family():
    class Family(paddle.distribution.ExponentialFamily):
        _mean_carrier_measure = 0.0
        rate = static.data("rate", [2])

        @property
        def _natural_parameters(self):
            return (self.rate,)

        def _log_normalizer(self, rate):
            return rate**2

    assert run([Family().entropy()], rate=np.float32([1, 2]))[0].tolist() == [-1.0, -4.0]
