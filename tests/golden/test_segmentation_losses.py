"""Parity of segmentation's losses and metrics with PaddleSeg 2.8, on the cases of tools/golden."""

from __future__ import annotations

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from segmentation import losses
from segmentation.metrics import MeanIoU
from tools.golden.segmenters import CASES, CLASSES, labels, logits, predictions

DATA = Path(__file__).parent / "data" / "segmentation_losses" / "reference.npz"


@functools.cache
def reference() -> dict[str, np.ndarray]:
    with np.load(DATA) as stored:
        return dict(stored)


@pytest.mark.parametrize("name", CASES)
def test_losses_and_their_gradients(name: str) -> None:
    case = CASES[name]
    loss = getattr(losses, case.loss)(**case.options)
    given = jnp.asarray(labels(case.labels))
    value, gradient = jax.jit(jax.value_and_grad(lambda x: loss(x, given)))(logits(case))
    np.testing.assert_allclose(value, reference()[f"{name}/loss"].reshape(()), rtol=1e-4, atol=1e-6)
    want = reference()[f"{name}/gradient"]
    np.testing.assert_allclose(gradient, want, rtol=0, atol=1e-4 * max(np.abs(want).max(), 1e-6))


def test_scores_of_a_confusion_matrix() -> None:
    want = {name[8:]: value for name, value in reference().items() if name.startswith("metrics/")}
    metric = MeanIoU(absent="zero").start(tuple(map(str, range(CLASSES))))
    metric.update({"labels": predictions()}, {"mask": labels("absent")})
    result, rows = metric.result(), metric.score_classes()
    for ours, theirs in (
        ("mIoU", "miou"),
        ("accuracy", "accuracy"),
        ("kappa", "kappa"),
        ("mDice", "mean_dice"),
    ):
        assert result[ours] == pytest.approx(float(want[theirs]), rel=1e-9)
    for name in ("iou", "dice", "precision", "recall"):
        assert [getattr(row, name) or 0 for row in rows] == pytest.approx(want[name].tolist(), rel=1e-9)
    assert rows[3].iou is None and want["iou"][3] == 0  # class 3 is absent from both
