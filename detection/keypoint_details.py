"""How well each keypoint is placed: the parts of the object keypoint similarity that CocoKeypoints takes together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from framework.engine.details import ClassTable

_SAME = 0.5  # a pose with this similarity is of that person, and a keypoint with it is found
_MOST = 20  # the best poses of an image, as in COCO's evaluation


def keypoint_table(
    names: Sequence[str],
    sigmas: Sequence[float],
    truths: Sequence[Mapping[str, object]],
    detections: Sequence[Mapping[str, object]],
) -> ClassTable:
    """A row for each of J keypoints, from COCO's entries of people and poses.

    From the pose with the highest score on, each takes the person of its image that it is most similar to, with at
    least 0.5. `similarity` is exp(-d^2 / (2 area (2 sigma)^2)) for a keypoint at the distance d, the mean over the
    labelled keypoints of people who have a pose, None without any; `recall` is the share of all labelled keypoints
    with a similarity of at least 0.5; `labelled` is their number. Crowds count nowhere.
    """
    poses: dict[object, list[Mapping[str, object]]] = defaultdict(list)
    for one in sorted(detections, key=lambda one: -_number(one["score"])):
        poses[one["image_id"]].append(one)
    people: dict[object, list[Mapping[str, object]]] = defaultdict(list)
    for one in truths:
        if one["num_keypoints"] and not one["iscrowd"]:
            people[one["image_id"]].append(one)
    size = len(sigmas)
    labelled, matched, recalled = (np.zeros(size, np.int64) for _ in range(3))
    total = np.zeros(size)
    for image, here in people.items():
        visible = np.stack([_points(one)[:, 2] > 0 for one in here])
        labelled += visible.sum(axis=0)
        free = np.ones(len(here), bool)
        for pose in poses[image][:_MOST]:
            similarities = np.stack([_similarities(one, pose, sigmas) for one in here])  # [people, J]
            whole = np.where(free, np.where(visible, similarities, 0).sum(axis=1) / visible.sum(axis=1), -1)
            best = int(whole.argmax())
            if whole[best] >= _SAME:
                free[best] = False
                matched += visible[best]
                recalled += visible[best] & (similarities[best] >= _SAME)
                total += np.where(visible[best], similarities[best], 0)
    rows = tuple(
        (name, one / pairs if pairs else None, hits / there if there else None, there)
        for name, one, pairs, hits, there in zip(
            names, total.tolist(), matched.tolist(), recalled.tolist(), labelled.tolist(), strict=True
        )
    )
    return ClassTable(("keypoint", "similarity", "recall", "labelled"), rows)


def _similarities(
    person: Mapping[str, object], pose: Mapping[str, object], sigmas: Sequence[float]
) -> np.ndarray:
    """[J], of each keypoint."""
    away = ((_points(person)[:, :2] - _points(pose)[:, :2]) ** 2).sum(axis=1)
    spread = 2 * (2 * np.asarray(sigmas)) ** 2 * (_number(person["area"]) + np.spacing(1))
    return np.exp(-away / spread)


def _points(one: Mapping[str, object]) -> np.ndarray:
    """[J, 3]"""
    return np.asarray(one["keypoints"], np.float64).reshape(-1, 3)


def _number(value: object) -> float:
    return float(value)  # type: ignore[arg-type]
