"""MobileNetV1 x0.25 with real weights on real photographs.

The weights are those of RetinaFace's PyTorch network, whose README was measured by another runtime: top-1 53.0 %, top-5
74.7 % of 300 images. Needs the folder of shared weights and data (OAR_SHARED).
"""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import jax
import numpy as np
import pytest

from framework import nn
from framework.interop import load_weights
from framework.interop.weights.match import from_torch
from zoo.vision.mobilenet_v1 import MobileNetV1, MobileNetV1Config

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).parents[3] / "shared"))
WEIGHTS = SHARED / "weights" / "mobilenetv1_x0.25_imagenet" / "mobilenetV1X0.25_pretrain.tar"
SAMPLES = SHARED / "data" / "imagenet_samples"
MEAN, STD = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)


def crop(path: Path) -> np.ndarray:
    """RGB, short side 256, the central 224 x 224."""
    decoded = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
    assert decoded is not None, path
    image = decoded[..., ::-1]
    height, width = image.shape[:2]
    scale = 256 / min(height, width)
    image = cv2.resize(image, (round(width * scale), round(height * scale)), interpolation=cv2.INTER_LINEAR)
    top, left = (image.shape[0] - 224) // 2, (image.shape[1] - 224) // 2
    return image[top : top + 224, left : left + 224]


def test_accuracy_of_the_published_weights() -> None:
    for path in (WEIGHTS, SAMPLES / "labels.txt"):
        if not path.exists():
            pytest.skip(f"{path} is not there (OAR_SHARED)")
    model = MobileNetV1(MobileNetV1Config("mobilenetv1_x0_25", slope=0.1))
    model.set_state_dict(from_torch(load_weights(WEIGHTS), model))
    graphdef, params, buffers = nn.split(model.eval())
    run = jax.jit(lambda x: nn.apply(graphdef, params, buffers, None, x)[0])
    lines = (SAMPLES / "labels.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line]
    ranks = []
    for start in range(0, len(rows), 50):
        part = rows[start : start + 50]
        images = np.stack([crop(SAMPLES / path) for path, _ in part]).astype(np.float32)
        logits = np.asarray(run((images / 255 - MEAN) / STD))
        labels = np.array([int(label) for _, label in part])
        ranks += list((logits > logits[np.arange(len(part)), labels][:, None]).sum(axis=1))
    assert len(ranks) == 300
    top1, top5 = (100 * float(np.mean(np.array(ranks) < k)) for k in (1, 5))
    assert (round(top1, 1), round(top5, 1)) == (53.0, 74.7)
