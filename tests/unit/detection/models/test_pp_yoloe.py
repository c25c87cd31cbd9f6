from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.assigners.assignment import Assignment
from detection.contracts import Targets
from detection.layers.custom_csp_pan import SPP
from detection.layers.nms import NMS
from detection.models import pp_yoloe
from detection.models.pp_yoloe import PPYOLOE, PPYOLOEConfig, Projection
from framework import nn
from framework.core.errors import ConfigError
from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize

FOLDED = {"s": 7.93, "m": 23.43, "l": 52.20, "x": 98.42}  # millions, in configs/ppyoloe/README.md


@pytest.mark.parametrize("variant", pp_yoloe.VARIANTS)
def test_parameters_and_shapes(variant: str) -> None:
    model = PPYOLOE(PPYOLOEConfig(variant))
    shapes = model.state_shapes()
    sizes = {name: math.prod(s) for name, s in shapes.items() if not name.endswith(("._mean", "._variance"))}
    assert sum(sizes.values()) == pp_yoloe.VARIANTS[variant].params + 17  # those of the projection are fixed
    branches = (".conv2.conv2.", ".conv2.conv1.bn.weight", ".conv2.alpha")
    folded = sum(size for name, size in sizes.items() if not any(part in name for part in branches))
    assert round(folded / 1e6, 2) == FOLDED[variant]
    graphdef, params, buffers = nn.abstract(model)
    image = jax.ShapeDtypeStruct((1, 640, 416, 3), jnp.float32)
    levels = jax.eval_shape(lambda p, b, x: graphdef.bind(p, b)(x), params, buffers, image)
    assert [level.classes.shape for level in levels] == [(1, 20, 13, 80), (1, 40, 26, 80), (1, 80, 52, 80)]
    assert [level.distances.shape[-1] for level in levels] == [68] * 3


def targets(count: int, step: int) -> Targets:
    """Two images; the first has `count` objects of three."""
    boxes = jnp.asarray([[[8.0, 8, 60, 57], [20, 11, 62, 40], [5, 33, 30, 61]]] * 2)
    valid = jnp.stack([jnp.arange(3) < count, jnp.zeros(3, bool)])
    return Targets(boxes, jnp.asarray([[0, 1, 2]] * 2), valid, jnp.asarray(step, jnp.int32))


