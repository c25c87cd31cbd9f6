"""paddle.incubate.optimizer: values of Paddle 2.6.2 on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.paddle import Tensor


def _parameter(size: int) -> Tensor:
    return paddle.create_parameter([size], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))


def test_look_ahead_goes_a_share_of_the_way() -> None:
    parameter = _parameter(3)
    inner = paddle.optimizer.SGD(0.1, parameters=[parameter])
    optimizer = paddle.incubate.LookAhead(inner, alpha=0.3, k=2)
    rows = []
    for step in range(5):
        (parameter * paddle.to_tensor([1.0, 2.0, 3.0]) * (step + 1)).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        rows.append(parameter.numpy())
    first = [0.9, 0.84, 0.54, 0.63, 0.13]
    np.testing.assert_allclose([row[0] for row in rows], first, rtol=1e-5)
    np.testing.assert_allclose(rows[-1], [0.13, -0.74, -1.61], rtol=1e-5)
    assert [name.split(".w_0_")[1] for name in optimizer.state_dict()] == ["slow_0"]
    with pytest.raises(AssertionError, match="k should be"):
        paddle.incubate.LookAhead(inner, k=0)


def test_the_average_stands_in_for_the_parameters_for_a_while() -> None:
    parameter = _parameter(1)
    sgd = paddle.optimizer.SGD(0.1, parameters=[parameter])
    average = paddle.incubate.optimizer.ModelAverage(
        0.5, parameters=[parameter], min_average_window=2, max_average_window=3
    )
    values = []
    for step in range(8):
        (parameter * (step + 1)).sum().backward()
        sgd.step()
        average.step()
        sgd.clear_grad()
        before = parameter.numpy().copy()
        with average.apply(need_restore=True):
            values.append(float(parameter))
        np.testing.assert_array_equal(parameter.numpy(), before)
    expected = [0.9, 0.8, 0.6666666, 0.2, -0.0333334, -0.3, -1.1333333, -1.5]
    np.testing.assert_allclose(values, expected, rtol=1e-4)
    state = {name.split(".w_0_")[1]: tensor for name, tensor in average.state_dict().items()}
    assert int(state["num_updates_0"]) == 8 and int(state["old_num_accumulates_0"]) == 3
