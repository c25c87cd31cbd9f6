"""Losses of text, against what numpy makes of their formulas."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from ocr.losses.text import (
    balanced_cross_entropy,
    ctc_line_losses,
    dice_loss,
    focal_loss,
    masked_l1,
    smoothed_cross_entropy,
)

RNG = np.random.default_rng(0)


def maps(count: int = 3) -> list[np.ndarray]:
    return [RNG.uniform(0, 1, (2, 8, 9)).astype(np.float32) for _ in range(count)]


def test_dice_and_l1_count_the_masked_pixels_alone() -> None:
    p, t, _ = maps()
    t = (t > 0.7).astype(np.float32)
    mask = np.zeros_like(t)
    mask[:, :4] = 1
    inside = p[:, :4], t[:, :4]
    wanted = 1 - 2 * (inside[0] * inside[1]).sum() / (inside[0].sum() + inside[1].sum())
    assert float(dice_loss(p, t, mask)) == pytest.approx(wanted, rel=1e-5)
    assert float(masked_l1(p, t, mask)) == pytest.approx(np.abs(inside[0] - inside[1]).mean(), rel=1e-5)
    assert float(dice_loss(t, t, mask)) == pytest.approx(0, abs=1e-6)
    assert float(masked_l1(p, t, np.zeros_like(t))) == 0


@pytest.mark.parametrize("ratio", [0.5, 3.0, 100.0])
def test_only_the_hardest_negatives_count(ratio: float) -> None:
    p, t, m = maps()
    t, m = (t > 0.9).astype(np.float32), (m > 0.2).astype(np.float32)
    losses = -(t * np.log(p) + (1 - t) * np.log(1 - p))
    positive, negative = losses[(t * m) > 0], np.sort(losses[((1 - t) * m) > 0])[::-1]
    count = min(int(len(positive) * ratio), len(negative))
    wanted = (positive.sum() + negative[:count].sum()) / (len(positive) + count)
    assert float(balanced_cross_entropy(p, t, m, ratio)) == pytest.approx(wanted, rel=1e-4)


def test_a_page_without_text_has_no_loss_of_negatives() -> None:
    p, t, m = maps()
    assert float(balanced_cross_entropy(p, np.zeros_like(t), np.ones_like(m))) == 0


@pytest.mark.parametrize("gamma", [0.0, 2.5])
def test_easy_pixels_count_little_in_the_focal_loss(gamma: float) -> None:
    p, t, m = maps()
    t, m = (t > 0.8).astype(np.float32), (m > 0.2).astype(np.float32)
    right = np.where(t > 0, p, 1 - p)
    losses = -np.where(t > 0, 0.25, 0.75) * (1 - right) ** gamma * np.log(right)
    wanted = (losses * m).sum() / m.sum()
    assert float(focal_loss(p, t, m, 0.25, gamma)) == pytest.approx(wanted, rel=1e-4)


def test_ctc_sums_over_alignments() -> None:
    scores = jax.nn.log_softmax(RNG.standard_normal((1, 3, 3)).astype(np.float32))
    paths = [(1, 1, 1), (0, 1, 1), (0, 0, 1), (1, 1, 0), (1, 0, 0), (0, 1, 0)]
    wanted = -np.log(sum(np.exp(sum(scores[0, t, c] for t, c in enumerate(path))) for path in paths))
    found = ctc_line_losses(scores, np.array([[1, 0]]), np.array([1]))
    assert found.shape == (1,) and float(found[0]) == pytest.approx(float(wanted), rel=1e-5)


def test_smoothing_spreads_over_the_other_classes() -> None:
    logits = RNG.standard_normal((2, 3, 5)).astype(np.float32)
    targets, weight = RNG.integers(0, 5, (2, 3)), np.array([[1, 1, 0], [1, 0, 0]], np.float32)
    scores = np.asarray(jax.nn.log_softmax(logits))
    shares = np.full(logits.shape, 0.1 / 4)
    np.put_along_axis(shares, targets[..., None], 0.9, axis=-1)
    wanted = (-(shares * scores).sum(-1) * weight).sum() / 3
    assert float(smoothed_cross_entropy(logits, targets, weight)) == pytest.approx(wanted, rel=1e-5)
