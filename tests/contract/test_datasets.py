"""What every registered dataset keeps to, on tiny fixtures. The registry is the test list."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from PIL import Image, ImageFont

from detection.data.annotated import AnnotatedDetection, CvatDetection, YoloDetection
from detection.data.coco import CocoDetection
from detection.data.coco_pose import CocoPose
from detection.data.docbank import DocBank
from detection.data.voc import VocDetection
from framework.config import Kind, available, bind, dump, find, parse
from framework.core.errors import OarError
from framework.io.dataset import Dataset
from framework.vision import image
from framework.vision.sample import Sample
from ocr.data.directions import PageDirections, PageFolder, TextLineDirections
from ocr.data.forms import FUNSD, XFUND, FormFiles
from ocr.data.lines import LinesOfPages, MixedTextLines, TextLineImages, TextLineLMDB
from ocr.data.pages import TextPageFiles, TextPages
from ocr.data.receipts import SROIE
from ocr.data.synthetic.documents import SyntheticDocuments
from ocr.data.synthetic.lines import SyntheticTextLines
from ocr.data.synthetic.pages import SyntheticPages
from ocr.data.synthetic.tables import SyntheticTables
from ocr.data.tables import PubTabNet
from ocr.tables.html import read_contents
from segmentation.data.ade20k import ADE20K
from segmentation.data.annotated import AnnotatedMasks, CvatMasks, YoloMasks
from segmentation.data.camvid import CamVid
from segmentation.data.cityscapes import Cityscapes
from segmentation.data.coco import CocoMasks
from segmentation.data.custom import MaskFolder, MaskListFile
from segmentation.data.pascal_voc import PascalVOC
from segmentation.data.selected import SelectedClasses
from zoo.classification.benchmarks import Cifar10, Mnist
from zoo.classification.data import ImageFolder, ListFile
from zoo.classification.multi_label_data import MultiLabelList

PACKAGES = (
    "ocr",
    "detection",
    "segmentation",
    "nlp",
    "zoo.classification",
    "zoo.recommendation",
    "zoo",
    "framework",
)
REPO = Path(__file__).resolve().parents[2]


def image_folder(folder: Path) -> Dataset:
    for number in range(6):
        name = f"train/{('cat', 'dog')[number % 2]}/{number}.jpg"
        image.write(folder / name, np.full((4 + number, 5, 3), 40 * number, np.uint8))
    return ImageFolder(folder, "train")


def list_file(folder: Path) -> Dataset:
    for number in range(6):
        image.write(folder / f"{number}.png", np.full((4, 5 + number, 3), 40 * number, np.uint8))
    text = "".join(f"{number}.png {number % 3}\n" for number in range(6))
    (folder / "list.txt").write_text(text, encoding="utf-8")
    return ListFile(folder, folder / "list.txt")


def mnist(folder: Path) -> Dataset:
    images = bytes([0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0, 0, 2]) + bytes(range(24))
    (folder / "images").write_bytes(images)
    (folder / "labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 6]) + bytes(range(6)))
    return Mnist(folder / "images", folder / "labels")


def cifar10(folder: Path) -> Dataset:
    records = np.random.default_rng(0).integers(0, 256, (6, 3073), dtype=np.uint8)
    records[:, 0] = range(4, 10)
    (folder / "test_batch.bin").write_bytes(records.tobytes())
    return Cifar10(folder, "test")


def coco_detection(folder: Path) -> Dataset:
    images, annotations = [], []
    for number in range(6):
        image.write(folder / "all" / f"{number}.png", np.full((40, 50 + number, 3), 40 * number, np.uint8))
        images.append({"id": 90 - number, "file_name": f"{number}.png", "height": 40, "width": 50 + number})
        for place in range(number):
            box = {"bbox": [place, 2, 10 + place, 20], "area": 50, "category_id": 5 + place % 3}
            annotations.append({"id": len(annotations), "image_id": 90 - number, "iscrowd": place % 2, **box})
    categories = [{"id": number, "name": f"class {number}"} for number in (7, 5, 6)]
    data = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "file.json").write_text(json.dumps(data), encoding="utf-8")
    return CocoDetection(folder, Path("file.json"), "all")


def voc_detection(folder: Path) -> Dataset:
    for number in range(6):
        image.write(folder / "val" / "images" / f"{number}.png", np.full((40, 50, 3), 40 * number, np.uint8))
        sides = f"<xmin>1</xmin><ymin>1</ymin><xmax>{9 + number}</xmax><ymax>9</ymax>"
        objects = "".join(
            f"<object><name>c{n}</name><bndbox>{sides}</bndbox></object>" for n in range(number)
        )
        path = folder / "val" / "annotations" / f"{number}.xml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"<annotation>{objects}</annotation>", encoding="utf-8")
    return VocDetection(folder, "val")


def docbank(folder: Path) -> Dataset:
    for number in range(6):
        image.write(folder / "images" / f"{number}_ori.png", np.full((40, 50, 3), 40 * number, np.uint8))
        rows = [f"word\t{100 + 90 * n}\t10\t{150 + 90 * n}\t40\t0\t0\t0\tF\tfooter" for n in range(number)]
        (folder / f"{number}.txt").write_text("\n".join(rows), encoding="utf-8")
    return DocBank(folder, images="images")


def coco_pose(folder: Path) -> Dataset:
    images, annotations = [], []
    for number in range(6):
        image.write(folder / f"{number}.png", np.full((40, 50, 3), 40 * number, np.uint8))
        images.append({"id": 9 + number, "file_name": f"{number}.png", "height": 40, "width": 50})
        for place in range(number):
            keypoints = [5 + place, 6, 2, 12, 20, 1]
            box = {
                "bbox": [place, 2, 15, 25],
                "area": 200,
                "category_id": 1,
                "keypoints": keypoints,
                "num_keypoints": 2,
            }
            annotations.append({"id": len(annotations), "image_id": 9 + number, "iscrowd": 0, **box})
    categories = [{"id": 1, "name": "person", "keypoints": ["nose", "neck"], "skeleton": [[1, 2]]}]
    data = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "file.json").write_text(json.dumps(data), encoding="utf-8")
    return CocoPose(folder, Path("file.json"))


def grey(path: Path, number: int) -> None:
    """A mask of 4x6 pixels whose last column is class `number`."""
    mask = np.zeros((4, 6), np.uint8)
    mask[:, -1] = number
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(mask).save(path)


def masked(folder: Path, source_image: str, mask: str) -> None:
    """Six images and their masks; `{}` in the names is the number."""
    for number in range(6):
        image.write(folder / source_image.format(number), np.full((4, 6, 3), 40 * number, np.uint8))
        grey(folder / mask.format(number), number % 3 + 1)


def ade20k(folder: Path) -> Dataset:
    masked(folder, "images/training/{}.jpg", "annotations/training/{}.png")
    return ADE20K(folder)


def camvid(folder: Path) -> Dataset:
    masked(folder, "train/{}.png", "trainannot/{}.png")
    lines = "".join(f"train/{n}.png trainannot/{n}.png\n" for n in range(6))
    (folder / "train.txt").write_text(lines, encoding="utf-8")
    return CamVid(folder)


def cityscapes(folder: Path) -> Dataset:
    masked(folder, "leftImg8bit/train/ulm/{}_leftImg8bit.png", "gtFine/train/ulm/{}_gtFine_labelTrainIds.png")
    return Cityscapes(folder)


def coco_masks(folder: Path) -> Dataset:
    images, annotations = [], []
    for number in range(6):
        image.write(folder / f"{number}.png", np.full((4, 6, 3), 40 * number, np.uint8))
        images.append({"id": number, "file_name": f"{number}.png", "height": 4, "width": 6})
        square = {"category_id": 3, "segmentation": [[0.0, 0.0, 4.0, 0.0, 4.0, 4.0, 0.0, 4.0]]}
        annotations.append({"id": number, "image_id": number, "area": 16, "iscrowd": 0, **square})
    data = {"images": images, "annotations": annotations, "categories": [{"id": 3, "name": "car"}]}
    (folder / "file.json").write_text(json.dumps(data), encoding="utf-8")
    return CocoMasks(folder, Path("file.json"))


def mask_folder(folder: Path) -> Dataset:
    masked(folder, "images/{}.png", "masks/{}.png")
    return MaskFolder(folder, ("a", "b", "c", "d"))


def selected_classes(folder: Path) -> Dataset:
    masked(folder, "images/{}.png", "masks/{}.png")
    return SelectedClasses(MaskFolder(folder, ("a", "b", "c", "d")), ("a", "c"))


def mask_list_file(folder: Path) -> Dataset:
    masked(folder, "{}.png", "masks/{}.png")
    lines = "".join(f"{n}.png masks/{n}.png\n" for n in range(6))
    (folder / "train.txt").write_text(lines, encoding="utf-8")
    return MaskListFile(folder, ("a", "b", "c", "d"), folder / "train.txt")


def pascal_voc(folder: Path) -> Dataset:
    masked(folder, "JPEGImages/{}.jpg", "SegmentationClass/{}.png")
    path = folder / "ImageSets" / "Segmentation" / "train.txt"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{n}\n" for n in range(6)), encoding="utf-8")
    return PascalVOC(folder, "train")


def text_material(folder: Path) -> dict[str, Any]:
    """Pillow's own font as a file, and three texts."""
    font: Any = ImageFont.load_default(20)
    (folder / "font.ttf").write_bytes(font.path.getvalue())
    (folder / "texts.txt").write_text("one line\nanother line of text\n12.50\n", encoding="utf-8")
    return {"count": 6, "fonts": (folder / "font.ttf",), "corpus": (folder / "texts.txt",)}


