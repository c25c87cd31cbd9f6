"""The names of the formats of annotations, which commands offer before a reader is imported."""

from __future__ import annotations

from typing import Literal

Format = Literal[
    "yolo",
    "cvat",
    "coco",
    "voc",
    "labelme",
    "csv",
    "via",
    "dota",
    "kitti",
    "panoptic",
    "labelstudio",
    "datumaro",
    "vott",
    "createml",
    "imagefolder",
    "widerface",
    "mot",
    "crowdhuman",
    "visdrone",
    "bdd100k",
    "supervisely",
    "darwin",
    "labelbox",
    "fiftyone",
    "ultralytics",
]
