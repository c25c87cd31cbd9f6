from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Targets
from detection.layers.nms import NMS
from detection.models import yolox
from detection.models.backbones.csp_darknet import Focus
from detection.models.yolox import YOLOX, YOLOXConfig
from framework import nn
from framework.core.errors import ConfigError
from framework.interop.named_weights import named_weights
from framework.interop.weights.weighted import WeightedOp
from framework.nn.reparam import reparameterize


@pytest.mark.parametrize("variant", yolox.VARIANTS)
def test_shapes(variant: str) -> None:
    graphdef, params, buffers = nn.abstract(YOLOX(YOLOXConfig(variant)))
    image = jax.ShapeDtypeStruct((1, 416, 320, 3), jnp.float32)
    levels = jax.eval_shape(lambda p, b, x: graphdef.bind(p, b)(x), params, buffers, image)
    assert [level.classes.shape for level in levels] == [(1, 52, 40, 80), (1, 26, 20, 80), (1, 13, 10, 80)]
    assert [(level.boxes.shape[-1], level.objects.shape[-1]) for level in levels] == [(4, 1)] * 3


def test_normalisations_are_those_of_upstream_s_trainer() -> None:
    model = YOLOX(YOLOXConfig("tiny"))
    norms = [layer for layer in model.sublayers() if isinstance(layer, nn.BatchNorm2D)]
    assert norms and {(layer.epsilon, layer.momentum) for layer in norms} == {(1e-3, 0.97)}


def test_focus_orders_the_corners() -> None:
    """Top left, bottom left, top right, bottom right, of all channels each."""
    layer = Focus(1, 1, deploy=True)
    weight = np.zeros((1, 4, 3, 3), np.float32)
    weight[0, :, 1, 1] = [1, 10, 100, 1000]
    layer.set_state_dict({"conv.conv.weight": weight, "conv.conv.bias": np.zeros(1, np.float32)})
    x = np.array([[1.0, 3.0], [2.0, 4.0]], np.float32)[None, :, :, None]
    np.testing.assert_allclose(layer(jnp.asarray(x)), [[[[4321.0]]]])


def targets(count: int, step: int) -> Targets:
    """Two images; the first has `count` objects of three."""
    boxes = jnp.asarray([[[8.0, 8, 60, 57], [20, 11, 62, 40], [5, 33, 30, 61]]] * 2)
    valid = jnp.stack([jnp.arange(3) < count, jnp.zeros(3, bool)])
    return Targets(boxes, jnp.asarray([[0, 1, 2]] * 2), valid, jnp.asarray(step, jnp.int32))


@pytest.mark.parametrize("differentiate", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_losses_of_a_new_model(differentiate: bool) -> None:
    """All its probabilities are 0.01."""
    model = YOLOX(YOLOXConfig("nano", 3, l1_from=5)).eval()
    graphdef, params, buffers = nn.split(model)
    images = jnp.asarray(np.random.default_rng(0).standard_normal((2, 64, 64, 3)), jnp.float32)

    @jax.jit
    def run(params: Any, truth: Targets) -> Any:
        def loss(params: Any) -> Any:
            losses = graphdef.bind(params, buffers).loss(images, truth)
            return losses.total, losses

        return jax.value_and_grad(loss, has_aux=True)(params) if differentiate else (loss(params), {})

    (total, empty), gradients = run(params, targets(0, 9))
    cells = 2 * (64 + 16 + 4)
    assert float(empty.parts["loss_obj"]) == pytest.approx(-cells * math.log(0.99), rel=1e-4)
    assert [float(empty.parts[name]) for name in ("loss_cls", "loss_iou", "loss_l1")] == [0, 0, 0]
    assert float(total) == float(empty.parts["loss_obj"])
    assert all(np.isfinite(g).all() for g in gradients.values())
    for step, weight in ((4, 0), (5, 1)):
        (total, full), gradients = run(params, targets(3, step))
        parts = {name: float(part) for name, part in full.parts.items()}
        assert (parts["loss_l1"] > 0) == bool(weight) and 0 < parts["loss_iou"] < 1
        want = parts["loss_cls"] + parts["loss_obj"] + 5 * parts["loss_iou"] + parts["loss_l1"]
        assert float(total) == pytest.approx(want, rel=1e-6)
        assert all(np.isfinite(g).all() for g in gradients.values())


def test_without_l1_it_is_no_part() -> None:
    model = YOLOX(YOLOXConfig("nano", 1)).eval()
    graphdef, params, buffers = nn.split(model)
    losses = jax.eval_shape(
        lambda x, t: graphdef.bind(params, buffers).loss(x, t), jnp.zeros((2, 64, 64, 3)), targets(1, 0)
    )
    assert set(losses.parts) == {"loss_cls", "loss_obj", "loss_iou"}


def test_deploy_form_computes_the_same() -> None:
    model = YOLOX(YOLOXConfig("nano", 3)).eval()
    model.set_state_dict(named_weights(model.state_shapes()))
    deployed = reparameterize(model)
    assert not [name for name in deployed.state_shapes() if ".bn." in name]
    images = jnp.asarray(np.random.default_rng(1).standard_normal((1, 64, 96, 3)), jnp.float32)
    for ours, fused in zip(model(images), deployed(images), strict=True):
        for a, b in zip(ours, fused, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 * float(jnp.abs(a).max()))


def test_detections() -> None:
    model = YOLOX(YOLOXConfig("nano", 3, nms=NMS(0.005, 0.65, 60, 20))).eval()
    graphdef, params, buffers = nn.split(model)
    found = jax.jit(lambda x: graphdef.bind(params, buffers).detect(x))(jnp.ones((2, 64, 64, 3)))
    assert found.boxes.shape == (2, 20, 4) and (np.diff(found.scores, axis=1) <= 0).all()
    # A new head gives sqrt(0.01 * 0.01) everywhere, and sides of 5 strides.
    real = np.asarray(found.scores) > 0
    np.testing.assert_allclose(np.asarray(found.scores)[real], 0.01, rtol=1e-4)
    sides = np.asarray(found.boxes[..., 2:] - found.boxes[..., :2])[real]
    assert {round(float(side)) for side in sides.reshape(-1)} <= {40, 80, 160}


def test_two_output_convolutions_of_a_program_become_one() -> None:
    def conv(outputs: int, size: int = 1) -> WeightedOp:
        arrays = {
            "weight": np.full((outputs, 2, size, size), outputs, np.float32),
            "bias": np.full(outputs, -outputs, np.float32),
        }
        return WeightedOp("conv", arrays, {"weight": f"w{outputs}", "bias": f"b{outputs}"}, f"n{outputs}")

    first, *rest = YOLOX.program_ops([conv(4), conv(1), conv(4, 3), conv(1), conv(4), conv(2)])
    assert first.node == "n4" and first.source == {"weight": "w4 + w1", "bias": "b4 + b1"}
    np.testing.assert_array_equal(first.arrays["weight"][:, 0, 0, 0], [4, 4, 4, 4, 1])
    np.testing.assert_array_equal(first.arrays["bias"], [-4, -4, -4, -4, -1])
    assert [op.node for op in rest] == ["n4", "n1", "n4", "n2"]


def test_negative_steps_are_refused() -> None:
    with pytest.raises(ConfigError, match="l1_from"):
        YOLOXConfig(l1_from=-1)
