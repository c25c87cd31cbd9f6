"""Files of annotations of other tools: how a valid one is made, and what reads it."""

from __future__ import annotations

import base64
import importlib
import importlib.util
import io
import json
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

_HEIGHT, _WIDTH = 24, 31


_DARWIN = {
    "version": "2.0",
    "item": {"name": "a.png", "path": "/", "slots": [{"slot_name": "0", "width": _WIDTH, "height": _HEIGHT}]},
    "annotations": [
        {"id": "1", "name": "cat", "slot_names": ["0"], "bounding_box": {"x": 2, "y": 3, "w": 8, "h": 5}},
        {
            "id": "2",
            "name": "dog",
            "polygon": {
                "paths": [
                    [{"x": 2, "y": 3}, {"x": 9, "y": 3}, {"x": 9, "y": 9}],
                    [{"x": 6, "y": 4}, {"x": 8, "y": 4}, {"x": 8, "y": 6}],
                ]
            },
        },
        {
            "id": "3",
            "name": "cat",
            "ellipse": {"angle": 0.5, "center": {"x": 9, "y": 9}, "radius": {"x": 4, "y": 3}},
        },
        {"id": "4", "name": "cat", "mask": {"sparse_rle": None}},
        {
            "id": "5",
            "name": "layer",
            "raster_layer": {
                "dense_rle": [0, 50, 1, 90, 0, _HEIGHT * _WIDTH - 140],
                "mask_annotation_ids_mapping": {"4": 1},
            },
        },
    ],
}
_ULTRALYTICS = [
    {"type": "dataset", "task": "segment", "class_names": {"0": "cat", "1": "dog"}},
    {
        "type": "image",
        "file": "a.png",
        "split": "val",
        "annotations": {
            "boxes": [[0, 0.5, 0.5, 0.2, 0.3]],
            "segments": [[1, 0.1, 0.1, 0.9, 0.1, 0.9, 0.9]],
            "pose": [[1, 0.5, 0.5, 0.2, 0.3, 0.5, 0.5, 2]],
        },
    },
]
_FIFTYONE = {
    "classes": ["cat", "dog"],
    "labels": {
        "a": [
            {"label": 0, "bounding_box": [0.1, 0.2, 0.5, 0.5], "attributes": {"iscrowd": 0}},
            {"label": "dog", "bounding_box": [0, 0, 1, 1]},
        ]
    },
}
_LABELBOX = {
    "data_row": {"id": "1", "external_id": "a.png", "row_data": "https://x/a.png"},
    "media_attributes": {"height": _HEIGHT, "width": _WIDTH},
    "projects": {
        "1": {
            "labels": [
                {
                    "annotations": {
                        "objects": [
                            {
                                "name": "cat",
                                "bounding_box": {"top": 3, "left": 2, "height": 5, "width": 8},
                                "classifications": [{"name": "state", "radio_answer": {"name": "good"}}],
                            },
                            {
                                "name": "dog",
                                "polygon": [{"x": 2, "y": 3}, {"x": 9, "y": 3}, {"x": 9, "y": 9}],
                            },
                            {"name": "dog", "mask": {"url": "https://x/1"}},
                        ],
                        "classifications": [{"name": "scene"}],
                    }
                }
            ]
        }
    },
}


def _packed_mask() -> str:
    """A mask of 4 x 3 pixels in Supervisely's form."""
    file = io.BytesIO()
    Image.fromarray(np.full((3, 4), 255, np.uint8)).save(file, "PNG")
    return base64.b64encode(zlib.compress(file.getvalue())).decode()


