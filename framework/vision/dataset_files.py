"""Files of a data set: images, lists of them, and what is said of those that cannot be used."""

from __future__ import annotations

import csv
import hashlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeGuard
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

import numpy as np

from framework.core import bounded
from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number
from framework.vision import image, masks, raw_images
from framework.vision.deep_samples import ValueRange

_log = logging.getLogger("oar")
_SHOWN = 5  # of a long list, a message names so many


def read_image(
    source: Path | bytes,
    where: Path,
    channels: int | None = None,
    otherwise: str = "take it out of the data set",
    *,
    orient: bool = True,
    value_range: ValueRange | None = None,
) -> np.ndarray:
    """The image as 8-bit RGB, or as it is stored with that many channels.

    Args:
        where: The file in messages. `otherwise` is what to do there with one that cannot be repaired.
        orient, value_range: As of `image.read`, of 8-bit RGB.

    Raises:
        InputError: it cannot be read, or has another number of channels.
    """
    try:
        pixels = (
            image.read(source, name=str(where), orient=orient, value_range=value_range)
            if channels is None
            else raw_images.read_channels(where)
        )
    except InputError as error:
        raise InputError(
            f"an image of the data set cannot be read: {error.problem}",
            where=where,
            received=error.received,
            allowed=error.allowed,
            fix=f"repair the file, or {otherwise}",
        ) from error
    if channels is not None and pixels.shape[2] != channels:
        first = pixels.shape[0] == channels
        raise InputError(
            "an image has another number of channels than the data set says",
            where=where,
            received=f"{pixels.dtype} {list(pixels.shape)}",
            allowed=f"{channels} channels",
            fix="channels come last: save array.transpose(1, 2, 0)"
            if first
            else "set channels, or correct the file",
        )
    return pixels


def read_lines(path: Path, what: str) -> list[str]:
    """All lines of a text file, empty ones too; `what` names it in messages.

    Raises:
        InputError: there is no such file, or it is not UTF-8.
    """
    text = bounded.read_text(image.check_file(path, what), bounded.VOCABULARY, what, InputError)
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def is_file(path: Path) -> bool:
    """Whether there is such a file. Of a name that is too long for the file system pathlib raises an error."""
    try:
        return path.is_file()
    except OSError:
        return False


def spell_names(*names: str) -> tuple[str, ...]:
    """Names, and their other forms of Unicode: macOS and its archives keep a letter and its accent apart."""
    forms = [(name, normalize("NFC", name), normalize("NFD", name)) for name in names if not name.isascii()]
    return tuple(dict.fromkeys((*names, *(one for some in forms for one in some))))


def listed_name(folder: Path, name: str) -> str:
    """What a list's file is called in `folder`: a list may have Windows' separators, a slash in front that stands
    for the folder, or another form of Unicode. Where there is no such file, the name as it is written."""
    plain = name.replace("\\", "/")
    if plain == name and name.isascii() and not name.startswith("/"):
        return name
    return next((one for one in spell_names(name, plain, plain.lstrip("/")) if is_file(folder / one)), name)


def listed_path(folder: Path, name: str) -> Path:
    """The path of `listed_name`."""
    return folder / listed_name(folder, name)


def image_path(folder: Path, name: str) -> Path:
    """The image that an annotation names, seen from `folder`: written with Windows' separators too, with the path that
    it has on the machine where it was annotated, with an address, or in another form of Unicode. Where there is none,
    the path as it is written."""
    path = folder / name
    plain = name.replace("\\", "/")
    # a folder that is there is asked for once by most file systems, each of its images would not be
    if name.isascii() and (
        "/" not in plain or (plain == name and not Path(name).is_absolute() and path.parent.is_dir())
    ):
        return path
    if is_file(path):
        return path
    if "://" in plain:
        plain = unquote(urlsplit(plain).path)
    candidates = spell_names(plain, plain.rpartition("/")[2])
    return next((folder / one for one in candidates if is_file(folder / one)), path)


