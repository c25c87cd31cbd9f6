"""What the names of keypoints tell: which change places in a mirror, which are joined by a line, how well they are
placed.

Sources: the annotations of COCO 2017 (names, lines), https://cocodataset.org/#keypoints-eval (spreads), and of
CrowdPose, https://github.com/Jeff-sjtu/CrowdPose (head and neck).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

COCO_KEYPOINTS = (
    "nose",
    *("left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow"),
    *("right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip", "left_knee", "right_knee"),
    *("left_ankle", "right_ankle"),
)
"""Names by index: what COCO's files, and models trained on them, call the keypoints of a person."""

_LINES = (
    *(("ankle", "knee"), ("knee", "hip"), ("shoulder", "hip"), ("shoulder", "elbow"), ("elbow", "wrist")),
    *(("nose", "eye"), ("eye", "ear"), ("ear", "shoulder"), ("neck", "shoulder")),
)
_ACROSS = ("hip", "shoulder", "eye")
_MIDDLE = (("head", "neck"),)
_SPREADS = {
    **{"nose": 0.026, "eye": 0.025, "ear": 0.035, "shoulder": 0.079, "elbow": 0.072, "wrist": 0.062},
    **{"hip": 0.107, "knee": 0.087, "ankle": 0.089, "head": 0.079, "neck": 0.079},
}
_SIDE = re.compile(r"(?<![a-z])(left|right)(?![a-z])")
_OTHER = {"left": "right", "right": "left"}


def flip_pairs(names: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Pairs (left, right) of indices: of names that differ in the word "left" or "right" alone."""
    index = {name: number for number, name in enumerate(names)}
    pairs = []
    for number, name in enumerate(names):
        other = _SIDE.sub(lambda match: _OTHER[match[0]], name)
        if other != name and other in index and (match := _SIDE.search(name)) and match[0] == "left":
            pairs.append((number, index[other]))
    return tuple(pairs)


def skeleton(names: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """The lines of a body between those of its keypoints that are there, as pairs of indices."""
    index = {name: number for number, name in enumerate(names)}
    lines = list(_MIDDLE)
    for side in ("left", "right"):
        for first, second in _LINES:
            start = first if first in ("nose", "neck") else f"{side}_{first}"
            lines.append((start, f"{side}_{second}"))
    lines += [(f"left_{part}", f"right_{part}") for part in _ACROSS]
    return tuple((index[a], index[b]) for a, b in lines if a in index and b in index)


def sigmas(names: Sequence[str]) -> tuple[float, ...] | None:
    """How far annotators disagree on each keypoint, as a share of the person's size; None where one is not known."""
    spreads = [_SPREADS.get(_SIDE.sub("", name).strip("_ ")) for name in names]
    return (
        None if not spreads or None in spreads else tuple(spread for spread in spreads if spread is not None)
    )
