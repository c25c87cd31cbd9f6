"""Data sets in the formats of YOLO and of CVAT, and in any that `oar data convert` reads."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from detection.data.coco import find_unusable
from detection.data.dataset import DetectionDataset
from detection.data.records import (
    ImageRecord,
    Records,
    build_records,
    check_files,
    report_problems,
)
from framework.config.registry import register
from framework.vision.annotations.cvat import find_cvat, read_cvat
from framework.vision.annotations.formats import Format, detect_format, read_set
from framework.vision.annotations.objects import AnnotatedSet
from framework.vision.annotations.yolo import read_yolo

_log = logging.getLogger("oar")


@register("dataset")
@dataclass(frozen=True)
class YoloDetection(DetectionDataset):
    """Objects on images in YOLO's format: boxes, or the boxes of outlines.

    `root` is a data.yaml, or a folder with one, or with images and text files; `split` is "train", "val" or "test" of
    it, or "" for all. Classes have the order of the names in data.yaml. What is read and what is left out: see
    `framework.vision.annotations.yolo.read_yolo`. The sample's id is the path of the image. `classes`, `orientation`
    and `value_range` are those of DetectionDataset.

    Raises:
        ConfigError: as DetectionDataset.
        InputError, FormatError: at the first use, as `read_yolo`. At an access, the image cannot be read.
    """

    split: str = ""

    @property
    def _source(self) -> Path:
        return Path(self.root)

    def _read(self) -> Records:
        return annotated_records(
            read_yolo(self._source, self.split, orientation=self.orientation), self._source
        )


@register("dataset")
@dataclass(frozen=True)
class CvatDetection(DetectionDataset):
    """Objects on images in CVAT's formats "CVAT for images 1.1" and "CVAT for video 1.1", whose frames are images:
    boxes, and the boxes of polygons, ellipses and masks.

    `annotations` is the file and `images` the folder of the images, both seen from `root`; without `images` they are in
    the folder `images` beside the file, or beside it. `split` takes the images of one subset ("train", "val", "test"),
    or the subset's own file, such as train.xml, where there is no file `annotations`; "" all. Classes have the order of
    the labels of the task. Attributes are not used. The sample's id is the path of the image. `classes`, `orientation`
    and `value_range` are those of DetectionDataset.

    Raises:
        ConfigError: as DetectionDataset.
        InputError, FormatError: at the first use, as `framework.vision.annotations.cvat.read_cvat`, or images are not
            there. At an access, the image cannot be read, or has another size than the file says.
    """

    annotations: Path = Path("annotations.xml")
    images: str | None = None
    split: str = ""

    @property
    def _source(self) -> Path:
        return find_cvat(Path(self.root) / self.annotations, self.split)[0]

    def _read(self) -> Records:
        file, split = find_cvat(Path(self.root) / self.annotations, self.split)
        folder = None if self.images is None else Path(self.root) / self.images
        return annotated_records(read_cvat(file, folder).select_split(split, file), file)


@register("dataset")
@dataclass(frozen=True)
class AnnotatedDetection(DetectionDataset):
    """Objects on images in any format that `oar data convert` reads but labelme's JSON: VIA, DOTA, KITTI, COCO, COCO's
    panoptic format, the JSON of Label Studio, Datumaro, VoTT, Create ML, BDD100K, FiftyOne, V7 and Labelbox, YOLO,
    CVAT, VOC, LabelMe's XML, WIDER FACE, CrowdHuman, MOTChallenge, VisDrone, Supervisely and tables of boxes; boxes,
    and the boxes of outlines and masks.

    `annotations` is the file or the folder, seen from `root`, which is the folder itself by default; `images` is the
    folder of the images, seen from `root`, where the format does not say it. `format` is found out by default. `split`
    takes the images of one split, which a folder or the name of a file tells ("train", "val", "test"); "" all. The
    order of the classes is that of the format. The sample's id is the path of the image. `classes`, `orientation` and
    `value_range` are those of DetectionDataset.

    Raises:
        ConfigError: as DetectionDataset.
        InputError, FormatError: at the first use, as `framework.vision.annotations.formats.read_set`, or there is no
            such split. At an access, the image cannot be read, or has another size than the annotations say.
    """

    annotations: str = ""
    images: str | None = None
    split: str = ""
    format: Format | None = None

    @property
    def _source(self) -> Path:
        return Path(self.root) / self.annotations

    def _read(self) -> Records:
        folder = None if self.images is None else Path(self.root) / self.images
        read = read_set(self._source, self.format or detect_format(self._source), folder)
        return annotated_records(read.select_split(self.split, self._source), self._source)


def annotated_records(read: AnnotatedSet, where: Path) -> Records:
    """The records of annotated images. Raises: InputError, where images are not there."""
    number = {name: index for index, name in enumerate(read.class_names)}
    problems = list(read.problems)
    images, objects = [], []
    for image in read.images:
        images.append(ImageRecord(image.path, str(image.path), image.size_hw))
        entries = []
        for one in image.objects:
            x0, y0, x1, y1 = one.box
            if fault := find_unusable([x0, y0, x1 - x0, y1 - y0], image.size_hw):
                problems.append(f"{image.name}: {one.label} {[round(side, 1) for side in one.box]} {fault}")
            else:
                entries.append((one.box, number[one.label], one.is_valid))
        objects.append(entries)
    check_files(images, where)
    for note in read.notes:
        _log.info("%s: %s", where, note)
    return build_records(images, read.class_names, objects, problems=report_problems(where, problems))
