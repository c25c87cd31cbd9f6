"""Values by hand; twelve random videos were within 2e-16 of TrackEval 1.3, each alone and together."""

from __future__ import annotations

import numpy as np
import pytest

from detection.tracking.hota import evaluate_hota, total_hota
from detection.tracking.mot import FrameTracks
from framework.core.errors import InputError


def frame(**places: float) -> FrameTracks:
    """Boxes 10 x 10 at x, by number: frame(_1=0, _2=30)."""
    ids = np.array([int(name[1:]) for name in places], np.int64)
    boxes = np.array([[x, 0, x + 10, 10] for x in places.values()], float).reshape(-1, 4)
    return FrameTracks(ids, boxes, np.ones(len(ids)))


def test_a_track_that_changes_its_number():
    truth = {1: frame(_1=0), 2: frame(_1=0)}
    same, changed = evaluate_hota(truth, {1: frame(_5=0), 2: frame(_5=0)}), {1: frame(_5=0), 2: frame(_6=0)}
    assert (same.hota, same.det_a, same.ass_a, same.loc_a) == (1, 1, 1, 1)
    scores = evaluate_hota(truth, changed)
    assert (scores.det_a, scores.ass_a) == (1, 0.5) and scores.hota == pytest.approx(0.5**0.5)
    both = same + scores
    assert (both.ass_a, total_hota([same, scores]).ass_a) == (0.75, 0.75)


def test_thresholds_and_false_alarms():
    scores = evaluate_hota({1: frame(_1=0)}, {1: frame(_5=2, _6=50)})
    assert scores.matches.tolist() == [1] * 13 + [0] * 6  # the IoU is 2/3
    assert scores.det_a == pytest.approx(13 / 19 / 2) and scores.ass_a == pytest.approx(13 / 19)
    assert scores.loc_a == pytest.approx((13 * 2 / 3 + 6) / 19)


def test_nothing_to_find_or_found():
    truth = {1: frame(_1=0)}
    assert [evaluate_hota(*pair).hota for pair in (({}, {}), (truth, {}), ({}, truth))] == [0, 0, 0]
    untracked = FrameTracks(np.array([-1, -1]), frame(_1=0, _2=30).boxes, np.ones(2))
    assert evaluate_hota(truth, {1: untracked}).misses.tolist() == [1] * 19
    with pytest.raises(InputError, match="the tracks have a number twice"):
        evaluate_hota(truth, {1: FrameTracks(np.array([1, 1]), untracked.boxes, np.ones(2))})
