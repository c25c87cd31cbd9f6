"""Parity of PP-LiteSeg, SegFormer, DeepLabV3+ and PP-HumanSeg-Lite with PaddleSeg: names, stages, logits.

Reference: tools/golden/segmentation_dense.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.interop.named_weights import named_weights
from segmentation.models.deeplabv3p import DeepLabV3PConfig
from segmentation.models.pp_humanseg_lite import PPHumanSegLiteConfig
from segmentation.models.pp_liteseg import PPLiteSegConfig
from segmentation.models.segformer import SegFormerConfig
from tests.golden.parity import KEPT, check_stages, spelled
from zoo.layers.mlp import DropPath

DATA = Path(__file__).parent / "data" / "segmentation_dense"
# Config, size of the images, their number in training, factor of the kernels.
CASES: dict[str, tuple[Any, tuple[int, int], int, float]] = {
    "pp_liteseg_t": (PPLiteSegConfig("t"), (97, 130), 4, 1.0),
    "pp_liteseg_b": (PPLiteSegConfig("b"), (97, 130), 4, 1.0),
    "segformer_b0": (SegFormerConfig("b0"), (97, 130), 4, 1.0),
    "segformer_b1": (SegFormerConfig("b1"), (64, 96), 0, 1.0),
    "segformer_b2": (SegFormerConfig("b2"), (64, 96), 0, 1.0),
    "deeplabv3p_resnet50": (DeepLabV3PConfig("resnet50"), (97, 130), 4, 1.0),
    "deeplabv3p_resnet101": (DeepLabV3PConfig("resnet101"), (64, 96), 0, 1.0),
    "pp_humanseg_lite": (PPHumanSegLiteConfig(), (97, 130), 4, 2.0),
    "pp_liteseg_t_full": (PPLiteSegConfig("t"), (512, 1024), 2, 1.0),
    "pp_liteseg_b_full": (PPLiteSegConfig("b"), (512, 1024), 0, 1.0),
    "segformer_b0_full": (SegFormerConfig("b0"), (512, 1024), 0, 1.0),
    "deeplabv3p_resnet50_full": (DeepLabV3PConfig("resnet50"), (512, 1024), 0, 1.0),
    "pp_humanseg_lite_full": (PPHumanSegLiteConfig(), (192, 192), 0, 2.0),
}
BY_DEFAULT = ("pp_liteseg_t", "segformer_b0", "pp_humanseg_lite")
# Of the largest value. In training PaddleSeg itself is up to 1.1e-4 (PP-LiteSeg-B) from what it gives in float64:
# statistics over a few pixels, block after block, amplify rounding.
TOLERANCE, TRAINING_TOLERANCE = 1e-4, 3e-4
# Upstream's backbone has names of its own, which ours accepts.
RENAMED = ("deeplabv3p_resnet50", "deeplabv3p_resnet101")


@pytest.mark.parametrize(
    "name", [name if name in BY_DEFAULT else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_stages_and_logits(name: str) -> None:
    config, size_hw, train, gain = CASES[name]
    with np.load(DATA / f"{name}.npz") as data:
        reference = {key: data[key] for key in data.files}
    shapes, _ = parse_shapes(reference.pop("keys")), reference.pop("count")
    model = build(config)
    weights = {key: w * gain if w.ndim == 4 else w for key, w in named_weights(shapes).items()}
    model.set_state_dict(weights)  # strict: none is missing, none is left over
    evaluated = reference.pop("eval")
    trained = [reference.pop(key) for key in sorted(reference) if key.startswith("train")]
    x = images(1, size_hw)
    check_stages(model.eval(), reference, x)
    compare(model, [evaluated], x)
    if trained:
        compare(model.train(), trained, images(train, size_hw))


def images(count: int, size_hw: tuple[int, int]) -> np.ndarray:
    rng = np.random.RandomState(7)
    x = rng.standard_normal((count, 3, *size_hw)) * rng.uniform(0.3, 1.5, (count, 1, 1, 1))
    return (x + rng.standard_normal((count, 3, 1, 1))).astype(np.float32).transpose(0, 2, 3, 1)


def compare(model: nn.Layer, wanted: list[np.ndarray], x: np.ndarray) -> None:
    for layer in model.sublayers():
        if isinstance(layer, nn.Dropout | nn.Dropout2D | DropPath):
            layer.eval()
    graphdef, params, buffers = nn.split(model)
    outs = jax.jit(lambda params, buffers, x: nn.apply(graphdef, params, buffers, None, x)[0])(
        params, buffers, x
    )
    assert len(outs) == len(wanted)
    for out, want in zip(outs, wanted):
        assert out.shape[:3] == x.shape[:3] and out.dtype == np.float32
        flat = np.asarray(out).transpose(0, 3, 1, 2).reshape(-1)
        tolerance = TRAINING_TOLERANCE if model.training else TOLERANCE
        limit = tolerance * float(np.abs(want).max())
        np.testing.assert_allclose(flat[:: -(-flat.size // KEPT)], want, rtol=0, atol=limit)


def parse_shapes(keys: np.ndarray) -> dict[str, tuple[int, ...]]:
    lines = (line.partition(" ") for line in bytes(keys).decode().splitlines())
    return {key: tuple(map(int, shape.split("x"))) for key, _, shape in lines}


@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith("_full")])
def test_names_and_counts(name: str) -> None:
    model = build(CASES[name][0])
    with np.load(DATA / f"{name}.npz") as data:
        assert sum(p.size for p in model.parameters()) == int(data["count"])
        shapes = parse_shapes(data["keys"])
        if name in RENAMED:
            shapes = dict(model._without_aliases(shapes))
    assert spelled(model.state_shapes()) == spelled(shapes)
