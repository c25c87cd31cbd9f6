"""Published ONNX detectors as Layers: their scores on coco_mini with the decoding that their READMEs say (OAR_SHARED).

The READMEs give AP with pycocotools and its settings; these are the scores that have to be met.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Detections
from detection.layers.nms import NMS, multiclass_nms
from framework import jit
from framework.interop.programs import onnx
from tests.golden.coco_statistics import coco_statistics

Decoded = tuple[jax.Array, jax.Array]  # boxes [L, 4] relative to the image, scores [L, 80]


def cells(size: int) -> tuple[jax.Array, jax.Array]:
    """Column and row of every cell, each [size * size]."""
    row, column = jnp.mgrid[:size, :size].reshape(2, -1).astype(jnp.float32)
    return column, row


def decode_fastestdet(out: dict[str, jax.Array]) -> Decoded:
    """One grid of 22 x 22; channels are objectness, box and classes."""
    objects, x, y, w, h, *classes = out["758"].reshape(85, -1)
    column, row = cells(22)
    center = jnp.stack([column + jnp.tanh(x), row + jnp.tanh(y)], -1) / 22
    half = jax.nn.sigmoid(jnp.stack([w, h], -1)) / 2
    return jnp.concatenate([center - half, center + half], -1), objects[:, None] ** 0.6 * jnp.stack(
        classes, -1
    ) ** 0.4


def decode_nanodet(out: dict[str, jax.Array]) -> Decoded:
    """Three strides; distances to the four sides are expectations over 0 to 7 strides."""
    boxes = []
    for stride in (8, 16, 32):
        share = jax.nn.softmax(out[f"dis_pred_stride_{stride}"].reshape(-1, 4, 8), -1)
        left, top, right, bottom = (share @ jnp.arange(8.0) * stride).T
        x, y = (place * stride + (stride - 1) / 2 for place in cells(320 // stride))
        boxes.append(jnp.stack([x - left, y - top, x + right, y + bottom], -1) / 320)
    scores = [out[f"cls_pred_stride_{stride}"].reshape(-1, 80) for stride in (8, 16, 32)]
    return jnp.concatenate(boxes), jnp.concatenate(scores)


def measure(
    folder: Path, size: int, interpolation: int, detect: Callable[[np.ndarray], Detections]
) -> np.ndarray:
    """COCO's statistics. `detect` takes an image [1, 3, size, size] in BGR, 0 to 255."""
    truth = json.loads((folder / "instances_val.json").read_text(encoding="utf-8"))
    results = []
    for entry in truth["images"]:
        image = cv2.imread(str(folder / "images" / "val2017" / Path(entry["file_name"]).name))
        assert image is not None
        small = cv2.resize(image, (size, size), interpolation=interpolation)
        found = detect(small.transpose(2, 0, 1)[None].astype(np.float32))
        boxes, scores, labels = (np.asarray(array[0]) for array in found)
        height, width = image.shape[:2]
        results.append((entry["id"], boxes * [width, height, width, height], scores, labels))
    return coco_statistics(truth, results)


CASES = {
    "fastestdet": (
        *("fastestdet/FastestDet.onnx", 352, cv2.INTER_AREA, [0, 0, 0], [255, 255, 255]),
        *(decode_fastestdet, NMS(0.01, 0.45, 3000, 1000), 0.198, 0.361),
    ),
    "nanodet": (
        *("nanodet_m_320/nanodet_m_320.onnx", 320, cv2.INTER_LINEAR),
        *([103.53, 116.28, 123.675], [57.375, 57.12, 58.395]),
        *(decode_nanodet, NMS(0.02, 0.6, 3000, 1000), 0.244, 0.407),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_score_on_coco_mini(name: str, shared: Path) -> None:
    file, size, interpolation, mean, std, decode, nms, ap, ap50 = CASES[name]
    path, folder = shared / "weights" / file, shared / "data" / "coco_mini"
    if not path.is_file() or not folder.is_dir():
        pytest.skip(f"{path} or {folder} is not there (OAR_SHARED)")
    layer = onnx.load(path)
    static, names = jit.to_static(layer), [spec.name for spec in layer.outputs]

    @jax.jit
    def suppress(out: dict[str, jax.Array]) -> Detections:
        boxes, scores = decode(out)
        return multiclass_nms(boxes[None], scores[None], nms)

    def detect(image: np.ndarray) -> Detections:
        x = ((image - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))).astype(np.float32)
        out = static(x)
        return suppress(dict(zip(names, out if isinstance(out, tuple) else (out,), strict=True)))

    stats = measure(folder, size, interpolation, detect)
    print(f"{name}: AP {stats[0]:.4f}, AP50 {stats[1]:.4f}")
    assert stats[0] == pytest.approx(ap, abs=0.002)
    assert stats[1] == pytest.approx(ap50, abs=0.003)
