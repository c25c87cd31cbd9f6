import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import WeightError
from framework.interop.weights.match import match_weights, weighted_calls
from framework.interop.weights.weighted import WeightedOp
from framework.nn import functional as F


class Net(nn.Layer):
    """Registered in another order than called; the last layer is called twice and `unused` never."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.unused = nn.Linear(9, 9)
        self.conv = nn.Conv2D(3, 4, 3, padding=1)
        self.line = nn.Conv1D(4, 4, 5, padding=2, groups=4, bias_attr=False)

    def forward(self, x: jax.Array) -> jax.Array:
        x = F.relu(self.conv(x)).mean(1)
        return self.fc(self.fc(self.line(x)))


def op(kind: str, **shapes: tuple[int, ...]) -> WeightedOp:
    rng = np.random.RandomState(len(kind))
    arrays = {key: np.asarray(rng.standard_normal(shape), np.float32) for key, shape in shapes.items()}
    return WeightedOp(kind, arrays, {key: f"{kind}_0.{key}" for key in arrays}, f"{kind}_node")


def ops() -> list[WeightedOp]:
    fc = op("linear", weight=(4, 4), bias=(4,))
    return [op("conv", weight=(4, 3, 3, 3), bias=(4,)), op("conv", weight=(4, 1, 5, 1)), fc, fc]


SHAPE = (1, 6, 8, 3)


def test_calls_come_in_the_order_of_forward_and_leave_the_layer_as_it_was() -> None:
    net = Net()
    net.conv.eval()
    calls = weighted_calls(net, SHAPE)
    assert [call.name for call in calls] == ["conv", "line", "fc", "fc"]
    assert [call.kind for call in calls] == ["conv", "conv", "linear", "linear"]
    assert calls[0].shapes == {"weight": (4, 3, 3, 3), "bias": (4,)}
    assert net.training and net.fc.training and not net.conv.training
    assert not net.conv._pre_hooks


def test_hooks_are_taken_away_when_forward_fails() -> None:
    net = Net()
    with pytest.raises(Exception, match="conv2d"):
        weighted_calls(net, (1, 6, 8, 5))
    assert not net.conv._pre_hooks and net.training


def test_match_gives_the_called_layers_their_arrays_in_our_shapes() -> None:
    given = ops()
    state = match_weights(Net(), given, SHAPE)
    assert list(state) == ["conv.weight", "conv.bias", "line.weight", "fc.weight", "fc.bias"]
    np.testing.assert_array_equal(state["conv.weight"], given[0].arrays["weight"])
    assert state["line.weight"].shape == (4, 1, 5)
    np.testing.assert_array_equal(state["line.weight"].ravel(), given[1].arrays["weight"].ravel())


def test_a_normalisation_is_folded_where_the_layer_has_none() -> None:
    bare = op("conv", weight=(4, 3, 3, 3))
    ones = {key: np.ones(4, np.float32) for key in ("bias", "_mean", "_variance")}
    norm = WeightedOp("batch_norm", {"weight": np.full(4, 2.0, np.float32), **ones}, {}, "bn")
    state = match_weights(Net(), [bare, norm, *ops()[1:]], SHAPE, epsilon=3.0)
    np.testing.assert_allclose(state["conv.weight"], bare.arrays["weight"], rtol=1e-6)  # 2 / sqrt(1 + 3)
    np.testing.assert_allclose(state["conv.bias"], np.zeros(4), atol=1e-7)  # 1 + (0 - 1) * 1


def test_mean_and_variance_are_folded_each_in_its_own_way() -> None:
    bare = op("conv", weight=(4, 3, 3, 3))
    values = {"weight": 4.0, "bias": 1.0, "_mean": 3.0, "_variance": 13.0}
    norm = WeightedOp(
        "batch_norm", {key: np.full(4, value, np.float32) for key, value in values.items()}, {}, "bn"
    )
    state = match_weights(Net(), [bare, norm, *ops()[1:]], SHAPE, epsilon=3.0)
    np.testing.assert_allclose(state["conv.weight"], bare.arrays["weight"], rtol=1e-6)  # 4 / sqrt(13 + 3)
    np.testing.assert_allclose(state["conv.bias"], np.full(4, -2.0), rtol=1e-6)  # 1 + (0 - 3) * 1


def test_a_normalisation_of_ours_takes_the_program_s() -> None:
    net = nn.Sequential(nn.Conv2D(3, 4, 1, bias_attr=False), nn.BatchNorm2D(4))
    norm = op("batch_norm", weight=(4,), bias=(4,), _mean=(4,), _variance=(4,))
    state = match_weights(net, [op("conv", weight=(4, 3, 1, 1)), norm], SHAPE)
    net.set_state_dict(state)
    np.testing.assert_array_equal(np.asarray(net[1]._mean), norm.arrays["_mean"])


def test_names_that_differ_between_ours_and_the_program_s() -> None:
    net = nn.Sequential(nn.InstanceNorm2D(3), nn.PReLU(3))
    given = [op("instance_norm", weight=(3,), bias=(3,)), op("prelu", weight=(3,))]
    assert sorted(match_weights(net, given, SHAPE)) == ["0.bias", "0.scale", "1._weight"]


class Scaled(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.scale = self.create_parameter((1,))
        self.bias = self.create_parameter((1,), is_bias=True)

    def forward(self, x: jax.Array) -> jax.Array:
        return x * self.scale + self.bias


def test_a_scalar_affine_may_have_no_axis_in_the_program() -> None:
    state = match_weights(Scaled(), [op("affine", scale=(), bias=(1,))], SHAPE)
    assert {key: array.shape for key, array in state.items()} == {"scale": (1,), "bias": (1,)}


def test_a_mismatch_says_where_and_shows_both() -> None:
    wrong = ops()
    wrong[1] = op("conv", weight=(4, 1, 7, 1))
    with pytest.raises(WeightError) as error:
        match_weights(Net(), wrong, SHAPE)
    message = str(error.value)
    assert "not a Net" in message and "operation 2 of 4 (the program has 4)" in message
    assert "conv line: weight (4, 1, 5)" in message and "conv conv_0.weight: weight (4, 1, 7, 1)" in message
    assert "deploy=True" in message


@pytest.mark.parametrize("change", ["kind", "bias", "short", "long"])
def test_other_kinds_keys_and_counts_do_not_match(change: str) -> None:
    given = ops()
    if change == "kind":
        given[0] = op("conv_transpose", weight=(4, 3, 3, 3), bias=(4,))
    elif change == "bias":
        given[0] = op("conv", weight=(4, 3, 3, 3))
    else:
        given = given[:-1] if change == "short" else [*given, given[-1]]
    with pytest.raises(WeightError, match="not a Net"):
        match_weights(Net(), given, SHAPE)


def test_a_layer_called_twice_must_have_one_weight() -> None:
    given = ops()
    given[3] = WeightedOp("linear", {k: a + 1 for k, a in given[3].arrays.items()}, {}, "matmul_7")
    with pytest.raises(WeightError, match=r"called twice[\s\S]*matmul_7"):
        match_weights(Net(), given, SHAPE)


def test_an_empty_program_and_a_layer_without_weights() -> None:
    assert match_weights(nn.ReLU(), [], SHAPE) == {}
    with pytest.raises(WeightError, match="received: none"):
        match_weights(Net(), [], SHAPE)