def synthetic_lines(folder: Path) -> Dataset:
    return SyntheticTextLines(**text_material(folder))


def synthetic_pages(folder: Path) -> Dataset:
    return SyntheticPages(**text_material(folder), height=(60, 90), width=(80, 120))


def synthetic_documents(folder: Path) -> Dataset:
    return SyntheticDocuments(**text_material(folder), dpi=(36.0, 40.0))


# Each makes a dataset of six samples, its files in the folder. Those of texts are in test_texts.py.
def _write_lines(folder: Path) -> None:
    for number in range(6):
        image.write(folder / f"{number}.png", np.full((8, 20 + number, 3), 40 * number, np.uint8))


def text_lines(folder: Path) -> Dataset:
    _write_lines(folder)
    lines = "".join(f"{number}.png\tText {number}\n" for number in range(6))
    (folder / "a.txt").write_text(lines, encoding="utf-8")
    return TextLineImages(folder, (Path("a.txt"),))


def text_lines_lmdb(folder: Path) -> Dataset:
    lmdb = pytest.importorskip("lmdb")
    _write_lines(folder)
    with lmdb.open(str(folder), map_size=1 << 20) as database, database.begin(write=True) as view:
        view.put(b"num-samples", b"6")
        for number in range(6):
            view.put(b"image-%09d" % (number + 1), (folder / f"{number}.png").read_bytes())
            view.put(b"label-%09d" % (number + 1), f"Text {number}".encode())
    return TextLineLMDB(folder)


