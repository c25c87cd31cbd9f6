from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Targets
from detection.layers.nms import NMS
from detection.models import picodet, picodet_esnet
from detection.models.picodet import PicoDetConfig
from detection.models.picodet_esnet import PicoDetESNetConfig
from framework import nn
from framework.config import build
from framework.core.errors import ConfigError
from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from framework.workflow.domain.weights import load_weights_into

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[4].parent / "shared"))
VARIANTS = (*picodet.VARIANTS, *picodet_esnet.VARIANTS)
SMALL = (PicoDetConfig("picodet_xs", 3), PicoDetESNetConfig("picodet_s_esnet", 3))


def config(variant: str, **options: Any) -> Any:
    return (PicoDetESNetConfig if variant in picodet_esnet.VARIANTS else PicoDetConfig)(variant, **options)


def targets(count: int, step: int = 0) -> Targets:
    """Two images; the first has `count` objects of four."""
    boxes = jnp.asarray([[[8.0, 8, 60, 70], [20, 10, 90, 40], [5, 50, 30, 90], [0, 0, 0, 0]]] * 2)
    valid = jnp.stack([jnp.arange(4) < count, jnp.zeros(4, bool)])
    return Targets(boxes, jnp.asarray([[0, 1, 2, 0]] * 2), valid, jnp.asarray(step, jnp.int32))


@pytest.mark.parametrize("variant", VARIANTS)
def test_shapes(variant: str) -> None:
    graphdef, params, buffers = nn.abstract(build(config(variant)))
    image = jax.ShapeDtypeStruct((1, 320, 416, 3), jnp.float32)
    levels = jax.eval_shape(lambda p, b, x: graphdef.bind(p, b)(x), params, buffers, image)
    assert [level.scores.shape for level in levels] == [
        (1, 40, 52, 80),
        (1, 20, 26, 80),
        (1, 10, 13, 80),
        (1, 5, 7, 80),
    ]
    assert [level.distances.shape[-1] for level in levels] == [32] * 4


@pytest.mark.parametrize("settings", SMALL, ids=lambda c: c.variant)
def test_losses_without_and_with_objects(settings: Any) -> None:
    model = build(settings)
    graphdef, params, buffers = nn.split(model)
    images = jnp.asarray(np.random.default_rng(0).standard_normal((2, 96, 96, 3)), jnp.float32)

    outputs = {name: value for name, value in params.items() if name.startswith("head.head_")}

    @jax.jit
    def run(outputs: Any, truth: Targets) -> Any:
        def loss(outputs: Any) -> Any:
            model: Any = graphdef.bind(params | outputs, buffers)
            losses = model.loss(images, truth)
            return losses.total, losses

        return jax.value_and_grad(loss, has_aux=True)(outputs)

    (_, empty), gradients = run(outputs, targets(0))
    assert float(empty.parts["loss_bbox"]) == 0 and float(empty.parts["loss_dfl"]) == 0
    assert float(empty.parts["loss_vfl"]) > 0
    assert all(np.isfinite(g).all() for g in gradients.values())
    for step in (0, 100_000):
        (total, full), gradients = run(outputs, targets(3, step))
        assert all(float(part) > 0 for part in full.parts.values())
        assert float(total) == pytest.approx(sum(float(part) for part in full.parts.values()), rel=1e-6)
        assert all(np.isfinite(g).all() for g in gradients.values())
    # What the box of a padded object is does not matter.
    moved = targets(3)._replace(boxes=targets(3).boxes.at[0, 3].set(jnp.asarray([1.0, 2, 50, 60])))
    assert float(run(outputs, moved)[0][0]) == pytest.approx(float(run(outputs, targets(3))[0][0]))


@pytest.mark.parametrize("settings", SMALL, ids=lambda c: c.variant)
def test_deploy_form_computes_the_same(settings: Any) -> None:
    model = build(settings).eval()
    drawn = named_weights(model.state_shapes())
    model.set_state_dict({**drawn, "head.distribution_project.project": np.arange(8, dtype=np.float32)})
    deployed = reparameterize(model)
    assert not [name for name in deployed.state_shapes() if name.endswith(("_mean", "project"))]
    images = jnp.asarray(np.random.default_rng(1).standard_normal((1, 64, 96, 3)), jnp.float32)
    for ours, fused in zip(model(images), deployed(images)):
        np.testing.assert_allclose(ours.scores, fused.scores, atol=1e-5)
        np.testing.assert_allclose(ours.distances, fused.distances, atol=1e-4)


@pytest.mark.parametrize("settings", SMALL, ids=lambda c: c.variant)
def test_detections(settings: Any) -> None:
    model = build(dataclasses.replace(settings, nms=NMS(0.0, 0.6, 50, 10))).eval()
    graphdef, params, buffers = nn.split(model)
    found = jax.jit(lambda x: graphdef.bind(params, buffers).detect(x))(jnp.ones((2, 64, 64, 3)))
    assert found.boxes.shape == (2, 10, 4)
    assert (np.diff(found.scores, axis=1) <= 0).all() and (np.asarray(found.scores) > 0).all()
    # An untrained head expects each side 3.5 strides away.
    sides = np.asarray(found.boxes[..., 2:] - found.boxes[..., :2])
    assert {round(float(side)) for side in sides.reshape(-1)} <= {56, 112, 224, 448}


def test_negative_steps_are_refused() -> None:
    with pytest.raises(ConfigError, match="static_steps"):
        PicoDetConfig(static_steps=-1)


def test_official_weights_of_the_first_version_compute_what_they_did() -> None:
    folder = SHARED / "weights" / "picodet_s_320"
    if not folder.is_dir():
        pytest.skip(f"no {folder}: set OAR_SHARED to the folder of shared data")
    model = build(PicoDetESNetConfig(deploy=True)).eval()
    load_weights_into(model, folder / "picodet_s_320_coco_sim.onnx")
    with np.load(folder / "ref_io.npz") as data:
        image = jnp.asarray(data["in:image"].astype(np.float32).transpose(0, 2, 3, 1))
        want = {name: data[name] for name in data.files if name.startswith("out:")}
    graphdef, params, buffers = nn.split(model)
    levels = jax.jit(lambda p, b, x: graphdef.bind(p, b)(x))(params, buffers, image)
    ours = [level.scores for level in levels] + [level.distances for level in levels]
    assert len(want) == len(ours) == 8
    for (name, reference), out in zip(want.items(), ours):
        flat = np.asarray(out).reshape(1, -1, out.shape[-1])
        flat = flat[:, ::8] if name.endswith("|::8") else flat
        np.testing.assert_allclose(flat, reference, rtol=0, atol=1e-4, err_msg=name)
