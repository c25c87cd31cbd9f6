"""Annotation files of Pascal VOC, through a parser that knows no entities and reads no other file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from framework.core.errors import FormatError, InputError
from framework.vision.image import check_file


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
    root = _tree(path)
    if root.tag != "annotation":
        raise FormatError(
            "the file is no VOC annotation", where=path, received=f"<{root.tag}>", allowed="<annotation>"
        )
    objects = []
    for place, one in enumerate(root.findall("object"), start=1):
        where = f"{path}, object {place}"
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


def _tree(path: Path) -> Element:
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data

    def refuse(*_: object) -> None:
        # Entities can make a kilobyte expand to gigabytes, or name other files; they need a document type.
        raise FormatError(
            "the file declares a document type, which annotations never need",
            where=path,
            received="<!DOCTYPE",
            fix="do not open files of unknown origin; remove the declaration if you trust it",
        )

    parser.StartDoctypeDeclHandler = refuse
    data = check_file(path, "annotation").read_bytes()
    try:
        parser.Parse(data, True)
        return builder.close()
    except (expat.ExpatError, LookupError, ValueError, AssertionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(
            "the annotation is not XML", where=path, received=error, fix="write the file again, as UTF-8"
        ) from error
