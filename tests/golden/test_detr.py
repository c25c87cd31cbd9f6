"""Parity of RT-DETR and DINO with PaddleDetection: names, stages, detections, losses and gradients.

Reference: tools/golden/detr.py
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Detections, Targets
from detection.layers.denoising import Noise
from detection.models import dino, query_detector, rt_detr
from detection.models.dino import DINO, DINOConfig
from detection.models.query_detector import QueryDetector
from detection.models.rt_detr import RTDETR, RTDETRConfig
from framework import nn
from framework.interop.named_weights import named_weights
from tests.golden.parity import KEPT
from zoo.vision.resnet import ResNetConfig

DATA = Path(__file__).parent / "data" / "detr"
CALMED = ("sampling_offsets.weight", "layers.2.weight")  # as in tools/golden/detr.py
SLOTS = 12
# The objects of tools/golden/detr.py with padding between them: cxcywh in 0 to 1
BOXES = np.zeros((3, 5, 4), np.float32)
LABELS, VALID = np.zeros((3, 5), np.int32), np.zeros((3, 5), bool)
BOXES[0, [0, 2, 4]] = [[0.3, 0.4, 0.2, 0.3], [0.7, 0.6, 0.5, 0.6], [0.5, 0.25, 0.1, 0.08]]
LABELS[0, [0, 2, 4]], VALID[0, [0, 2, 4]] = [3, 17, 3], True
BOXES[2, 3], LABELS[2, 3], VALID[2, 3] = [0.55, 0.5, 0.6, 0.9], 79, True


def small(case: str, monkeypatch: pytest.MonkeyPatch) -> QueryDetector:
    if case == "rt_detr_r18_small":
        monkeypatch.setitem(rt_detr.VARIANTS, "small", rt_detr.VARIANTS["r18"]._replace(layers=2))
        return RTDETR(RTDETRConfig("small", num_queries=20, num_denoising=SLOTS // 2))
    size = dino.VARIANTS["r50_4scale"]._replace(backbone=ResNetConfig("resnet18"), encoder=1, decoder=2)
    monkeypatch.setitem(dino.VARIANTS, "small", size)
    return DINO(DINOConfig("small", num_queries=20, num_denoising=SLOTS // 2))


def load(model: nn.Layer, case: str) -> dict[str, np.ndarray]:
    """Give the model the weights drawn from upstream's names; returns the rest of the reference."""
    with np.load(DATA / f"{case}.npz") as data:
        lines = bytes(data["keys"]).decode().splitlines()
        reference = {name: data[name] for name in data.files if name != "keys"}
    shapes = dict(line.split(" ") for line in lines)
    weights = named_weights({name: tuple(map(int, s.split("x"))) for name, s in shapes.items()})
    for name in weights:
        if name.endswith(CALMED):
            weights[name] *= 0.1
    model.set_state_dict(weights)
    return reference


def images(batch: int, height: int, width: int) -> np.ndarray:
    values = np.random.RandomState(5).standard_normal((batch, 3, height, width)).astype(np.float32)
    return values.transpose(0, 2, 3, 1)


def predict(
    model: QueryDetector, names: list[str], x: np.ndarray
) -> tuple[Detections, dict[str, np.ndarray]]:
    """(detections, outputs of the named sublayers, maps as [N, C, H, W]) of one compiled call."""
    found: dict[str, jax.Array] = {}
    owners = dict(model.named_sublayers())
    handles = [
        owners[name].register_forward_post_hook(
            lambda layer, args, out, name=name: found.__setitem__(name, out)
        )
        for name in names
    ]
    graphdef, params, buffers = nn.split(model.eval())

    def run(params: Any, buffers: Any, x: jax.Array) -> tuple[Detections, dict[str, jax.Array]]:
        return nn.apply(graphdef, params, buffers, None, x, method="detect")[0], dict(found)

    detections, outs = jax.jit(run)(params, buffers, x)
    for handle in handles:
        handle.remove()
    return detections, {
        name: np.asarray(out.transpose(0, 3, 1, 2) if out.ndim == 4 else out) for name, out in outs.items()
    }


