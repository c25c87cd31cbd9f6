"""ByteTrack: boxes of a frame join tracks by overlap, the sure ones first and then the doubtful ones.

A box of a low score mostly shows an object that something hides; dropping it would break the track.
Source: https://arxiv.org/abs/2110.06864
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from detection.tracking import kalman
from framework.core.errors import ConfigError
from framework.vision import boxes as vision_boxes

_SECOND, _FRESH = 0.5, 0.7  # the costs from which doubtful boxes, and new tracks, do not belong together
_SAME = 0.85  # two tracks with more IoU are one


@dataclass(frozen=True)
class ByteTrackOptions:
    """What counts as seen, and how long an object may be out of sight.

    Attributes:
        high: Boxes from this score on are sure. Those of `low` to `high` continue tracks, and boxes below are ignored.
        new: The least score of a box that begins a track.
        buffer: For how many frames at 30 frames a second a track waits for its object.
        frame_rate: Frames per second of the video.
        match: The cost, 1 - IoU * score, from which a sure box and a track do not belong together.
        per_class: Whether a track holds boxes of one class alone.

    Raises:
        ConfigError: a value is out of its range.
    """

    high: float = 0.5
    low: float = 0.1
    new: float = 0.6
    buffer: int = 30
    frame_rate: float = 30.0
    per_class: bool = True
    match: float = 0.8

    def __post_init__(self) -> None:
        ordered = 0 <= self.low <= self.high <= self.new <= 1
        if not ordered or self.buffer < 0 or not self.frame_rate > 0 or not 0 < self.match <= 1:
            raise ConfigError(
                "tracks cannot be kept like this",
                where="ByteTrackOptions",
                received=f"low {self.low}, high {self.high}, new {self.new}, buffer {self.buffer}, "
                f"frame_rate {self.frame_rate}, match {self.match}",
                allowed="0 <= low <= high <= new <= 1, buffer from 0, frame_rate above 0, match above 0 up to 1",
            )


@dataclass(eq=False)
class _Track:
    mean: np.ndarray
    covariance: np.ndarray
    label: int
    began: int
    """The frame of its first box."""
    seen: int
    """The frame of its last box."""
    detection: int
    """The index of that box in its frame."""
    id: int | None = None
    """None until a second frame confirms the track."""
    lost: bool = False


class ByteTrack:
    """Follows the objects of one video; call `update` with the boxes of each frame, in order."""

    def __init__(self, options: ByteTrackOptions | None = None) -> None:
        self.options = options or ByteTrackOptions()
        self._tracks: list[_Track] = []
        self._frame = 0
        self._ids = count(1)

    def update(self, boxes: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The number of the track of each box, [K] int64 from 1 on; -1 for boxes that belong to none yet.

        A track that begins after the first frame gets its number with its second box, so that a false alarm of one
        frame gets none.

        Args:
            boxes: [K, 4] xyxy in pixels.
            scores: [K] in [0, 1].
            labels: [K] int.
        """
        options = self.options
        self._frame += 1
        boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
        scores, labels = np.asarray(scores, np.float64), np.asarray(labels)
        self._predict()
        confirmed = [track for track in self._tracks if track.id is not None]
        fresh = [track for track in self._tracks if track.id is None]

        sure = np.flatnonzero(scores >= options.high)
        doubtful = np.flatnonzero((scores >= options.low) & (scores < options.high))
        missed, sure = self._join(confirmed, sure, boxes, labels, options.match, scores)
        in_sight = [track for track in missed if not track.lost]
        missed, _ = self._join(in_sight, doubtful, boxes, labels, _SECOND)
        for track in missed:
            track.lost = True
        false_alarms, sure = self._join(fresh, sure, boxes, labels, _FRESH, scores)
        for track in fresh:
            if track not in false_alarms:
                track.id = next(self._ids)

        begun = self._begin(sure[scores[sure] >= options.new], boxes, labels)
        longest = round(options.buffer * options.frame_rate / 30)
        self._tracks = [
            track
            for track in self._tracks
            if track not in false_alarms and self._frame - track.seen <= longest
        ]
        self._drop_twins()
        self._tracks += begun
        ids = np.full(len(boxes), -1, np.int64)
        for track in self._tracks:
            if track.id is not None and track.seen == self._frame:
                ids[track.detection] = track.id
        return ids

    def _predict(self) -> None:
        if not self._tracks:
            return
        means = np.stack([track.mean for track in self._tracks])
        means[[track.lost for track in self._tracks], 7] = 0  # out of sight it would grow or shrink for ever
        means, covariances = kalman.predict(means, np.stack([track.covariance for track in self._tracks]))
        for track, mean, covariance in zip(self._tracks, means, covariances):
            track.mean, track.covariance = mean, covariance

    def _join(
        self,
        tracks: list[_Track],
        candidates: np.ndarray,
        boxes: np.ndarray,
        labels: np.ndarray,
        limit: float,
        scores: np.ndarray | None = None,
    ) -> tuple[list[_Track], np.ndarray]:
        """Continues tracks with boxes[candidates]; returns the tracks and the candidates that found no partner.

        The cost of a pair is 1 - IoU, and 1 - IoU * score where scores are given.
        """
        if not tracks or not len(candidates):
            return tracks, candidates
        overlap = vision_boxes.iou(_boxes(tracks), boxes[candidates])
        cost = 1 - (overlap if scores is None else overlap * scores[candidates])
        if self.options.per_class:
            cost[np.array([track.label for track in tracks])[:, None] != labels[candidates]] = 1.0
        rows, columns = assign(cost, limit)
        matched = [tracks[row] for row in rows]
        indices = candidates[columns]
        if matched:
            means, covariances = kalman.update(
                np.stack([track.mean for track in matched]),
                np.stack([track.covariance for track in matched]),
                kalman.xyxy_to_xyah(boxes[indices]),
            )
            for track, mean, covariance, index in zip(matched, means, covariances, indices):
                track.mean, track.covariance, track.label = mean, covariance, int(labels[index])
                track.seen, track.detection, track.lost = self._frame, int(index), False
        left = [track for row, track in enumerate(tracks) if row not in set(rows.tolist())]
        return left, np.delete(candidates, columns)

    def _begin(self, indices: np.ndarray, boxes: np.ndarray, labels: np.ndarray) -> list[_Track]:
        means, covariances = kalman.start(kalman.xyxy_to_xyah(boxes[indices]))
        begun = [
            _Track(mean, covariance, int(labels[index]), self._frame, self._frame, int(index))
            for index, mean, covariance in zip(indices, means, covariances)
        ]
        if self._frame == 1:  # nothing could confirm them
            for track in begun:
                track.id = next(self._ids)
        return begun

    def _drop_twins(self) -> None:
        """Of a track in sight and a lost one at the same place the longer one stays."""
        tracked = [track for track in self._tracks if not track.lost]
        lost = [track for track in self._tracks if track.lost]
        if not tracked or not lost:
            return
        dropped: list[_Track] = []
        for row, column in np.argwhere(vision_boxes.iou(_boxes(tracked), _boxes(lost)) > _SAME):
            one, other = tracked[row], lost[column]
            if not self.options.per_class or one.label == other.label:
                longer = one.seen - one.began > other.seen - other.began
                dropped.append(other if longer else one)
        self._tracks = [track for track in self._tracks if track not in dropped]


def assign(cost: np.ndarray, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the pairs whose costs [R, C] lie below `limit` and save the most against it in total."""
    from scipy.optimize import linear_sum_assignment  # takes 0.3 s, and every command knows this domain

    rows, columns = linear_sum_assignment(np.minimum(cost - limit, 0))
    below = cost[rows, columns] < limit
    return rows[below], columns[below]


def _boxes(tracks: list[_Track]) -> np.ndarray:
    return kalman.xyah_to_xyxy(np.stack([track.mean for track in tracks]))
