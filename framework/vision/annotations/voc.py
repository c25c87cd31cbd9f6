"""Pascal VOC's format: an XML file an image."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

from framework.core.errors import FormatError, InputError
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedObject, AnnotatedSet
from framework.vision.annotations.xml_files import read_xml
from framework.vision.image import list_images


class VocObject(NamedTuple):
    """`box` is xyxy in our coordinates."""

    name: str
    box: tuple[float, float, float, float]
    difficult: bool


class VocAnnotation(NamedTuple):
    """A file's objects; the size is None where it is missing or 0."""

    size_hw: tuple[int, int] | None
    objects: tuple[VocObject, ...]


def read_voc(path: Path) -> VocAnnotation:
    """Reads one file.

    VOC counts pixels from 1 and includes the last one: xmin to xmax become x0 = xmin - 1 to x1 = xmax, y alike. Tools
    that count from 0 write xmin 0, which becomes 0 too.

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
        xmin, ymin, xmax, ymax = (_number(one, f"bndbox/{side}", where) for side in _SIDES)
        difficult = (one.findtext("difficult") or "0").strip() == "1"
        objects.append(VocObject(name, (max(0.0, xmin - 1), max(0.0, ymin - 1), xmax, ymax), difficult))
    height, width = (_length(root.findtext(f"size/{side}")) for side in ("height", "width"))
    return VocAnnotation((height, width) if height and width else None, tuple(objects))


_SIDES = ("xmin", "ymin", "xmax", "ymax")


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
            allowed="<bndbox> with xmin, ymin, xmax and ymax, all numbers",
        )
    return value


def _length(text: str | None) -> int:
    try:
        return int(float(text or 0))
    except (ValueError, OverflowError):
        return 0


_FOLDERS = (("JPEGImages", "Annotations"), ("images", "annotations"), ("", ""))  # of images, of XML files


def read_voc_folder(folder: Path, images_folder: Path | None = None) -> AnnotatedSet:
    """The images of a folder with XML files in `Annotations` or `annotations`, or beside the images. Classes are the
    sorted names of the objects; images without an XML file are left out and told in `problems`.

    Raises:
        InputError: there is no XML file. Else as `read_voc`.
    """
    images, xmls = next(
        ((folder / one, folder / other) for one, other in _FOLDERS if any((folder / other).glob("*.xml"))),
        (folder, None),
    )
    if xmls is None:
        raise InputError(
            "there are no annotations", where=folder, allowed="XML files, in Annotations or beside images"
        )
    images = images_folder or images
    by_stem = {path.stem: path for path in list_images(images)}
    read = []
    for xml in sorted(xmls.glob("*.xml")):
        annotation = read_voc(xml)
        path = by_stem.pop(xml.stem, images / f"{xml.stem}.jpg")
        objects = tuple(
            AnnotatedObject(one.name, one.box, is_valid=not one.difficult) for one in annotation.objects
        )
        read.append(AnnotatedImage(path, path.name, annotation.size_hw, objects))
    names = tuple(sorted({one.label for image in read for one in image.objects}))
    problems = tuple(f"{path} has no annotation" for path in by_stem.values())
    return AnnotatedSet(tuple(read), names, problems)