@pytest.mark.parametrize("differentiate", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_losses_of_a_new_model(differentiate: bool) -> None:
    """Its scores are 0.01 and its distances uniform, so most of the loss is known."""
    model = PPYOLOE(PPYOLOEConfig("s", 3, static_steps=5)).eval()
    graphdef, params, buffers = nn.split(model)
    images = jnp.asarray(np.random.default_rng(0).standard_normal((2, 64, 64, 3)), jnp.float32)

    @jax.jit
    def run(params: Any, truth: Targets) -> Any:
        def loss(params: Any) -> Any:
            losses = graphdef.bind(params, buffers).loss(images, truth)
            return losses.total, losses

        return jax.value_and_grad(loss, has_aux=True)(params) if differentiate else (loss(params), {})

    (total, empty), gradients = run(params, targets(0, 0))
    cells = 2 * (4 + 16 + 64)
    assert float(empty.parts["loss_cls"]) == pytest.approx(
        -cells * 3 * 0.75 * 0.01**2 * math.log(0.99), rel=1e-4
    )
    assert float(empty.parts["loss_iou"]) == float(empty.parts["loss_dfl"]) == 0
    assert float(total) == float(empty.parts["loss_cls"])
    assert all(np.isfinite(g).all() for g in gradients.values())
    for step in (0, 5):
        (total, full), gradients = run(params, targets(3, step))
        parts = {name: float(part) for name, part in full.parts.items()}
        assert float(total) == pytest.approx(
            parts["loss_cls"] + 2.5 * parts["loss_iou"] + 0.5 * parts["loss_dfl"], rel=1e-6
        )
        assert all(np.isfinite(g).all() for g in gradients.values())
    # ATSS looks at the anchors alone, the other at the predictions too.
    static, still, aligned = (float(run(params, targets(3, step))[0][0]) for step in (0, 4, 5))
    assert static == still != aligned


def test_a_positive_of_no_quality_weighs_nothing() -> None:
    model = PPYOLOE(PPYOLOEConfig("s", 2))
    labels, logits = jnp.asarray([[1]]), jnp.zeros((1, 3, 2))
    assigned = Assignment(
        jnp.asarray([[True, True, False]]),
        jnp.zeros((1, 3), jnp.int32),
        jnp.asarray([[0.5, 0.0, 0.0]]),
    )
    # Of 6 outputs of probability 0.5, one weighs its quality, one nothing, and four 0.75 * 0.25.
    want = (0.5 + 4 * 0.75 * 0.25) * math.log(2)
    assert float(model._class_loss(logits, assigned, labels)) == pytest.approx(want, rel=1e-6)


def test_projection_by_hand() -> None:
    logits = np.full((1, 68), -100, np.float32)
    logits[0, [3, 17, 34 + 16, 51 + 4, 51 + 5]] = 100
    np.testing.assert_allclose(Projection()(jnp.asarray(logits)), [[3, 0, 16, 4.5]], rtol=1e-6)


def test_spp_pools_the_same_size() -> None:
    layer = SPP(1, deploy=True)
    layer.set_state_dict(
        {"conv.conv.weight": np.ones((1, 4, 1, 1), np.float32), "conv.conv.bias": np.zeros(1, np.float32)}
    )
    x = np.zeros((1, 9, 9, 1), np.float32)
    x[0, 0, 0] = 1
    out = np.asarray(layer(jnp.asarray(x)))[0, :, :, 0]
    sums = np.array([[4, 3, 3, 2, 2, 1, 1, 0]])  # the pixel itself, and as many windows as reach it
    np.testing.assert_allclose(
        out[0, :8], (sums / (1 + np.exp(-sums)))[0] * [1, 1, 1, 1, 1, 1, 1, 1], rtol=1e-6
    )


def test_deploy_form_computes_the_same() -> None:
    model = PPYOLOE(PPYOLOEConfig("s", 3)).eval()
    drawn = named_weights(model.state_shapes())
    fixed = np.arange(17, dtype=np.float32).reshape(1, 17, 1, 1)
    model.set_state_dict({**drawn, "yolo_head.proj_conv.weight": fixed})
    deployed = reparameterize(model)
    assert not [name for name in deployed.state_shapes() if ".bn." in name or "alpha" in name]
    images = jnp.asarray(np.random.default_rng(1).standard_normal((1, 64, 96, 3)), jnp.float32)
    for ours, fused in zip(model(images), deployed(images), strict=True):
        for a, b in zip(ours, fused, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 * float(jnp.abs(a).max()))


def test_detections() -> None:
    model = PPYOLOE(PPYOLOEConfig("s", 3, nms=NMS(0.005, 0.7, 60, 20))).eval()
    graphdef, params, buffers = nn.split(model)
    found = jax.jit(lambda x: graphdef.bind(params, buffers).detect(x))(jnp.ones((2, 64, 64, 3)))
    assert found.boxes.shape == (2, 20, 4) and found.labels.dtype == jnp.int32
    assert (np.diff(found.scores, axis=1) <= 0).all()
    # A new head gives 0.01 everywhere, and expects each side 8 strides away.
    np.testing.assert_allclose(np.asarray(found.scores)[np.asarray(found.scores) > 0], 0.01, rtol=1e-4)
    sides = np.asarray(found.boxes[..., 2:] - found.boxes[..., :2])[np.asarray(found.scores) > 0]
    assert {round(float(side)) for side in sides.reshape(-1)} <= {128, 256, 512}


def test_negative_steps_are_refused() -> None:
    with pytest.raises(ConfigError, match="static_steps"):
        PPYOLOEConfig(static_steps=-1)
