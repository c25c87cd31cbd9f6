"""DOTA's format: a text file an image, a line a turned box of four corners, its class, and whether it is difficult.

Source: https://captain-whu.github.io/DOTA/dataset.html
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from framework.core.errors import InputError
from framework.vision.annotations.label_files import (
    are_numbers,
    find_folders,
    has_lines,
    read_label_files,
    to_numbers,
)
from framework.vision.annotations.objects import AnnotatedObject, AnnotatedSet
from framework.vision.annotations.shapes import outline_object

_LABELS = ("labelTxt", "labelTxt-v1.0", "labelTxt-v1.5", "labelTxt-v2.0", "annfiles", "annotations", "labels")
_PAIRS = tuple(("images", labels) for labels in _LABELS)
_FACTS = ("imagesource:", "gsd:")  # lines about the image


def find_dota(folder: Path) -> tuple[Path, Path] | None:
    """The folders of the images and of the text files; None where there are none of this format."""
    if (folders := find_folders(folder, _PAIRS, _is_line)) is not None:
        return folders
    text_beside = next(folder.glob("*.txt"), None) is not None
    return (folder, folder) if text_beside and has_lines(folder, _is_line) else None


def read_dota(folder: Path, images: Path | None = None) -> AnnotatedSet:
    """The images of a folder with text files in `labelTxt`, or under another name of `_LABELS`, and images in `images`.

    A line is `x1 y1 x2 y2 x3 y3 x4 y4 class difficult` in pixels, where the last word may be left out. The four corners
    are the outline; difficult objects have `is_valid` False. Classes are sorted. Lines that are none, and images
    without a text file, are left out and told in `problems`.

    Raises:
        InputError: there is no such file, no object in all of them, or an image is not there.
    """
    folders = find_dota(folder) or find_folders(folder, _PAIRS)
    if folders is None:
        raise InputError("there are no annotations of DOTA", where=folder, allowed="text files in labelTxt")
    problems: list[str] = []
    read = tuple(read_label_files(images or folders[0], folders[1], _read_line, problems))
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    if not names:
        raise InputError(
            "no annotation has an object",
            where=folders[1],
            received="; ".join(problems[:1]) or f"{len(read)} files",
        )
    return AnnotatedSet(read, names, tuple(problems))


def _is_line(line: str) -> bool:
    words = line.split()
    return len(words) in (9, 10) and are_numbers(words[:8]) and not are_numbers(words[8:9])


def _read_line(line: str) -> AnnotatedObject | None:
    """Raises: ValueError."""
    if line.strip().lower().startswith(_FACTS):
        return None
    words = line.split()
    if len(words) not in (9, 10):
        raise ValueError(f"{len(words)} words, but a line has eight numbers, a class and a mark")
    outline = np.array(to_numbers(words[:8]), np.float64).reshape(4, 2)
    return outline_object(words[8], outline, {}, is_valid=words[9:] in ([], ["0"]))
