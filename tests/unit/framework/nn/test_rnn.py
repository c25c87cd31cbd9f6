from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from framework import nn
from framework.core.dtypes import precision_scope
from framework.core.errors import ShapeError
from framework.nn.functional.rnn import CellWeights

X = jnp.asarray(np.random.default_rng(0).standard_normal((2, 5, 3)), jnp.float32)


def test_names_and_shapes_are_paddles():
    shapes = nn.LSTM(3, 4, 2, direction="bidirect").state_shapes()
    assert list(shapes)[:6] == [
        "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l0_reverse", "weight_hh_l0_reverse",
    ]  # fmt: skip
    assert len(shapes) == 16 and shapes["weight_ih_l1_reverse"] == (16, 8) and shapes["bias_hh_l0"] == (16,)
    assert list(nn.GRUCell(3, 4).state_shapes().items()) == [
        ("weight_ih", (12, 3)), ("weight_hh", (12, 4)), ("bias_ih", (12,)), ("bias_hh", (12,)),
    ]  # fmt: skip
    birnn = nn.BiRNN(nn.LSTMCell(3, 4), nn.LSTMCell(3, 4))
    assert list(birnn.state_dict())[::4] == ["cell_fw.weight_ih", "cell_bw.weight_ih"]


def test_weights_start_within_one_over_root_hidden():
    weight = np.asarray(nn.GRU(3, 16).weight_hh_l0)
    assert np.abs(weight).max() <= 0.25 and weight.std() == pytest.approx(0.5 / 12**0.5, rel=0.1)


def test_an_lstm_step_by_hand():
    cell = nn.LSTMCell(1, 1)
    cell.weight_ih, cell.weight_hh = np.array([[0.0], [0.0], [1.0], [0.0]]), np.zeros((4, 1))
    cell.bias_ih, cell.bias_hh = (
        np.array([100.0, -100.0, 0.0, 100.0]),
        np.zeros(4),
    )  # gates i, f, g, o: open, shut, -, open
    out, (hidden, memory) = cell(jnp.array([[0.5]]), (jnp.array([[9.0]]), jnp.array([[9.0]])))
    assert float(memory[0, 0]) == pytest.approx(np.tanh(0.5)) and float(out[0, 0]) == pytest.approx(
        np.tanh(np.tanh(0.5))
    )
    assert hidden.tolist() == out.tolist()


def test_a_gru_step_by_hand():
    cell = nn.GRUCell(1, 1)
    cell.weight_ih, cell.weight_hh = np.zeros((3, 1)), np.array([[0.0], [0.0], [1.0]])
    cell.bias_ih, cell.bias_hh = np.array([-100.0, 0.0, 0.25]), np.zeros(3)  # reset shut, update one half
    out, state = cell(jnp.array([[1.0]]), jnp.array([[2.0]]))
    assert (
        float(out[0, 0]) == pytest.approx(0.5 * 2.0 + 0.5 * np.tanh(0.25)) and state.tolist() == out.tolist()
    )


@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM", "GRU"])
def test_the_scan_is_the_cell_step_by_step(kind):
    layer, cell = getattr(nn, kind)(3, 4), getattr(nn, f"{kind}Cell")(3, 4)
    cell.set_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    out, _ = layer(X)
    state, steps = None, []
    for t in range(X.shape[1]):
        y, state = cell(X[:, t], state)
        steps.append(y)
    np.testing.assert_allclose(out, jnp.stack(steps, 1), atol=1e-6)
    np.testing.assert_allclose(nn.RNN(cell)(X)[0], out, atol=1e-6)


def test_the_backward_direction_reads_from_the_last_valid_step():
    layer = nn.GRU(3, 4, direction="bidirect")
    lengths = jnp.array([3, 5])
    out, state = layer(X, None, lengths)
    short, short_state = layer(X[:1, :3])
    np.testing.assert_allclose(out[:1, :3], short, atol=1e-6)
    np.testing.assert_allclose(state[:, :1], short_state, atol=1e-6)
    assert np.abs(out[0, 3:]).max() == 0


