"""Label Studio's own JSON, as it exports "JSON" and "JSON-MIN": a list of tasks, of which those on images are read; and
its CSV and TSV, which have JSON-MIN's values in columns.

Source: https://labelstud.io/guide/export and https://labelstud.io/guide/task_format
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from framework.core import bounded
from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import read_json_files
from framework.vision.annotations.label_studio_brush import decode_brush
from framework.vision.annotations.objects import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotatedSet,
    from_full_mask,
)
from framework.vision.annotations.shapes import box_object, ellipse_outline, outline_object, turn
from framework.vision.dataset_files import read_annotations, read_lines
from framework.vision.image import SUFFIXES, read_size

_SHAPES = ("rectangle", "polygon", "ellipse", "brush")
_KINDS = tuple(f"{shape}labels" for shape in _SHAPES)
_UPLOAD = re.compile(r"[0-9a-f]{8}-(?=.)")  # in front of the name of an image that was uploaded
_TABLE_COLUMNS = ("annotation_id", "annotator", "lead_time", "created_at", "updated_at")
_SAVED = ("annotations", "completions")  # the second before 1.0


def is_label_studio(data: object) -> bool:
    """Whether what a JSON file holds is a list of tasks on images."""
    if not isinstance(data, list) or not data:
        return False
    first = data[0]
    if not isinstance(first, dict):
        return False
    if isinstance(first.get("data"), dict):
        return any(isinstance(first.get(name), list) for name in _SAVED)
    return _image_of(first) is not None and any(key in first for key in _TABLE_COLUMNS[:3])


def is_label_studio_table(file: Path) -> bool:
    """Whether a file is Label Studio's CSV or TSV."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            first = next(csv.reader([lines.readline(65536)], delimiter=_delimiter(file)), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
    return len(set(_TABLE_COLUMNS) & set(first)) >= 2


def _delimiter(file: Path) -> str:
    return "\t" if file.suffix.lower() == ".tsv" else ","


def _table_tasks(file: Path) -> list[dict[str, object]]:
    """The rows of a table as tasks of JSON-MIN: cells of lists are JSON."""
    text = "\n".join(read_lines(file, "table of tasks")).removeprefix("\ufeff")
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=_delimiter(file), restval=""))
    except csv.Error as error:
        raise FormatError("the file is no CSV", where=file, received=error) from error
    return [
        {
            key: bounded.parse_json(cell.encode("utf-8"), file, "cell") if cell.startswith("[") else cell
            for key, cell in row.items()
            if isinstance(key, str) and isinstance(cell, str)
        }
        for row in rows
    ]