def split_quoted(line: str, separator: str) -> tuple[str, str] | None:
    """The two cells of a line of which the first or last stands in double quotes, as pandas writes a cell that holds
    the separator; None of other lines."""
    if len(separator) != 1 or '"' not in (line[:1], line[-1:]):
        return None
    cells = next(csv.reader([line], delimiter=separator, skipinitialspace=True))
    return (cells[0].strip(), cells[1].strip()) if len(cells) == 2 else None


def split_columns(line: str, root: Path) -> tuple[str, str] | None:
    """The two paths of a line `image annotation`, seen from `root`, which may hold blanks themselves.

    A tab between them tells them apart; else, of several blanks, the one that parts two files that are there.
    """
    line = line.strip()
    if line.count("\t") == 1:
        first, second = line.split("\t")
        return first.strip(), second.strip()
    if quoted := split_quoted(line, " "):
        return quoted
    words = line.split(" ")
    pairs = [(" ".join(words[:at]).strip(), " ".join(words[at:]).strip()) for at in range(1, len(words))]
    pairs = [pair for pair in pairs if all(pair)]
    if len(set(pairs)) == 1:
        return pairs[0]
    return next(
        (pair for pair in pairs if all(is_file(listed_path(root, one)) for one in pair)),
        None,
    )


JSON_LINES = (".ndjson", ".jsonl")
"""The suffixes of files with a value of JSON a line."""


def read_annotations(path: Path) -> object:
    """What a file of annotations in JSON holds; of one with a value a line (`JSON_LINES`) the list of them.

    Raises:
        InputError: there is no such file. FormatError: it is not JSON.
    """
    text = bounded.read_bytes(path, bounded.DATASET, "annotation file", InputError)
    if path.suffix.lower() in JSON_LINES:
        return [
            bounded.parse_json(line, f"{path}, line {number}", "annotation file")
            for number, line in enumerate(text.split(b"\n"), start=1)
            if line.strip()
        ]
    return bounded.parse_json(text, path, "annotation file")


Region = masks.RunLengths | list[list[float]]
"""COCO's `segmentation`: run lengths, or polygons [x, y, x, y, ...]."""


def is_region(value: object) -> TypeGuard[Region]:
    """Whether it can be a Region: polygons of three points or more, or a mapping with `size` and `counts`."""
    if isinstance(value, Mapping):
        size, counts = value.get("size"), value.get("counts")
        runs = [*(size if isinstance(size, list) else ()), *(counts if isinstance(counts, list) else ())]
        return (
            isinstance(size, list)
            and len(size) == 2
            and isinstance(counts, str | list)
            and all(isinstance(run, int) and 0 <= run < 2**31 for run in runs)
        )
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(
            isinstance(flat, list) and len(flat) >= 6 and len(flat) % 2 == 0 and all(map(is_number, flat))
            for flat in value
        )
    )


def usable_region(value: object) -> tuple[Region | None, str | None]:
    """What of COCO's `segmentation` can be drawn, and what is to be said of the rest; None where there is nothing."""
    if is_region(value):
        fault = None if isinstance(value, list) else _find_fault(value)
        return (None, fault) if fault else (value, None)
    bare = [value]
    if is_region(bare):  # one polygon without its list, as supervision wrote it before 0.13
        return bare, None
    if isinstance(value, list) and (usable := [flat for flat in value if is_region([flat])]):
        return usable, f"{len(value) - len(usable)} of {len(value)} polygons have no three points"
    return None, f"no mask, but {str(value)[:40]}"


def region_bounds(region: Region) -> tuple[float, float, float, float] | None:
    """xyxy around a region that can be drawn; None of a mask without pixels."""
    if isinstance(region, Mapping):
        mask = masks.decode_rle(region)
        x0, y0, x1, y1 = masks.to_boxes(mask[None])[0].tolist()
        return (x0, y0, x1, y1) if mask.any() else None
    points = np.concatenate([np.array(flat, np.float64).reshape(-1, 2) for flat in region])
    (x0, y0), (x1, y1) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return x0, y0, x1, y1


