"""The XML of the first LabelMe, which CVAT and Datumaro write as "LabelMe": an XML file an image, with polygons.

Source: https://github.com/CSAILVision/LabelMeAnnotationTool
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from framework.core.disk import walk_files
from framework.core.errors import FormatError, InputError
from framework.vision.annotations.objects import (
    SUBSETS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotatedSet,
    bounds,
)
from framework.vision.annotations.xml_files import read_xml
from framework.vision.image import list_images

_FOLDERS = (("Images", "Annotations"), ("", ""))  # of images, of XML files


def is_labelme_xml(root: Element) -> bool:
    """Whether the root of an XML file is of this format: VOC has the same root, and boxes in its objects, some tools
    with a polygon of other elements."""
    return root.tag == "annotation" and (
        root.find("object/polygon/pt") is not None
        or root.find("object/segm") is not None
        or root.find("imagesize") is not None
    )


def read_labelme_xml(folder: Path, images_folder: Path | None = None) -> AnnotatedSet:
    """The images of a folder with XML files beside them, or in `Annotations` with the images in `Images`.

    Shapes of the type bounding_box are boxes, others outlines. Deleted objects, and those that a file of pixels tells,
    are left out and counted in `problems`. Classes are the sorted names of the objects; a folder named train, val or
    test is a split.

    Raises:
        InputError: there is no XML file, or no image of one. FormatError: a file is not of this format.
    """
    images, xmls = next(
        ((folder / one, folder / other) for one, other in _FOLDERS if any((folder / other).rglob("*.xml"))),
        (folder, None),
    )
    if xmls is None:
        raise InputError("there are no annotations", where=folder, allowed="XML files of LabelMe")
    images = images_folder or images
    by_stem = {path.relative_to(images).with_suffix(""): path for path in list_images(images, recursive=True)}
    skipped: Counter[str] = Counter()
    problems: list[str] = []
    read = []
    for xml in sorted(Path(name) for name in walk_files(xmls) if name.endswith(".xml")):
        stem = xml.relative_to(xmls).with_suffix("")
        path = by_stem.get(stem) or by_stem.get(Path(stem.name)) or images / stem.with_suffix(".jpg")
        objects, size_hw = _read_file(xml, skipped, problems)
        split = SUBSETS.get(stem.parts[0].lower(), "") if len(stem.parts) > 1 else ""
        name = path.relative_to(images).as_posix()
        read.append(AnnotatedImage(path, name, size_hw, objects, split))
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    if not names:
        raise InputError("no annotation has an object", where=xmls, received=f"{len(read)} files")
    problems += [f"{count} x {what}" for what, count in skipped.items()]
    return AnnotatedSet(tuple(read), names, tuple(problems))


def _read_file(
    xml: Path, skipped: Counter[str], problems: list[str]
) -> tuple[tuple[AnnotatedObject, ...], tuple[int, int] | None]:
    root = read_xml(xml)
    if not is_labelme_xml(root) and root.find("object") is not None:
        raise FormatError(
            "the file is no annotation of LabelMe",
            where=xml,
            received=f"<{root.tag}>",
            allowed="<annotation> with <polygon> in its objects",
        )
    objects = []
    for number, entry in enumerate(root.findall("object"), start=1):
        if (entry.findtext("deleted") or "0").strip() == "1":
            skipped["an object that is marked as deleted"] += 1
            continue
        polygon = entry.find("polygon")
        if polygon is None:
            skipped["an object without a polygon (masks of pixels are not read)"] += 1
            continue
        try:
            objects.append(_read_object(entry, polygon))
        except ValueError as error:
            problems.append(f"{xml}, object {number}: {error}")
    height, width = (_length(root.findtext(f"imagesize/{side}")) for side in ("nrows", "ncols"))
    return tuple(objects), (height, width) if height and width else None


def _read_object(entry: Element, polygon: Element) -> AnnotatedObject:
    """Raises: ValueError, where it has no name, or no area."""
    label = (entry.findtext("name") or "").strip()
    if not label:
        raise ValueError("no name")
    points = [
        [float(point.findtext(side) or "nan") for side in ("x", "y")] for point in polygon.findall("pt")
    ]
    outline = np.array(points, np.float64).reshape(-1, 2)
    if len(outline) < 3 or not np.isfinite(outline).all():
        raise ValueError(f"{label}: {len(outline)} points, but a polygon has three or more")
    box = bounds([outline])
    if box[2] <= box[0] or box[3] <= box[1]:
        raise ValueError(f"{label}: no area")
    is_box = (entry.findtext("type") or "").strip() == "bounding_box"
    occluded = (entry.findtext("occluded") or "").strip().lower() == "yes"
    return AnnotatedObject(
        label, box, () if is_box else (outline,), attributes={"occluded": "1"} if occluded else {}
    )


def _length(text: str | None) -> int:
    try:
        value = float(text or 0)
    except ValueError:
        return 0
    return int(value) if math.isfinite(value) else 0
