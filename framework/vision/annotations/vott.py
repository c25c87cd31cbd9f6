"""VoTT's JSON: the export of a project ("VoTT JSON"), or the files of its assets.

Source: https://github.com/microsoft/VoTT, src/models/applicationState.ts
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from framework.core.errors import FormatError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import read_many_files
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet
from framework.vision.annotations.shapes import box_object, outline_object, read_xy_points
from framework.vision.dataset_files import read_annotations
from framework.vision.image import read_size

_NOT_VISITED = 0  # of the states of an asset; 1 is one that was looked at, 2 has regions
_NO_AREA = ("POINT", "POLYLINE")


def is_vott(data: object) -> bool:
    """Whether what a JSON file holds is of this format, or of that of VoTT 1."""
    return isinstance(data, dict) and (_is_export(data) or _is_asset(data) or _is_first_version(data))


def _is_export(data: Mapping[str, object]) -> bool:
    return isinstance(data.get("assets"), dict) and isinstance(data.get("tags"), list)


def _is_asset(data: Mapping[str, object]) -> bool:
    return isinstance(data.get("asset"), dict) and isinstance(data.get("regions"), list)


def _is_first_version(data: Mapping[str, object]) -> bool:
    return isinstance(data.get("frames"), dict) and "inputTags" in data


def read_vott(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The objects of a file, or of the files of a folder: an export of a project, or a file an asset.

    Rectangles are boxes and polygons outlines; a region of several tags is an object of each. Points and lines have no
    area: they are counted in `problems`, as regions without a tag and images that nobody has looked at are. Images
    without regions that were looked at have no objects. Classes have the order of the project's tags; without the
    project they are sorted.

    Args:
        images: The folder of the images, which are searched in the folders of it too; without it the file's folder.

    Raises:
        InputError: an image is not there. FormatError: the file is not of this format, or of VoTT 1.
    """
    return read_many_files(source, images, is_vott, _read_file, "VoTT")


def _read_file(file: Path, folder: Path) -> AnnotatedSet:
    data = read_annotations(file)
    if not isinstance(data, dict) or not (_is_export(data) or _is_asset(data)):
        is_first = isinstance(data, dict) and _is_first_version(data)
        raise FormatError(
            "the file is of VoTT 1, which has no names and sizes of images"
            if is_first
            else "the file is not VoTT's",
            where=file,
            allowed="VoTT 2: the export of a project in the format VoTT JSON, or its files *-asset.json",
            fix="export it again from VoTT 2, or as Pascal VOC" if is_first else None,
        )
    assets = data["assets"] if _is_export(data) else {"asset": data}
    assert isinstance(assets, dict)
    index, problems, left_out = ImageIndex(folder), list[str](), Counter[str]()
    read = []
    for key, entry in assets.items():
        asset = entry.get("asset") if isinstance(entry, dict) else None
        name = asset.get("name") if isinstance(asset, dict) else None
        if not isinstance(entry, dict) or not isinstance(asset, dict) or not isinstance(name, str):
            raise FormatError(
                "an asset has no name", where=f"{file}, {key}", allowed='"asset": {"name": "a.jpg"}'
            )
        listed = entry.get("regions")
        regions = listed if isinstance(listed, list) else []
        if not regions and asset.get("state") == _NOT_VISITED:
            problems.append(f"{name}: nobody has looked at it")
            continue
        path = index.find(name, str(file))
        size_hw = _size(asset.get("size")) or read_size(path)
        objects = _read_regions(regions, f"{file}, {name}", problems, left_out)
        read.append(AnnotatedImage(path, index.name(path), size_hw, tuple(objects)))
    problems += [f"{file}: {count} x {what}" for what, count in left_out.items()]
    return AnnotatedSet(tuple(read), _class_names(data.get("tags"), read), tuple(problems))


def _size(value: JSON) -> tuple[int, int] | None:
    sides = [value.get(side) for side in ("height", "width")] if isinstance(value, dict) else []
    numbers = [int(side) for side in sides if is_number(side) and side >= 1]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _class_names(tags: JSON, images: Sequence[AnnotatedImage]) -> tuple[str, ...]:
    """The project's tags, and behind them those that regions alone have."""
    entries = tags if isinstance(tags, list) else []
    named = [str(name) for tag in entries if isinstance(tag, dict) and (name := tag.get("name"))]
    return tuple(dict.fromkeys([*named, *sorted({one.label for image in images for one in image.objects})]))


def _read_regions(
    regions: Sequence[JSON], where: str, problems: list[str], left_out: Counter[str]
) -> list[AnnotatedObject]:
    objects = []
    for number, region in enumerate(regions, start=1):
        kind = str(region.get("type")).upper() if isinstance(region, dict) else ""
        listed = region.get("tags") if isinstance(region, dict) else None
        tags = [str(tag) for tag in listed if tag] if isinstance(listed, list) else []
        if not isinstance(region, dict) or not tags:
            left_out["region without a tag"] += 1
        elif kind in _NO_AREA:
            left_out[f"{kind.lower()} {tags[0]}, which has no area"] += 1
        else:
            try:
                objects += [_read_region(kind, region, tag) for tag in tags]
            except ValueError as error:
                problems.append(f"{where}, region {number} ({kind.lower()}): {error}")
    return objects


def _read_region(kind: str, region: Mapping[str, JSON], tag: str) -> AnnotatedObject:
    """Raises: ValueError."""
    points = region.get("points")
    if kind == "POLYGON" and isinstance(points, list):
        return outline_object(tag, read_xy_points(points), {})
    x, y, width, height = _numbers(region.get("boundingBox"), ("left", "top", "width", "height"))
    return box_object(tag, (x, y, x + width, y + height), {})


def _numbers(value: JSON, names: Sequence[str]) -> list[float]:
    """Raises: ValueError, where one is no number."""
    values = [value.get(name) for name in names] if isinstance(value, dict) else []
    numbers = [float(one) for one in values if is_number(one)]
    if len(numbers) < len(names):
        raise ValueError(f"{', '.join(names)} are {str(value)[:60]}")
    return numbers