def check_predictions(
    model: QueryDetector, reference: dict[str, np.ndarray], x: np.ndarray, swapped: int = 0
) -> int:
    """Stages within 1e-4 of their largest value; the 100 best scores, and boxes and labels where the rank is certain.

    Of the decoder's output `swapped` values may differ: two queries whose scores are equal up to rounding have changed
    their places. Returns how many boxes that were.
    """
    wanted = {name: value for name, value in reference.items() if name.startswith(("neck", "transformer"))}
    found, stages = predict(model, list(wanted), x)
    for name, want in wanted.items():
        flat = stages[name].reshape(-1)
        flat = flat[:: -(-flat.size // KEPT)]
        limit = 1e-4 * max(1.0, float(np.abs(want).max()))
        assert flat.size == want.size and want.std() > 0.01, name
        if swapped and name.startswith("transformer.decoder"):
            flat = np.where(np.cumsum(np.abs(flat - want) > limit) <= swapped, want, flat)
        np.testing.assert_allclose(flat, want, rtol=0, atol=limit, err_msg=name)
    want = reference["detections"]
    np.testing.assert_allclose(found.scores[0, : len(want)], want[:, 1], rtol=0, atol=1e-4)
    near = np.abs(np.diff(want[:, 1])) < 1e-5  # two that could change places
    apart = ~(np.append(near, False) | np.insert(near, 0, False))
    np.testing.assert_array_equal(np.asarray(found.labels[0, : len(want)])[apart], want[apart, 0])
    boxes = np.asarray(found.boxes[0, : len(want)])
    np.testing.assert_allclose(boxes[apart], want[apart, 2:], rtol=0, atol=1e-4 * max(x.shape[1:3]))
    return int(apart.sum())


@pytest.mark.parametrize(("case", "size"), [("rt_detr_r18_small", (64, 64)), ("dino_small", (64, 96))])
def test_small_ones_match_paddledetection(
    case: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small(case, monkeypatch)
    reference = load(model, case)
    assert check_predictions(model, reference, images(1, *size)) > 25


@pytest.mark.parametrize(
    ("case", "size"),
    [
        ("rt_detr_r18_small", (64, 64)),
        pytest.param("dino_small", (64, 96), marks=pytest.mark.slow),
    ],
)
def test_losses_and_gradients_match_paddledetection(
    case: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small(case, monkeypatch)
    reference = load(model, case)
    draw = np.random.RandomState(11)
    chance, labels = draw.rand(3, SLOTS), draw.randint(0, 80, (3, SLOTS))
    signs, shares = draw.randint(0, 2, (3, SLOTS, 4)), draw.rand(3, SLOTS, 4)
    noise = Noise(*(jnp.asarray(part, jnp.float32) for part in (chance, labels, signs * 2 - 1, shares)))
    noise = noise._replace(labels=noise.labels.astype(jnp.int32))
    monkeypatch.setattr(query_detector, "draw_noise", lambda *args: noise)
    scale = np.array([size[1], size[0], size[1], size[0]], np.float32)
    corners = np.concatenate([BOXES[..., :2] - BOXES[..., 2:] / 2, BOXES[..., :2] + BOXES[..., 2:] / 2], -1)
    targets = Targets(*(jnp.asarray(x) for x in (corners * scale, LABELS, VALID, np.int32(0))))
    graphdef, params, buffers = nn.split(model.train())

    wanted = {name.removeprefix("loss "): value for name, value in reference.items() if "loss " in name}
    learned = {name: params[name] for name in (key.partition(" ")[2] for key in wanted) if name}

    def loss(learned: Any, params: Any, x: jax.Array) -> tuple[jax.Array, Mapping[str, jax.Array]]:
        key = jax.random.key(0)
        out, _ = nn.apply(graphdef, {**params, **learned}, buffers, key, x, targets, method="loss")
        return out.total, out.parts

    gradients, parts = jax.jit(jax.grad(loss, has_aux=True))(learned, params, images(3, *size))
    assert sum(name in parts for name in wanted) == len(parts) == 12
    for name, want in wanted.items():
        if name.startswith("gradient "):
            ours = jnp.abs(gradients[name.removeprefix("gradient ")]).mean()
            np.testing.assert_allclose(ours, want, rtol=1e-3, err_msg=name)
        else:
            np.testing.assert_allclose(parts[name], want, rtol=1e-4, err_msg=name)


@pytest.mark.slow
def test_rt_detr_r50_matches_paddledetection() -> None:
    model = RTDETR(RTDETRConfig("r50"))
    reference = load(model, "rt_detr_r50")
    assert check_predictions(model, reference, images(1, 640, 640)) > 25


@pytest.mark.slow
@pytest.mark.parametrize(("side", "classes"), [(640, 23), (800, 20)])
def test_pp_doclayout_l_matches_paddledetection(side: int, classes: int) -> None:
    """PP-DocLayout-L and PP-DocLayout_plus-L: RT-DETR on HGNetV2."""
    model = RTDETR(RTDETRConfig("hgnetv2_l", num_classes=classes))
    reference = load(model, f"rt_detr_l_{side}")
    assert check_predictions(model, reference, images(1, side, side), swapped=2) > 25


@pytest.mark.slow
def test_dino_r50_matches_paddledetection() -> None:
    model = DINO(DINOConfig())
    reference = load(model, "dino_r50")
    # Of 72,000 scores of random weights hardly two are far apart; what they come from has been compared.
    check_predictions(model, reference, images(1, 800, 1333))
