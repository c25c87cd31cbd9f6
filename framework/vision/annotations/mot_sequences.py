"""MOTChallenge's sequences as images with boxes: `gt/gt.txt`, a box a line, and the frames in `img1`.

Source: https://motchallenge.net/instructions/
"""

from __future__ import annotations

import configparser
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from framework.core.errors import InputError
from framework.vision.annotations.label_files import to_numbers
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet, merge_splits
from framework.vision.annotations.shapes import box_object
from framework.vision.dataset_files import abbreviate, read_lines
from framework.vision.image import list_images, read_size

_TRUTH, _CLASSES, _FACTS = "gt/gt.txt", "gt/labels.txt", "seqinfo.ini"
_PERSON = "pedestrian"
_PERSON_CLASS, _DOUBTFUL = 1, (2, 7, 8, 12)  # on vehicles, standing still, distractors, reflections
_SEPARATORS = re.compile("[,;]")
_DETECTOR = re.compile("-(DPM|FRCNN|SDP)$")  # MOT17 has each sequence once a public detector
_NUMBER = re.compile(r"(\d+)$")


class _Sequence(NamedTuple):
    images: tuple[AnnotatedImage, ...]
    others: int
    """Lines of classes that are no persons."""


def find_sequences(folder: Path) -> list[Path]:
    """The folder itself, or the folders in it, that have `gt/gt.txt`."""
    if (folder / _TRUTH).is_file():
        return [folder]
    return [path for path in sorted(folder.iterdir()) if (path / _TRUTH).is_file()]


def read_mot_sequences(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The boxes of a sequence, or of all sequences of a folder, on each frame that is there.

    A line is `frame, track, left, top, width, height, mark, class, visibility`; coordinates are taken as they are. The
    track is the attribute `track_id`. With `gt/labels.txt`, which CVAT and Datumaro write, classes are its lines,
    counted from 1. Without it they are MOTChallenge's, of which "pedestrian" is the only one: persons on vehicles,
    standing still, distractors and reflections are pedestrians with `is_valid` False, as the benchmark counts them, and
    other classes are no objects. Boxes of mark 0 have `is_valid` False. Of MOT17's three copies of a sequence the first
    is read. Lines that cannot be read are told in `problems`.

    Args:
        images: The folder of the frames of one sequence; without it `imDir` of its seqinfo.ini, or `img1`.

    Raises:
        InputError: there is no such sequence, or a frame with boxes is not there.
    """
    folders = find_sequences(source) if source.is_dir() else []
    if not folders:
        raise InputError(
            "there is no sequence of MOTChallenge", where=source, allowed=f"folders with {_TRUTH}"
        )
    by_name: dict[str, list[Path]] = defaultdict(list)
    for folder in folders:
        by_name[_DETECTOR.sub("", folder.name)].append(folder)
    problems: list[str] = []
    sets, others = dict[str, AnnotatedSet](), 0
    for folder, *_ in by_name.values():
        names = _read_classes(folder)
        sequence = _read_sequence(folder, images, names, len(by_name) > 1, problems)
        others += sequence.others
        sets[str(folder)] = AnnotatedSet(sequence.images, names or (_PERSON,))
    merged = merge_splits(sets)
    notes = [f"{others} boxes of classes that are no persons are left out"] if others else []
    if copies := [folder.name for _, *more in by_name.values() for folder in more]:
        notes.append(f"sequences with the same frames are left out: {abbreviate(copies)}")
    frames = tuple(
        AnnotatedImage(image.path, image.name, image.size_hw, image.objects) for image in merged.images
    )
    return AnnotatedSet(frames, merged.class_names, tuple(problems), tuple(notes))


def _read_classes(folder: Path) -> tuple[str, ...]:
    file = folder / _CLASSES
    if not file.is_file():
        return ()
    return tuple(line.strip() for line in read_lines(file, "list of classes") if line.strip())


def _read_sequence(
    folder: Path, images: Path | None, names: Sequence[str], is_one_of_many: bool, problems: list[str]
) -> _Sequence:
    frames = _list_frames(images or _frame_folder(folder))
    file = folder / _TRUTH
    objects: dict[int, list[AnnotatedObject]] = defaultdict(list)
    others = 0
    for number, line in enumerate(read_lines(file, "ground truth"), start=1):
        if not line.strip():
            continue
        try:
            frame, one = _read_line(line, names)
        except ValueError as error:
            problems.append(f"{file}, line {number}: {error}")
            continue
        if one is None:
            others += 1
        else:
            objects[frame].append(one)
    if missing := [frame for frame in sorted(objects) if frame not in frames]:
        raise InputError(
            f"{len(missing)} frames with boxes are not there",
            where=file,
            received=abbreviate([str(frame) for frame in missing]),
            allowed=f"an image of each frame in {images or _frame_folder(folder)}, called by its number",
            fix="put the frames there, or name their folder with --images",
        )
    front = f"{folder.name}/" if is_one_of_many else ""
    read = tuple(
        AnnotatedImage(path, f"{front}{path.name}", read_size(path), tuple(objects[frame]))
        for frame, path in sorted(frames.items())
    )
    return _Sequence(read, others)


def _frame_folder(folder: Path) -> Path:
    facts = configparser.ConfigParser(interpolation=None)
    try:
        facts.read(folder / _FACTS, encoding="utf-8-sig")
        name = facts.get("Sequence", "imDir", fallback="img1")
    except (configparser.Error, UnicodeDecodeError):
        name = "img1"
    return folder / name if (folder / name).is_dir() else folder / "img1"


def _list_frames(folder: Path) -> Mapping[int, Path]:
    """The images of a folder by the number at the end of their names. Raises: InputError, where two have one."""
    listed = list_images(folder) if folder.is_dir() else []
    numbered = [(int(match[1]), path) for path in listed if (match := _NUMBER.search(path.stem))]
    counts = Counter(number for number, _ in numbered)
    if repeated := [path.name for number, path in numbered if counts[number] > 1]:
        raise InputError("several images are of one frame", where=folder, received=abbreviate(repeated))
    return dict(numbered)


def _read_line(line: str, names: Sequence[str]) -> tuple[int, AnnotatedObject | None]:
    """The frame and the object; None where it is of a class that is no person. Raises: ValueError."""
    words = [word.strip() for word in _SEPARATORS.split(line.strip())]
    if len(words) < 6:
        raise ValueError(f"{len(words)} columns, but a line has 6 or more")
    frame, track, x, y, width, height = to_numbers(words[:6])
    mark, kind = [*to_numbers(words[6:8]), 1.0, -1.0][:2] if len(words) < 8 else to_numbers(words[6:8])
    box = (x, y, x + width, y + height)
    if not frame.is_integer() or not kind.is_integer():
        raise ValueError("the frame or the class is no whole number")
    attributes = {"track_id": f"{track:g}"} if track >= 0 else {}
    if names:
        if not 1 <= kind <= len(names):
            raise ValueError(f"class {kind:g}, but {_CLASSES} has {len(names)}")
        return int(frame), box_object(names[int(kind) - 1], box, attributes, is_valid=mark != 0)
    if kind > 0 and kind != _PERSON_CLASS and kind not in _DOUBTFUL:
        return int(frame), None
    return int(frame), box_object(_PERSON, box, attributes, is_valid=mark != 0 and kind not in _DOUBTFUL)
