"""Tracks of files against the ground truth of MOTChallenge, one or more videos together.

Source, in what a track may follow without an error: https://github.com/JonathonLuiten/TrackEval
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from detection.tracking.hota import HotaScores, evaluate_hota, total_hota
from detection.tracking.mot import (
    FrameLabels,
    FrameTracks,
    MotScores,
    Tracks,
    check_ids,
    evaluate,
    read_mot,
    read_mot_labels,
    total,
)
from framework.core.errors import InputError
from framework.core.types import JSON
from framework.vision import boxes as vision_boxes

log = logging.getLogger("oar")
LABELS = Path("gt") / "gt.txt"
"""Where the ground truth of a sequence lies in its folder."""
_DISTRACTORS = (2, 7, 8, 12)  # a person on a vehicle, one who stands still, what looks like one, a reflection
_VEHICLE = 6  # is one of them in MOT20
_LEAST_IOU = 0.5


def score_files(truth: Path, tracked: Path) -> dict[str, JSON]:
    """The scores of all sequences together; of several, `sequences` has those of each.

    Args:
        truth: A file of ground truth; a sequence's folder with gt/gt.txt; or a folder of either.
        tracked: The file of the tracks; or a folder with `<sequence>.txt`, as `oar infer` writes it for a video of
            that name.

    Raises:
        InputError: there is no ground truth, or none of its tracks; a frame has a number twice. FormatError: a line
        is not of such a file.
    """
    pairs = _pair_files(find_labels(truth), tracked)
    scores = {name: _score_pair(labels, tracks) for name, (labels, tracks) in pairs.items()}
    summary: dict[str, JSON] = dict(
        _describe(total(mot for mot, _ in scores.values()), total_hota(hota for _, hota in scores.values()))
    )
    if len(scores) > 1:
        summary["sequences"] = {name: dict(_describe(*both)) for name, both in scores.items()}
    return summary


def find_labels(truth: Path) -> dict[str, Path]:
    """Files of ground truth by the name of their sequence. Raises: InputError, where there is none."""
    if truth.is_file():
        return {_name_sequence(truth): truth}
    folders = [truth, *sorted(path for path in truth.glob("*") if path.is_dir())]
    files = [folder / LABELS for folder in folders if (folder / LABELS).is_file()]
    files = files or sorted(truth.glob("*.txt"))
    if not files:
        raise InputError(
            "there is no ground truth of tracks",
            received=str(truth),
            allowed="a MOT file; a sequence's folder with gt/gt.txt; a folder of such folders, or of .txt files",
            fix="check the path" if not truth.exists() else "sequences without gt/gt.txt cannot be scored",
        )
    return {_name_sequence(file): file for file in files}


def _name_sequence(labels: Path) -> str:
    labels = labels.absolute()
    return labels.parents[1].name if labels.parts[-2:] == LABELS.parts else labels.stem


def _pair_files(labels: Mapping[str, Path], tracked: Path) -> dict[str, tuple[Path, Path]]:
    if not tracked.is_dir():
        if len(labels) > 1:
            raise InputError(
                "several sequences need a folder of tracks",
                where=str(tracked),
                received=f"one file for {len(labels)} sequences: {', '.join(list(labels)[:5])}",
                allowed="a folder with <sequence>.txt for each",
            )
        return {name: (file, tracked) for name, file in labels.items()}
    missing = [f"{name}.txt" for name in labels if not (tracked / f"{name}.txt").is_file()]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(labels)} sequences have no tracks",
            where=str(tracked),
            received="none of " + ", ".join(missing[:5]),
            allowed="a file for each, named as its sequence; an empty one where nothing was found",
        )
    others = sorted(path.name for path in tracked.glob("*.txt") if path.stem not in labels)
    if others:
        log.warning("%s: not scored, they have no ground truth: %s", tracked, ", ".join(others[:5]))
    return {name: (file, tracked / f"{name}.txt") for name, file in labels.items()}


def _score_pair(truth: Path, tracked: Path) -> tuple[MotScores, HotaScores]:
    vehicles = (_VEHICLE,) if _name_sequence(truth).startswith("MOT20") else ()
    labels = read_mot_labels(truth, (*_DISTRACTORS, *vehicles))
    counted = {
        frame: FrameTracks(one.ids[one.counts], one.boxes[one.counts], np.ones(one.counts.sum()))
        for frame, one in labels.items()
    }
    try:
        tracks = leave_out_distracted(labels, read_mot(tracked))
        return evaluate(counted, tracks), evaluate_hota(counted, tracks)
    except InputError as error:
        where = f"{truth} and {tracked}, {error.where}"
        raise InputError(
            error.problem, where=where, received=error.received, allowed=error.allowed, fix=error.fix
        ) from None


def leave_out_distracted(labels: Mapping[int, FrameLabels], tracks: Tracks) -> Tracks:
    """The tracks without the boxes that match an object which may be followed without an error.

    All labels of a frame are matched, from an IoU of .5 on and for the largest sum, whether they count or not.

    Raises:
        InputError: two boxes of a frame have the same number.
    """
    from scipy.optimize import linear_sum_assignment  # as in bytetrack.py

    check_ids(tracks, "the tracks")
    remaining: dict[int, FrameTracks] = {}
    for frame, (ids, boxes, scores) in tracks.items():
        one = labels.get(frame)
        keep = np.ones(len(ids), bool)
        if one is not None and one.distracts.any():
            overlap = vision_boxes.iou(one.boxes, boxes)
            overlap[overlap < _LEAST_IOU] = 0
            rows, columns = linear_sum_assignment(overlap, maximize=True)
            keep[columns[one.distracts[rows] & (overlap[rows, columns] > 0)]] = False
        remaining[frame] = FrameTracks(ids[keep], boxes[keep], scores[keep])
    return remaining


def _describe(mot: MotScores, hota: HotaScores) -> dict[str, float]:
    return {
        "hota": hota.hota,
        "det_a": hota.det_a,
        "ass_a": hota.ass_a,
        "loc_a": hota.loc_a,
        "mota": mot.mota,
        "motp": mot.motp,
        "idf1": mot.idf1,
        "idp": mot.idp,
        "idr": mot.idr,
        "objects": mot.objects,
        "found": mot.found,
        "false_positives": mot.false_positives,
        "misses": mot.misses,
        "switches": mot.switches,
    }
