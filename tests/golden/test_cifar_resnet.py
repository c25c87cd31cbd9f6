"""The real ResNet-20 for CIFAR-10 on real images: 80.8 % (their authors: 91.78 % on the images before JPEG).

Needs the folder of shared weights and data (OAR_SHARED). Source of the figure: its weights/resnet20_cifar10/README.md.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest

from framework import nn
from framework.interop import load_weights
from framework.interop.weights.match import from_torch
from framework.vision import image
from zoo.vision.cifar_resnet import CifarResNet, CifarResNetConfig

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def test_resnet20_on_cifar10(shared: Path) -> None:
    weights = shared / "weights" / "resnet20_cifar10" / "resnet20-12fca82f.th"
    images = shared / "data" / "cifar10_jpg" / "test.zip"
    for path in (weights, images):
        if not path.is_file():
            pytest.skip(f"{path} is not there (OAR_SHARED)")
    model = CifarResNet(CifarResNetConfig("resnet20"))
    model.set_state_dict(from_torch(load_weights(weights), model))
    graphdef, params, buffers = nn.split(model.eval())

    @jax.jit
    def classify(x: np.ndarray) -> jax.Array:
        return nn.apply(graphdef, params, buffers, None, x)[0].argmax(-1)

    with zipfile.ZipFile(images) as archive:
        names = [name for name in archive.namelist() if name.endswith(".jpg")]
        pixels = np.stack([image.read(archive.read(name)) for name in names])
    labels = [name.partition("/")[0] for name in names]
    classes = sorted(set(labels))
    truth = np.array([classes.index(label) for label in labels])
    x = (pixels.astype(np.float32) / 255 - MEAN) / STD
    found = np.concatenate([classify(x[start : start + 200]) for start in range(0, len(x), 200)])
    assert len(truth) == 2000
    assert round(100 * float((found == truth).mean()), 1) == 80.8