def read_label_studio(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of a file, or of the files of a folder, each of which is a split by its name.

    Rectangles are boxes, turned ones, polygons and ellipses outlines, brushes masks; an object with several labels is
    one of each. Of several annotations of a task the first that was not cancelled is read, of several tasks of an image
    the first. Other kinds of results, tasks that are not annotated, and images that are not there are told in
    `problems`. Classes are sorted.

    Args:
        images: The folder of the images, which are searched by name, with and without the eight signs that an upload
            puts in front; without it the file's folder.

    Raises:
        InputError: there is no object, or none of the images is there. FormatError: the file is not of this format.
    """
    if source.is_file() and is_label_studio_table(source):
        return _read_tasks(_table_tasks(source), source, images or source.parent)
    return read_json_files(source, images, is_label_studio, _read_file, "Label Studio")


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    return _read_tasks(read_annotations(file), file, folder)


def _read_tasks(tasks: object, file: Path, folder: Path) -> AnnotatedSet:
    if not isinstance(tasks, list) or not is_label_studio(tasks):
        raise FormatError("the file is not Label Studio's", where=file, allowed='[{"data": {...}, ...}, ...]')
    index = ImageIndex(folder)
    problems: list[str] = []
    skipped: Counter[str] = Counter()
    paths: set[Path] = set()
    read: list[AnnotatedImage] = []
    for number, task in enumerate(tasks, start=1):
        where = f"{file}, task {task.get('id', number) if isinstance(task, dict) else number}"
        name = (
            _image_of(task["data"] if isinstance(task.get("data"), dict) else task)
            if isinstance(task, dict)
            else None
        )
        if not isinstance(task, dict) or name is None:
            problems.append(f"{where}: no image")
            continue
        results = _results(task, skipped)
        if results is None:
            skipped["a task that is not annotated"] += 1
            continue
        path = _find_image(index, name)
        if path is None:
            problems.append(f"{where}: the image {name[:80]} is not in {index.folder}")
            continue
        if path in paths:
            skipped["a further task of an image"] += 1
            continue
        paths.add(path)
        size_hw = read_size(path)
        objects = _read_results(results, size_hw, where, problems, skipped)
        read.append(AnnotatedImage(path, index.name(path), size_hw, tuple(objects)))
    if not read:
        raise InputError(
            "none of the images is there",
            where=file,
            received=f"{len(tasks)} tasks" + "".join(f"; {line}" for line in problems[:1]),
            fix="name the folder of the images with --images",
        )
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    if not names:
        raise InputError("no annotation has an object", where=file, received=f"{len(read)} images")
    problems += [f"{file}: {count} x {what}" for what, count in skipped.items()]
    return AnnotatedSet(tuple(read), names, tuple(problems))


def _image_of(data: Mapping[str, JSON]) -> str | None:
    """Where the image of a task is: the first value that ends like one."""
    for value in data.values():
        if isinstance(value, str) and Path(_plain_name(value)).suffix.lower() in SUFFIXES:
            return value
    return None


def _plain_name(location: str) -> str:
    """The path in a URL, or the one that local storage has in its query (`?d=folder/a.jpg`)."""
    try:
        address = urlsplit(location)
    except ValueError:
        return location
    query = parse_qs(address.query).get("d")
    return (
        query[0] if query else unquote(address.path) if address.scheme or address.query else unquote(location)
    )


def _find_image(index: ImageIndex, location: str) -> Path | None:
    path = _plain_name(location).replace("\\", "/").lstrip("/")
    name = path.rpartition("/")[2]
    spellings = (path, name, _UPLOAD.sub("", name, count=1))
    return index.look_up_inside(spellings)


def _results(task: Mapping[str, JSON], skipped: Counter[str]) -> list[Mapping[str, JSON]] | None:
    """The results of a task in the form of "JSON"; None where it has none."""
    if not isinstance(task.get("data"), dict):  # JSON-MIN: lists of values, by the name of a control
        values = [one for value in task.values() if isinstance(value, list) for one in value]
        return [{"value": one} for one in values if isinstance(one, dict)]
    saved = next((task[name] for name in _SAVED if isinstance(task.get(name), list)), [])
    entries = (
        [one for one in saved if isinstance(one, dict) and not one.get("was_cancelled")]
        if isinstance(saved, list)
        else []
    )
    if len(entries) > 1:
        skipped["a further annotation of a task"] += len(entries) - 1
    results = entries[0].get("result") if entries else None
    return (
        _join_labels([one for one in results if isinstance(one, dict)]) if isinstance(results, list) else None
    )


def _join_labels(results: list[Mapping[str, JSON]]) -> list[Mapping[str, JSON]]:
    """Shapes with their labels: of <Polygon> and <Labels> both are results, of one id."""
    labels: dict[str, Mapping[str, JSON]] = {}
    for one in results:
        if one.get("type") == "labels" and isinstance(value := one.get("value"), dict):
            labels[str(one.get("id"))] = value
    joined, used = list[Mapping[str, JSON]](), set[str]()
    for one in results:
        kind, key, value = one.get("type"), str(one.get("id")), one.get("value")
        if kind in _SHAPES and key in labels and isinstance(value, dict):
            used.add(key)
            one = {**one, "value": {**value, f"{kind}labels": labels[key].get("labels")}}
        joined.append(one)
    return [one for one in joined if one.get("type") != "labels" or str(one.get("id")) not in used]


def _read_results(
    results: list[Mapping[str, JSON]],
    size_hw: tuple[int, int],
    where: str,
    problems: list[str],
    skipped: Counter[str],
) -> list[AnnotatedObject]:
    objects = []
    for number, result in enumerate(results, start=1):
        value = result.get("value")
        if not isinstance(value, dict):
            skipped["a result without a value"] += 1
            continue
        kind = next((key for key in _KINDS if isinstance(value.get(key), list)), None)
        if kind is None:
            what = next(
                (key for key in value if key.endswith("labels") or key in ("choices", "text")), "relation"
            )
            skipped[f"a result of the kind {result.get('type', what)}"] += 1
            continue
        listed = value[kind]
        labels = [str(label) for label in listed if label] if isinstance(listed, list) else []
        try:
            if not labels:
                raise ValueError("no label")
            objects += [_read_shape(kind, value, label, size_hw) for label in labels]
        except ValueError as error:
            problems.append(f"{where}, result {number} ({kind}): {error}")
    return objects


def _read_shape(
    kind: str, value: Mapping[str, JSON], label: str, size_hw: tuple[int, int]
) -> AnnotatedObject:
    """Numbers are shares of the image's sides in percent. Raises: ValueError."""
    height, width = size_hw
    scale = np.array([width, height]) / 100
    if kind == "brushlabels":
        return from_full_mask(label, decode_brush(value.get("rle"), size_hw), {})
    if kind == "polygonlabels":
        points = value.get("points")
        pairs = points if isinstance(points, list) else []
        if not all(isinstance(pair, list) and len(pair) == 2 and all(map(is_number, pair)) for pair in pairs):
            raise ValueError("points that are no pairs of numbers")
        return outline_object(label, np.array(pairs, np.float64).reshape(-1, 2) * scale, {})
    names = ("x", "y", "radiusX", "radiusY") if kind == "ellipselabels" else ("x", "y", "width", "height")
    x, y, across, down = (_number(value, name) for name in names)
    degrees = _number(value, "rotation") if value.get("rotation") is not None else 0.0
    corner, sides = np.array([x, y]) * scale, np.array([across, down]) * scale
    if kind == "ellipselabels":
        x, y, across, down = (*corner.tolist(), *sides.tolist())
        return outline_object(label, ellipse_outline(x, y, across, down, degrees), {})
    if not degrees:
        low, high = corner.tolist(), (corner + sides).tolist()
        return box_object(label, (low[0], low[1], high[0], high[1]), {})
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    return outline_object(label, turn(corner + square * sides, degrees, corner), {})


def _number(value: Mapping[str, JSON], name: str) -> float:
    number = value.get(name)
    if not is_number(number):
        raise ValueError(f"{name} is {str(number)[:20]}")
    return float(number)
