"""WIDER FACE's lists of boxes: the name of an image, how many faces it has, and a line for each.

Source: http://shuoyang1213.me/WIDERFACE/, readme.txt of wider_face_split
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from framework.core.errors import FormatError, InputError
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import files_by_split
from framework.vision.annotations.label_files import are_numbers, to_numbers
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet, merge_splits
from framework.vision.annotations.shapes import box_object
from framework.vision.dataset_files import read_lines
from framework.vision.image import SUFFIXES, read_size

SUFFIX = "_bbx_gt.txt"
"""Of the names of lists."""
_CLASS = "face"
_MARKS = ("blur", "expression", "illumination", "invalid", "occlusion", "pose")


def find_wider_face(folder: Path) -> Mapping[str, Path]:
    """The lists of a folder, or of `wider_face_split` in it, by split. Raises: InputError, where several are of one
    split."""
    paths = (*sorted(folder.glob(f"*{SUFFIX}")), *sorted((folder / "wider_face_split").glob(f"*{SUFFIX}")))
    return files_by_split(paths, folder)


def read_wider_face(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The faces of a list, or of the lists of a folder, each of which is a split by its name.

    A line of a face is `left top width height` in pixels and six marks, which are attributes where they are not 0;
    faces that are marked invalid have `is_valid` False. Datumaro writes a class in the place of the marks. An image of
    0 faces has a line of zeros. Faces without an area are told in `problems`.

    Args:
        images: The folder of the images; without it they are looked for in all folders beside and around the list,
            `WIDER_<split>/images` first.

    Raises:
        InputError: there is no such list, or an image is not there. FormatError: a list is not of this format.
    """
    files = {"": source} if source.is_file() else find_wider_face(source)
    if not files:
        raise InputError("there are no lists of WIDER FACE", where=source, allowed=f"a file *{SUFFIX}")
    sets = {split: _read_list(file, split, images) for split, file in files.items()}
    return next(iter(sets.values())) if len(sets) == 1 else merge_splits(sets)


def _read_list(file: Path, split: str, images: Path | None) -> AnnotatedSet:
    around = file.parent.parent if file.parent.name == "wider_face_split" else file.parent
    of_split = around / f"WIDER_{file.name.split('_')[2] if file.name.count('_') > 3 else split}" / "images"
    index = ImageIndex(images or (of_split if of_split.is_dir() else around))
    problems, read = list[str](), list[AnnotatedImage]()
    for name, lines in _entries(file):
        path = index.find(name, str(file))
        objects = tuple(_read_faces(lines, f"{file}, {name}", problems))
        read.append(AnnotatedImage(path, index.name(path), read_size(path), objects, split))
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    return AnnotatedSet(tuple(read), names or (_CLASS,), tuple(problems))


def _entries(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The name of each image and the lines of its faces. Raises: FormatError."""
    lines = [line.strip() for line in read_lines(file, "list of faces")]
    lines = [line for line in lines if line]
    position = 0
    while position < len(lines):
        name, count = lines[position], lines[position + 1] if position + 1 < len(lines) else ""
        if not name.lower().endswith(SUFFIXES) or not count.isdecimal():
            raise FormatError(
                "the list has no image and number of faces where they should be",
                where=file,
                received=f"{name[:80]!r}, then {count[:40]!r}",
                allowed="the path of an image, a line with the number of its faces, and as many lines of boxes",
            )
        first = position + 2
        position = first + int(count)
        faces = lines[first:position]
        if len(faces) < int(count) or any(not are_numbers(line.split()[:4]) for line in faces):
            raise FormatError(
                "an image has fewer boxes than its number says", where=f"{file}, {name}", received=count
            )
        if not faces and position < len(lines) and are_numbers(lines[position].split()):
            position += 1  # the line of zeros
        yield name, faces


def _read_faces(lines: list[str], where: str, problems: list[str]) -> Iterator[AnnotatedObject]:
    for number, line in enumerate(lines, start=1):
        words = line.split()
        try:
            x, y, width, height = to_numbers(words[:4])
            label = words[4] if len(words) == 5 and not are_numbers(words[4:]) else _CLASS
            marks = {name: mark for name, mark in zip(_MARKS, words[4:]) if len(words) == 10 and mark != "0"}
            box = (x, y, x + width, y + height)
            yield box_object(label, box, marks, is_valid="invalid" not in marks)
        except ValueError as error:
            problems.append(f"{where}, face {number}: {error}")
