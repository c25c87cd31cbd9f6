"""Parity of the recognisers' losses with PaddleOCR's code. The references are written by tools/golden/ocr_losses.py."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from ocr.losses.text import center_loss, map_divergence, mutual_divergence, permuted_cross_entropy

DATA = Path(__file__).parent / "data" / "ocr_losses.npz"
PADDING = 10


@functools.cache
def reference() -> dict[str, np.ndarray]:
    with np.load(DATA) as data:
        return {name: data[name] for name in data.files}


def stored(name: str, *keys: str) -> list[np.ndarray]:
    return [reference()[f"{name}.{key}"] for key in (*keys, "loss")]


def test_the_loss_of_permuted_readings() -> None:
    logits, tokens, wanted = stored("parseq", "logits", "tokens")
    found = permuted_cross_entropy(logits, tokens.astype(np.int32), np.ones(3), end=0, padding=PADDING)
    assert float(found) == pytest.approx(float(np.squeeze(wanted)), rel=1e-5)


def test_the_centre_loss() -> None:
    features, scores, centers, wanted = stored("center", "features", "scores", "centers")
    classes = scores.argmax(-1).astype(np.int32)
    found = center_loss(features, classes, centers.astype(np.float32), np.ones((2, 4), np.float32))
    assert float(found) == pytest.approx(float(np.squeeze(wanted)), rel=1e-5)


def test_mutual_learning_of_lines() -> None:
    first, second, wanted = stored("mutual", "first", "second")
    found = mutual_divergence(first, second, np.ones((2, 4), np.float32))
    assert float(found) == pytest.approx(float(np.squeeze(wanted)), rel=1e-5)


def test_mutual_learning_of_maps() -> None:
    """Upstream gives a value for each image."""
    first, second, wanted = stored("maps", "first", "second")
    assert wanted.shape == (2,)
    found = map_divergence(first, second, np.ones((2, 6, 5), np.float32))
    assert float(found) == pytest.approx(float(wanted.mean()), rel=1e-5)
