from __future__ import annotations

import jax.numpy as jnp
import pytest

from framework import nn
from framework.core.errors import ShapeError


def names(layer):
    return list(layer.state_dict())


def test_sequential_calls_in_order_and_takes_names():
    assert names(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1, bias_attr=False))) == [
        "0.weight", "0.bias", "1.weight",
    ]  # fmt: skip
    named = nn.Sequential(("fc", nn.Linear(2, 3)), ("act", nn.ReLU()))
    assert names(named) == ["fc.weight", "fc.bias"] and named["act"] is named[1]
    assert names(nn.Sequential([nn.ReLU(), nn.Linear(1, 1)])) == ["1.weight", "1.bias"]
    assert nn.Sequential()(3) == 3
    assert (named(jnp.ones((1, 2))) >= 0).all()


def test_sequential_indexing():
    model = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Silu())
    assert len(model) == 3 and isinstance(model[-1], nn.Silu) and [type(m) for m in model][1] is nn.Tanh
    assert isinstance(model[1:], nn.Sequential) and len(model[1:]) == 2
    model[0] = nn.Sigmoid()
    assert isinstance(model[0], nn.Sigmoid)
    assert model.append(nn.GELU()) is model and isinstance(model[3], nn.GELU)
    for index in (4, -5):
        with pytest.raises(IndexError, match=f"Sequential: index {index} of 4 entries"):
            _ = model[index]


@pytest.mark.parametrize(
    "make", [nn.Sequential, lambda x: nn.LayerList([x]), lambda x: nn.LayerDict({"a": x})]
)
def test_only_layers_are_held(make):
    with pytest.raises(TypeError, match="holds layers, received function"):
        make(nn.functional.dropout)


def test_layer_list_is_a_list():
    layers = nn.LayerList([nn.Linear(1, 1)])
    layers.append(nn.Linear(1, 2)).append(nn.Linear(1, 3))
    layers.extend([nn.Linear(1, 4)])
    assert [layer.out_features for layer in layers] == [1, 2, 3, 4]
    assert names(layers)[::2] == ["0.weight", "1.weight", "2.weight", "3.weight"]
    layers.insert(1, nn.Linear(1, 9))
    assert [layer.out_features for layer in layers] == [1, 9, 2, 3, 4]
    assert layers.pop().out_features == 4 and layers.pop(0).out_features == 1
    assert [layer.out_features for layer in layers[:2]] == [9, 2] and isinstance(layers[:2], nn.LayerList)
    del layers[0]
    assert names(layers)[0] == "0.weight" and len(layers) == 2
    layers[-1] = nn.Linear(1, 7)
    assert layers[1].out_features == 7
    assert len(nn.LayerList()) == 0


def test_layer_dict_is_a_dict():
    layers = nn.LayerDict({"b": nn.Linear(1, 1), "a": nn.ReLU()})
    assert list(layers) == list(layers.keys()) == ["b", "a"] and "a" in layers and len(layers) == 2
    assert names(layers) == ["b.weight", "b.bias"]
    layers.update([("c", nn.Tanh())])
    layers["a"] = nn.Silu()
    assert [type(layer) for layer in layers.values()][1:] == [nn.Silu, nn.Tanh]
    assert isinstance(layers.pop("c"), nn.Tanh) and [k for k, _ in layers.items()] == ["b", "a"]
    del layers["b"]
    layers.clear()
    assert len(layers) == 0


def test_parameter_list_yields_arrays():
    layer = nn.Layer()
    parameters = nn.ParameterList([layer.create_parameter((2,), is_bias=True) for _ in range(2)])
    parameters.append(layer.create_parameter((3,), is_bias=True))
    assert names(parameters) == ["0", "1", "2"] and parameters[-1].shape == (3,)
    assert [value.shape for value in parameters] == [(2,), (2,), (3,)] and len(parameters) == 3
    with pytest.raises(IndexError, match="ParameterList: index 3 of 3 entries"):
        _ = parameters[3]
    with pytest.raises(ShapeError, match=r"ParameterList holds parameters(.|\n)*create_parameter"):
        parameters.append(jnp.zeros(2))