_CLASS = {"class": "cat"}
_SHAPES = (
    {"name": "rect", "x": 2, "y": 3, "width": 9, "height": 8},
    {"name": "polygon", "all_points_x": [2, 12, 12], "all_points_y": [3, 3, 9]},
    {"name": "ellipse", "cx": 9, "cy": 9, "rx": 4, "ry": 3, "theta": 0.5},
    {"name": "circle", "cx": 9, "cy": 9, "r": 4},
)
_VIA = {
    "a.png9": {
        "filename": "a.png",
        "regions": [{"shape_attributes": shape, "region_attributes": _CLASS} for shape in _SHAPES],
    }
}
_VIA3 = {
    "project": {},
    "attribute": {"1": {"aname": "class", "options": {"0": "cat", "1": "dog"}}},
    "file": {"7": {"fid": "7", "fname": "a.png"}},
    "view": {"3": {"fid_list": ["7"]}},
    "metadata": {
        "x": {"vid": "3", "z": [], "xy": [2, 2, 3, 9, 8], "av": {"1": "1"}},
        "y": {"vid": "3", "z": [], "xy": [7, 2, 3, 12, 3, 12, 9], "av": {"1": "0"}},
    },
}
_SIDES = {"x": 10, "y": 10, "width": 40, "height": 50}
_TASK = {
    "id": 1,
    "data": {"image": "/data/upload/1/0123abcd-a.png"},
    "annotations": [
        {
            "result": [
                {"value": {**_SIDES, "rotation": 30, "rectanglelabels": ["cat"]}},
                {"value": {"points": [[10, 10], [50, 10], [50, 60]], "polygonlabels": ["dog"]}},
                {"value": {"x": 50, "y": 50, "radiusX": 9, "radiusY": 8, "ellipselabels": ["cat"]}},
            ]
        }
    ],
}
_VOTT = {
    "tags": [{"name": "cat"}, {"name": "dog"}],
    "assets": {
        "a1": {
            "asset": {"id": "a1", "name": "a.png", "size": {"width": _WIDTH, "height": _HEIGHT}, "state": 2},
            "regions": [
                {
                    "type": "RECTANGLE",
                    "tags": ["cat"],
                    "boundingBox": {"left": 2, "top": 3, "width": 9, "height": 8},
                },
                {
                    "type": "POLYGON",
                    "tags": ["dog"],
                    "points": [{"x": 2, "y": 3}, {"x": 12, "y": 3}, {"x": 9, "y": 9}],
                },
            ],
        }
    },
}
_CREATE_ML = [
    {
        "image": "a.png",
        "annotations": [{"label": "cat", "coordinates": {"x": 9, "y": 9, "width": 4, "height": 6}}],
    }
]
_DOTA = "imagesource:GoogleEarth\ngsd:0.1\n2 3 12 3 12 9 2 9 ship 0\n4 3 12 5 9 12 2 9 plane 1\n"
_WIDER_FACE = "a.png\n2\n2 3 9 8 0 1 0 0 2 0\n12 3 5 8 0 0 0 1 0 0\n"
_CROWD_HUMAN = {
    "ID": "a",
    "gtboxes": [
        {"tag": "person", "fbox": [2, 3, 9, 8], "vbox": [2, 3, 9, 8], "extra": {"ignore": 1, "occ": 0}},
        {"tag": "mask", "fbox": [2, 3, 9, 8]},
    ],
}
_MOT = "1,1,2,3,9,8,1,1,1\n1,2,2,3,9,8,0,8,.5\n1,-1,2.5,3,9,8,1,-1,-1\n"
_VIS_DRONE = "2,3,9,8,1,4,0,1\n2,3,9,8,0,0,0,0\n"
_BDD100K = [
    {
        "name": "a.png",
        "labels": [
            {
                "category": "car",
                "attributes": {"crowd": False},
                "box2d": {"x1": 2, "y1": 3, "x2": 11, "y2": 8.5},
            },
            {"category": "lane", "poly2d": [{"vertices": [[2, 3], [4, 5]], "types": "LL"}]},
        ],
    }
]
_SUPERVISELY = {
    "size": {"height": _HEIGHT, "width": _WIDTH},
    "objects": [
        {"classTitle": "cat", "geometryType": "rectangle", "points": {"exterior": [[2, 3], [10, 8]]}},
        {
            "classTitle": "dog",
            "geometryType": "polygon",
            "points": {"exterior": [[2, 3], [20, 3], [20, 20]], "interior": [[[12, 5], [18, 5], [18, 9]]]},
            "tags": [{"name": "count", "value": 3}],
        },
        {"classTitle": "cat", "geometryType": "oriented_bbox", "points": [[2, 3], [10, 8]], "angle": 0.5},
        {
            "classTitle": "dog",
            "geometryType": "multipolygon",
            "parts": [{"exterior": [[2, 3], [12, 3], [12, 9]], "interior": []}],
        },
        {"classTitle": "cat", "geometryType": "bitmap", "bitmap": {"origin": [5, 6], "data": _packed_mask()}},
    ],
}
_KITTI = "Car 0.5 1 1.2 2.0 3.0 12.0 9.0 1.5 1.6 3.7 1.0 2.0 3.0 -1.5\n" * 3


def _packed_brush() -> list[int]:
    """A mask whose values all are inside, in one block."""
    count = _HEIGHT * _WIDTH * 4
    text = f"{count:032b}{7:05b}" + "".join(f"{bits:04b}" for bits in (2, 3, 7, 15))
    text += f"111{count - 1:016b}{255:08b}"
    text += "0" * (-len(text) % 8)
    return [int(text[at : at + 8], 2) for at in range(0, len(text), 8)]


