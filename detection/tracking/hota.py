"""HOTA, how good tracks are: detection and association weighed alike, over thresholds of overlap.

Source: Luiten et al. 2020, "HOTA: A Higher Order Metric for Evaluating Multi-Object Tracking",
https://arxiv.org/abs/2009.07736; in the matching of frames, the authors' TrackEval.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from detection.tracking.mot import NO_TRACKS, Tracks, check_ids
from framework.vision import boxes as vision_boxes

THRESHOLDS = np.arange(1, 20) * 0.05
"""IoUs from which boxes match: .05 to .95."""
_SLACK = np.finfo(float).eps  # an overlap that is the threshold but for rounding


@dataclass(frozen=True, eq=False)
class HotaScores:
    """Sums over one or more videos at each of THRESHOLDS, [19] float64 each, and the scores that follow from them.
    Scores of several videos come from their sums: `a + b`."""

    matches: np.ndarray
    misses: np.ndarray
    false_positives: np.ndarray
    association: np.ndarray
    """Sum over the matches of the share of frames, of all that their object or their track has, in which both match."""
    overlap: np.ndarray
    """Sum of the IoU of the matches."""

    def __add__(self, other: HotaScores) -> HotaScores:
        return HotaScores(
            self.matches + other.matches,
            self.misses + other.misses,
            self.false_positives + other.false_positives,
            self.association + other.association,
            self.overlap + other.overlap,
        )

    @property
    def hota(self) -> float:
        """The mean over the thresholds of the geometric mean of both accuracies."""
        return float(np.sqrt(self._det_a * self._ass_a).mean())

    @property
    def det_a(self) -> float:
        """Detection accuracy: matches over matches, misses and false positives."""
        return float(self._det_a.mean())

    @property
    def ass_a(self) -> float:
        """Association accuracy: how much of an object is one track, and of a track one object."""
        return float(self._ass_a.mean())

    @property
    def loc_a(self) -> float:
        """The mean IoU of matches; 1 at thresholds without one."""
        shares = np.divide(self.overlap, self.matches, out=np.ones(len(THRESHOLDS)), where=self.matches > 0)
        return float(shares.mean())

    @property
    def _det_a(self) -> np.ndarray:
        return self.matches / np.maximum(1, self.matches + self.misses + self.false_positives)

    @property
    def _ass_a(self) -> np.ndarray:
        return self.association / np.maximum(1, self.matches)


def evaluate_hota(truth: Tracks, tracked: Tracks) -> HotaScores:
    """Compares tracks with the ground truth of one video. Boxes of the number -1 are in no track and left out.

    A frame is matched once for all thresholds: so that the overlaps are largest in sum, each times how well its object
    and its track fit over the whole video.

    Raises:
        InputError: two boxes of a frame have the same number.
    """
    from scipy.optimize import linear_sum_assignment  # as in bytetrack.py

    check_ids(truth, "the labels")
    check_ids(tracked, "the tracks")
    rows_of, columns_of = _number_ids(truth), _number_ids(tracked)
    together = np.zeros((len(rows_of), len(columns_of)))
    objects, tracks = np.zeros((len(rows_of), 1)), np.zeros((1, len(columns_of)))
    frames: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for frame in sorted(truth.keys() | tracked.keys()):
        (rows, boxes), (columns, track_boxes) = (
            _select(truth, frame, rows_of),
            _select(tracked, frame, columns_of),
        )
        overlap = vision_boxes.iou(boxes, track_boxes)
        objects[rows] += 1
        tracks[0, columns] += 1
        around = overlap.sum(axis=0) + overlap.sum(axis=1, keepdims=True) - overlap
        together[np.ix_(rows, columns)] += np.divide(
            overlap, around, out=np.zeros_like(overlap), where=around > _SLACK
        )
        frames.append((rows, columns, overlap))
    fit = together / np.maximum(objects + tracks - together, 1)

    count = len(THRESHOLDS)
    matched = np.zeros((count, *together.shape))
    overlaps = np.zeros(count)
    for rows, columns, overlap in frames:
        i, j = linear_sum_assignment(fit[np.ix_(rows, columns)] * overlap, maximize=True)
        holds = overlap[i, j] >= THRESHOLDS[:, None] - _SLACK
        matched[:, rows[i], columns[j]] += holds
        overlaps += holds @ overlap[i, j]
    matches = matched.sum(axis=(1, 2))
    shares = matched / np.maximum(objects + tracks - matched, 1)
    return HotaScores(
        matches,
        objects.sum() - matches,
        tracks.sum() - matches,
        (matched * shares).sum(axis=(1, 2)),
        overlaps,
    )


def total_hota(scores: Iterable[HotaScores]) -> HotaScores:
    """The scores of several videos together."""
    return sum(scores, HotaScores(*np.zeros((5, len(THRESHOLDS)))))


def _number_ids(tracks: Tracks) -> dict[int, int]:
    ids = sorted({int(one) for frame in tracks.values() for one in frame.ids} - {-1})
    return {one: index for index, one in enumerate(ids)}


def _select(tracks: Tracks, frame: int, number: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The indices [K] and boxes [K, 4] of what is in a track."""
    ids, boxes, _ = tracks.get(frame, NO_TRACKS)
    in_track = ids != -1
    return np.array([number[one] for one in ids[in_track].tolist()], np.int64), boxes[in_track]