def text_line_directions(folder: Path) -> Dataset:
    _write_lines(folder)
    lines = "".join(f"{number}.png\t{(0, 180)[number % 2]}\n" for number in range(6))
    (folder / "a.txt").write_text(lines, encoding="utf-8")
    return TextLineDirections(folder, (Path("a.txt"),))


def page_directions(folder: Path) -> Dataset:
    _write_lines(folder)
    lines = "".join(f"{number}.png\t{90 * (number % 4)}\n" for number in range(6))
    (folder / "a.txt").write_text(lines, encoding="utf-8")
    return PageDirections(folder, (Path("a.txt"),))


def page_folder(folder: Path) -> Dataset:
    _write_lines(folder)
    return PageFolder(folder)


def text_pages(folder: Path) -> Dataset:
    lines = []
    for number in range(6):
        image.write(folder / f"{number}.png", np.full((40, 50, 3), 40 * number, np.uint8))
        quad = [[1, 2], [30, 2], [30, 12], [1, 12]]
        regions = [{"transcription": f"t{n}", "points": quad} for n in range(number)]
        lines.append(f"{number}.png\t{json.dumps(regions)}\n")
    (folder / "a.txt").write_text("".join(lines), encoding="utf-8")
    return TextPages(folder, (Path("a.txt"),))


