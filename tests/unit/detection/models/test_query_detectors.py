"""RT-DETR and DINO: shapes, the deploy form, what of the backbone learns, losses without objects."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Detections, Targets
from detection.models import rt_detr
from detection.models.dino import DINO, DINOConfig
from detection.models.query_detector import QueryDetector, QueryOutputs
from detection.models.rt_detr import RTDETR, RTDETRConfig
from framework import nn
from framework.nn.reparam import reparameterize


@pytest.mark.parametrize(
    ("model", "queries"), [(RTDETR(RTDETRConfig("r50")), 300), (DINO(DINOConfig()), 900)]
)
def test_shapes_at_full_size(model: QueryDetector, queries: int) -> None:
    graphdef, params, buffers = nn.abstract(model.eval())
    images = jax.ShapeDtypeStruct((2, 640, 640, 3), jnp.float32)

    def run(params: Any, buffers: Any, x: jax.Array) -> tuple[QueryOutputs, Detections]:
        raw = nn.apply(graphdef, params, buffers, None, x)[0]
        return raw, nn.apply(graphdef, params, buffers, None, x, method="detect")[0]

    raw, found = jax.eval_shape(run, params, buffers, images)
    assert raw.boxes.shape == (7, 2, queries, 4) and raw.logits.shape == (7, 2, queries, 80)
    assert found.boxes.shape == (2, 300, 4) and found.labels.dtype == jnp.int32


def test_what_of_the_backbone_learns() -> None:
    model = RTDETR(RTDETRConfig("r50"))
    attrs = {name: parameter.attr for name, parameter in model.named_parameters()}
    assert not attrs["backbone.stem.0.conv.weight"].trainable
    assert not attrs["backbone.blocks.5.conv0.bn.weight"].trainable
    assert attrs["backbone.blocks.0.conv0.conv.weight"].trainable
    assert attrs["backbone.blocks.0.conv0.conv.weight"].learning_rate == pytest.approx(0.1)
    assert attrs["neck.lateral_convs.0.bn.weight"].trainable
    norms = [layer for layer in model.backbone.sublayers() if isinstance(layer, nn.BatchNorm)]
    assert norms and all(norm.use_global_stats for norm in norms)
    attrs = {name: parameter.attr for name, parameter in DINO(DINOConfig()).named_parameters()}
    assert not attrs["backbone.blocks.2.conv1.conv.weight"].trainable
    assert attrs["backbone.blocks.3.conv1.conv.weight"].trainable
    small = RTDETR(RTDETRConfig("r18"))
    assert all(parameter.trainable for parameter in small.parameters())


def smallest(monkeypatch: pytest.MonkeyPatch) -> QueryDetector:
    monkeypatch.setitem(rt_detr.VARIANTS, "tiny", rt_detr.VARIANTS["r18"]._replace(layers=1))
    return RTDETR(RTDETRConfig("tiny", num_classes=3, num_queries=6, num_denoising=4, top_k=8))


@pytest.mark.slow
def test_deploy_form_detects_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    model = smallest(monkeypatch).eval()
    for name, buffer in model.named_buffers():
        owner = dict(model.named_sublayers())[name.rpartition(".")[0]]
        setattr(owner, name.rpartition(".")[2], buffer + 0.3)
    deployed = reparameterize(model)
    assert "neck.fpn_blocks.0.bottlenecks.0.conv.weight" in deployed.state_shapes()
    images = jnp.asarray(np.random.default_rng(0).standard_normal((1, 64, 64, 3)), jnp.float32)
    outs = []
    for form in (model, deployed):
        graphdef, params, buffers = nn.split(form)
        run = jax.jit(lambda p, b, x, g=graphdef: nn.apply(g, p, b, None, x, method="detect")[0])
        outs.append(run(params, buffers, images))
    np.testing.assert_allclose(outs[0].scores, outs[1].scores, atol=1e-4)
    assert outs[0].boxes.shape == (1, 8, 4) and np.diff(outs[0].scores[0]).max() <= 0


@pytest.mark.slow
def test_losses_with_and_without_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without objects only classes cost, and no denoising query; gradients are finite either way."""
    model = smallest(monkeypatch)
    graphdef, params, buffers = nn.split(model.train())
    images = jnp.asarray(np.random.default_rng(0).standard_normal((2, 32, 64, 3)), jnp.float32)
    boxes = jnp.broadcast_to(jnp.asarray([8.0, 4.0, 40.0, 28.0]), (2, 3, 4))

    learned = {name: value for name, value in params.items() if not name.startswith("backbone")}

    def loss(learned: dict[str, jax.Array], valid: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        targets = Targets(boxes, jnp.ones((2, 3), jnp.int32), valid, jnp.asarray(0, jnp.int32))
        key, own = jax.random.key(1), {**params, **learned}
        out, _ = nn.apply(graphdef, own, buffers, key, images, targets, method="loss")
        return out.total, dict(out.parts)

    run = jax.jit(jax.value_and_grad(loss, has_aux=True))
    (total, parts), grads = run(learned, jnp.asarray([[True, False, True], [False] * 3]))
    assert all(np.isfinite(grad).all() for grad in grads.values())
    np.testing.assert_allclose(total, sum(parts.values()), rtol=1e-5)
    assert all(parts[name] > 0 for name in ("loss_class", "loss_bbox", "loss_giou_dn", "loss_class_dn"))
    (total, parts), grads = run(learned, jnp.zeros((2, 3), bool))
    assert all(np.isfinite(grad).all() for grad in grads.values())
    assert {name for name, value in parts.items() if value > 0} == {"loss_class", "loss_class_aux"}
