"""paddle.onnx.export: layers as ONNX files that ONNX Runtime runs, by the reports of Paddle2ONNX's users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import ConfigError

onnxruntime = pytest.importorskip("onnxruntime")
F = paddle.nn.functional


class Wrapped(paddle.nn.Layer):
    def __init__(self, function: Callable[[paddle.Tensor], paddle.Tensor]) -> None:
        super().__init__()
        self.scale = self.create_parameter([1])
        self.function = function

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.function(x) * self.scale


def assigned(x: paddle.Tensor) -> paddle.Tensor:
    x = x.clone()
    x[:, :, ::2] = 1.0
    return x


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False),  # Paddle2ONNX#1540
        lambda x: paddle.where(paddle.isnan(x), paddle.zeros_like(x), x),  # Paddle2ONNX#1415
        assigned,
    ],
    ids=["bilinear", "isnan", "set_value"],
)
def test_layers_with_a_free_batch(tmp_path: Path, function: Callable[[paddle.Tensor], paddle.Tensor]) -> None:
    layer = Wrapped(function)
    spec = paddle.static.InputSpec([None, 2, 6, 5], "float32", "x")
    paddle.onnx.export(layer, str(tmp_path / "net"), input_spec=[spec], enable_onnx_checker=True)
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    for rows in (1, 3):
        x = np.random.default_rng(0).normal(size=(rows, 2, 6, 5)).astype(np.float32)
        (y,) = session.run(None, {"x": x})
        np.testing.assert_allclose(y, layer(paddle.to_tensor(x)).numpy(), rtol=1e-5, atol=1e-6)
    assert layer.training, "the mode of the layer stays"


def test_settings_of_an_export_that_are_not_known(tmp_path: Path) -> None:
    spec = paddle.static.InputSpec([None, 2], "float32", "x")
    with pytest.raises(
        ConfigError, match=r"paddle\.onnx\.export: a setting that is not known\n  received: output_spec"
    ):
        paddle.onnx.export(Wrapped(lambda x: x), str(tmp_path / "net"), input_spec=[spec], output_spec=[])
    assert not list(tmp_path.iterdir())