def text_page_files(folder: Path) -> Dataset:
    for number in range(6):
        image.write(folder / "img" / f"{number}.png", np.full((40, 50, 3), 40 * number, np.uint8))
        (folder / "box").mkdir(exist_ok=True)
        (folder / "box" / f"gt_{number}.txt").write_text(
            "1,2,30,2,30,12,1,12,a, b\n" * number, encoding="utf-8"
        )
    return TextPageFiles(folder, Path("img"), Path("box"))


def lines_of_pages(folder: Path) -> Dataset:
    rng = np.random.default_rng(0)
    lines = []
    for number, count in enumerate((0, 1, 2, 3)):
        image.write(folder / f"{number}.png", rng.integers(0, 256, (80, 50, 3)).astype(np.uint8))
        quads = [
            [[1, 2 + 20 * n], [30, 2 + 20 * n], [30, 12 + 20 * n], [1, 12 + 20 * n]] for n in range(count)
        ]
        regions = [{"transcription": "ab", "points": quad} for quad in quads]
        regions.append({"transcription": "###", "points": [[0, 0], [9, 0], [9, 9], [0, 9]]})
        lines.append(f"{number}.png\t{json.dumps(regions)}\n")
    (folder / "a.txt").write_text("".join(lines), encoding="utf-8")
    return LinesOfPages(TextPages(folder, (Path("a.txt"),)))


def mixed_text_lines(folder: Path) -> Dataset:
    return MixedTextLines((text_lines(folder), synthetic_lines(folder)), (0.5, 0.5))


