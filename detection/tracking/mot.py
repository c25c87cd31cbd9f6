"""Files of MOTChallenge, and how good tracks are: CLEAR MOT and identity scores.

Sources: https://doi.org/10.1155/2008/246309 (MOTA, MOTP), https://arxiv.org/abs/1609.01775 (IDF1)
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from framework.core.disk import whole_file
from framework.core.errors import FormatError, InputError
from framework.vision import boxes as vision_boxes
from framework.vision.image import check_file


class FrameTracks(NamedTuple):
    """The objects of one frame."""

    ids: np.ndarray
    """[K] int64"""
    boxes: np.ndarray
    """[K, 4] float64 xyxy in pixels"""
    scores: np.ndarray
    """[K] float64"""


class FrameLabels(NamedTuple):
    """The ground truth of one frame."""

    ids: np.ndarray
    """[K] int64"""
    boxes: np.ndarray
    """[K, 4] float64 xyxy in pixels"""
    counts: np.ndarray
    """[K] bool: what a tracker has to find."""
    distracts: np.ndarray
    """[K] bool: what a tracker may follow without an error."""


Tracks = Mapping[int, FrameTracks]
"""By frame number; a frame without objects may be missing."""
_SEPARATORS = re.compile("[,;]")
_MARK, _CLASS = 6, 7  # columns
_MISSING = (0.0,) * 6 + (1.0, -1.0)
NO_TRACKS = FrameTracks(np.zeros(0, np.int64), np.zeros((0, 4)), np.zeros(0))


def mot_line(
    frame: int, track_id: int, bbox: tuple[float, ...], score: float, category_id: int | None = None
) -> str:
    """frame, id, left, top, width, height, score, class or -1, -1, -1. Frames count from 1; -1 is no track.

    Coordinates are written as they are, with the first pixel at 0, as trackers do; MOTChallenge's own start at 1.
    """
    x0, y0, x1, y1 = bbox
    box = ",".join(f"{value:.2f}" for value in (x0, y0, x1 - x0, y1 - y0))
    return f"{frame},{track_id},{box},{score:.4f},{-1 if category_id is None else category_id},-1,-1\n"


def write_mot(path: str | os.PathLike[str], tracks: Tracks) -> None:
    """Writes one line an object, frame by frame."""
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
        for frame in sorted(tracks):
            ids, boxes, scores = tracks[frame]
            for track_id, box, score in zip(ids.tolist(), boxes.tolist(), scores.tolist()):
                out.write(mot_line(frame, track_id, tuple(box), score))


def read_mot(path: str | os.PathLike[str], *, min_score: float | None = None) -> dict[int, FrameTracks]:
    """The tracks of a file, as `mot_line` describes it; commas, semicolons or blanks stand between the values.

    Args:
        min_score: Lines with a lower score are left out. Ground truth marks objects that do not count with 0.

    Raises:
        InputError: there is no such file. FormatError: a line has fewer than six numbers, or text.
    """
    table = _read_rows(path)
    counted = table if min_score is None else table[table[:, _MARK] >= min_score]
    return {frame: _objects(rows) for frame, rows in _split_frames(counted)}


def read_mot_labels(path: str | os.PathLike[str], distractors: Collection[int]) -> dict[int, FrameLabels]:
    """The ground truth of a file, where the seventh column marks what does not count with 0.

    Args:
        distractors: Classes, of the eighth column, that look so much like what counts that a track on one of them
            is no error, where they are marked with 0.

    Raises:
        InputError: there is no such file. FormatError: a line has fewer than six numbers, or text.
    """
    labels = {}
    for frame, rows in _split_frames(_read_rows(path)):
        counts = rows[:, _MARK] != 0
        distracts = ~counts & np.isin(rows[:, _CLASS], list(distractors))
        labels[frame] = FrameLabels(*_objects(rows)[:2], counts, distracts)
    return labels


def _read_rows(path: str | os.PathLike[str]) -> np.ndarray:
    """[N, 8] float64: frame, id, left, top, width, height, score (1 where it is missing), class (-1 likewise)."""
    rows: list[list[float]] = []
    with check_file(path, "MOT file").open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                values = [float(value) for value in _SEPARATORS.sub(" ", line).split()]
            except ValueError:
                values = []
            if len(values) < _MARK or not np.isfinite(values).all():
                raise FormatError(
                    "the line is not of a MOT file",
                    where=f"{path}, line {number}",
                    received=repr(line.strip()[:80]),
                    allowed="frame, id, left, top, width, height, score, …",
                )
            rows.append([*values[:8], *_MISSING[len(values) :]])
    return np.array(rows, np.float64).reshape(-1, 8)


def _split_frames(table: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The frames in order, each with its rows as they stand in the file."""
    frames = table[:, 0].astype(np.int64)
    order = np.argsort(frames, kind="stable")
    numbers, starts = np.unique(frames[order], return_index=True)
    return zip(numbers.tolist(), np.split(table[order], starts[1:]), strict=False)


def _objects(rows: np.ndarray) -> FrameTracks:
    return FrameTracks(rows[:, 1].astype(np.int64), vision_boxes.xywh_to_xyxy(rows[:, 2:6]), rows[:, _MARK])


