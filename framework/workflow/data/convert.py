"""Data sets of annotated objects from one format to another; see `framework.vision.annotations.formats`."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import Literal, get_args

import yaml

from framework.core.disk import scratch_folder, write_file
from framework.core.errors import ConfigError, InputError
from framework.vision.annotations.coco import coco_dict, read_coco
from framework.vision.annotations.cvat import cvat_file, cvat_xml
from framework.vision.annotations.formats import Format, detect_format, read_set
from framework.vision.annotations.objects import AnnotatedImage, AnnotatedSet
from framework.vision.annotations.voc import voc_xml
from framework.vision.annotations.yolo import SPLITS, yolo_lines
from framework.vision.dataset_files import abbreviate, find_missing
from framework.vision.image import read_size
from framework.vision.image import write as write_image
from framework.vision.video import SUFFIXES as VIDEO_SUFFIXES
from framework.vision.video import VideoReader
from framework.workflow.data.commands import check_new, write_whole
from framework.workflow.data.labelme import convert_labelme

Target = Literal["yolo", "cvat", "coco", "voc"]
_OUTPUTS: Mapping[Target, tuple[str, ...]] = {
    "yolo": ("data.yaml", "labels", "images"),
    "cvat": ("annotations.xml", "images"),
    "voc": ("Annotations", "JPEGImages", "ImageSets", "labelmap.txt"),
    "coco": ("annotations", "images"),
}
"""The files and folders that each format has."""
_MOST_LINES = 10  # of the lines that a report has of what is left out


@dataclass(frozen=True)
class ConvertReport:
    """What `convert_data` wrote.

    Attributes:
        files: Of annotations, as a training takes them.
        counts: Objects of each class.
        left_out: What of the source is not in the output, a line each.
        notes: What else is worth a line.
    """

    source_format: Format
    files: tuple[Path, ...]
    images: int
    counts: Mapping[str, int]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        classes = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        lines = [
            f"{', '.join(map(str, self.files))}: {sum(self.counts.values())} objects of {len(self.counts)} classes "
            f"({classes}) on {self.images} images, from {self.source_format}",
            *self.notes,
        ]
        if self.left_out:
            lines.append(f"{len(self.left_out)} entries are left out:")
            lines += [f"  {line}" for line in self.left_out[:_MOST_LINES]]
            more = len(self.left_out) - _MOST_LINES
            lines += [f"  ... and {more} more"] if more > 0 else []
        return "\n".join(lines)


def convert_data(
    source: str | Path,
    output: str | Path,
    to: Target,
    *,
    source_format: Format | None = None,
    images: str | Path | None = None,
    boxes_only: bool = False,
) -> ConvertReport:
    """Write the annotations of `source` in another format, and copies of the images beside them.

    * "yolo": `data.yaml`, `images/<split>` and `labels/<split>`; outlines where every object has one, else boxes.
    * "coco": COCO's own folders: `annotations/instances_<split>.json` with `images/<split>`, or, without splits,
      `annotations/instances_default.json` with `images`.
    * "cvat": `annotations.xml`, with splits as the subsets of a project, and `images`.
    * "voc": `Annotations`, `JPEGImages`, the lists of splits in `ImageSets/Main`, and `labelmap.txt`, which CVAT and
      Datumaro take the names of classes from; boxes alone.

    Args:
        source: A data.yaml, .ndjson or a folder of YOLO, an XML file of CVAT or a folder of some, a JSON file of COCO,
            of COCO's panoptic format, of VIA, Label Studio (or its CSV), Datumaro, VoTT, Create ML, BDD100K, FiftyOne,
            V7 or Labelbox (or its NDJSON), or a folder with one a split, a folder with XML files of VOC, with .json or
            XML files of labelme, or with text files of DOTA, KITTI or VisDrone, with lists of WIDER FACE, .odgt files
            of CrowdHuman, sequences of MOTChallenge, data sets of Supervisely or files of V7, a .csv of boxes or of VIA
            or a folder with one a split; or a folder that has such a one a split, named train, val (valid, validation)
            and test.
        source_format: Where it is not plain from the source.
        images: The folder of the images of COCO, CVAT, VOC or LabelMe's XML; else `images` beside it, or its folder. Of
            a video that was annotated with CVAT also the video, whose frames are then taken.
        boxes_only: Write no outlines in YOLO's format.

    Raises:
        InputError: the source is missing or of no known format, images are not there, or the output is there already.
        FormatError: the source is damaged. DiskError: the disk takes no more; nothing stays.
    """
    source, output = Path(source), Path(output)
    if to not in get_args(Target):
        raise ConfigError(
            "data are not written in this format", received=to, allowed=", ".join(get_args(Target))
        )
    kind = source_format or detect_format(source)
    with scratch_folder("oar-") as scratch:
        read = _read(source, kind, None if images is None else Path(images), scratch)
        _check_texts(read, source)
        return _write(read, source, output, to, kind, boxes_only)


def _read(source: Path, kind: Format, images: Path | None, scratch: Path) -> AnnotatedSet:
    """`scratch` is a folder for what is read from other files than those of the source."""
    if kind == "cvat" and images is not None and images.suffix.lower() in VIDEO_SUFFIXES:
        _write_frames(images, scratch)
        images = scratch
    numbers = itertools.count()

    def read_labelme(folder: Path) -> AnnotatedSet:
        report = convert_labelme(folder, scratch / f"coco{next(numbers)}")
        read = read_coco(report.annotations, report.images)
        shapes = tuple(f"{count} {name}: no area" for name, count in report.left_out.items())
        return replace(read, problems=(*read.problems, *shapes))

    return read_set(source, kind, images, read_labelme)


def _check_texts(read: AnnotatedSet, source: Path) -> None:
    """Raises: InputError, where a name or an attribute holds half a character, as "\\udce9" in JSON is one: no file of
    UTF-8 takes it."""
    objects = [one for image in read.images for one in image.objects]
    attributes = (text for one in objects for pair in one.attributes.items() for text in pair)
    for text in itertools.chain(read.class_names, (image.name for image in read.images), attributes):
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InputError(
                "a name or an attribute is no valid Unicode",
                where=source,
                received=ascii(text[:100]),
                allowed="names of classes and images, and attributes, that UTF-8 can tell",
                fix="write the name again in the tool that made the file",
            )


def _write_frames(video: Path, folder: Path) -> None:
    """The frames of a video as images, as CVAT names them."""
    with VideoReader(video) as frames:
        for number, frame in enumerate(frames):
            write_image(folder / f"frame_{number:06d}.png", frame)


def _write(
    read: AnnotatedSet, source: Path, output: Path, to: Target, source_format: Format, boxes_only: bool
) -> ConvertReport:
    if missing := find_missing(image.path for image in read.images):
        raise InputError(
            f"{len(missing)} of {len(read.images)} images are not there",
            where=source,
            received=abbreviate([str(read.images[number].path) for number in missing]),
            fix="name their folder with --images",
        )
    left_out, notes = list(read.problems), list(read.notes)
    images = [
        replace(image, name=_name_inside(image.name))
        for image in _check_sizes(read.images, source, left_out, notes)
    ]
    if left_out and not any(image.objects for image in images):
        raise InputError(
            "nothing of these annotations can be used",
            where=source,
            received=f"{len(left_out)} entries that are left out: {abbreviate(left_out, '; ')}",
            fix="correct the annotations, or export them again",
        )
    images = [_drop_outside(image, left_out) for image in images]
    notes += _describe_boxes(images)
    if any(image.split for image in images):
        images = [_with_split(image) for image in images]
    if repeated := [name for name, count in Counter(image.name for image in images).items() if count > 1]:
        raise InputError("several images have one name", where=source, received=abbreviate(repeated))
    names = _OUTPUTS[to]
    check_new(output / name for name in names)
    with write_whole(output, names) as new:
        if to == "yolo":
            images = _drop_crowds(images, left_out)
            _write_yolo(images, read.class_names, new, boxes_only, notes)
        elif to == "cvat":
            write_file(new / names[0], cvat_xml(images, read.class_names))
        elif to == "voc":
            images = _write_voc(images, new, read.class_names, notes)
        else:
            for split in _splits(images):
                of_split = [
                    replace(image, name=image.name.removeprefix(f"{split}/"))
                    for image in images
                    if image.split == split
                ]
                text = json.dumps(coco_dict(of_split, read.class_names), ensure_ascii=False)
                write_file(new / _coco_file(split), text.encode("utf-8"))
        for image in images:
            folder = new / ("JPEGImages" if to == "voc" else "images")
            target = folder / (cvat_file(image) if to == "cvat" else image.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(image.path, target)
    counts = Counter(one.label for image in images for one in image.objects)
    files = (output / names[0],)
    if to == "coco":
        files = tuple(output / _coco_file(split) for split in _splits(images))
    return ConvertReport(
        source_format,
        files,
        len(images),
        {name: counts[name] for name in read.class_names},
        tuple(left_out),
        tuple(notes),
    )


def _check_sizes(
    images: Sequence[AnnotatedImage], source: Path, left_out: list[str], notes: list[str]
) -> list[AnnotatedImage]:
    """The images with their sizes, without those that cannot be read, and without those that are of another size than
    their annotations say, where boxes would lie elsewhere. Raises: InputError, where that are all."""
    checked, others, stored = [], [], list[str]()
    for image in images:
        try:
            annotated_hw, size_hw = image.size_hw, read_size(image.path)
            as_stored = (
                annotated_hw is not None
                and annotated_hw != size_hw
                and annotated_hw == read_size(image.path, orient=False)
            )
        except InputError as error:
            others.append(f"{image.name}: {error.problem}")
            continue
        if annotated_hw is None or annotated_hw == size_hw or as_stored:
            checked.append(replace(image, size_hw=annotated_hw or size_hw))
            stored += [image.name] if as_stored else []
        else:
            others.append(
                f"{image.name}: the image is {size_hw[1]} wide and {size_hw[0]} high, but its annotation is of one "
                f"that is {annotated_hw[1]} wide and {annotated_hw[0]} high"
            )
    if others and not checked:
        raise InputError(
            "the images do not belong to their annotations: they have other sizes, or cannot be read",
            where=source,
            received=abbreviate(others, "; "),
            fix="give the images that were annotated, or correct the sizes in the annotations",
        )
    left_out += others
    if stored:
        notes.append(
            f"{len(stored)} images are turned by their EXIF mark, and annotated as they are stored "
            f"({abbreviate(stored)}): train with orientation: stored of the data set"
        )
    return checked


def _name_inside(name: str) -> str:
    """The name of an image in the output, which no name of a source leads out of: of a whole path the last one."""
    path = PureWindowsPath(name)  # which reads both separators
    names = [one for one in path.parts if one not in (".", "..", path.anchor)]
    return names[-1] if path.anchor else "/".join(names)


def _with_split(image: AnnotatedImage) -> AnnotatedImage:
    """The image with its split in front of its name."""
    split = image.split or SPLITS[0]
    return replace(image, split=split, name=f"{split}/{image.name.removeprefix(f'{split}/')}")


def _splits(images: Sequence[AnnotatedImage]) -> list[str]:
    return sorted({image.split for image in images}, key=lambda name: (*SPLITS, name).index(name))


def _coco_file(split: str) -> str:
    return f"annotations/instances_{split or 'default'}.json"


def _drop_outside(image: AnnotatedImage, left_out: list[str]) -> AnnotatedImage:
    """The image without objects that have no area on it, of which some formats would write an empty outline."""
    assert image.size_hw is not None
    height, width = image.size_hw
    visible = []
    for one in image.objects:
        x0, y0, x1, y1 = one.box
        if min(x1, width) > max(x0, 0) and min(y1, height) > max(y0, 0):
            visible.append(one)
        else:
            box = ", ".join(f"{value:g}" for value in one.box)
            left_out.append(f"{image.name}: {one.label} at {box}: no area on the image of {width} x {height}")
    return replace(image, objects=tuple(visible))


def _describe_boxes(images: Sequence[AnnotatedImage]) -> list[str]:
    """Lines about boxes that are not where they can be, as of another format or another image than is said."""
    objects = [(image, one) for image in images for one in image.objects]
    beyond, thin = list[str](), list[str]()
    for image, one in objects:
        height, width = image.size_hw or (0, 0)
        x0, y0, x1, y1 = one.box
        text = f"{image.name}: {one.label} at " + ", ".join(f"{value:g}" for value in one.box)
        if min(x0, y0) < -1 or x1 > width + 1 or y1 > height + 1:
            beyond.append(text)
        if min(x1 - x0, y1 - y0) < 1:
            thin.append(text)
    notes = []
    for boxes, fault, cause in (
        (beyond, "reach beyond their images", "width and height, or the other corner"),
        (thin, "are less than a pixel wide or high", "pixels, or shares of the image's sides"),
    ):
        if boxes:
            doubt = f"; do these annotations have {cause}?" if len(boxes) > len(objects) / 2 else ""
            notes.append(f"{len(boxes)} of {len(objects)} objects {fault} ({abbreviate(boxes, '; ')}){doubt}")
    return notes


def _drop_crowds(images: Sequence[AnnotatedImage], left_out: list[str]) -> list[AnnotatedImage]:
    """The images without crowds and difficult objects, for which YOLO's format has no mark."""
    ignored = sum(not one.is_valid for image in images for one in image.objects)
    if ignored:
        left_out.append(f"{ignored} objects that are crowds or difficult")
    return [replace(image, objects=tuple(one for one in image.objects if one.is_valid)) for image in images]


