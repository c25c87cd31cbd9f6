"""Weights whose names begin with what wrappers and trainers put there."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path

import numpy as np
import pytest

from framework import nn
from framework.core.errors import WeightError
from framework.core.torch_state import TorchState
from framework.interop import load_weights
from framework.interop.weights.wrappers import find_model, remove_wrappers
from framework.workflow.domain.weights import load_pretrained, load_state_into


class Net(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.PReLU())
        self.head = nn.Linear(4, 4)


def torch_state(net: Net) -> dict[str, np.ndarray]:
    """As torch names and turns it."""
    leaves = {"_mean": "running_mean", "_variance": "running_var", "_weight": "weight"}
    state = {}
    for name, value in net.state_dict().items():
        owner, _, leaf = name.rpartition(".")
        array = np.asarray(value)
        turned = array.T if owner == "head" and leaf == "weight" else array
        state[f"{owner}.{leaves.get(leaf, leaf)}"] = turned
    return state


def same(net: Net, other: Net) -> bool:
    mine = {name: np.asarray(value) for name, value in net.state_dict().items()}
    return all(np.array_equal(mine[name], value) for name, value in other.state_dict().items())


@pytest.mark.parametrize(
    "prefix",
    [
        *("_orig_mod.", "module.", "model.", "ema.", "net.", "student.", "teacher.", "_forward_module."),
        *(
            "module._orig_mod.",
            "_orig_mod.module.",
            "model.module.",
            "ema_model.module.",
            "algorithm.model.net.",
        ),
    ],
)
@pytest.mark.parametrize("torch", [False, True])
def test_a_prefix_of_all_names(prefix: str, torch: bool) -> None:
    source, net = Net(), Net()
    state = torch_state(source) if torch else {k: np.asarray(v) for k, v in source.state_dict().items()}
    prefixed = {prefix + name: value for name, value in state.items()}
    load_state_into(net, TorchState(prefixed) if torch else prefixed)
    assert same(net, source)


def test_a_compiled_part_of_a_model() -> None:
    source, net = Net(), Net()
    state = {
        name.replace("backbone.", "backbone._orig_mod."): np.asarray(value)
        for name, value in source.state_dict().items()
    }
    load_state_into(net, state)
    assert same(net, source)


def test_of_two_models_the_average_counts(caplog: pytest.LogCaptureFixture) -> None:
    source, other, net = Net(), Net(), Net()
    state = {f"student.{name}": np.asarray(value) * 2 for name, value in other.state_dict().items()}
    state |= {f"teacher.{name}": np.asarray(value) for name, value in source.state_dict().items()}
    with caplog.at_level(logging.INFO, "oar"):
        load_state_into(net, state)
    assert same(net, source)
    others = len(other.state_dict())
    assert f"the weights are those below 'teacher.'; {others} others are left out" in caplog.text


def test_a_backbone_of_another_program(tmp_path: Path) -> None:
    source, net = Net(), Net()
    state = {f"img_backbone.{k}": np.asarray(v) for k, v in source.backbone.state_dict().items()}
    path = tmp_path / "x.pdparams"
    path.write_bytes(pickle.dumps({**state, "bbox_head.weight": np.zeros((3, 3), np.float32)}, 4))
    load_pretrained(net, path, into="backbone")
    assert np.array_equal(net.backbone[0].weight, source.backbone[0].weight)


def test_an_error_names_what_the_file_has() -> None:
    net = Net()
    with pytest.raises(WeightError, match="other\\.a"):
        load_state_into(net, {"other.a": np.zeros(2, np.float32), "other.b": np.zeros(2, np.float32)})


def test_names_of_the_model_stay() -> None:
    class Wrapped(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.module = Net()

    source, net = Wrapped(), Wrapped()
    state = {name: np.asarray(value) for name, value in source.state_dict().items()}
    assert find_model(state, net) is state
    assert remove_wrappers({"module.a": np.zeros(1), "a": np.ones(1)}).keys() == {"module.a", "a"}
    load_state_into(net, state)
    assert same(net.module, source.module)


def test_a_small_layer_is_not_found_by_chance() -> None:
    linear = nn.Linear(2, 2)
    state = {"block.conv.weight": np.ones((2, 2), np.float32), "block.conv.bias": np.ones(2, np.float32)}
    assert find_model(state, linear) is state


@pytest.mark.parametrize("keys", [("state_dict_ema",), ("ema", "module"), ("model_ema",), ("teacher",)])
def test_of_two_tables_of_a_checkpoint_the_average_counts(tmp_path: Path, keys: tuple[str, ...]) -> None:
    value: object = {"w": np.array([2], np.float32)}
    for key in reversed(keys):
        value = {key: value}
    assert isinstance(value, dict)
    path = tmp_path / "x.pdparams"
    path.write_bytes(pickle.dumps({"state_dict": {"w": np.array([1], np.float32)}, **value}, 4))
    assert load_weights(path)["w"].tolist() == [2]


def test_averages_beside_the_weights_are_left_out() -> None:
    """As mmcv keeps them, with other marks between the names."""
    source, net = Net(), Net()
    state = {name: np.asarray(value) for name, value in source.state_dict().items()}
    state |= {f"ema_{name.replace('.', '_')}": value * 2 for name, value in state.items()}
    load_state_into(net, state)
    assert same(net, source)