def _find_fault(region: masks.RunLengths) -> str | None:
    """Why the run lengths cannot be decoded; None where they can."""
    try:
        masks.read_counts(region)
    except FormatError as error:
        return f"no mask, but run lengths that are damaged: {error.problem} ({error.received})"
    except ValueError:  # half a character
        return "no mask, but run lengths that are no text"
    return None


def decode_region(region: masks.RunLengths, size_hw: tuple[int, int], where: object) -> np.ndarray:
    """[H, W] bool: run lengths on an image of this size.

    Raises:
        InputError: they are damaged, or of another size.
    """
    if tuple(region["size"]) != size_hw:
        raise InputError(
            "a mask has another size than its image",
            where=where,
            received="{} high and {} wide".format(*region["size"]),
            allowed="{} high and {} wide".format(*size_hw),
        )
    try:
        return masks.decode_rle(region)
    except (FormatError, ValueError) as error:  # ValueError: text that is not ASCII
        raise InputError(
            "a mask is damaged",
            where=where,
            received=error.problem if isinstance(error, FormatError) else error,
            allowed='{"size": [height, width], "counts": runs}',
        ) from error


def hash_image(pixels: np.ndarray) -> bytes:
    """Tells images of different content apart, whatever their files are."""
    head = f"{pixels.dtype} {pixels.shape}".encode()
    return hashlib.blake2b(head + np.ascontiguousarray(pixels).tobytes(), digest_size=16).digest()


Orientation = Literal["exif", "stored"]
"""Whether images are turned as their EXIF mark says, or left as they are stored."""


def describe_turned(paths: Sequence[Path]) -> list[str]:
    """A line about the images that their EXIF mark turns, whose annotations may be of the stored ones; none without."""
    rotated = [str(path) for path in paths if image.read_orientation(path) != 1]
    if not rotated:
        return []
    return [
        f"{len(rotated)} of {len(paths)} images are turned by their EXIF mark ({abbreviate(rotated)}): see with "
        "`oar data show` that annotations fit; if they are of the images as stored: orientation: stored of the data set"
    ]


def describe_similar(names: Sequence[str]) -> list[str]:
    """A line about names of classes that differ in capitals or blanks alone, as typing errors do; none without."""
    by_text: dict[str, list[str]] = {}
    for name in names:
        by_text.setdefault(" ".join(name.casefold().split()), []).append(name)
    similar = [" and ".join(map(repr, group)) for group in by_text.values() if len(group) > 1]
    return [f"classes differ in capitals or blanks alone: {abbreviate(similar, '; ')}"] if similar else []


def describe_divided(entries: Iterable[tuple[Path, object]]) -> list[str]:
    """A line about images that have several entries with other objects, as files of several annotators do; none
    without. To repeat an entry as it is only weighs a sample.

    Args:
        entries: Of each entry the file of its image, and what can be compared: its objects.
    """
    first: dict[Path, object] = {}
    divided = {str(path) for path, objects in entries if first.setdefault(path, objects) != objects}
    if not divided:
        return []
    return [
        f"{len(divided)} images have several entries with other objects ({abbreviate(sorted(divided))}): what one has "
        "is background in the others; put them into one entry"
    ]


def find_missing(paths: Iterable[str | Path]) -> list[int]:
    """The numbers of the files that are not there.

    One listing a folder: asking for each of a million files would take minutes on a network drive.
    """
    listings: dict[str, set[str]] = {}
    missing = []
    for number, path in enumerate(paths):
        folder, file = os.path.split(path)
        if folder not in listings:
            listings[folder] = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        # Some file systems take a name in another case than they list it in.
        if file not in listings[folder] and not os.path.isfile(path):
            missing.append(number)
    return missing


def report_problems(where: Path, problems: Sequence[str]) -> tuple[str, ...]:
    """Puts one line into the log for entries that were left out; gives them back."""
    if problems:
        _log.warning("%s: %d entries are left out: %s", where, len(problems), abbreviate(problems, "; "))
    return tuple(problems)


def abbreviate(names: Sequence[str], separator: str = ", ") -> str:
    """The first few of a list and how many more there are."""
    more = f"{separator}and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return separator.join(names[:_SHOWN]) + more
