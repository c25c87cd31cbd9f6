"""Data sets in Pascal VOC's format: an XML file beside each image, read by a parser that knows no entities and reads no
other file."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from detection.data.records import (
    ImageRecord,
    Records,
    RecordsDataset,
    build_records,
    check_files,
    report_problems,
)
from detection.data.selected import check_names, select_classes
from framework.config.registry import register
from framework.core.errors import FormatError, InputError
from framework.vision.dataset_files import abbreviate, read_lines
from framework.vision.image import SUFFIXES, check_file

_FOLDERS = (("JPEGImages", "Annotations"), ("images", "annotations"), ("", ""))  # of images, of XML files
_Pair = tuple[Path, Path]  # an image and its annotation


@register("dataset")
@dataclass(frozen=True)
class VocDetection(RecordsDataset):
    """Objects on images, told by an XML file an image.

    What `split` names is looked for in this order:

    * `<root>/ImageSets/Main/<split>.txt`, VOC's list of names in `<root>/JPEGImages` and `<root>/Annotations`;
    * the folder `<root>/<split>`, with the folders `images` and `annotations` (or VOC's names of them), or with
      images and XML files side by side; without a split this is `root` itself, all of it;
    * `<root>/<split>.txt`, PaddleDetection's list: an image and its XML a line, relative to `root`.

    An image and its annotation have the same name up to the suffix, whatever `filename` inside says. Without
    `classes` the classes are the sorted names in all annotations, of the other splits too, so that all splits number
    them alike; with it objects of other classes are left out, and a line of the log counts them. Boxes are read as
    `read_voc` says; those whose right or lower side does not lie beyond the other one, and those wholly outside of the
    size that is said of their image, are left out and listed in `problems`. Objects marked as difficult have valid
    False. The sample's id is the path.

    Raises:
        ConfigError: `classes` is empty or names a class twice.
        InputError: at the first use, there is no such split, files are missing, an object has no box, or `classes`
            has a name that no object has, much like one that is left out. At an access, the image cannot be read or has
            another size than its annotation says.
        FormatError: an annotation is not XML of this format.
    """

    root: Path
    split: str = ""
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.classes is not None:
            check_names(self.classes, "VocDetection.classes")

    @cached_property
    def _records(self) -> Records:  # pyright: ignore[reportIncompatibleMethodOverride]
        pairs = self._pairs()
        read = {xml: read_voc(xml) for _, xml in pairs}
        others = {}
        if self.classes is None:
            others = {xml: read_voc(xml) for xml in self._all_annotations(pairs) if xml not in read}
        names = sorted({one.name for voc in (*read.values(), *others.values()) for one in voc.objects})
        if not names and self.classes is None:
            raise InputError(
                "no annotation has an object", where=self._folder, fix="set classes, or check root and split"
            )
        number = {name: index for index, name in enumerate(names)}
        images, boxes, problems = [], [], []
        for image, xml in pairs:
            images.append(ImageRecord(image, str(image), read[xml].size_hw))
            boxes.append(_objects(read[xml], xml, number, problems))
        check_files(images, self._folder)
        records = build_records(images, names, boxes, problems=report_problems(self._folder, problems))
        return records if self.classes is None else select_classes(records, self.classes, self._folder)

    @property
    def _folder(self) -> Path:
        return Path(self.root) / self.split

    @property
    def _list(self) -> Path:
        return Path(self.root) / "ImageSets" / "Main" / f"{self.split}.txt"

    def _pairs(self) -> list[_Pair]:
        root = Path(self.root)
        pairs_file = root / f"{self.split}.txt"
        if self.split and self._list.is_file():
            names = [line.split()[0] for line in _lines(self._list)]
            folders = root / "JPEGImages", root / "Annotations"
            pairs = _match_pairs([folders[1] / f"{name}.xml" for name in names], folders[0])
        elif self._folder.is_dir() and (folders := _folders(self._folder)):
            pairs = _match_pairs(sorted(folders[1].glob("*.xml")), folders[0])
        elif self.split and pairs_file.is_file():
            pairs = _read_list(pairs_file, root)
        else:
            splits = [path.name for path in self._beside() if _folders(path)]
            raise InputError(
                "there are no annotations",
                where=self._folder,
                allowed="ImageSets/Main/<split>.txt, a folder <split> with XML files, or a list <split>.txt in root",
                fix=f"set split to {' or '.join(map(repr, splits))}"
                if splits
                else f"check root and split; the current folder is {Path.cwd()}",
            )
        if not pairs:
            raise InputError("the list names no image", where=self._folder, allowed="one or more")
        if missing := [str(xml) for _, xml in pairs if not os.path.isfile(xml)]:
            raise InputError(
                f"{len(missing)} of {len(pairs)} annotations are not there",
                where=self._folder,
                received=abbreviate(missing),
            )
        return pairs

    def _all_annotations(self, pairs: list[_Pair]) -> list[Path]:
        """Of this split and of those beside it."""
        folders = {xml.parent for _, xml in pairs}
        if self.split and not self._list.is_file() and self._folder.is_dir():
            folders |= {match[1] for path in self._beside() if (match := _folders(path))}
        return [xml for folder in sorted(folders) for xml in sorted(folder.glob("*.xml"))]

    def _beside(self) -> list[Path]:
        """The folders in `root`."""
        root = Path(self.root)
        return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def _folders(folder: Path) -> _Pair | None:
    """The folders of the images and of the XML files."""
    for images, xmls in _FOLDERS:
        if next((folder / xmls).glob("*.xml"), None) is not None:
            return folder / images, folder / xmls
    return None


def _match_pairs(xmls: Sequence[Path], folder: Path) -> list[_Pair]:
    """Each with the image of its name; where there is none, with the one that should be there."""
    by_stem: dict[str, Path] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix.lower() in SUFFIXES:
            by_stem.setdefault(path.stem, path)
    return [(by_stem.get(xml.stem, folder / f"{xml.stem}.jpg"), xml) for xml in xmls]


def _read_list(file: Path, root: Path) -> list[_Pair]:
    pairs = []
    for line in _lines(file):
        columns = line.split()
        if len(columns) != 2:
            raise InputError(
                "a line must name an image and an annotation",
                where=file,
                received=line,
                allowed="images/a.jpg annotations/a.xml",
            )
        pairs.append((root / columns[0], root / columns[1]))
    return pairs


def _lines(file: Path) -> list[str]:
    return [line for line in read_lines(file, "list") if line.strip()]


def _objects(
    voc: VocAnnotation, xml: Path, number: dict[str, int], problems: list[str]
) -> list[tuple[tuple[float, ...], int, bool]]:
    objects = []
    for position, one in enumerate(voc.objects, start=1):
        x0, y0, x1, y1 = one.box
        # VOC's xmax == xmin: no box of one pixel, but a click that was not dragged
        if x1 - x0 <= 1 or y1 - y0 <= 1:
            problems.append(f"{xml}, object {position} ({one.name}): box {one.box} has no area")
            continue
        if voc.size_hw is not None and (min(x1, y1) <= 0 or x0 >= voc.size_hw[1] or y0 >= voc.size_hw[0]):
            height, width = voc.size_hw
            problems.append(
                f"{xml}, object {position} ({one.name}): box {one.box} lies outside of its image, "
                f"{width} wide and {height} high"
            )
            continue
        objects.append((one.box, number[one.name], not one.difficult))
    return objects


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
