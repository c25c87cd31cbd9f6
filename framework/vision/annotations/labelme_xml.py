"""The XML of the first LabelMe, which CVAT and Datumaro write as "LabelMe": an XML file an image, with polygons.

Source: https://github.com/CSAILVision/LabelMeAnnotationTool
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from framework.core.disk import walk_files
from framework.core.errors import FormatError, InputError
from framework.vision import image as vision_image
from framework.vision.annotations.groups import GroupedShape, join_groups
from framework.vision.annotations.objects import (
    SUBSETS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotatedSet,
    bounds,
    from_full_mask,
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

    Shapes of the type bounding_box are boxes, others outlines; a mask is the file that the object names, in `Masks` or
    beside the XML file. Parts of one object may be one object (`join_groups`). Deleted objects are left out and
    counted in `problems`. Classes are the sorted names of the objects; a folder named train, val or test is a split.

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
        masks = (folder / "Masks" / stem.parent, xml.parent / "Masks", xml.parent)
        objects, size_hw = _read_file(xml, masks, skipped, problems)
        split = SUBSETS.get(stem.parts[0].lower(), "") if len(stem.parts) > 1 else ""
        name = path.relative_to(images).as_posix()
        read.append(AnnotatedImage(path, name, size_hw, objects, split))
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    if not names:
        raise InputError("no annotation has an object", where=xmls, received=f"{len(read)} files")
    problems += [f"{count} x {what}" for what, count in skipped.items()]
    return AnnotatedSet(tuple(read), names, tuple(problems))


def _read_file(
    xml: Path, masks: Sequence[Path], skipped: Counter[str], problems: list[str]
) -> tuple[tuple[AnnotatedObject, ...], tuple[int, int] | None]:
    root = read_xml(xml)
    if not is_labelme_xml(root) and root.find("object") is not None:
        raise FormatError(
            "the file is no annotation of LabelMe",
            where=xml,
            received=f"<{root.tag}>",
            allowed="<annotation> with <polygon> in its objects",
        )
    shapes = []
    for number, entry in enumerate(root.findall("object"), start=1):
        if (entry.findtext("deleted") or "0").strip() == "1":
            skipped["an object that is marked as deleted"] += 1
            continue
        try:
            one = _read_object(entry, masks)
        except (ValueError, InputError) as error:
            problems.append(f"{xml}, object {number}: {error}")
            continue
        shapes.append(
            GroupedShape(one, _find_group(entry), entry.find("polygon") is not None and not _is_box(entry))
        )
    height, width = (_length(root.findtext(f"imagesize/{side}")) for side in ("nrows", "ncols"))
    return tuple(join_groups(shapes)), (height, width) if height and width else None


def _find_group(entry: Element) -> str:
    """The id of the object whose parts are one group; "" where it has none."""
    if whole := (entry.findtext("parts/ispartof") or "").strip():
        return whole
    has_parts = bool((entry.findtext("parts/hasparts") or "").strip())
    return (entry.findtext("id") or "").strip() if has_parts else ""


def _is_box(entry: Element) -> bool:
    return (entry.findtext("type") or "").strip() == "bounding_box"


def _read_object(entry: Element, masks: Sequence[Path]) -> AnnotatedObject:
    """Raises: ValueError, where it has no name, or no area. InputError: its mask cannot be read."""
    label = (entry.findtext("name") or "").strip()
    if not label:
        raise ValueError("no name")
    occluded = (entry.findtext("occluded") or "").strip().lower() == "yes"
    attributes = {"occluded": "1"} if occluded else {}
    polygon = entry.find("polygon")
    if polygon is None:
        return from_full_mask(label, _read_mask(entry, label, masks), attributes)
    points = [
        [float(point.findtext(side) or "nan") for side in ("x", "y")] for point in polygon.findall("pt")
    ]
    outline = np.array(points, np.float64).reshape(-1, 2)
    if len(outline) < 3 or not np.isfinite(outline).all():
        raise ValueError(f"{label}: {len(outline)} points, but a polygon has three or more")
    box = bounds([outline])
    if box[2] <= box[0] or box[3] <= box[1]:
        raise ValueError(f"{label}: no area")
    return AnnotatedObject(label, box, () if _is_box(entry) else (outline,), attributes=attributes)


def _read_mask(entry: Element, label: str, folders: Sequence[Path]) -> np.ndarray:
    """[H, W] bool: what is neither black nor transparent in the file of an object's pixels."""
    name = (entry.findtext("segm/mask") or "").strip()
    if not name:
        raise ValueError(f"{label}: neither a polygon nor a mask")
    path = next((one / name for one in folders if (one / name).is_file()), None)
    if path is None or Path(name).name != name:
        raise ValueError(f"{label}: there is no mask {name} in Masks")
    contents, where = vision_image.read_bytes(path, "mask")
    try:
        rgba = np.asarray(vision_image.open_header(contents, where).convert("RGBA"))
    except OSError as error:
        raise vision_image.damage_error(contents, where, error) from error
    mask = (rgba[..., :3].max(axis=2) > 0) & (rgba[..., 3] > 0)
    if not mask.any():
        raise ValueError(f"{label}: the mask {name} has no pixel")
    return mask


def _length(text: str | None) -> int:
    try:
        value = float(text or 0)
    except ValueError:
        return 0
    return int(value) if math.isfinite(value) else 0
