"""Layers of Paddle made from the core's: real classes, with the core's parameters and first values."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

from framework import nn as core
from framework import paddle
from framework.core.errors import ShapeError
from framework.core.rng import seed, uncounted_initializers
from framework.paddle import nn
from framework.paddle.nn import functional as F
from framework.paddle.nn.faces import Face, ParametricFace
from framework.paddle.nn.functional.face import channels_first_text, face

FACES = {n: c for n, c in vars(nn).items() if isinstance(c, type) and issubclass(c, Face)}


def test_a_face_has_the_name_of_its_core_layer() -> None:
    assert len(FACES) > 80
    for name, made in FACES.items():
        assert made.__name__ == name and made.__module__.startswith("framework.paddle.nn.") and made.__doc__
        assert isinstance(getattr(core, name), type)
        told = [p for p in inspect.signature(made).parameters if p not in ("name", "data_format")]
        ours = inspect.signature(getattr(core, name)).parameters
        assert told == [p for p in ours if p in told]


@pytest.mark.parametrize(
    ("call", "x"),
    [
        ("Linear(3, 4)", [2, 3]),
        ("Conv1D(3, 4, 3)", [2, 3, 9]),
        ("Conv2DTranspose(4, 6, 3, groups=2)", [1, 4, 5, 5]),
        ("Bilinear(3, 4, 5)", None),
        ("LayerNorm([2, 3])", [4, 2, 3]),
        ("InstanceNorm2D(3)", [2, 3, 4, 4]),
        ("PReLU(3, 0.0)", [2, 3, 4]),
    ],
)
def test_parameters_start_as_the_cores_do(call: str, x: list[int] | None) -> None:
    paddle.seed(5)
    layer = eval(f"nn.{call}", {"nn": nn})
    seed(5)
    pattern = eval(f"nn.{call}", {"nn": core})
    assert isinstance(layer, ParametricFace) and list(layer.state_dict()) == list(pattern.state_dict())
    for name, value in pattern.state_dict().items():
        np.testing.assert_array_equal(layer.state_dict()[name].numpy(), value)
    if x is not None:
        assert layer(paddle.ones(x)).shape[0] == x[0]


def test_a_pattern_does_not_count_as_a_parameter() -> None:
    seed(1)
    with uncounted_initializers():
        _ = core.Linear(2, 2).weight
    inside = core.Linear(2, 2).weight
    seed(1)
    np.testing.assert_array_equal(core.Linear(2, 2).weight, inside)


def test_pickles_copies_and_subclasses() -> None:
    pool = pickle.loads(pickle.dumps(nn.MaxPool2D(3, 2)))
    assert type(pool) is nn.MaxPool2D and pool.ksize == 3
    linear = nn.Linear(2, 3)
    np.testing.assert_array_equal(copy.deepcopy(linear).weight.numpy(), linear.weight.numpy())

    class Doubled(nn.Linear):
        def __init__(self, size: int) -> None:
            super().__init__(size, 2 * size, bias_attr=False)
            self.row, self.shown = 1, "mine"

    doubled: Any = Doubled(2)
    assert repr(doubled) == "Doubled(in_features=2, out_features=4, dtype=float32)" and doubled.bias is None
    x = paddle.ones([1, 2])
    np.testing.assert_array_equal(doubled(input=x).numpy(), F.linear(x, doubled.weight).numpy())
    doubled.weight = paddle.create_parameter([2, 1], "float32")
    assert doubled(x).shape == [1, 1]


def test_errors_name_what_is_wrong() -> None:
    with pytest.raises(ShapeError, match="there is a weight"):
        nn.Conv2D(3, 4, 3, groups=2)
    with pytest.raises(ShapeError, match="padding_mode"):
        nn.Conv2D(3, 4, 3, padding_mode="mirror")
    with pytest.raises(TypeError, match="one number as padding"):
        nn.Conv2D(3, 4, 3, padding=[1, 1], padding_mode="reflect")
    with pytest.raises(ShapeError, match="both parameters or none"):
        nn.InstanceNorm2D(3, weight_attr=False)
    with pytest.raises(ShapeError, match="1 or 4 numbers"):
        nn.Pad2D([1, 2])
    with pytest.raises(ValueError, match="data layout"):
        nn.GroupNorm(2, 4, data_format="NCL")


def test_operations_turn_images_and_their_documentation() -> None:
    shuffle = face(core.functional.pixel_shuffle, data_format="NCHW")
    assert list(inspect.signature(shuffle).parameters) == ["x", "upscale_factor", "data_format", "name"]
    x = paddle.Tensor(np.arange(16, dtype="float32").reshape(1, 4, 2, 2))
    last = core.functional.pixel_shuffle(x.numpy().transpose(0, 2, 3, 1), 2)
    np.testing.assert_array_equal(shuffle(x, 2).numpy(), np.asarray(last).transpose(0, 3, 1, 2))
    assert (
        channels_first_text("[N, H, W, C * r] -> [N, T, C]; [N, C]")
        == "[N, C * r, H, W] -> [N, C, T]; [N, C]"
    )
    assert channels_first_text("x [N, D, H, W, in_channels]") == "x [N, in_channels, D, H, W]"
