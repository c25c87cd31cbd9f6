"""KITTI's format of objects: a text file an image, a line a class, its state, a box, and a place in space.

Source: https://github.com/bostondiditeam/kitti/blob/master/resources/devkit_object/readme.txt
"""

from __future__ import annotations

from pathlib import Path

from framework.core.errors import InputError
from framework.vision.annotations.label_files import are_numbers, find_folders, read_label_files, to_numbers
from framework.vision.annotations.objects import AnnotatedObject, AnnotatedSet
from framework.vision.annotations.shapes import box_object

_PAIRS = tuple(
    (f"{folder}{images}", f"{folder}{labels}")
    for folder in ("", "training/")
    for images, labels in (
        ("image_2", "label_2"),
        ("images", "labels"),
        ("data", "labels"),  # of FiftyOne
        ("images", "annotations"),
        ("image", "label"),
    )
)
_UNKNOWN = "dontcare"
_FIELDS = (15, 16)  # the last one a score


def find_kitti(folder: Path) -> tuple[Path, Path] | None:
    """The folders of the images and of the text files; None where there are none of this format."""
    return find_folders(folder, _PAIRS, _is_line)


def read_kitti(folder: Path, images: Path | None = None) -> AnnotatedSet:
    """The images of a folder with `label_2` and `image_2`, with `labels` and `images`, or with these in `training`.

    Of a line the class and the box (left, top, right, bottom in pixels, from 0) are read, and as attributes whether the
    object is truncated or occluded; its place in space is not. Regions of the class DontCare are no objects: a note
    counts them. Classes are sorted. Lines that are none are left out and told in `problems`.

    Raises:
        InputError: there is no such file, no object in all of them, or an image is not there.
    """
    folders = find_kitti(folder) or find_folders(folder, _PAIRS)
    if folders is None:
        raise InputError("there are no annotations of KITTI", where=folder, allowed="text files in label_2")
    problems: list[str] = []
    ignored: list[str] = []

    def read_line(line: str) -> AnnotatedObject | None:
        if _split_line(line)[0].lower() == _UNKNOWN:
            ignored.append(line)
            return None
        return _read_line(line)

    read = tuple(read_label_files(images or folders[0], folders[1], read_line, problems))
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    if not names:
        raise InputError(
            "no annotation has an object",
            where=folders[1],
            received="; ".join(problems[:1]) or f"{len(read)} files",
        )
    notes = [f"{len(ignored)} regions that are marked DontCare are no objects"] if ignored else []
    return AnnotatedSet(read, names, tuple(problems), tuple(notes))


def _split_line(line: str) -> list[str]:
    """The class, which tools write with its spaces, and the numbers behind it."""
    words = line.split()
    last = max((number for number, word in enumerate(words) if not are_numbers([word])), default=0)
    return [" ".join(words[: last + 1]), *words[last + 1 :]]


def _is_line(line: str) -> bool:
    words = _split_line(line)
    return len(words) in _FIELDS and not are_numbers(words[:1])


def _read_line(line: str) -> AnnotatedObject:
    """Raises: ValueError."""
    words = _split_line(line)
    if len(words) not in _FIELDS:
        raise ValueError(f"{len(words)} words, but a line has 15")
    truncated, occluded, _, x0, y0, x1, y1 = to_numbers(words[1:8])
    states = {"truncated": truncated > 0, "occluded": occluded in (1, 2)}
    return box_object(words[0], (x0, y0, x1, y1), {name: "1" for name, state in states.items() if state})