def pub_tab_net(folder: Path) -> Dataset:
    lines = []
    for number in range(6):
        image.write(folder / f"{number}.png", np.full((20, 40, 3), 40 * number, np.uint8))
        tokens = ["<tbody>", "<tr>", *["<td>", "</td>"] * (number + 1), "</tr>", "</tbody>"]
        cells = [{"tokens": ["a"], "bbox": [1, 2, 5, 6]}, *[{"tokens": []}] * number]
        label = {"filename": f"{number}.png", "split": "train"}
        lines.append(json.dumps(label | {"html": {"structure": {"tokens": tokens}, "cells": cells}}))
    (folder / "labels.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return PubTabNet(folder, Path("labels.jsonl"))


def synthetic_tables(folder: Path) -> Dataset:
    return SyntheticTables(6, fonts=(text_material(folder)["fonts"][0],), rows=3, columns=3, longest=200)


def _write_form(folder: Path, name: str, number: int) -> list[dict[str, Any]]:
    image.write(folder / name, np.full((40, 60, 3), 40 * number, np.uint8))
    kinds = ("question", "answer", "other")
    return [
        {
            "text": f"t{n}",
            "box": [2, 12 * n, 30, 12 * n + 9],
            "label": kinds[n],
            "id": n,
            "linking": [[0, n]] * (n == 1),
        }
        for n in range(number % 4)
    ]


def form_files(folder: Path) -> Dataset:
    lines = []
    for number in range(6):
        found = [
            {
                **line,
                "transcription": line.pop("text"),
                "points": np.reshape(line.pop("box"), (2, 2)).tolist(),
            }
            for line in _write_form(folder, f"{number}.png", number)
        ]
        lines.append(f"{number}.png\t{json.dumps(found)}\n")
    (folder / "a.txt").write_text("".join(lines), encoding="utf-8")
    return FormFiles(folder, (Path("a.txt"),), read_images=True)


def xfund(folder: Path) -> Dataset:
    documents = [
        {
            "img": {"fname": f"{number}.png", "width": 60, "height": 40},
            "document": _write_form(folder, f"{number}.png", number),
        }
        for number in range(6)
    ]
    (folder / "zh.train.json").write_text(json.dumps({"documents": documents}), encoding="utf-8")
    return XFUND(folder, Path("zh.train.json"), read_images=True)


def funsd(folder: Path) -> Dataset:
    (folder / "annotations").mkdir()
    for number in range(6):
        form = _write_form(folder / "images", f"{number}.png", number)
        path = folder / "annotations" / f"{number}.json"
        path.write_text(json.dumps({"form": form}), encoding="utf-8")
    return FUNSD(folder, read_images=True)


def sroie(folder: Path) -> Dataset:
    for name in ("box", "key"):
        (folder / name).mkdir()
    for number in range(6):
        image.write(folder / "img" / f"{number}.jpg", np.full((60, 60, 3), 40 * number, np.uint8))
        lines = "".join(
            f"2,{9 * n},40,{9 * n},40,{9 * n + 8},2,{9 * n + 8},line {n}\n" for n in range(number)
        )
        (folder / "box" / f"{number}.csv").write_text(lines, encoding="utf-8")
        fields = json.dumps({"company": "line 1", "total": "2"})
        (folder / "key" / f"{number}.json").write_text(fields, encoding="utf-8")
    return SROIE(folder, read_images=True)


def pixels(number: int) -> np.ndarray:
    return np.full((8, 10, 3), 40 * number, np.uint8)


YOLO = "names: {0: cat, 1: dog}\ntrain: images\n"
CVAT = """<annotations><version>1.1</version><meta><task><labels><label><name>cat</name></label>
<label><name>dog</name></label></labels></task></meta>{}</annotations>"""


def _yolo_files(root: Path, lines: str) -> None:
    (root / "data.yaml").write_text(YOLO, encoding="utf-8")
    (root / "labels").mkdir()
    (root / "images").mkdir()
    for number in range(COUNT):
        image.write(root / f"images/{number}.png", pixels(number))
        (root / f"labels/{number}.txt").write_text(lines, encoding="utf-8")


def yolo_detection(root: Path) -> Dataset:
    _yolo_files(root, "1 0.5 0.5 0.5 0.5\n")
    return YoloDetection(root, "train")


def yolo_masks(root: Path) -> Dataset:
    _yolo_files(root, "1 0.2 0.2 0.8 0.2 0.8 0.8\n")
    return YoloMasks(root, split="train")


def _cvat_file(root: Path, shape: str) -> None:
    images = []
    for number in range(COUNT):
        image.write(root / f"{number}.png", pixels(number))
        height, width = pixels(number).shape[:2]
        images.append(
            f'<image id="{number}" name="{number}.png" width="{width}" height="{height}">{shape}</image>'
        )
    (root / "annotations.xml").write_text(CVAT.format("".join(images)), encoding="utf-8")


def cvat_detection(root: Path) -> Dataset:
    _cvat_file(root, '<box label="dog" occluded="0" xtl="1" ytl="1" xbr="4" ybr="5" z_order="0"></box>')
    return CvatDetection(root)


def cvat_masks(root: Path) -> Dataset:
    _cvat_file(root, '<polygon label="dog" occluded="0" points="1,1;4,1;4,5" z_order="0"></polygon>')
    return CvatMasks(root)


def _via_file(root: Path, shape: dict[str, object]) -> None:
    entries = {}
    for number in range(COUNT):
        image.write(root / f"{number}.png", pixels(number))
        regions = [
            {"shape_attributes": shape, "region_attributes": {"class": name}} for name in ("cat", "dog")
        ]
        entries[f"{number}.png9"] = {"filename": f"{number}.png", "size": 9, "regions": regions}
    (root / "via.json").write_text(json.dumps(entries), encoding="utf-8")


def annotated_detection(root: Path) -> Dataset:
    _via_file(root, {"name": "rect", "x": 1, "y": 1, "width": 3, "height": 4})
    return AnnotatedDetection(root)


def annotated_masks(root: Path) -> Dataset:
    _via_file(root, {"name": "polygon", "all_points_x": [1, 4, 4], "all_points_y": [1, 1, 5]})
    return AnnotatedMasks(root)


def multi_label_list(root: Path) -> Dataset:
    for number in range(COUNT):
        image.write(root / f"{number}.png", pixels(number))
    lines = [f"{number}.png,cat;dog" if number % 2 else f"{number}.png,cat" for number in range(COUNT)]
    (root / "list.csv").write_text("\n".join(lines), encoding="utf-8")
    return MultiLabelList(root, Path("list.csv"))


FIXTURES: dict[str, Callable[[Path], Dataset]] = {
    "ADE20K": ade20k,
    "AnnotatedDetection": annotated_detection,
    "AnnotatedMasks": annotated_masks,
    "CamVid": camvid,
    "Cifar10": cifar10,
    "Cityscapes": cityscapes,
    "CocoDetection": coco_detection,
    "CocoMasks": coco_masks,
    "CocoPose": coco_pose,
    "FUNSD": funsd,
    "CvatDetection": cvat_detection,
    "CvatMasks": cvat_masks,
    "DocBank": docbank,
    "FormFiles": form_files,
    "ImageFolder": image_folder,
    "ListFile": list_file,
    "MaskFolder": mask_folder,
    "MaskListFile": mask_list_file,
    "Mnist": mnist,
    "MultiLabelList": multi_label_list,
    "PageDirections": page_directions,
    "PageFolder": page_folder,
    "PascalVOC": pascal_voc,
    "PubTabNet": pub_tab_net,
    "SROIE": sroie,
    "SelectedClasses": selected_classes,
    "TextLineDirections": text_line_directions,
    "TextLineImages": text_lines,
    "TextLineLMDB": text_lines_lmdb,
    "LinesOfPages": lines_of_pages,
    "MixedTextLines": mixed_text_lines,
    "TextPageFiles": text_page_files,
    "TextPages": text_pages,
    "SyntheticPages": synthetic_pages,
    "SyntheticDocuments": synthetic_documents,
    "SyntheticTables": synthetic_tables,
    "SyntheticTextLines": synthetic_lines,
    "VocDetection": voc_detection,
    "XFUND": xfund,
    "YoloDetection": yolo_detection,
    "YoloMasks": yolo_masks,
}
# Has four samples for each of another data set: tests/unit/ocr/data/test_directions.py.
OF_OTHERS = ("TurnedPages",)
COUNT = 6
every = pytest.mark.parametrize("name", FIXTURES)


@pytest.fixture
def dataset(name: str, tmp_path: Path) -> Any:
    return FIXTURES[name](tmp_path)


def contents(sample: Sample) -> tuple[Any, ...]:
    fields = (sample.labels, sample.boxes, sample.mask, sample.keypoints, sample.valid)
    found = [None if field is None else field.tolist() for field in fields]
    found += [sample.text, [polygon.tolist() for polygon in sample.polygons or ()]]
    return sample.id, sample.image.tobytes(), sample.image.shape, *found


def test_every_registered_dataset_has_a_fixture() -> None:
    known = available("dataset", PACKAGES)
    others = ("nlp.", "zoo.recommendation.")  # test_texts.py, test_rows.py
    images = {name for name, module in known.items() if not module.startswith(others)}
    assert set(FIXTURES) | set(OF_OTHERS) == images


@every
def test_samples(dataset: Any, name: str) -> None:
    assert type(dataset) is find("dataset", name, PACKAGES).config and issubclass(type(dataset), Dataset)
    assert len(dataset) == COUNT
    samples = list(dataset)  # ends by IndexError
    assert len(samples) == COUNT and len({sample.id for sample in samples}) == COUNT
    names = getattr(dataset, "class_names", ())
    assert isinstance(names, tuple) and all(isinstance(one, str) and one for one in names)
    for sample in samples:
        assert isinstance(sample, Sample) and isinstance(sample.id, str | int)
        assert sample.image.dtype == np.uint8 and sample.image.shape[2] == 3
        if sample.mask is not None and sample.keypoints is None:  # a class for every pixel
            assert sample.mask.shape == sample.size_hw and sample.mask.dtype == np.uint8
            assert set(np.unique(sample.mask)) <= {*range(len(names)), dataset.ignore_index}
            assert len(dataset.palette) == len(names)
        elif isinstance(
            dataset, PubTabNet | SyntheticTables
        ):  # a table's HTML, and a box for each of its cells
            assert not names and isinstance(sample.text, str) and sample.boxes is not None
            assert len(read_contents(sample.text)) == len(sample.boxes)
        elif sample.text is not None and sample.boxes is None:  # a line, or polygons with a text each
            assert not names and sample.labels is None
            texts = sample.text if isinstance(sample.text, tuple) else (sample.text,)
            assert all(text and text == text.strip() for text in texts)
            assert isinstance(sample.text, str) == (sample.polygons is None)
            assert all(
                polygon.dtype == np.float32 and polygon.shape == (4, 2) for polygon in sample.polygons or ()
            )
        elif isinstance(dataset, PageFolder):  # upright pages, which nobody labelled
            assert not names and sample.labels is None
        elif sample.keypoints is not None:  # the classes are the keypoints
            assert sample.keypoints.shape[1:] == (len(names), 3)
        else:
            assert isinstance(sample.labels, np.ndarray) and sample.labels.dtype.kind == "i"
            assert ((sample.labels >= 0) & (sample.labels < len(names))).all()
        if sample.boxes is not None:
            assert not isinstance(sample.text, tuple) or len(sample.text) == len(sample.boxes)
            assert sample.boxes.dtype == np.float32 and (sample.boxes[:, 2:] > sample.boxes[:, :2]).all()
            assert sample.valid is not None and sample.valid.dtype == bool
    assert len({sample.image.tobytes() for sample in samples}) == COUNT


@every
def test_indices(dataset: Any) -> None:
    assert contents(dataset[np.int64(2)]) == contents(dataset[2]) == contents(dataset[2 - COUNT])
    for index in (COUNT, -COUNT - 1):
        with pytest.raises(IndexError):
            dataset[index]


@every
def test_a_sample_is_not_changed_through_another(dataset: Any) -> None:
    before = contents(dataset[1])
    sample = dataset[1]
    sample.image[...] = 0
    for field in (sample.boxes, sample.labels, sample.mask, sample.keypoints):
        if field is not None and field.ndim:
            field[...] = 0
    assert contents(dataset[1]) == before


@every
def test_threads_read_the_same(dataset: Any) -> None:
    with ThreadPoolExecutor(8) as pool:  # the first use, too, is from several threads
        found = list(pool.map(lambda index: contents(dataset[index % COUNT]), range(20 * COUNT)))
    assert found[:COUNT] == [contents(sample) for sample in dataset]
    assert all(one == found[index % COUNT] for index, one in enumerate(found))


@every
def test_pickles_are_small_and_hold_the_settings(dataset: Any) -> None:
    fresh = pickle.dumps(dataset)
    want = [contents(sample) for sample in dataset]
    # The renderer of lines alone has 60 settings, whose names are pickled too; one image or list of files is far more.
    assert pickle.dumps(dataset) == fresh and len(fresh) < 2000
    copy = pickle.loads(fresh)
    assert copy == dataset and [contents(sample) for sample in copy] == want


@every
def test_it_comes_back_from_its_configuration(dataset: Any) -> None:
    tree = parse(dump(dataset), "dumped.yml")
    assert bind(tree, Annotated[Any, Kind("dataset")], PACKAGES) == dataset


@every
def test_files_are_not_touched_before_the_first_use(name: str, dataset: Any, tmp_path: Path) -> None:
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.unlink()
    copy = pickle.loads(pickle.dumps(dataset))
    with pytest.raises(OarError):
        len(copy)


def test_workers_load_no_jax() -> None:
    """A loader's processes unpickle datasets and transforms: importing these must be light."""
    modules = {**available("dataset", PACKAGES), **available("transform", PACKAGES)}.values()
    script = f"import sys, {', '.join(sorted(set(modules)))}; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=REPO, check=False).returncode == 0
