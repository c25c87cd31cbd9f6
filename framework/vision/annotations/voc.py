"""Pascal VOC's format: an XML file an image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from framework.core.errors import FormatError, InputError
from framework.vision.annotations.objects import SUBSETS, AnnotatedImage, AnnotatedSet, bounds
from framework.vision.annotations.shapes import box_object, turn
from framework.vision.annotations.xml_files import read_xml
from framework.vision.dataset_files import read_lines, split_columns
from framework.vision.image import list_images

_FLAGS = ("truncated", "occluded")  # elements of an object whose 1 is an attribute


class VocObject(NamedTuple):
    """`box` is xyxy in our coordinates; outlines, as Roboflow and supervision write them, are not read. `rotated` are
    the corners [4, 2] of a rotated box, whose bounds the box is."""

    name: str
    box: tuple[float, float, float, float]
    difficult: bool
    attributes: Mapping[str, str] = MappingProxyType({})
    has_outline: bool = False
    rotated: np.ndarray | None = None


class VocAnnotation(NamedTuple):
    """A file's objects; the size is None where it is missing or 0."""

    size_hw: tuple[int, int] | None
    objects: tuple[VocObject, ...]


def read_voc(path: Path) -> VocAnnotation:
    """Reads one file.

    VOC counts pixels from 1 and includes the last one: xmin to xmax become x0 = xmin - 1 to x1 = xmax, y alike. Tools
    that count from 0 write xmin 0, which becomes 0 too. Turned boxes are those of roLabelImg: `robndbox` with its
    middle, sides and angle in radians, clockwise, in continuous coordinates.

    Raises:
        FormatError: the file is no XML of this format, or declares a document type or entities.
        InputError: there is no such file, or an object lacks its name or a number of its box.
    """
    root = read_xml(path)
    if root.tag != "annotation":
        raise FormatError(
            "the file is no VOC annotation", where=path, received=f"<{root.tag}>", allowed="<annotation>"
        )
    objects = []
    for number, one in enumerate(root.findall("object"), start=1):
        where = f"{path}, object {number}"
        name = (one.findtext("name") or "").strip()
        if not name:
            raise InputError("an object has no name", where=where, allowed="<name>cat</name>")
        rotated = None
        if one.find("robndbox") is not None and one.find("bndbox") is None:
            rotated = _rotated_corners(one, where)
            box = bounds([rotated])
        else:
            xmin, ymin, xmax, ymax = (_number(one, f"bndbox/{side}", where) for side in _SIDES)
            box = (max(0.0, xmin - 1), max(0.0, ymin - 1), xmax, ymax)
        difficult = (one.findtext("difficult") or "0").strip() == "1"
        has_outline = one.find("polygon") is not None
        objects.append(VocObject(name, box, difficult, _attributes(one), has_outline, rotated))
    height, width = (_length(root.findtext(f"size/{side}")) for side in ("height", "width"))
    return VocAnnotation((height, width) if height and width else None, tuple(objects))


_SIDES = ("xmin", "ymin", "xmax", "ymax")


def _rotated_corners(one: Element, where: str) -> np.ndarray:
    """[4, 2] of a `robndbox`. Raises: InputError."""
    x, y, width, height, angle = (
        _number(one, f"robndbox/{name}", where) for name in ("cx", "cy", "w", "h", "angle")
    )
    square = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    return turn(square * (width, height) + (x, y), math.degrees(angle), np.array([x, y]))


def _attributes(one: Element) -> Mapping[str, str]:
    """Truncated and occluded where they are 1, and the attributes that CVAT and Datumaro write."""
    named = {
        (entry.findtext("name") or "").strip(): (entry.findtext("value") or "").strip()
        for entry in one.findall("attributes/attribute")
    }
    return {flag: "1" for flag in _FLAGS if (one.findtext(flag) or "").strip() == "1"} | named


def _number(element: Element, path: str, where: str) -> float:
    text = element.findtext(path)
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            "an object has no box",
            where=where,
            received=f"{path.rpartition('/')[2]}: {text}",
            allowed="<bndbox> with xmin, ymin, xmax and ymax, or <robndbox> with cx, cy, w, h and angle, all numbers",
        )
    return value


def _length(text: str | None) -> int:
    try:
        return int(float(text or 0))
    except (ValueError, OverflowError):
        return 0


FOLDERS = (
    ("JPEGImages", "Annotations"),
    ("images", "annotations"),
    ("images", "Annotations"),  # of Label Studio
    ("data", "labels"),  # of FiftyOne
    ("images", "labels"),
    ("images", ""),  # of V7
    ("", ""),
)
"""Of images, and of their XML files."""


