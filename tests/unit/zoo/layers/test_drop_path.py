import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import TraceError
from zoo.layers.mlp import DropPath, drop_rates


def test_whole_samples_are_dropped_and_the_rest_is_scaled() -> None:
    graphdef, params, buffers = nn.split(DropPath(0.25))
    x = np.ones((4000, 2, 3), np.float32)
    out = np.asarray(nn.apply(graphdef, params, buffers, jax.random.key(0), x)[0]).reshape(4000, 6)
    assert (out == out[:, :1]).all()
    np.testing.assert_allclose(np.unique(out), [0, 4 / 3], rtol=1e-6)
    assert abs((out[:, 0] > 0).mean() - 0.75) < 0.03


def test_eval_and_rate_zero_need_no_key() -> None:
    x = np.ones((2, 3), np.float32)
    assert DropPath(0.5).eval()(x) is x and DropPath()(x) is x
    with pytest.raises(TraceError):
        jax.jit(DropPath(0.5))(x)


def test_rates_rise_over_all_blocks() -> None:
    assert drop_rates(0.4, (2, 1, 2)) == [[0.0, 0.1], [0.2], [pytest.approx(0.3), 0.4]]
    assert drop_rates(0.3, (1,)) == [[0.0]]
