"""The VGG Image Annotator's files: projects and annotations of VIA 1 and 2 (JSON, CSV), projects of VIA 3.

Source: https://www.robots.ox.ac.uk/~vgg/software/via/ and its repository's pages on the formats
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from framework.core import bounded
from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import read_json_files
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet
from framework.vision.annotations.shapes import box_object, ellipse_outline, outline_object
from framework.vision.dataset_files import read_annotations, read_lines
from framework.vision.image import read_size

_METADATA = "_via_img_metadata"  # the annotations in a project
_VIA3 = ("project", "attribute", "file", "metadata", "view")
_KINDS3 = {1: "point", 2: "rect", 3: "circle", 4: "ellipse", 5: "line", 6: "polyline", 7: "polygon"}
_NO_AREA = ("point", "line", "polyline")
_LABELS = ("label", "class", "name", "category", "object", "type", "label_id", "class_name")
_COLUMNS = ("filename", "region_shape_attributes", "region_attributes")
_NAMELESS = "object"


class _Region(NamedTuple):
    """One shape: its kind and numbers as VIA 2 has them, and what is said of it."""

    shape: Mapping[str, object]
    attributes: Mapping[str, str]


def is_via(data: object) -> bool:
    """Whether what a JSON file holds is of one of these formats."""
    if not isinstance(data, dict):
        return False
    if _METADATA in data or all(isinstance(data.get(key), dict) for key in _VIA3):
        return True
    entries = list(data.values())
    return bool(entries) and all(
        isinstance(one, dict) and isinstance(one.get("filename"), str) and "regions" in one for one in entries
    )


def is_via_table(file: Path) -> bool:
    """Whether a file is VIA's CSV."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            first = next(csv.reader([lines.readline(65536)]), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
    return set(_COLUMNS) <= {name.strip("# ") for name in first}