@dataclass(frozen=True)
class MotScores:
    """Counts over the frames of one or more videos, and the scores that follow from them. Scores of several videos
    come from the sum of their counts: `a + b`."""

    objects: int = 0
    """Boxes of the ground truth."""
    found: int = 0
    """Boxes of the tracker."""
    false_positives: int = 0
    misses: int = 0
    switches: int = 0
    """How often an object was found under another number than the last time."""
    overlap: float = 0.0
    """Sum of the IoU of all matches."""
    identified: int = 0
    """Boxes found where each object has one number for all its frames (IDTP)."""

    def __add__(self, other: MotScores) -> MotScores:
        return MotScores(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def mota(self) -> float:
        """Where there are no objects, minus the number of boxes that the tracker found, as in TrackEval."""
        errors = self.false_positives + self.misses + self.switches
        return 1 - errors / self.objects if self.objects else float(-errors or 1)

    @property
    def motp(self) -> float:
        """Mean IoU of the matches."""
        return _share(self.overlap, self.objects - self.misses)

    @property
    def idf1(self) -> float:
        return _share(2 * self.identified, self.objects + self.found)

    @property
    def idp(self) -> float:
        return _share(self.identified, self.found)

    @property
    def idr(self) -> float:
        return _share(self.identified, self.objects)


def _share(count: float, whole: float) -> float:
    return count / whole if whole else 0.0


def evaluate(truth: Tracks, found: Tracks, *, iou_threshold: float = 0.5) -> MotScores:
    """Compares tracks with the ground truth of one video. Boxes match from `iou_threshold` on.

    Of all ways to match a frame the one counts that keeps most objects with the track that they were matched with in
    the frame before, then the one with most matches, then the one with the largest overlap. The frame before is the
    last one with boxes on both sides, as in TrackEval. A switch is another track than that of the object's last match.
    Boxes of the number -1 are in no track: they match, and are neither identified nor switches.

    Raises:
        InputError: two boxes of a frame have the same number.
    """
    check_ids(truth, "the labels")
    check_ids(found, "the tracks")
    from scipy.optimize import linear_sum_assignment  # as in bytetrack.py

    last: dict[int, int] = {}
    frame_before: dict[int, int] = {}
    together: Counter[tuple[int, int]] = Counter()
    scores = MotScores()
    for frame in sorted(truth.keys() | found.keys()):
        ids, boxes, _ = truth.get(frame, NO_TRACKS)
        track_ids, track_boxes, _ = found.get(frame, NO_TRACKS)
        overlap = vision_boxes.iou(boxes, track_boxes)
        possible = overlap >= iou_threshold
        before = np.array(
            [[frame_before.get(i) == j for j in track_ids.tolist()] for i in ids.tolist()], bool
        )
        most = 1 + len(ids)
        weight = (1 + most) * before.reshape(overlap.shape) + 1 + overlap / most
        rows, columns = linear_sum_assignment(possible * weight, maximize=True)
        pairs = [(i, j) for i, j in zip(rows.tolist(), columns.tolist()) if possible[i, j]]
        named = [(int(ids[i]), int(track_ids[j])) for i, j in pairs if ids[i] != -1 != track_ids[j]]
        in_tracks = possible & (ids[:, None] != -1) & (track_ids != -1)
        together.update((int(ids[i]), int(track_ids[j])) for i, j in np.argwhere(in_tracks))
        switches = sum(last.get(object_id, track_id) != track_id for object_id, track_id in named)
        last.update(named)
        if len(ids) and len(track_ids):
            frame_before = dict(named)
        scores += MotScores(
            objects=len(ids),
            found=len(track_ids),
            false_positives=len(track_ids) - len(pairs),
            misses=len(ids) - len(pairs),
            switches=switches,
            overlap=float(sum(overlap[i, j] for i, j in pairs)),
        )
    return scores + MotScores(identified=_match_identities(together))


def check_ids(tracks: Tracks, source: str) -> None:
    """Raises: InputError, where two boxes of a frame have the same number, but for -1."""
    for frame, (ids, _, _) in tracks.items():
        numbers, times = np.unique(ids[ids != -1], return_counts=True)
        if (times > 1).any():
            raise InputError(
                f"{source} have a number twice in one frame",
                where=f"frame {frame}",
                received=", ".join(f"{number} for {n} boxes" for number, n in zip(numbers, times) if n > 1),
                allowed="one box of a number in a frame; -1 for boxes of no track",
                fix="evaluate each class of a file on its own where numbers count by class, and each video",
            )


def _match_identities(together: Mapping[tuple[int, int], int]) -> int:
    """The most frames that objects and tracks share when each object is given one track."""
    if not together:
        return 0
    from scipy.optimize import linear_sum_assignment

    objects, tracks = (sorted({pair[k] for pair in together}) for k in (0, 1))
    frames = np.zeros((len(objects), len(tracks)), np.int64)
    for (object_id, track_id), number in together.items():
        frames[objects.index(object_id), tracks.index(track_id)] = number
    rows, columns = linear_sum_assignment(frames, maximize=True)
    return int(frames[rows, columns].sum())


def total(scores: Iterable[MotScores]) -> MotScores:
    """The scores of several videos together."""
    return sum(scores, MotScores())
