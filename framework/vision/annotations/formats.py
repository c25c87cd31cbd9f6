"""Annotated objects in whatever format they are: which one it is, and the set of objects of a file or a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from framework.core.errors import InputError
from framework.vision.annotations.bdd100k import is_bdd100k, read_bdd100k
from framework.vision.annotations.box_table import find_tables, read_box_tables
from framework.vision.annotations.coco import read_coco
from framework.vision.annotations.coco_folder import find_coco_files, read_coco_folder
from framework.vision.annotations.coco_panoptic import is_panoptic, read_panoptic
from framework.vision.annotations.create_ml import is_create_ml, read_create_ml
from framework.vision.annotations.crowd_human import SUFFIX as CROWD_HUMAN
from framework.vision.annotations.crowd_human import find_crowd_human, read_crowd_human
from framework.vision.annotations.cvat import read_cvat
from framework.vision.annotations.darwin import find_darwin, is_darwin, read_darwin
from framework.vision.annotations.datumaro import is_datumaro, read_datumaro
from framework.vision.annotations.dota import find_dota, read_dota
from framework.vision.annotations.fiftyone import is_fiftyone, read_fiftyone
from framework.vision.annotations.format_names import Format as Format
from framework.vision.annotations.image_folder import is_image_folder, read_image_folder
from framework.vision.annotations.json_files import SUFFIXES as JSON_SUFFIXES
from framework.vision.annotations.json_files import holds, list_json_files
from framework.vision.annotations.kitti import find_kitti, read_kitti
from framework.vision.annotations.label_studio import (
    is_label_studio,
    is_label_studio_table,
    read_label_studio,
)
from framework.vision.annotations.labelbox import is_labelbox, read_labelbox
from framework.vision.annotations.labelme_xml import is_labelme_xml, read_labelme_xml
from framework.vision.annotations.mot_sequences import find_sequences, read_mot_sequences
from framework.vision.annotations.objects import SUBSETS, AnnotatedSet, merge_splits
from framework.vision.annotations.supervisely import find_supervisely, read_supervisely
from framework.vision.annotations.ultralytics import is_ultralytics, read_ultralytics
from framework.vision.annotations.via import is_via, is_via_table, read_via
from framework.vision.annotations.vis_drone import find_vis_drone, read_vis_drone
from framework.vision.annotations.voc import read_voc_folder
from framework.vision.annotations.vott import is_vott, read_vott
from framework.vision.annotations.wider_face import SUFFIX as WIDER_FACE
from framework.vision.annotations.wider_face import find_wider_face, read_wider_face
from framework.vision.annotations.xml_files import read_xml
from framework.vision.annotations.yolo import has_names, read_yolo
from framework.vision.image import list_images

_JSON: Mapping[Format, Callable[[object], bool]] = {
    "via": is_via,
    "panoptic": is_panoptic,
    "labelstudio": is_label_studio,
    "datumaro": is_datumaro,
    "vott": is_vott,
    "createml": is_create_ml,
    "bdd100k": is_bdd100k,
    "labelbox": is_labelbox,
    "darwin": is_darwin,
    "fiftyone": is_fiftyone,
    "ultralytics": is_ultralytics,
}
_FOLDERS: Mapping[Format, Callable[[Path], object]] = {  # what is truthy where a folder is of a format
    "supervisely": find_supervisely,
    "darwin": find_darwin,
    "imagefolder": is_image_folder,
    "widerface": find_wider_face,
    "crowdhuman": find_crowd_human,
    "mot": find_sequences,
    "kitti": find_kitti,
    "dota": find_dota,
    "visdrone": find_vis_drone,
}
_BESIDE = (  # what tells of objects beside folders of splits
    "*.json",
    "*.ndjson",
    "*.xml",
    "*.yaml",
    "*.yml",
    "*.csv",
    "*.data",
    "[Ii]mages",
    "[Ll]abels",
    "[Aa]nnotations",
    "labelTxt*",
)


def detect_format(source: Path) -> Format:
    """What a file or a folder holds. Raises: InputError, where that is none of the formats."""
    suffix = source.suffix.lower()
    if source.is_file() and suffix in (".yaml", ".yml"):
        return "yolo"
    if source.is_file() and suffix == ".xml":
        return "cvat"
    if source.is_file() and suffix in JSON_SUFFIXES:
        for kind, is_kind in _JSON.items():
            if holds(source, is_kind):
                return kind
        if suffix == ".json":
            return "coco"
    if source.is_file() and suffix in (".csv", ".tsv") and is_label_studio_table(source):
        return "labelstudio"
    if source.is_file() and suffix == ".csv":
        return "via" if is_via_table(source) else "csv"
    if source.is_file() and suffix == CROWD_HUMAN:
        return "crowdhuman"
    if source.is_file() and source.name.endswith(WIDER_FACE):
        return "widerface"
    if source.is_dir() and (kind := _format_of_folder(source)) is not None:
        return kind
    if not source.exists():
        raise InputError(
            "there is no such file or folder", where=source, fix=f"the current folder is {Path.cwd()}"
        )
    raise InputError(
        "the format of these data is not known",
        where=source,
        received="a folder" if source.is_dir() else "a file",
        allowed="a data.yaml, .ndjson or folder of YOLO, an .xml of CVAT, a .json of COCO, VIA, Label Studio, "
        "Datumaro, VoTT, Create ML, BDD100K, FiftyOne, V7 or Labelbox (.ndjson too), a folder of VOC, labelme, DOTA, "
        "KITTI, WIDER FACE, MOTChallenge, VisDrone, Supervisely, V7 or Hugging Face's metadata.jsonl, an .odgt of "
        "CrowdHuman, or a .csv of boxes",
        fix="oar data parquet SOURCE OUTPUT writes the images of Parquet files as files that are read"
        if suffix == ".parquet" or (source.is_dir() and next(source.rglob("*.parquet"), None) is not None)
        else f"name the format with --from; the current folder is {Path.cwd()}",
    )


def _format_of_folder(folder: Path) -> Format | None:
    if next(folder.rglob("*.json"), None) is not None and any(map(is_labelme_file, folder.rglob("*.json"))):
        return "labelme"
    if (kind := _xml_format(folder)) is not None:
        return kind
    if find_coco_files(folder):
        return "coco"
    for kind, is_kind in _JSON.items():
        if next(list_json_files(folder, is_kind), None) is not None:
            return kind
    for kind, is_kind_of_folder in _FOLDERS.items():
        if is_kind_of_folder(folder):
            return kind
    if has_names(folder):
        return "yolo"
    if find_tables(folder):
        return "csv"
    of_splits: list[Format | None] = [_format_of_folder(one) for one in split_folders(folder).values()]
    formats: list[Format] = [kind for kind in of_splits if kind is not None]
    is_one = bool(formats) and formats.count(formats[0]) == len(formats)
    if is_one and (len(formats) == len(of_splits) or formats[0] != "yolo"):
        return formats[0]
    stems = {path.stem for path in list_images(folder, recursive=True)}
    return "yolo" if any(path.stem in stems for path in folder.rglob("*.txt")) else None


def split_folders(folder: Path) -> Mapping[str, Path]:
    """The folders of splits, where the folder has nothing but them that tells of objects."""
    if any(next(folder.glob(pattern), None) is not None for pattern in _BESIDE):
        return {}
    folders = [path for path in sorted(folder.iterdir()) if path.is_dir() and path.name.lower() in SUBSETS]
    return {SUBSETS[path.name.lower()]: path for path in folders}


def is_labelme_file(file: Path) -> bool:
    """Whether a file is JSON of labelme."""
    return holds(file, lambda data: isinstance(data, dict) and "shapes" in data)


def _xml_format(source: Path) -> Format | None:
    """The format of the first XML file of a folder, which of VOC and LabelMe may lie in folders of their own."""
    folders = (source, *(source / name for name in ("annotations", "Annotations", "labels")))
    files = (path for folder in folders for path in sorted(folder.glob("*.xml")))
    first = next(files, None) or next(iter(sorted((source / "Annotations").rglob("*.xml"))), None)
    if first is None:
        return None
    root = read_xml(first)
    if root.tag == "annotations":
        return "cvat"
    return "labelme" if is_labelme_xml(root) else "voc"


Reader = Callable[[Path], AnnotatedSet]


def read_set(
    source: Path, kind: Format, images: Path | None = None, read_labelme: Reader | None = None
) -> AnnotatedSet:
    """The objects of a source of a format, with the splits that it tells; see the readers of the formats.

    Args:
        images: The folder of the images, of the formats that do not say where they are.
        read_labelme: Of a folder of labelme's JSON, which may hold the images itself.

    Raises:
        InputError: the source is not there, or is of labelme's JSON and nothing reads it; an image is not there.
            FormatError: it is damaged.
    """
    if source.is_dir() and kind != "coco" and (folders := split_folders(source)):
        bare: list[str] = []
        if kind != "yolo":  # whose images without labels have no objects
            bare = [split for split, one in folders.items() if _format_of_folder(one) is None]
        sets = {
            split: read_set(one, kind, images, read_labelme)
            for split, one in folders.items()
            if split not in bare
        }
        merged = merge_splits(sets)
        notes = tuple(f"{folders[split]} has no annotations" for split in bare)
        return replace(merged, notes=(*merged.notes, *notes))
    if kind == "labelme":
        if not any(map(is_labelme_file, source.rglob("*.json"))):
            return read_labelme_xml(source, images)
        if read_labelme is None:
            raise InputError(
                "labelme's JSON is not read as it is",
                where=source,
                allowed="what `oar data convert` makes of it",
                fix="oar data convert SOURCE OUTPUT --to coco",
            )
        return read_labelme(source)
    if kind == "coco":
        return _read_coco(source, images)
    return read_yolo(source) if kind == "yolo" else _READERS[kind](source, images)


def _read_coco(source: Path, images: Path | None) -> AnnotatedSet:
    if source.is_dir():
        return read_coco_folder(source, images)
    beside = source.parent / "images"
    return read_coco(source, images or (beside if beside.is_dir() else source.parent))


def _read_cvat(source: Path, folder: Path | None) -> AnnotatedSet:
    """One file, or those of the subsets in a folder (train.xml, val.xml)."""
    if source.is_dir() and not (source / "annotations.xml").is_file():
        files = {SUBSETS.get(path.stem.lower(), ""): path for path in sorted(source.glob("*.xml"))}
        sets = {split: read_cvat(path, folder) for split, path in files.items()}
        if sets:
            return merge_splits(sets) if len(sets) > 1 else next(iter(sets.values()))
    return read_cvat(source / "annotations.xml" if source.is_dir() else source, folder)


_READERS: Mapping[Format, Callable[[Path, Path | None], AnnotatedSet]] = {
    "cvat": _read_cvat,
    "voc": read_voc_folder,
    "csv": read_box_tables,
    "via": read_via,
    "dota": read_dota,
    "kitti": read_kitti,
    "panoptic": read_panoptic,
    "labelstudio": read_label_studio,
    "datumaro": read_datumaro,
    "vott": read_vott,
    "createml": read_create_ml,
    "imagefolder": read_image_folder,
    "widerface": read_wider_face,
    "mot": read_mot_sequences,
    "crowdhuman": read_crowd_human,
    "visdrone": read_vis_drone,
    "bdd100k": read_bdd100k,
    "supervisely": read_supervisely,
    "darwin": read_darwin,
    "labelbox": read_labelbox,
    "fiftyone": read_fiftyone,
    "ultralytics": read_ultralytics,
}
