"""Supervisely's projects: `meta.json` with the classes, and folders of data sets with `img` and `ann`.

Source: https://docs.supervisely.com/data-organization/00_ann_format_navi and
https://github.com/supervisely/supervisely (`supervisely/geometry`)
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.core.fields import is_number
from framework.core.types import JSON
from framework.vision import polygons, raw_images
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.annotations.json_files import holds
from framework.vision.annotations.objects import (
    SUBSETS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotatedSet,
    Box,
    bounds,
    from_full_mask,
)
from framework.vision.annotations.shapes import box_object, outline_object, read_image_size, turn_box
from framework.vision.dataset_files import read_annotations
from framework.vision.image import read_size

_META, _LABELS, _IMAGES = "meta.json", "ann", "img"
_NESTED = "datasets"  # the folder of a data set with those inside of it
_MASKS = {"bitmap": "bitmap", "alpha_mask": "bitmap"}
_NO_AREA = ("point", "line", "graph", "cuboid", "cuboid_2d", "cuboid_3d", "polyline_3d", "point_3d")
_MOST_BYTES = 1 << 28  # of an unpacked PNG


def find_supervisely(folder: Path) -> Sequence[Path]:
    """The data sets of a project, or the folder itself where it is one: folders with `img` and `ann`."""
    if _is_dataset(folder):
        return (folder,)
    inside = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    return tuple(one for path in inside for one in _list_datasets(path))


def _list_datasets(folder: Path) -> Iterator[Path]:
    if _is_dataset(folder):
        yield folder
    if (nested := folder / _NESTED).is_dir():
        for path in sorted(nested.iterdir()):
            if path.is_dir():
                yield from _list_datasets(path)


def _is_dataset(folder: Path) -> bool:
    """Whether the first file of `ann` is one of this format."""
    if not (folder / _LABELS).is_dir() or not (folder / _IMAGES).is_dir():
        return False
    first = next(iter(sorted((folder / _LABELS).rglob("*.json"))), None)
    return first is not None and holds(first, _is_annotation)


def _is_annotation(data: object) -> bool:
    return isinstance(data, dict) and isinstance(data.get("objects"), list) and "size" in data


def read_supervisely(source: Path, images: Path | None = None) -> AnnotatedSet:
    """The images of a project, or of one of its data sets: a folder with `img`, and in `ann` a JSON file an image.

    Rectangles and turned boxes are boxes and outlines; polygons and multipolygons are outlines, or masks where they
    have holes; bitmaps are masks. Corners of whole numbers are pixels that the rectangle holds, as in Supervisely's
    own package, so its last row and column count; where a rectangle of the project has fractions, all are edges. What
    has no area, such as points, lines and graphs, is counted in `problems`. Tags are attributes. Data sets whose name
    is train, val or test are splits; the others' names stand in front of those of their images. Classes have the order
    of meta.json, without which they are sorted.

    Args:
        images: A folder with all images, in the place of `img`.

    Raises:
        InputError: there is no such folder, or an image is not there. FormatError: a file is not of this format.
    """
    folders = find_supervisely(source) if source.is_dir() else ()
    if not folders:
        raise InputError(
            "there are no annotations of Supervisely",
            where=source,
            allowed="a project with meta.json and folders with img and ann",
        )
    files = [(folder, *one) for folder in folders for one in _read_files(folder)]
    is_inclusive = not any(map(_has_fractions, (data for *_, data in files)))
    problems, left_out, read = list[str](), Counter[str](), list[AnnotatedImage]()
    notes: list[str] = []
    indices = {folder: ImageIndex(images or folder / _IMAGES) for folder in folders}
    for folder, file, data in files:
        path = indices[folder].find(_image_name(file, folder), str(file))
        size_hw = read_image_size(data["size"])
        if size_hw is None:
            size_hw = read_size(path)
            notes.append(
                f"{file}: no image has the size {ascii(data['size'])[:60]}: that of {path.name} is taken"
            )
        objects = tuple(_read_objects(data["objects"], size_hw, is_inclusive, str(file), problems, left_out))
        split = SUBSETS.get(folder.name.lower(), "")
        name = indices[folder].name(path)
        if not split and len(folders) > 1:
            name = f"{folder.relative_to(source).as_posix().replace(f'/{_NESTED}/', '/')}/{name}"
        read.append(AnnotatedImage(path, name, size_hw, objects, split))
    problems += [f"{count} x {kind}, which has no area" for kind, count in left_out.items()]
    metas = (folder / _META for folder in (folders[0], source, source.parent))
    names = _class_names(next((meta for meta in metas if meta.is_file()), None), read)
    return AnnotatedSet(tuple(read), names, tuple(problems), tuple(notes))


def _read_files(folder: Path) -> Iterator[tuple[Path, dict[str, JSON]]]:
    for file in sorted((folder / _LABELS).rglob("*.json")):
        data = read_annotations(file)
        if not isinstance(data, dict) or not _is_annotation(data):
            raise FormatError(
                "the file is not Supervisely's",
                where=file,
                allowed='{"size": {"height": 480, "width": 640}, "objects": […]}',
            )
        yield file, data


def _image_name(file: Path, folder: Path) -> str:
    """Of ann/a.jpg.json, or of ann/a.json as old projects have it."""
    return file.relative_to(folder / _LABELS).with_suffix("").as_posix()


def _class_names(meta: Path | None, images: Sequence[AnnotatedImage]) -> tuple[str, ...]:
    """Those of meta.json that have an area, and behind them those that objects alone have."""
    data = None if meta is None else read_annotations(meta)
    entries = data.get("classes") if isinstance(data, dict) else None
    named = [
        str(one["title"])
        for one in (entries if isinstance(entries, list) else [])
        if isinstance(one, dict) and one.get("title") and one.get("shape") not in _NO_AREA
    ]
    return tuple(dict.fromkeys([*named, *sorted({one.label for image in images for one in image.objects})]))


def _has_fractions(data: Mapping[str, JSON]) -> bool:
    """Whether a corner of a rectangle lies between two pixels."""
    listed = data["objects"]
    assert isinstance(listed, list)
    points = [one.get("points") for one in listed if isinstance(one, dict) and _kind(one) == "rectangle"]
    corners = [one.get("exterior") for one in points if isinstance(one, dict)]
    sides = [
        side
        for of_box in corners
        if isinstance(of_box, list)
        for xy in of_box
        if isinstance(xy, list)
        for side in xy
    ]
    return any(is_number(side) and side != math.floor(side) for side in sides)


def _kind(entry: Mapping[str, JSON]) -> str:
    """What an object is; files of old versions do not say it."""
    kind = entry.get("geometryType") or entry.get("shape")
    if isinstance(kind, str):
        return kind
    if entry.get("bitmap"):
        return "bitmap"
    points = entry.get("points")
    corners = points.get("exterior") if isinstance(points, dict) else None
    return "rectangle" if isinstance(corners, list) and len(corners) == 2 else "polygon"


def _read_objects(
    entries: JSON,
    size_hw: tuple[int, int],
    is_inclusive: bool,
    where: str,
    problems: list[str],
    left_out: Counter[str],
) -> Iterator[AnnotatedObject]:
    assert isinstance(entries, list)
    for number, entry in enumerate(entries, start=1):
        kind = _kind(entry) if isinstance(entry, dict) else "object"
        label = entry.get("classTitle") if isinstance(entry, dict) else None
        if kind in _NO_AREA:
            left_out[f"{kind} {label}"] += 1
            continue
        try:
            if not isinstance(entry, dict) or not isinstance(label, str) or not label:
                raise ValueError(f"its class is {ascii(label)[:40]}")
            yield _read_object(kind, entry, label, size_hw, is_inclusive)
        except (ValueError, InputError) as error:
            reason = error.problem if isinstance(error, InputError) else error
            problems.append(f"{where}, object {number} ({kind}): {reason}")


def _read_object(
    kind: str, entry: Mapping[str, JSON], label: str, size_hw: tuple[int, int], is_inclusive: bool
) -> AnnotatedObject:
    """Raises: ValueError, or InputError of a damaged mask."""
    attributes = _read_tags(entry.get("tags"))
    if any("\ud800" <= sign <= "\udfff" for sign in "".join((label, *attributes, *attributes.values()))):
        raise ValueError("its class or a tag is no valid Unicode")
    if kind == "rectangle":
        return box_object(label, _read_box(_rings(entry.get("points"))[0], is_inclusive), attributes)
    if kind == "oriented_bbox":
        angle = entry.get("angle")
        if not is_number(angle) or not math.isfinite(angle):
            raise ValueError(f"{label}: the angle is {str(angle)[:40]}")
        box = box_object(label, _read_box(_points(entry.get("points")), is_inclusive), attributes).box
        return outline_object(label, turn_box(box, math.degrees(angle)), attributes)
    if kind == "polygon":
        return _polygon_object(label, [_rings(entry.get("points"))], size_hw, attributes)
    if kind == "multipolygon":
        shapes = entry.get("parts")
        rings = [_rings(one) for one in shapes] if isinstance(shapes, list) else []
        return _polygon_object(label, rings, size_hw, attributes)
    if kind in _MASKS:
        return from_full_mask(label, _read_bitmap(entry.get(_MASKS[kind]), size_hw), attributes)
    raise ValueError(f"{label}: this kind of object is not read")


def _read_tags(tags: JSON) -> Mapping[str, str]:
    listed = (
        [one for one in tags if isinstance(one, dict) and one.get("name")] if isinstance(tags, list) else []
    )
    return {str(one["name"]): "1" if one.get("value") is None else str(one["value"]) for one in listed}


def _points(value: JSON) -> np.ndarray:
    """[N, 2]. Raises: ValueError."""
    listed = value if isinstance(value, list) else []
    rows = [[float(side) for side in one if is_number(side)] for one in listed if isinstance(one, list)]
    if not rows or len(rows) < len(listed) or any(len(one) != 2 for one in rows):
        raise ValueError(f"the points are {str(value)[:60]}")
    return np.array(rows, np.float64)


def _rings(value: JSON) -> list[np.ndarray]:
    """The outline of a shape, and those of its holes. Raises: ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"the points are {str(value)[:60]}")
    holes = value.get("interior")
    return [
        _points(value.get("exterior")),
        *(_points(one) for one in (holes if isinstance(holes, list) else [])),
    ]


