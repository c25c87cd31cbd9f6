"""Layers made from rows are classes as any: signatures, pickling, subclasses, settings that change."""

from __future__ import annotations

import copy
import inspect
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, ShapeError
from framework.nn import functional as F
from framework.nn import leaf_layers
from framework.nn.leaf import LeafLayer

ROWS = {name: made for name, made in vars(leaf_layers).items() if isinstance(made, type)}
X = jnp.asarray([-2.0, -0.5, 0.0, 2.0])


def test_a_class_has_the_name_and_place_of_its_row() -> None:
    assert len(ROWS) > 90
    for name, made in ROWS.items():
        assert made.__name__ == made.__qualname__ == name and made.__module__ == leaf_layers.__name__
        assert issubclass(made, LeafLayer) and getattr(nn, name) is made and made.__doc__


def test_signatures_are_the_functionals() -> None:
    assert list(inspect.signature(nn.LeakyReLU).parameters) == ["negative_slope"]
    assert list(inspect.signature(nn.Dropout).parameters) == [
        "p",
        "axis",
        "mode",
    ]  # and neither training nor key
    assert list(inspect.signature(nn.Fold).parameters)[:3] == ["output_sizes", "kernel_sizes", "dilations"]
    assert list(inspect.signature(nn.MSELoss().forward).parameters) == ["input", "label"]
    with pytest.raises(TypeError, match="slope"):
        nn.LeakyReLU(slope=0.1)
    with pytest.raises(ConfigError, match="inplace"):
        nn.ReLU(inplace=True)
    with pytest.raises(ShapeError, match="channels-last"):
        nn.MaxPool2D(2, data_format="NCHW")


def test_settings_are_attributes_that_can_change() -> None:
    layer = nn.LeakyReLU(0.1)
    layer.negative_slope = 0.5
    np.testing.assert_array_equal(layer(x=X), F.leaky_relu(X, 0.5))
    assert nn.ReflectionPad1D([1, 2]).mode == "reflect"
    with pytest.raises(TypeError):
        layer(y=X)


def test_copies_and_pickles_are_equal() -> None:
    loss = nn.CrossEntropyLoss(jnp.asarray([1.0, 2.0]), reduction="sum")
    for other in (
        copy.deepcopy(loss),
        pickle.loads(pickle.dumps(nn.Dropout(0.1, mode="downscale_in_infer"))),
    ):
        assert type(other) in (nn.CrossEntropyLoss, nn.Dropout) and other._row is type(other)._row
    assert not loss.state_dict() and list(dict(loss.named_buffers())) == ["weight"]


def test_a_class_can_be_inherited() -> None:
    class Slope(nn.LeakyReLU):
        def __init__(self, percent: float) -> None:
            super().__init__(percent / 100)

        def forward(self, x):
            return super().forward(x) + 1

    assert list(inspect.signature(Slope).parameters) == ["percent"]
    np.testing.assert_array_equal(Slope(50)(X), F.leaky_relu(X, 0.5) + 1)
    assert repr(Slope(50)) == "Slope(negative_slope=0.5)"
