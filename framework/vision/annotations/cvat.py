"""CVAT's format "CVAT for images 1.1": one XML file with the labels of a task and the shapes of each image.

Source: https://docs.cvat.ai/docs/manual/advanced/xml_format/
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet, bounds
from framework.vision.annotations.xml_files import read_xml

_CORNERS = 48  # of the polygon that stands for an ellipse
_NO_AREA = ("polyline", "points", "cuboid", "skeleton", "tag")
_FARTHEST = 1e7  # pixels


def read_cvat(file: Path, images: Path | None = None) -> AnnotatedSet:
    """The images of a file, with boxes, turned ones, polygons, ellipses and masks, and their attributes.

    Polylines, points, cuboids, skeletons and tags have no area: they are counted in `problems`, as are shapes that
    cannot be read. Labels are numbered as the file's <meta> lists them, others by name behind those.

    Args:
        images: The folder of the images; without it `images` beside the file, or the file's folder.

    Raises:
        FormatError: the file is not of this format. InputError: it holds tracks of a video, or no image.
    """
    file = Path(file)
    root = read_xml(file)
    if root.tag != "annotations":
        raise FormatError(
            "the file is not CVAT's",
            where=file,
            received=f"<{root.tag}>",
            allowed="<annotations> with <image>",
        )
    entries = root.findall("image")
    if not entries:
        tracks = len(root.findall("track"))
        raise InputError(
            "the file has no images" if not tracks else "the file has the tracks of a video",
            where=file,
            received=f"{tracks} tracks" if tracks else "no <image>",
            allowed="<image> elements",
            fix='export the task as "CVAT for images 1.1"',
        )
    problems: list[str] = []
    no_area: Counter[str] = Counter()
    names = [name.text.strip() for name in root.findall("meta//labels/label/name") if name.text]
    read = []
    for number, entry in enumerate(entries, start=1):
        name = (entry.get("name") or "").replace("\\", "/")
        if not name:
            raise FormatError("an image has no name", where=f"{file}, image {number}", allowed='name="a.jpg"')
        objects = _read_objects(entry, f"{file}, image {name}", no_area, problems)
        size_hw = _size(entry)
        path = _find_image(name, file, images)
        read.append(AnnotatedImage(path, name, size_hw, tuple(objects), _split_of(entry)))
    others = sorted({one.label for image in read for one in image.objects} - set(names))
    listed = tuple(dict.fromkeys([*names, *others]))
    if not listed:
        raise InputError(
            "the file has no label", where=file, allowed="<label> in <meta>, or shapes with labels"
        )
    problems += [f"{file}: {count} x {kind}, which has no area" for kind, count in no_area.items()]
    return AnnotatedSet(tuple(read), listed, tuple(problems))


def _split_of(entry: Element) -> str:
    subset = (entry.get("subset") or "").lower()
    return {"train": "train", "validation": "val", "val": "val", "valid": "val", "test": "test"}.get(
        subset, ""
    )


def _size(entry: Element) -> tuple[int, int] | None:
    try:
        height, width = int(entry.get("height") or 0), int(entry.get("width") or 0)
    except ValueError:
        return None
    return (height, width) if height > 0 and width > 0 else None


def _find_image(name: str, file: Path, images: Path | None) -> Path:
    folders = [images] if images is not None else [file.parent / "images", file.parent]
    candidates = [folder / one for one in (name, Path(name).name) for folder in folders]
    return next((path for path in candidates if path.is_file()), candidates[0])


def _read_objects(
    entry: Element, where: str, no_area: Counter[str], problems: list[str]
) -> Iterable[AnnotatedObject]:
    for number, shape in enumerate(entry, start=1):
        if shape.tag in _NO_AREA:
            no_area[f"{shape.tag} {shape.get('label')}"] += 1
            continue
        read = _READERS.get(shape.tag)
        if read is None:
            no_area[f"<{shape.tag}>"] += 1
            continue
        label = (shape.get("label") or "").strip()
        try:
            if not label:
                raise ValueError("no label")
            attributes = {
                one.get("name") or "": (one.text or "").strip() for one in shape.findall("attribute")
            }
            attributes |= {key: "1" for key in ("occluded",) if shape.get(key) == "1"}
            one_object = read(shape, label, attributes)
            if one_object.box[2] <= one_object.box[0] or one_object.box[3] <= one_object.box[1]:
                raise ValueError("no area")
        except ValueError as error:
            problems.append(f"{where}, shape {number} ({shape.tag} {label}): {error}")
            continue
        yield one_object


def _number(shape: Element, name: str, default: float | None = None) -> float:
    text = shape.get(name)
    if text is None and default is not None:
        return default
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not abs(value) < _FARTHEST:
        raise ValueError(f"{name}={text!r} is no number of pixels")
    return value


def _turn(points: np.ndarray, degrees: float) -> np.ndarray:
    """Points around their centre, clockwise as one sees it."""
    if not degrees:
        return points
    angle, centre = math.radians(degrees), (points.min(axis=0) + points.max(axis=0)) / 2
    matrix = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    return (points - centre) @ matrix + centre


def _read_box(shape: Element, label: str, attributes: Mapping[str, str]) -> AnnotatedObject:
    x0, y0, x1, y1 = (_number(shape, side) for side in ("xtl", "ytl", "xbr", "ybr"))
    turn = _number(shape, "rotation", 0.0)
    if not turn:
        return AnnotatedObject(label, (x0, y0, x1, y1), attributes=attributes)
    outline = _turn(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]]), turn)
    return AnnotatedObject(label, bounds([outline]), (outline,), attributes=attributes)


def _read_polygon(shape: Element, label: str, attributes: Mapping[str, str]) -> AnnotatedObject:
    pairs = [pair.split(",") for pair in (shape.get("points") or "").split(";") if pair.strip()]
    outline = np.array([[float(x), float(y)] for x, y in pairs], np.float64).reshape(-1, 2)
    if len(outline) < 3 or not np.isfinite(outline).all() or np.abs(outline).max() > _FARTHEST:
        raise ValueError(f"{len(outline)} points, but a polygon has three or more")
    return AnnotatedObject(label, bounds([outline]), (outline,), attributes=attributes)


def _read_ellipse(shape: Element, label: str, attributes: Mapping[str, str]) -> AnnotatedObject:
    x, y, across, down = (_number(shape, name) for name in ("cx", "cy", "rx", "ry"))
    angles = np.arange(_CORNERS) * (2 * math.pi / _CORNERS)
    outline = np.stack([x + across * np.cos(angles), y + down * np.sin(angles)], axis=1)
    outline = _turn(outline, _number(shape, "rotation", 0.0))
    return AnnotatedObject(label, bounds([outline]), (outline,), attributes=attributes)


def _read_mask(shape: Element, label: str, attributes: Mapping[str, str]) -> AnnotatedObject:
    """Runs along the rows of its rectangle, the first of them outside."""
    left, top, width, height = (int(_number(shape, name)) for name in ("left", "top", "width", "height"))
    runs = np.array([int(run) for run in (shape.get("rle") or "").split(",") if run.strip()], np.int64)
    if width < 1 or height < 1 or (runs < 0).any() or runs.sum() != width * height:
        raise ValueError(f"runs of {int(runs.sum())} pixels for a mask of {width} x {height}")
    inside = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(height, width)
    if not inside.any():
        raise ValueError("a mask without a pixel")
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    y0, y1, x0, x1 = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
    box = float(left + x0), float(top + y0), float(left + x1), float(top + y1)
    return AnnotatedObject(label, box, (), np.ascontiguousarray(inside[y0:y1, x0:x1]), attributes)


_READERS: Mapping[str, Callable[[Element, str, Mapping[str, str]], AnnotatedObject]] = {
    "box": _read_box,
    "polygon": _read_polygon,
    "ellipse": _read_ellipse,
    "mask": _read_mask,
}


def cvat_xml(images: Sequence[AnnotatedImage], names: Sequence[str]) -> bytes:
    """The file of images, whose sizes are known: boxes, a polygon for each outline, and masks."""
    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    task = ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task")
    ElementTree.SubElement(task, "size").text = str(len(images))
    labels = ElementTree.SubElement(task, "labels")
    for name in names:
        label = ElementTree.SubElement(labels, "label")
        ElementTree.SubElement(label, "name").text = name
        attribute_names = sorted(
            {key for image in images for one in image.objects if one.label == name for key in one.attributes}
            - {"occluded"}
        )
        attributes = ElementTree.SubElement(label, "attributes")
        for key in attribute_names:
            attribute = ElementTree.SubElement(attributes, "attribute")
            for tag, text in (("name", key), ("mutable", "False"), ("input_type", "text")):
                ElementTree.SubElement(attribute, tag).text = text
            for tag in ("default_value", "values"):
                ElementTree.SubElement(attribute, tag).text = ""
    for number, image in enumerate(images):
        height, width = image.size_hw or (0, 0)
        facts = {"id": str(number), "name": image.name, "width": str(width), "height": str(height)}
        if image.split:
            facts["subset"] = {"train": "Train", "val": "Validation", "test": "Test"}.get(
                image.split, image.split
            )
        entry = ElementTree.SubElement(root, "image", facts)
        for group, one in enumerate(image.objects, start=1):
            _write_object(entry, one, group)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _write_object(entry: Element, one: AnnotatedObject, group: int) -> None:
    shared = {
        "label": one.label,
        "source": "manual",
        "occluded": one.attributes.get("occluded", "0"),
        "z_order": "0",
    }
    x0, y0, x1, y1 = one.box
    shapes: list[tuple[str, dict[str, str]]]
    if one.mask is not None:
        height, width = one.mask.shape
        position = {"left": round(x0), "top": round(y0), "width": width, "height": height}
        runs = {"rle": ", ".join(map(str, _row_runs(one.mask)))}
        shapes = [("mask", {**runs, **{key: str(value) for key, value in position.items()}})]
    elif one.outlines:
        several = {"group_id": str(group)} if len(one.outlines) > 1 else {}
        shapes = [
            ("polygon", {**several, "points": ";".join(f"{x:.2f},{y:.2f}" for x, y in line.tolist())})
            for line in one.outlines
        ]
    else:
        sides = {"xtl": x0, "ytl": y0, "xbr": x1, "ybr": y1}
        shapes = [("box", {key: f"{value:.2f}" for key, value in sides.items()})]
    for tag, more in shapes:
        shape = ElementTree.SubElement(entry, tag, {**shared, **more})
        for key, value in one.attributes.items():
            if key != "occluded":
                ElementTree.SubElement(shape, "attribute", {"name": key}).text = value


def _row_runs(mask: np.ndarray) -> list[int]:
    """Lengths of alternating runs along the rows, the first outside."""
    flat = mask.ravel()
    ends = np.concatenate([np.flatnonzero(flat[1:] != flat[:-1]) + 1, [flat.size]])
    runs: list[int] = np.diff(ends, prepend=0).tolist()
    return [0, *runs] if flat[0] else runs