def voc_folders(folder: Path) -> tuple[Path, Path] | None:
    """The folders of the images and of the XML files; None where there is no XML file."""
    pairs = [(folder / images, folder / xmls) for images, xmls in FOLDERS]
    pairs = [pair for pair in pairs if next(pair[1].glob("*.xml"), None) is not None]
    return next((pair for pair in pairs if pair[0].is_dir()), pairs[0] if pairs else None)


def read_voc_folder(folder: Path, images_folder: Path | None = None) -> AnnotatedSet:
    """The images of a folder with XML files in one of `FOLDERS`, such as `Annotations`, or beside the images. Classes
    are the sorted names of the objects; images without an XML file are left out and told in `problems`. Splits are
    those of the lists train.txt, val.txt and test.txt in `ImageSets/Main`, or of lists of pairs in the folder itself,
    as PaddleX has them (train_list.txt), where each image is in one of them at most.

    Raises:
        InputError: there is no XML file. Else as `read_voc`.
    """
    folders = voc_folders(folder)
    if folders is None:
        raise InputError(
            "there are no annotations", where=folder, allowed="XML files, in Annotations or beside images"
        )
    images, xmls = images_folder or folders[0], folders[1]
    by_stem = {path.stem: path for path in list_images(images)}
    splits = _read_splits(folder / "ImageSets" / "Main") or _read_splits(folder)
    read, outlines, problems = [], 0, list[str]()
    for xml in sorted(xmls.glob("*.xml")):
        annotation = read_voc(xml)
        outlines += sum(one.has_outline for one in annotation.objects)
        path = by_stem.pop(xml.stem, images / f"{xml.stem}.jpg")
        objects = []
        for one in annotation.objects:
            try:
                entry = box_object(one.name, one.box, one.attributes, not one.difficult)
            except ValueError as error:
                problems.append(f"{xml}: {error}")
                continue
            objects.append(entry if one.rotated is None else replace(entry, outlines=(one.rotated,)))
        split = splits.get(xml.stem, "")
        read.append(AnnotatedImage(path, path.name, annotation.size_hw, tuple(objects), split))
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    problems += [f"{path} has no annotation" for path in by_stem.values()]
    notes = (f"the outlines of {outlines} objects are not read, their boxes are",) if outlines else ()
    return AnnotatedSet(tuple(read), names, tuple(problems), notes)


def _read_splits(folder: Path) -> Mapping[str, str]:
    """The split of each name; empty where there are no lists, or where lists share a name. A line is a name, or an
    image and its XML file."""
    splits: dict[str, str] = {}
    for file in sorted(folder.glob("*.txt")):
        split = SUBSETS.get(file.stem.lower().removesuffix("_list"))
        for line in read_lines(file, "list of images") if split is not None else ():
            pair = split_columns(line, folder) if line.rstrip().endswith(".xml") else None
            name = Path(pair[1].replace("\\", "/")).stem if pair else line.strip()
            if name and split is not None and splits.setdefault(name, split) != split:
                return {}
    return splits


def voc_xml(image: AnnotatedImage, name: str) -> bytes:
    """The file of an image whose size is known and that is called `name`; boxes alone.

    Pixels are counted from 1, as `read_voc` reads them; sides are whole numbers or have two decimals.
    """
    root = ElementTree.Element("annotation")
    height, width = image.size_hw or (0, 0)
    for tag, text in (("folder", "JPEGImages"), ("filename", name)):
        ElementTree.SubElement(root, tag).text = text
    size = ElementTree.SubElement(root, "size")
    for tag, side in (("width", width), ("height", height), ("depth", 3)):
        ElementTree.SubElement(size, tag).text = str(side)
    ElementTree.SubElement(root, "segmented").text = "0"
    for one in image.objects:
        entry = ElementTree.SubElement(root, "object")
        flags = {flag: str(int(one.has_flag(flag))) for flag in _FLAGS}
        texts = {"name": one.label, "pose": "Unspecified", **flags, "difficult": str(int(not one.is_valid))}
        for tag, text in texts.items():
            ElementTree.SubElement(entry, tag).text = text
        box = ElementTree.SubElement(entry, "bndbox")
        x0, y0, x1, y1 = one.box
        for tag, side in zip(_SIDES, (x0 + 1, y0 + 1, x1, y1)):
            ElementTree.SubElement(box, tag).text = f"{side:.2f}".rstrip("0").rstrip(".")
        others = [(key, text) for key, text in one.attributes.items() if key not in _FLAGS]
        if others:
            listed = ElementTree.SubElement(entry, "attributes")
            for key, text in others:
                attribute = ElementTree.SubElement(listed, "attribute")
                ElementTree.SubElement(attribute, "name").text = key
                ElementTree.SubElement(attribute, "value").text = text
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8") + b"\n"