def _read_box(corners: np.ndarray, is_inclusive: bool) -> Box:
    """xyxy of two opposite corners. Raises: ValueError."""
    if len(corners) != 2:
        raise ValueError(f"{len(corners)} points, but a rectangle has two")
    x0, y0, x1, y1 = bounds([corners])
    return (x0, y0, x1 + 1, y1 + 1) if is_inclusive else (x0, y0, x1, y1)


def _polygon_object(
    label: str,
    shapes: Sequence[Sequence[np.ndarray]],
    size_hw: tuple[int, int],
    attributes: Mapping[str, str],
) -> AnnotatedObject:
    """The object of shapes, each an outline and its holes. Raises: ValueError."""
    outlines = [outline_object(label, shape[0], attributes).outlines[0] for shape in shapes]
    if not outlines:
        raise ValueError(f"{label}: no part")
    if all(len(shape) == 1 for shape in shapes):
        return AnnotatedObject(label, bounds(outlines), tuple(outlines), attributes=attributes)
    covered = np.zeros(size_hw, bool)
    for shape in shapes:
        for ring in shape:
            outline_object(label, ring, attributes)  # which checks its points
        covered |= polygons.fill(shape[:1], size_hw) & ~polygons.fill(shape[1:], size_hw)
    if not covered.any():
        raise ValueError(f"{label}: no pixel of it is on the image")
    return from_full_mask(label, covered, attributes)


def _read_bitmap(value: JSON, size_hw: tuple[int, int]) -> np.ndarray:
    """[H, W] bool: a mask, a PNG packed by zlib in base64, at its place on the image.

    Raises: ValueError, or InputError of a damaged PNG."""
    text, origin = (value.get("data"), value.get("origin")) if isinstance(value, dict) else (None, None)
    (x, y), *_ = np.rint(_points([origin])).astype(int).tolist()
    try:
        content = base64.b64decode(text if isinstance(text, str) else "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"the mask is no base64: {error}") from error
    with contextlib.suppress(zlib.error):  # a PNG that is not packed once more
        content = zlib.decompressobj().decompress(content, _MOST_BYTES)
    labels = raw_images.read_labels(content)  # in colours where the PNG has them, perhaps with alpha
    channels = labels[..., None] if labels.ndim == 2 else raw_images.read_channels(content)
    inside = np.any(channels[..., 3:] if channels.shape[2] == 4 else channels, axis=2)
    height, width = inside.shape[0], inside.shape[1]
    whole = AnnotatedObject("", (x, y, x + width, y + height), mask=inside).fill(size_hw)
    if not whole.any():
        raise ValueError("no pixel of the mask is on the image")
    return whole