def read_via(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of a file, or of the files of a folder, each of which is a split by its name.

    Rectangles are boxes; circles, ellipses and polygons are outlines. Points and lines have no area: they are counted
    in `problems`. The class is the attribute of a region that is called label, class, name, category, object or type,
    else the one that most regions have; of an attribute with several options the first that is set. Regions of a file
    without any attribute are of one class "object", which a note says. Other attributes are kept. Classes are sorted.

    Args:
        images: The folder of the images, which are searched in the folders of it too; without it the file's folder.

    Raises:
        InputError: there is no object, or an image is not there. FormatError: the file is not of this format.
    """
    if source.is_file() and source.suffix.lower() == ".csv":
        return _read_images(_table_entries(source), source, images or source.parent)
    return read_json_files(source, images, is_via, _read_file, "VIA")


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    data = read_annotations(file)
    if not isinstance(data, dict) or not is_via(data):
        raise FormatError("the file is not VIA's", where=file, allowed='{"a.jpg123": {"filename": ...}, ...}')
    entries = _entries3(data) if all(key in data for key in _VIA3) else _entries2(data, file)
    return _read_images(entries, file, folder)


def _entries2(data: Mapping[str, JSON], file: Path) -> Iterator[tuple[str, list[_Region]]]:
    listed = data.get(_METADATA, data)
    for key, entry in listed.items() if isinstance(listed, dict) else ():
        name = entry.get("filename") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(name, str):
            raise FormatError(
                "an entry has no file name", where=f"{file}, {key}", allowed='"filename": "a.jpg"'
            )
        regions = entry.get("regions")
        listed_regions = (
            list(regions.values()) if isinstance(regions, dict) else regions
        )  # of VIA 1 by number
        shapes = listed_regions if isinstance(listed_regions, list) else []
        yield name, [_region2(one) for one in shapes if isinstance(one, dict)]


def _region2(one: Mapping[str, object]) -> _Region:
    shape, attributes = one.get("shape_attributes"), one.get("region_attributes")
    return _Region(
        shape if isinstance(shape, dict) else {}, _texts(attributes if isinstance(attributes, dict) else {})
    )


def _texts(attributes: Mapping[str, object]) -> dict[str, str]:
    """Values as texts; of options that are set or not the first that is set."""
    texts = {}
    for key, value in attributes.items():
        if isinstance(value, dict):
            value = next((option for option, is_set in value.items() if is_set), "")
        if value is not None and (text := str(value).strip()):
            texts[key] = text
    return texts


def _entries3(data: Mapping[str, JSON]) -> Iterator[tuple[str, list[_Region]]]:
    attribute, files, views, metadata = (
        _mappings(data[key]) for key in ("attribute", "file", "view", "metadata")
    )
    regions: dict[str, list[_Region]] = {key: [] for key in views}
    for one in metadata.values():
        numbers, values = one.get("xy"), one.get("av")
        attributes: dict[str, object] = {}
        for key, value in values.items() if isinstance(values, dict) else ():
            meaning = attribute.get(key, {})
            options = meaning.get("options")
            text = options.get(str(value), value) if isinstance(options, dict) else value
            attributes[str(meaning.get("aname", key))] = text
        regions.setdefault(str(one.get("vid")), []).append(_Region(_shape3(numbers), _texts(attributes)))
    for key, view in views.items():
        listed = view.get("fid_list")
        first = str(listed[0]) if isinstance(listed, list) and listed else ""
        if name := str(files.get(first, {}).get("fname") or ""):
            yield name, regions[key]


def _mappings(value: JSON) -> dict[str, dict[str, JSON]]:
    entries = value.items() if isinstance(value, dict) else ()
    return {key: one for key, one in entries if isinstance(one, dict)}


def _shape3(numbers: JSON) -> dict[str, object]:
    """The shape of a list of its kind and its numbers, as VIA 2 has it."""
    listed = numbers if isinstance(numbers, list) else []
    kind = _KINDS3.get(listed[0]) if listed and isinstance(listed[0], int) else None
    if kind is None:
        return {"name": f"kind {listed[0]}" if listed else "segment of time"}
    names = {
        "rect": ("x", "y", "width", "height"),
        "circle": ("cx", "cy", "r"),
        "ellipse": ("cx", "cy", "rx", "ry"),
    }.get(kind, ())
    if names:
        return {"name": kind, **dict(zip(names, listed[1:]))}
    return {"name": kind, "all_points_x": listed[1::2], "all_points_y": listed[2::2]}


def _table_entries(file: Path) -> Iterator[tuple[str, list[_Region]]]:
    lines = read_lines(file, "table of regions")
    lines[0] = lines[0].removeprefix("\ufeff").lstrip("#")
    try:
        rows = [row for row in csv.reader(lines) if any(row)]
    except csv.Error as error:
        raise FormatError("the file is no CSV", where=file, received=error) from error
    head = [name.strip() for name in rows[0]]
    columns = [head.index(name) for name in _COLUMNS]
    regions: dict[str, list[_Region]] = {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) <= max(columns):
            raise FormatError(
                "a row has too few columns", where=f"{file}, row {number}", received=",".join(row)[:80]
            )
        name, *cells = (row[column] for column in columns)
        shape, attributes = (bounded.parse_json(cell.encode("utf-8"), file, "cell") for cell in cells)
        of_image = regions.setdefault(name, [])
        if shape:
            of_image.append(_region2({"shape_attributes": shape, "region_attributes": attributes}))
    yield from regions.items()


def _read_images(entries: Iterator[tuple[str, list[_Region]]], file: Path, folder: Path) -> AnnotatedSet:
    listed = list(entries)
    key = _label_key([region for _, regions in listed for region in regions])
    index, problems, no_area = ImageIndex(folder), list[str](), Counter[str]()
    read = []
    for name, regions in listed:
        path = index.find(name, str(file))
        objects = list(_read_regions(regions, key, f"{file}, {name}", problems, no_area))
        read.append(AnnotatedImage(path, index.name(path), read_size(path), tuple(objects)))
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    if not names:
        raise InputError("no annotation has an object", where=file, received=f"{len(read)} images")
    problems += [f"{file}: {count} x {what}, which has no area" for what, count in no_area.items()]
    notes = [f"the regions have no attribute: all are of one class, {_NAMELESS!r}"] if key is None else []
    return AnnotatedSet(tuple(read), names, tuple(problems), tuple(notes))


def _label_key(regions: Sequence[_Region]) -> str | None:
    """The attribute that is the class; None where no region has one."""
    counts = Counter(key for region in regions for key in region.attributes)
    named = [key for name in _LABELS for key in counts if key.strip().lower() == name]
    return named[0] if named else counts.most_common(1)[0][0] if counts else None


def _read_regions(
    regions: Sequence[_Region], key: str | None, where: str, problems: list[str], no_area: Counter[str]
) -> Iterator[AnnotatedObject]:
    for number, region in enumerate(regions, start=1):
        kind = str(region.shape.get("name"))
        label = _NAMELESS if key is None else region.attributes.get(key, "")
        if kind in _NO_AREA or kind not in _KINDS3.values():
            no_area[f"{kind} {label}".strip()] += 1
            continue
        try:
            if not label:
                raise ValueError(f"no class in the attribute {key!r}")
            others = {name: text for name, text in region.attributes.items() if name != key}
            yield _read_shape(kind, region.shape, label, others)
        except ValueError as error:
            problems.append(f"{where}, region {number} ({kind}): {error}")


def _read_shape(
    kind: str, shape: Mapping[str, object], label: str, attributes: Mapping[str, str]
) -> AnnotatedObject:
    """Raises: ValueError."""
    if kind == "rect":
        x, y, width, height = (_number(shape, side) for side in ("x", "y", "width", "height"))
        return box_object(label, (x, y, x + width, y + height), attributes)
    if kind in ("circle", "ellipse"):
        radii = ("r", "r") if kind == "circle" else ("rx", "ry")
        x, y, across, down = (_number(shape, side) for side in ("cx", "cy", *radii))
        degrees = float(np.degrees(_number(shape, "theta"))) if "theta" in shape else 0.0
        return outline_object(label, ellipse_outline(x, y, across, down, degrees), attributes)
    xs, ys = ([*value] if isinstance(value := shape.get(f"all_points_{axis}"), list) else [] for axis in "xy")
    if len(xs) != len(ys) or not all(map(is_number, (*xs, *ys))):
        raise ValueError(f"{len(xs)} and {len(ys)} coordinates, not all of them numbers")
    return outline_object(label, np.array([xs, ys], np.float64).T.reshape(-1, 2), attributes)


def _number(shape: Mapping[str, object], name: str) -> float:
    value = shape.get(name)
    if not is_number(value):
        raise ValueError(f"{name} is {str(value)[:20]}")
    return float(value)
