"""Parity of PP-YOLOE+ and YOLOX with PaddleDetection: outputs, every part of the loss, gradients.

The references are written by `tools.golden yolo_detectors`, which says how weights and objects are chosen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.boxes import boxes_to_distances
from detection.contracts import Targets
from detection.models.pp_yoloe import PPYOLOE, PPYOLOEConfig
from detection.models.yolox import YOLOX, YOLOXConfig
from framework import nn
from framework.interop.named_weights import named_weights
from tools.golden.detectors import calmer, objects

DATA = Path(__file__).parent / "data" / "yolo_detectors"
KEPT = 400  # values of each output, as in tools/golden
CASES: dict[str, tuple[nn.Layer, tuple[int, int]]] = {
    "pp_yoloe_s": (PPYOLOE(PPYOLOEConfig("s", static_steps=1)), (128, 160)),
    "pp_yoloe_s_640": (PPYOLOE(PPYOLOEConfig("s", static_steps=1)), (640, 640)),
    "yolox_nano": (YOLOX(YOLOXConfig("nano", l1_from=1)), (128, 160)),
    "yolox_nano_416": (YOLOX(YOLOXConfig("nano", l1_from=1)), (416, 416)),
}


SLOW = ("640", "416")


def close(ours: Any, want: np.ndarray, name: str) -> None:
    flat = np.asarray(ours).reshape(-1)
    flat = flat[:: -(-flat.size // KEPT)]
    assert flat.shape == want.shape and want.std() > 0, name
    np.testing.assert_allclose(flat, want, rtol=0, atol=1e-4 * float(np.abs(want).max()), err_msg=name)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * case.endswith(SLOW)) for case in CASES]
)
def test_outputs_losses_and_gradients(case: str) -> None:
    model, size_hw = CASES[case]
    with np.load(DATA / f"{case}.npz") as data:
        want = {name: data[name] for name in data.files}
    model.set_state_dict(calmer(named_weights(model.state_shapes()), {}))
    images = np.random.RandomState(7).standard_normal((2, 3, *size_hw)).astype(np.float32)
    graphdef, params, buffers = nn.split(model.eval())

    def call(params: Any, method: str, *args: Any) -> Any:
        return nn.apply(graphdef, params, buffers, None, images.transpose(0, 2, 3, 1), *args, method=method)[
            0
        ]

    def loss(params: Any, targets: Targets) -> Any:
        losses = call(params, "loss", targets)
        return losses.total, losses.parts

    found = jax.jit(lambda params: call(params, "flatten"))(params)
    if isinstance(model, PPYOLOE):
        scores = jax.nn.sigmoid(found.classes)
        places = boxes_to_distances(found.grid.points, found.boxes) / found.grid.strides  # upstream's output
    else:
        scores, places = found.scores(), found.boxes
    close(scores.transpose(0, 2, 1) if isinstance(model, PPYOLOE) else scores, want["scores"], "scores")
    close(places, want["boxes"], "boxes")

    # Backpropagation takes long to compile.
    slow = case.endswith(SLOW)
    run = jax.jit(
        jax.value_and_grad(loss, has_aux=True)
        if slow
        else lambda params, targets: (loss(params, targets), {})
    )
    for step in (0, 1):
        (total, parts), gradients = run(
            params, Targets(*map(jnp.asarray, (*objects(size_hw), np.int32(step))))
        )
        ours = {"loss": total, **parts}
        assert len(ours) >= 4
        for name, value in ours.items():
            np.testing.assert_allclose(
                value, want[f"{name}@{step}"].reshape(()), rtol=1e-4, atol=0, err_msg=name
            )
        names = [key for key in want if key.startswith("grad ") and key.endswith(f"@{step}")]
        assert len(names) == 3
        for key in names if slow else ():
            close(gradients[key[5:-2]], want[key], key)
