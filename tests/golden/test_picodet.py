"""Parity of PicoDet's two versions with PaddleDetection: names, outputs and losses.

The references are written by tools/golden/picodet.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Targets
from detection.models.picodet import PicoDetConfig
from detection.models.picodet_esnet import PicoDetESNetConfig
from framework import nn
from framework.config import build
from framework.engine.task import Losses
from framework.interop.named_weights import named_weights

DATA = Path(__file__).parent / "data" / "picodet"
BINS = "head.distribution_project.project"
# What depthwise and other kernels are multiplied by: without it no signal would reach the heads.
GAINS = {"picodet_s": (4.4, 1.5), "picodet_s_esnet": (2.8, 1.25), "picodet_layout_1x": (4.0, 1.45)}
VARIANTS = sorted(path.stem for path in DATA.glob("*.npz"))


def reference(variant: str) -> tuple[dict[str, tuple[int, ...]], dict[str, np.ndarray]]:
    """Upstream's names with their shapes, and what it computed."""
    with np.load(DATA / f"{variant}.npz") as data:
        rows = [line.split(" ") for line in bytes(data["keys"]).decode().splitlines()]
        shapes = {name: tuple(map(int, shape.split("x"))) for name, shape in rows}
        return shapes, {name: data[name] for name in data.files if name != "keys"}


def model(variant: str) -> Any:
    first = variant.endswith(("esnet", "layout_1x"))
    return build((PicoDetESNetConfig if first else PicoDetConfig)(variant))


def weights(variant: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """As in tools/golden/picodet.py."""
    drawn = named_weights(shapes) | {BINS: np.arange(8, dtype=np.float32)}
    depthwise, full = GAINS[variant]
    return {
        name: value * (depthwise if value.shape[1:2] == (1,) else full) if value.ndim == 4 else value
        for name, value in drawn.items()
    }


def inputs() -> tuple[jax.Array, jax.Array, jax.Array]:
    """As in tools/golden/picodet.py: images [2, 320, 320, 3], boxes [7, 4] and labels [7] of the first."""
    random = np.random.RandomState(11)
    images = random.standard_normal((2, 3, 20, 20)).astype(np.float32).repeat(16, axis=2).repeat(16, axis=3)
    corners = random.uniform(0, 200, (7, 2))
    boxes = np.concatenate([corners, corners + random.uniform(12, 120, (7, 2))], axis=1)
    labels = random.randint(0, 80, 7)
    return (
        jnp.asarray(images.transpose(0, 2, 3, 1)),
        jnp.asarray(boxes, jnp.float32),
        jnp.asarray(labels, jnp.int32),
    )


def targets(boxes: jax.Array, labels: jax.Array, step: int) -> Targets:
    """Padding stands among the objects of the first image; the second has none."""
    rows = jnp.asarray([0, 1, 2, 4, 5, 6, 8])
    return Targets(
        jnp.zeros((2, 9, 4)).at[0, rows].set(boxes),
        jnp.zeros((2, 9), jnp.int32).at[0, rows].set(labels),
        jnp.zeros((2, 9), bool).at[0, rows].set(True),
        jnp.asarray(step, jnp.int32),
    )


def thin(array: np.ndarray, kept: int) -> np.ndarray:
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // kept)]


def close(ours: Any, want: np.ndarray, name: str) -> None:
    np.testing.assert_allclose(ours, want, rtol=0, atol=1e-4 * np.abs(want).max(), err_msg=name)


@pytest.mark.parametrize("variant", VARIANTS)
def test_state_dict_has_upstreams_names(variant: str) -> None:
    shapes, _ = reference(variant)
    ours = model(variant)
    twice = {name for name in shapes if name.startswith(("head.head_cls_list.", "head.head_reg_list."))}
    assert {name: shape for name, shape in shapes.items() if name not in twice} == ours.state_shapes()
    assert twice == set() or ours.set_state_dict(named_weights(shapes)) == ([], [])


@pytest.mark.parametrize("variant", GAINS)
def test_outputs_and_losses(variant: str) -> None:
    shapes, want = reference(variant)
    ours = model(variant).eval()
    ours.set_state_dict(weights(variant, shapes))
    graphdef, params, buffers = nn.split(ours)
    images, boxes, labels = inputs()

    @jax.jit
    def run(
        params: Any, buffers: Any, images: jax.Array, truth: Targets
    ) -> tuple[list[jax.Array], Any, Losses]:
        layer: Any = graphdef.bind(params, buffers)
        maps: list[jax.Array] = []
        handle = layer.neck.register_forward_post_hook(lambda _, args, out: maps.extend(out))
        levels = layer(images)
        handle.remove()
        return maps, levels, layer.loss(images, truth)

    maps, levels, first = run(params, buffers, images, targets(boxes, labels, 0))
    for i, x in enumerate(maps):
        name = f"neck.{i}"
        close(thin(np.asarray(x).transpose(0, 3, 1, 2), 160), want[name], name)
    for field in ("scores", "distances"):
        each = [np.asarray(getattr(level, field)) for level in levels]
        if field in want:  # [N, L, C], all levels together
            flat = np.concatenate([x.reshape(2, -1, x.shape[-1]) for x in each], axis=1)
            close(thin(flat, 160), want[field], field)
        else:
            for i, x in enumerate(each):
                close(thin(x.transpose(0, 3, 1, 2), 160), want[f"{field}.{i}"], f"{field}.{i}")
    steps = {"epoch0": 0, "epoch200": PicoDetConfig().static_steps}
    runs = {name.split(".")[0] for name in want if name.startswith("epoch")}
    for epoch in sorted(runs):
        truth = targets(boxes, labels, steps[epoch])
        losses = first if epoch == "epoch0" else run(params, buffers, images, truth)[2]
        parts = {part: float(value) for part, value in losses.parts.items()}
        upstream = {part: float(want[f"{epoch}.{part}"].item()) for part in parts}
        assert parts == pytest.approx(upstream, rel=1e-4), epoch
        assert float(losses.total) == pytest.approx(sum(upstream.values()), rel=1e-4)
