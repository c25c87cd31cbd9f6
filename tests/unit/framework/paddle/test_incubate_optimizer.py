"""paddle.incubate.optimizer: values of Paddle 2.6.2 on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.paddle import Tensor
from framework.paddle._kernel.errors import ModeError


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


def valley(x: Tensor) -> Tensor:
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


def test_functions_are_minimized_by_quasi_newton_methods() -> None:
    """The steps of L-BFGS are those of paddlepaddle 2.6.2, in float64."""
    functional = paddle.incubate.optimizer.functional
    start = paddle.to_tensor([-1.2, 1.0], "float64")
    converged, calls, position, value, gradient, inverse = functional.minimize_bfgs(
        valley, start, dtype="float64"
    )
    assert converged.tolist() == [True] and calls.shape == [1] and value.shape == []
    np.testing.assert_allclose(position.numpy(), [1, 1], atol=1e-6)
    np.testing.assert_allclose(inverse.numpy(), [[0.5, 1.0], [1.0, 2.005]], rtol=0.05)  # of the true Hessian
    _, calls, position, value, gradient = functional.minimize_lbfgs(
        valley, start, dtype="float64", max_iters=3
    )
    assert calls.tolist() == [14]
    np.testing.assert_allclose(position.numpy(), [-0.85524092, 0.68881549], rtol=1e-6)
    np.testing.assert_allclose(float(value), 3.62357835, rtol=1e-6)
    np.testing.assert_allclose(gradient.numpy(), [-18.2911528, -8.5243062], rtol=1e-6)


def test_quasi_newton_methods_check_their_arguments() -> None:
    minimize, one = paddle.incubate.optimizer.functional.minimize_bfgs, paddle.ones([2])
    with pytest.raises(ValueError, match="must be tensor"):
        minimize(valley, [1.0, 2.0])
    with pytest.raises(ValueError, match="must be 'float32' or 'float64'"):
        minimize(valley, one, dtype="int32")
    with pytest.raises(NotImplementedError, match="only support line_search_fn"):
        minimize(valley, one, line_search_fn="other")
    indefinite = paddle.to_tensor([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        minimize(valley, one, initial_inverse_hessian_estimate=indefinite)
    paddle.enable_static()
    try:
        with pytest.raises(ModeError, match="in dynamic mode"):
            minimize(valley, one)
    finally:
        paddle.disable_static()
