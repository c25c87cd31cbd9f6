"""Some of the classes of a data set: what trains on them leaves the objects of all others out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from detection.data.records import Records
from framework.core.errors import ConfigError, InputError, nearest
from framework.vision.dataset_files import abbreviate

_log = logging.getLogger("oar")


def check_names(names: Sequence[str], where: str) -> None:
    """Raises: ConfigError, where no class is named, or one twice."""
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            "classes must be different names",
            where=where,
            received=tuple(names),
            allowed="one or more different names, or null for those in the annotations",
        )


def select_classes(records: Records, names: Sequence[str], where: Path) -> Records:
    """The records with the classes of these names alone, in this order. Images without an object of them stay; one line
    of the log counts what is left out.

    Raises:
        InputError: there is no object of a name that is much like one which is left out, as a slip would be.
    """
    counts = np.bincount(records.labels, minlength=len(records.class_names))
    left = {
        name: int(count)
        for name, count in zip(records.class_names, counts.tolist())
        if name not in names and count
    }
    there = {name for name, count in zip(records.class_names, counts.tolist()) if count}
    for name in names:
        if name not in there and (close := nearest(name, left)):
            raise InputError(
                f"no object is of the class {name!r}",
                where=where,
                received=abbreviate([f"{name}: {count}" for name, count in left.items()]),
                allowed="names of classes in the annotations",
                fix=f"did you mean {close!r}?",
            )
    number = {name: index for index, name in enumerate(names)}
    new = np.array([number.get(name, -1) for name in records.class_names], np.int32)
    labels = new[records.labels] if len(new) else records.labels
    retained = labels >= 0
    if left:
        counted = abbreviate([f"{name} {count}" for name, count in left.items()])
        _log.warning(f"{where}: {sum(left.values())} objects of other classes are left out: {counted}")
    before = np.concatenate([[0], np.cumsum(retained, dtype=np.int64)])
    ids = dict(zip(records.class_names, records.category_ids)) if records.category_ids else {}
    known_ids = tuple(ids[name] for name in names if name in ids)
    return replace(
        records,
        class_names=tuple(names),
        starts=before[records.starts],
        boxes=records.boxes[retained],
        labels=labels[retained],
        valid=records.valid[retained],
        areas=None if records.areas is None else records.areas[retained],
        keypoints=None if records.keypoints is None else records.keypoints[retained],
        category_ids=known_ids if len(known_ids) == len(names) else (),
    )