def _write_yolo(
    images: Sequence[AnnotatedImage],
    names: tuple[str, ...],
    output: Path,
    boxes_only: bool,
    notes: list[str],
) -> None:
    objects = [one for image in images for one in image.objects]
    shaped = sum(one.has_shape for one in objects)
    segments = not boxes_only and 0 < shaped == len(objects)
    if shaped and not segments and not boxes_only:
        notes.append(f"boxes are written: {len(objects) - shaped} of {len(objects)} objects have no outline")
    if attributes := sum(bool(one.attributes) for one in objects):
        notes.append(f"attributes of {attributes} objects are not written: YOLO's format has none")
    if segments and (joined := sum(len(one.find_outlines()) > 1 for one in objects)):
        notes.append(
            f"{joined} objects of several outlines are written as one: YOLO's format has one an object"
        )
    if segments and (holes := sum(one.has_holes for one in objects)):
        notes.append(
            f"the holes of {holes} masks are joined to their outlines by lines there and back: YOLO's format has one "
            "outline an object"
        )
    for image in images:
        assert image.size_hw is not None
        text = "".join(yolo_lines(image.objects, names, image.size_hw, segments=segments))
        write_file((output / "labels" / image.name).with_suffix(".txt"), text.encode("ascii"))
    splits = [split for split in _splits(images) if split]
    folders = {split: f"images/{split}" for split in splits} or {"train": "images"}
    if "val" not in folders:
        folders["val"] = folders.get("test", folders["train"])
        notes.append(f"data.yaml evaluates on {folders['val']}, as the source has no part to evaluate")
    content = {**folders, "nc": len(names), "names": dict(enumerate(names))}
    write_file(
        output / "data.yaml", yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode("utf-8")
    )