def _image(path: Path, pixels: np.ndarray | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = np.full((_HEIGHT, _WIDTH, 3), 90, np.uint8) if pixels is None else pixels
    Image.fromarray(made).save(path)


def _written(name: str, text: str, image: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        _image(folder / image)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        return folder / name

    return make


def _panoptic(folder: Path) -> Path:
    numbers = np.zeros((_HEIGHT, _WIDTH, 3), np.uint8)
    numbers[3:9, 2:12] = (7, 1, 0)
    _image(folder / "panoptic_val/a.png", numbers)
    segments = [{"id": 263, "category_id": 3, "iscrowd": 0}]
    data = {
        "images": [{"id": 1, "file_name": "a.png", "height": _HEIGHT, "width": _WIDTH}],
        "annotations": [{"image_id": 1, "file_name": "a.png", "segments_info": segments}],
        "categories": [{"id": 3, "name": "cat", "isthing": 1}],
    }
    return _written("panoptic_val.json", json.dumps(data), "images/a.png")(folder)


def _panoptic_png(folder: Path) -> Path:
    return _panoptic(folder).parent / "panoptic_val/a.png"


def _read_sequence(path: Path) -> object:
    from framework.workflow.data.convert import convert_data

    with tempfile.TemporaryDirectory() as output:
        return convert_data(path.parent.parent, Path(output) / "out", "coco", source_format="mot")


def _read_dataset(path: Path) -> object:
    from framework.workflow.data.convert import convert_data

    with tempfile.TemporaryDirectory() as output:
        return convert_data(path.parent.parent, Path(output) / "out", "coco", source_format="supervisely")


def _read(path: Path) -> object:
    from framework.vision.annotations.formats import Format, detect_format
    from framework.workflow.data.convert import convert_data

    folder = path.parent
    while not any(one.is_dir() and one.name in ("images", "image_2") for one in folder.iterdir()):
        folder = folder.parent
    texts: dict[str, Format] = {
        "labelTxt": "dota",
        "label_2": "kitti",
        "panoptic_val": "panoptic",
        "annotations": "visdrone",
    }
    kind = (None if path.suffix == ".json" else texts.get(path.parent.name)) or detect_format(path)
    source = path if path.suffix in (".json", ".ndjson", ".csv") else folder
    with tempfile.TemporaryDirectory() as output:
        return convert_data(source, Path(output) / "out", "coco", source_format=kind, images=_images(folder))


def _images(folder: Path) -> Path:
    return next(folder / name for name in ("images", "image_2") if (folder / name).is_dir())


def _via_table() -> str:
    row = json.dumps(_SHAPES[0]).replace('"', '""')
    head = (
        "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    )
    return f'{head}\na.png,9,"{{}}",1,0,"{row}","{{""class"": ""cat""}}"\n'


def _datumaro(folder: Path) -> Path:
    shapes = [
        {"type": "bbox", "label_id": 0, "bbox": [2, 3, 9, 8], "attributes": {"rotation": 30.0}, "group": 0},
        {"type": "polygon", "label_id": 1, "points": [2, 3, 12, 3, 12, 9], "group": 1},
        {"type": "ellipse", "label_id": 0, "points": [2, 3, 12, 9]},
        {"type": "rotated_bbox", "label_id": 0, "points": [9, 9, 4, 3, 20]},
        {"type": "mask", "label_id": 1, "rle": {"size": [_HEIGHT, _WIDTH], "counts": [50, 90, 604]}},
    ]
    labels = [{"name": "cat"}, {"name": "dog"}]
    item = {"id": "a", "annotations": shapes, "image": {"path": "a.png", "size": [_HEIGHT, _WIDTH]}}
    data = {"categories": {"label": {"labels": labels}}, "items": [item]}
    return _written("annotations/default.json", json.dumps(data), "images/default/a.png")(folder)


def _label_studio_table() -> str:
    value = json.dumps([{**_SIDES, "rectanglelabels": ["cat"]}]).replace('"', '""')
    return f'annotation_id,annotator,id,image,label,lead_time\n1,me,1,/data/a.png,"{value}",1.5\n'


def _colors(folder: Path) -> Path:
    _image(folder / "masks/a.png", np.zeros((_HEIGHT, _WIDTH, 3), np.uint8))
    text = "# label:color_rgb:parts:actions\nbackground:0,0,0::\ncat:128,0,0:head,foot:\ndog:::\n"
    return _written("labelmap.txt", text.replace("dog:::", "dog:0,128,0::"), "images/a.png")(folder)


def _class_csv(folder: Path) -> Path:
    _image(folder / "masks/a.png", np.zeros((_HEIGHT, _WIDTH, 3), np.uint8))
    return _written("classes.csv", "name,r,g,b,id\nbackground,0,0,0,0\ncat,128,0,0,4\n", "images/a.png")(
        folder
    )


def _read_masks(path: Path) -> object:
    from segmentation.data.custom import MaskFolder

    data = MaskFolder(path.parent, path.name)
    return data.class_names, data.palette, data[0]


def _parquet(kind: str) -> Callable[[Path], Path]:
    """A table of images with classes, objects or masks, as `datasets` writes it."""

    def make(folder: Path) -> Path:
        pyarrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
        content = io.BytesIO()
        Image.fromarray(np.full((_HEIGHT, _WIDTH, 3), 90, np.uint8)).save(content, "PNG")
        image = {"bytes": content.getvalue(), "path": "a.png"}
        names = {"names": ["cat", "dog"], "_type": "ClassLabel"}
        labels, feature = {
            "classes": ([0, 1], names),
            "objects": (
                [{"bbox": [[2.0, 3.0, 9.0, 8.0]], "category": [1]}, {"bbox": [], "category": []}],
                {"bbox": [{"_type": "Sequence"}], "category": [names]},
            ),
            "masks": ([image, image], {"_type": "Image"}),
        }[kind]
        column = {"classes": "label", "objects": "objects", "masks": "mask"}[kind]
        table = pyarrow.table({"image": [image, image], column: labels})
        features = {"image": {"_type": "Image"}, column: feature}
        known = {"huggingface": json.dumps({"info": {"features": features}})}
        parquet.write_table(table.replace_schema_metadata(known), folder / "train-0.parquet")
        return folder / "train-0.parquet"

    return make


def _read_parquet(path: Path) -> object:
    from framework.workflow.data.parquet import unpack_parquet

    with tempfile.TemporaryDirectory() as output:
        return unpack_parquet(path, Path(output) / "out")


_BRUSH = {"value": {"format": "rle", "rle": _packed_brush(), "brushlabels": ["cat"]}}
FILES: Mapping[str, tuple[Callable[[Path], Path], Callable[[Path], object], bool]] = {
    "via": (_written("via.json", json.dumps(_VIA), "images/a.png"), _read, True),
    "via 3": (_written("via.json", json.dumps(_VIA3), "images/a.png"), _read, True),
    "csv of via": (_written("via.csv", _via_table(), "images/a.png"), _read, False),
    "vott": (_written("cells-export.json", json.dumps(_VOTT), "images/a.png"), _read, True),
    "create ml": (_written("boxes.json", json.dumps(_CREATE_ML), "images/a.png"), _read, True),
    "dota": (_written("labelTxt/a.txt", _DOTA, "images/a.png"), _read, False),
    "kitti": (_written("label_2/a.txt", _KITTI, "image_2/a.png"), _read, False),
    "wider face": (_written("val_bbx_gt.txt", _WIDER_FACE, "images/a.png"), _read, False),
    "crowd human": (_written("val.odgt", json.dumps(_CROWD_HUMAN), "images/a.png"), _read, False),
    "mot": (_written("gt/gt.txt", _MOT, "img1/000001.png"), _read_sequence, False),
    "vis drone": (_written("annotations/a.txt", _VIS_DRONE, "images/a.png"), _read, False),
    "bdd100k": (_written("det_val.json", json.dumps(_BDD100K), "images/a.png"), _read, True),
    "darwin": (_written("a.json", json.dumps(_DARWIN), "images/a.png"), _read, True),
    "ultralytics": (_written("a.json", json.dumps(_ULTRALYTICS), "images/a.png"), _read, True),
    "fiftyone": (_written("labels.json", json.dumps(_FIFTYONE), "images/a.png"), _read, True),
    "labelbox": (_written("val.ndjson", json.dumps(_LABELBOX), "images/a.png"), _read, True),
    "supervisely": (
        _written("train/ann/a.png.json", json.dumps(_SUPERVISELY), "train/img/a.png"),
        _read_dataset,
        True,
    ),
    **(
        {
            f"parquet of {kind}": (_parquet(kind), _read_parquet, False)
            for kind in ("classes", "objects", "masks")
        }
        if importlib.util.find_spec("pyarrow")
        else {}
    ),
    "panoptic": (_panoptic, _read, True),
    "png of panoptic": (_panoptic_png, _read, False),
    "label studio": (_written("tasks.json", json.dumps([_TASK]), "images/a.png"), _read, True),
    "table of label studio": (_written("tasks.csv", _label_studio_table(), "images/a.png"), _read, False),
    "datumaro": (_datumaro, _read, True),
    "table of colours": (_colors, _read_masks, False),
    "table of classes": (_class_csv, _read_masks, False),
    "brush of label studio": (
        _written(
            "tasks.json", json.dumps([{**_TASK, "annotations": [{"result": [_BRUSH]}]}]), "images/a.png"
        ),
        _read,
        True,
    ),
}
"""What makes a file, what reads it, and whether its values are changed too."""
