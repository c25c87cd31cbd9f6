"""VisDrone's text files of boxes: an image a file, a line of eight numbers a box.

Source: https://github.com/VisDrone/VisDrone2018-DET-toolkit, README.md
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from framework.core.errors import InputError
from framework.vision.annotations.label_files import are_numbers, find_folders, read_label_files, to_numbers
from framework.vision.annotations.objects import AnnotatedObject, AnnotatedSet, find_split, merge_splits
from framework.vision.annotations.shapes import box_object

_PAIRS = (("images", "annotations"),)
_NAMES = (
    "pedestrian",
    "people",
    "bicycle",
    "car",
    "van",
    "truck",
    "tricycle",
    "awning-tricycle",
    "bus",
    "motor",
)
_REGION, _OTHERS = 0, len(_NAMES) + 1


def find_vis_drone(folder: Path) -> Mapping[str, Path]:
    """The folders with `images` and `annotations` of this format, by split: this folder, or those in it whose names
    tell a split, such as VisDrone2019-DET-train."""
    if find_folders(folder, _PAIRS, _is_line) is not None:
        return {find_split(folder.name): folder}
    inside = (path for path in sorted(folder.iterdir()) if path.is_dir() and find_split(path.name))
    return {
        find_split(path.name): path for path in inside if find_folders(path, _PAIRS, _is_line) is not None
    }


def read_vis_drone(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The images of a folder with `images` and `annotations`, or of one folder a split.

    A line is `left,top,width,height,score,category,truncation,occlusion` in pixels. Classes are the benchmark's ten, in
    its order. Regions to ignore and "others", which the benchmark leaves out, are no objects: a note counts them; other
    boxes of score 0 have `is_valid` False. Whether an object is truncated or occluded is an attribute. Lines that are
    none are told in `problems`.

    Raises:
        InputError: there is no such folder, or an image is not there.
    """
    folders = find_vis_drone(source) if source.is_dir() else {}
    if not folders:
        raise InputError(
            "there are no annotations of VisDrone", where=source, allowed="folders images and annotations"
        )
    return merge_splits({split: _read_folder(folder, images) for split, folder in folders.items()})


def _read_folder(folder: Path, images: Path | None) -> AnnotatedSet:
    problems: list[str] = []
    ignored: list[str] = []

    def read_line(line: str) -> AnnotatedObject | None:
        one = _read_line(line)
        if one is None:
            ignored.append(line)
        return one

    read = tuple(read_label_files(images or folder / "images", folder / "annotations", read_line, problems))
    notes = [f"{len(ignored)} regions to ignore and boxes of other things are no objects"] if ignored else []
    return AnnotatedSet(read, _NAMES, tuple(problems), tuple(notes))


def _cells(line: str) -> list[str]:
    return line.strip().rstrip(",").split(",")


def _is_line(line: str) -> bool:
    words = _cells(line)
    return len(words) == 8 and are_numbers(words)


def _read_line(line: str) -> AnnotatedObject | None:
    """Raises: ValueError."""
    words = _cells(line)
    if len(words) != 8:
        raise ValueError(f"{len(words)} columns, but a line has 8")
    x, y, width, height, score, category, truncated, occluded = to_numbers(words)
    if category in (_REGION, _OTHERS):
        return None
    if not category.is_integer() or not 1 <= category <= len(_NAMES):
        raise ValueError(f"category {category:g}, but there are 0 to {_OTHERS}")
    states = {"truncated": truncated > 0, "occluded": occluded > 0}
    attributes = {name: "1" for name, state in states.items() if state}
    box = (x, y, x + width, y + height)
    return box_object(_NAMES[int(category) - 1], box, attributes, is_valid=score != 0)