def _write_voc(
    images: Sequence[AnnotatedImage], output: Path, names: tuple[str, ...], notes: list[str]
) -> list[AnnotatedImage]:
    """Returns: the images as they are called there, as VOC has all of them in one folder."""
    flat = [
        replace(image, name=image.name.removeprefix(f"{image.split}/").replace("/", "_")) for image in images
    ]
    stems = Counter(Path(image.name).stem for image in flat)
    if any(count > 1 for count in stems.values()):  # a.jpg of two splits, or a.jpg and a.png
        flat = [
            replace(one, name=image.name.replace("/", "_")) for one, image in zip(flat, images, strict=True)
        ]
        stems = Counter(Path(image.name).stem for image in flat)
    if repeated := [stem for stem, count in stems.items() if count > 1]:
        raise InputError(
            "several images have one name up to the suffix", where=output, received=abbreviate(repeated)
        )
    if shaped := sum(one.has_shape for image in images for one in image.objects):
        notes.append(f"the boxes of {shaped} outlines are written: VOC's files of objects have none")
    if list(names) != sorted(names):
        notes.append(f"VOC's format numbers no classes: read again they are sorted, here {', '.join(names)}")
    for image in flat:
        stem = Path(image.name).stem
        write_file(output / "Annotations" / f"{stem}.xml", voc_xml(image, image.name))
    names_file = "".join(["# label:color_rgb:parts:actions\n", *(f"{name}:::\n" for name in names)])
    write_file(output / "labelmap.txt", names_file.encode("utf-8"))
    for split in _splits(flat):
        lines = [Path(image.name).stem for image in flat if image.split == split]
        text = "".join(f"{line}\n" for line in lines)
        write_file(output / "ImageSets" / "Main" / f"{split or SPLITS[0]}.txt", text.encode("utf-8"))
    return flat
