"""Data sets in Pascal VOC's format: an XML file beside each image."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from detection.data.dataset import DetectionDataset
from detection.data.records import (
    ImageRecord,
    Records,
    build_records,
    check_files,
    report_problems,
)
from framework.config.registry import register
from framework.core.errors import InputError
from framework.vision.annotations.voc import VocAnnotation, read_voc, voc_folders
from framework.vision.annotations.voc import VocObject as VocObject
from framework.vision.dataset_files import abbreviate, is_file, listed_path, read_lines, split_columns
from framework.vision.image import SUFFIXES

_Pair = tuple[Path, Path | None]  # an image and its annotation


@register("dataset")
@dataclass(frozen=True)
class VocDetection(DetectionDataset):
    """Objects on images, told by an XML file an image.

    What `split` names is looked for in this order:

    * `<root>/ImageSets/Main/<split>.txt`, VOC's list of names in `<root>/JPEGImages` and `<root>/Annotations`;
    * the folder `<root>/<split>`, with the folders `images` and `annotations` (or VOC's names of them), or with
      images and XML files side by side; without a split this is `root` itself, all of it;
    * `<root>/<split>.txt` or `<root>/<split>_list.txt`, PaddleDetection's and PaddleX's list: an image and its XML a
      line, relative to `root`.

    An image and its annotation have the same name up to the suffix, whatever `filename` inside says. Without
    `classes` the classes are the sorted names in all annotations, of the other splits too, so that all splits number
    them alike; with it objects of other classes are left out, and a line of the log counts them. Boxes are read as
    `read_voc` says; those whose right or lower side does not lie beyond the other one, and those wholly outside of the
    size that is said of their image, are left out and listed in `problems`. Objects marked as difficult have valid
    False. The sample's id is the path. `orientation` and `value_range` are those of DetectionDataset.

    Images without an XML file are left out and listed in `problems`, as nobody may have looked at them; with
    `unlabelled: background` they are images without objects, for which labelImg writes no file.

    Raises:
        ConfigError: as DetectionDataset.
        InputError: at the first use, there is no such split, files are missing, an object has no box, or `classes`
            has a name that no object has, much like one that is left out. At an access, the image cannot be read or has
            another size than its annotation says.
        FormatError: an annotation is not XML of this format.
    """

    split: str = ""
    unlabelled: Literal["skip", "background"] = field(default="skip", kw_only=True)

    def _read(self) -> Records:
        pairs = self._pairs()
        pairs, problems = self._sort_out(pairs)
        read = {xml: read_voc(xml) for _, xml in pairs if xml is not None}
        others = {}
        if self.classes is None:
            others = {xml: read_voc(xml) for xml in self._all_annotations(read) if xml not in read}
        names = sorted({one.name for voc in (*read.values(), *others.values()) for one in voc.objects})
        if not names and self.classes is None:
            raise InputError(
                "no annotation has an object", where=self._source, fix="set classes, or check root and split"
            )
        number = {name: index for index, name in enumerate(names)}
        images, boxes = [], []
        for image, xml in pairs:
            images.append(ImageRecord(image, str(image), None if xml is None else read[xml].size_hw))
            boxes.append([] if xml is None else _objects(read[xml], xml, number, problems))
        check_files(images, self._source)
        return build_records(images, names, boxes, problems=report_problems(self._source, problems))

    def _sort_out(self, pairs: list[_Pair]) -> tuple[list[_Pair], list[str]]:
        """The pairs that are used, and what is to be said of the images without an annotation."""
        unlabelled = [image for image, xml in pairs if xml is None]
        if not unlabelled or self.unlabelled == "background":
            return pairs, []
        return [pair for pair in pairs if pair[1] is not None], [
            f"{path} has no annotation (unlabelled: background takes it as an image without objects)"
            for path in unlabelled
        ]

    @property
    def _source(self) -> Path:
        return Path(self.root) / self.split

    @property
    def _list(self) -> Path:
        return Path(self.root) / "ImageSets" / "Main" / f"{self.split}.txt"

    def _pairs(self) -> list[_Pair]:
        root = Path(self.root)
        lists = (root / f"{self.split}{end}.txt" for end in ("", "_list"))  # the second of PaddleX
        pairs_file = next((one for one in lists if one.is_file()), None)
        if self.split and self._list.is_file():
            folders = root / "JPEGImages", root / "Annotations"
            names = _read_names(self._list, folders[1])
            pairs = _match_pairs([folders[1] / f"{name}.xml" for name in names], folders[0])
            if self.unlabelled == "background":
                pairs = [
                    (image, None if image.is_file() and xml is not None and not xml.is_file() else xml)
                    for image, xml in pairs
                ]
        elif self._source.is_dir() and (folders := voc_folders(self._source)):
            pairs = _match_pairs(sorted(folders[1].glob("*.xml")), folders[0])
            labelled = {image for image, _ in pairs}
            pairs += [(image, None) for image in _list_images(folders[0]) if image not in labelled]
            pairs.sort(key=lambda pair: pair[0].stem)
        elif self.split and pairs_file is not None:
            pairs = _read_list(pairs_file, root)
        else:
            splits = [path.name for path in self._beside() if voc_folders(path)]
            raise InputError(
                "there are no annotations",
                where=self._source,
                allowed="ImageSets/Main/<split>.txt, a folder <split> with XML files, or a list <split>.txt in root",
                fix=f"set split to {' or '.join(map(repr, splits))}"
                if splits
                else f"check root and split; the current folder is {Path.cwd()}",
            )
        if not pairs:
            raise InputError("the list names no image", where=self._source, allowed="one or more")
        if missing := [str(xml) for _, xml in pairs if xml is not None and not os.path.isfile(xml)]:
            raise InputError(
                f"{len(missing)} of {len(pairs)} annotations are not there",
                where=self._source,
                received=abbreviate(missing),
            )
        return pairs

    def _all_annotations(self, xmls: Iterable[Path]) -> list[Path]:
        """Of this split and of those beside it."""
        folders = {xml.parent for xml in xmls}
        if self.split and not self._list.is_file() and self._source.is_dir():
            folders |= {match[1] for path in self._beside() if (match := voc_folders(path))}
        return [xml for folder in sorted(folders) for xml in sorted(folder.glob("*.xml"))]

    def _beside(self) -> list[Path]:
        """The folders in `root`."""
        root = Path(self.root)
        return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def _match_pairs(xmls: Sequence[Path], folder: Path) -> list[_Pair]:
    """Each with the image of its name; where there is none, with the one that should be there."""
    by_stem: dict[str, Path] = {}
    for path in _list_images(folder):
        by_stem.setdefault(path.stem, path)
    return [(by_stem.get(xml.stem, folder / f"{xml.stem}.jpg"), xml) for xml in xmls]


def _list_images(folder: Path) -> list[Path]:
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in files if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")]


def _read_names(file: Path, annotations: Path) -> list[str]:
    """The names of VOC's list, which may hold blanks. In the lists of one class a second column says with -1, 0 or 1
    whether it is there; some tools write the image's suffix too."""
    names = []
    for line in map(str.strip, _lines(file)):
        name, _, mark = line.rpartition(" ")
        bare = name.strip() if mark in ("-1", "0", "1") else line
        choices = (line, bare, *(str(Path(one).with_suffix("")) for one in (line, bare) if _is_image(one)))
        # A name may end in a number as well, such as "scan 1".
        names.append(next((one for one in choices if is_file(annotations / f"{one}.xml")), choices[-1]))
    return names


def _is_image(name: str) -> bool:
    return Path(name).suffix.lower() in SUFFIXES


def _read_list(file: Path, root: Path) -> list[_Pair]:
    pairs = []
    for line in _lines(file):
        columns = split_columns(line, root)
        if columns is None:
            raise InputError(
                "a line must name an image and an annotation",
                where=file,
                received=line,
                allowed="images/a.jpg annotations/a.xml, with a blank or a tab between them",
            )
        pairs.append((listed_path(root, columns[0]), listed_path(root, columns[1])))
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
