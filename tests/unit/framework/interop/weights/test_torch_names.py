import jax
import numpy as np
import pytest

from framework import nn
from framework.core.errors import WeightError
from framework.interop.weights.match import from_torch


class Net(nn.Layer):
    state_renames = ((r"^classifier\.", "fc."),)

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 4)
        self.bn = nn.BatchNorm1D(4)
        self.fc = nn.Linear(4, 4)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.fc(self.bn(self.table(x)))


def state(prefix: str = "") -> dict[str, np.ndarray]:
    square = np.arange(16, dtype=np.float32).reshape(4, 4)
    named = {
        "table.weight": square,
        "classifier.weight": square + 1,
        "classifier.bias": np.ones(4, np.float32),
    }
    named |= {f"bn.{leaf}": np.full(4, 2.0, np.float32) for leaf in ("weight", "bias", "running_mean")}
    named |= {"bn.running_var": np.full(4, 3.0, np.float32), "bn.num_batches_tracked": np.array(9)}
    return {prefix + name: value for name, value in named.items()}


@pytest.mark.parametrize("prefix", ["", "module."])
def test_names_and_layouts(prefix: str) -> None:
    net, given = Net(), state()
    made = from_torch(state(prefix), net)
    assert set(made) == set(net.state_shapes())
    np.testing.assert_array_equal(made["fc.weight"], given["classifier.weight"].T)  # renamed, then transposed
    np.testing.assert_array_equal(made["table.weight"], given["table.weight"])  # an embedding is not
    np.testing.assert_array_equal(made["bn._mean"], np.full(4, 2.0))
    np.testing.assert_array_equal(made["bn._variance"], np.full(4, 3.0))
    assert net.set_state_dict(made) == ([], [])


def test_a_layer_that_is_itself_linear() -> None:
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    made = from_torch({"weight": weight, "bias": np.zeros(2, np.float32)}, nn.Linear(3, 2))
    np.testing.assert_array_equal(made["weight"], weight.T)


def test_a_prefix_that_only_some_have_is_a_name_and_unknown_names_are_kept() -> None:
    square = np.arange(4, dtype=np.float32).reshape(2, 2)
    made = from_torch(
        {"module.weight": square, "other.weight": square}, nn.Sequential(("module", nn.Linear(2, 2)))
    )
    np.testing.assert_array_equal(made["module.weight"], square.T)
    np.testing.assert_array_equal(made["other.weight"], square)


@pytest.mark.parametrize(
    ("given", "received"),
    [
        ({}, "nothing"),
        ({"epoch": 3, "state_dict": state()}, r"no array under \['epoch', 'state_dict'\]"),
        ({"bn._mean": np.zeros(4)}, r"Paddle's names \['bn\._mean'\]"),
    ],
)
def test_what_is_no_state_dict_of_torch(given: dict, received: str) -> None:
    with pytest.raises(
        WeightError, match=rf"the state dict must be torch's[\s\S]*{received}[\s\S]*load_weights"
    ):
        from_torch(given, Net())


def test_slopes_get_paddles_name() -> None:
    net = nn.Sequential(("act", nn.PReLU(2)), ("fc", nn.Linear(2, 2)))
    given = {"act.weight": np.array([0.1, 0.2], np.float32), "fc.weight": np.eye(2), "fc.bias": np.zeros(2)}
    made = from_torch(given, net)
    assert set(made) == {"act._weight", "fc.weight", "fc.bias"} == set(net.state_shapes())
    np.testing.assert_array_equal(made["act._weight"], given["act.weight"])
    assert list(from_torch({"weight": np.ones(3, np.float32)}, nn.PReLU(3))) == ["_weight"]