def test_birnn_joins_both_directions():
    forward, backward = nn.SimpleRNNCell(3, 4), nn.SimpleRNNCell(3, 4)
    out, (last_fw, last_bw) = nn.BiRNN(forward, backward)(X)
    np.testing.assert_allclose(out[..., :4], nn.RNN(forward)(X)[0], atol=1e-6)
    np.testing.assert_allclose(out[..., 4:], nn.RNN(backward, is_reverse=True)(X)[0], atol=1e-6)
    np.testing.assert_allclose(last_bw, out[:, 0, 4:], atol=1e-6)
    assert last_fw.shape == (2, 4)


def test_states_are_layers_times_directions():
    layer = nn.LSTM(3, 4, 2, direction="bidirectional")
    out, (hidden, memory) = layer(X)
    assert out.shape == (2, 5, 8) and hidden.shape == memory.shape == (4, 2, 4)
    again, _ = layer(X, (hidden, memory))
    assert not np.allclose(again, out)


def test_time_major_is_the_transpose():
    layer, other = nn.GRU(3, 4), nn.GRU(3, 4, time_major=True)
    other.set_state_dict(layer.state_dict())
    np.testing.assert_allclose(other(X.swapaxes(0, 1))[0].swapaxes(0, 1), layer(X)[0], atol=1e-6)


def test_dropout_stands_between_layers_in_training_only():
    layer = nn.GRU(3, 8, 2, dropout=0.5)
    assert not np.allclose(layer(X)[0], layer(X)[0])
    layer.eval()
    np.testing.assert_array_equal(layer(X)[0], layer(X)[0])


def test_symbolic_batch_and_time_export():
    layer = nn.LSTM(3, 4, 2, direction="bidirect")
    graphdef, params, buffers = nn.split(layer)
    n, t = export.symbolic_shape("n, t")
    program = export.export(jax.jit(lambda x: nn.apply(graphdef, params, buffers, None, x)[0][0]))(
        jax.ShapeDtypeStruct((n, t, 3), jnp.float32)
    )
    for x in (X, X[:1, :1]):
        np.testing.assert_allclose(program.call(x), layer(x)[0], atol=1e-6)


def test_no_biases():
    layer = nn.GRU(3, 4, bias_ih_attr=False, bias_hh_attr=False)
    assert list(layer.state_dict()) == ["weight_ih_l0", "weight_hh_l0"] and layer(X)[0].shape == (2, 5, 4)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: nn.LSTM(3, 4, direction="backward"), "LSTM: unknown direction"),
        (lambda: nn.SimpleRNN(3, 4, activation="gelu"), "unknown activation of a SimpleRNN"),
        (lambda: nn.RNN(nn.Linear(3, 4)), "RNN runs a recurrent cell"),
        (lambda: nn.GRU(3, 4)(jnp.ones((2, 5, 2))), "a recurrent layer: input and weights do not agree"),
        (
            lambda: nn.GRUCell(3, 4)(jnp.ones((2, 2))),
            "a recurrent step: input, state and weights do not agree",
        ),
        (lambda: nn.LSTM(3, 4)(X, jnp.zeros((1, 2, 4))), "LSTM: the initial states do not fit"),
        (lambda: nn.GRU(3, 4, 2)(X, jnp.zeros((1, 2, 4))), "GRU: the initial states do not fit"),
    ],
)
def test_errors(run, message):
    with pytest.raises(ShapeError, match=message):
        run()


def test_an_unknown_mode_is_an_error():
    weights = CellWeights(jnp.ones((4, 1)), jnp.ones((4, 1)), None, None)
    for run in (
        lambda: nn.functional.rnn_cell(jnp.ones((1, 1)), (jnp.ones((1, 1)),), weights, "MGU"),
        lambda: nn.functional.rnn_scan(jnp.ones((1, 1, 1)), (jnp.ones((1, 1)),), weights, "MGU"),
    ):
        with pytest.raises(ShapeError, match=r"unknown recurrent mode(.|\n)*LSTM"):
            run()


def test_the_precision_of_dots_is_not_that_of_the_first_call():
    layer = nn.GRU(4, 4)
    x = jnp.asarray(np.random.default_rng(5).standard_normal((2, 3, 4)), jnp.float32)
    full = layer(x)[0]
    with precision_scope("bfloat16"):
        low = layer(x)[0]
    assert 0 < np.abs(low - full).max() < 0.05
