"""VIA, DOTA, KITTI, COCO's panoptic format and Label Studio's JSON: what is read, told and refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from detection.data.annotated import AnnotatedDetection
from framework.core.errors import FormatError, InputError, OarError
from framework.vision import image
from framework.vision.annotations.formats import Format, detect_format, read_set
from framework.vision.annotations.label_studio_brush import decode_brush
from framework.vision.annotations.objects import AnnotatedSet
from framework.workflow.data.convert import convert_data
from segmentation.data.annotated import AnnotatedMasks

HEIGHT, WIDTH = 50, 100
BOX = (10.0, 5.0, 30.0, 25.0)


def photo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.write(path, np.full((HEIGHT, WIDTH, 3), 90, np.uint8))


def read(source: Path, kind: Format, images: Path | None = None) -> AnnotatedSet:
    assert detect_format(source) == kind
    return read_set(source, kind, images)


def boxes(objects: AnnotatedSet) -> list[tuple[str, str, list[float]]]:
    return sorted(
        (image.name, one.label, [round(side, 2) for side in one.box])
        for image in objects.images
        for one in image.objects
    )


def region(name: str, attributes: object, **numbers: object) -> dict[str, object]:
    return {"shape_attributes": {"name": name, **numbers}, "region_attributes": attributes}


RECT = {"x": 10, "y": 5, "width": 20, "height": 20}


def via2(*regions: object, numbered: bool = False) -> dict[str, object]:
    listed = {str(key): one for key, one in enumerate(regions)} if numbered else list(regions)
    return {"a.jpg12": {"filename": "a.jpg", "size": 12, "regions": listed, "file_attributes": {}}}


@pytest.mark.parametrize("numbered", [False, True])  # VIA 2, VIA 1
def test_shapes_of_via(numbered: bool, tmp_path: Path) -> None:
    photo(tmp_path / "images/a.jpg")
    polygon = {"all_points_x": [10, 30, 30, 10], "all_points_y": [5, 5, 25, 25]}
    data = via2(
        region("rect", {"note": "old", "class": "cat"}, **RECT),
        region("polygon", {"class": "dog"}, **polygon),
        region("circle", {"class": "dog"}, cx=50, cy=20, r=10),
        region("ellipse", {"class": "cat"}, cx=50, cy=20, rx=10, ry=5, theta=np.pi / 2),
        region("point", {"class": "dog"}, cx=1, cy=1),
        region("rect", {"note": "no class"}, **RECT),
        region("rect", {"class": "cat"}, **{**RECT, "width": 0}),
        numbered=numbered,
    )
    (tmp_path / "via.json").write_text(json.dumps(data), encoding="utf-8")
    objects = read(tmp_path / "via.json", "via")
    assert boxes(objects) == [
        ("a.jpg", "cat", list(BOX)),
        ("a.jpg", "cat", [45.0, 10.0, 55.0, 30.0]),
        ("a.jpg", "dog", list(BOX)),
        ("a.jpg", "dog", [40.0, 10.0, 60.0, 30.0]),
    ]
    assert objects.images[0].objects[0].attributes == {"note": "old"}
    assert [len(one.outlines) for one in objects.images[0].objects] == [0, 1, 1, 1]
    told = "\n".join(objects.problems)
    assert "point dog, which has no area" in told and "no class" in told and "no area" in told


def test_which_attribute_of_via_is_the_class(tmp_path: Path) -> None:
    photo(tmp_path / "a.jpg")
    cases: list[tuple[list[object], list[str]]] = [
        ([{"animal": "cat"}, {"animal": "dog", "age": "3"}], ["cat", "dog"]),
        ([{"type": {"cat": False, "dog": True}}], ["dog"]),  # of check boxes
        ([{}, {}], ["object", "object"]),
    ]
    for attributes, labels in cases:
        data = {"_via_img_metadata": via2(*(region("rect", one, **RECT) for one in attributes))}
        (tmp_path / "via.json").write_text(json.dumps(data), encoding="utf-8")
        objects = read(tmp_path / "via.json", "via")
        assert [one.label for one in objects.images[0].objects] == labels
        assert bool(objects.notes) == (labels[0] == "object")


def test_tables_and_projects_of_via(tmp_path: Path) -> None:
    photo(tmp_path / "a.jpg")
    text = io.StringIO()
    table = csv.writer(text)
    columns = ("filename", "file_size", "file_attributes", "region_count", "region_id")
    table.writerow((*columns, "region_shape_attributes", "region_attributes"))
    shape = json.dumps({"name": "rect", **RECT})
    table.writerow(("a.jpg", 12, "{}", 1, 0, shape, '{"class": "cat"}'))
    (tmp_path / "via.csv").write_text(text.getvalue(), encoding="utf-8")
    assert boxes(read(tmp_path / "via.csv", "via")) == [("a.jpg", "cat", list(BOX))]
    project = {
        "project": {},
        "attribute": {"1": {"aname": "class", "options": {"0": "cat", "1": "dog"}}},
        "file": {"7": {"fid": "7", "fname": "a.jpg"}},
        "view": {"3": {"fid_list": ["7"]}},
        "metadata": {
            "x": {"vid": "3", "z": [], "xy": [2, 10, 5, 20, 20], "av": {"1": "1"}},
            "y": {"vid": "3", "z": [], "xy": [7, 10, 5, 30, 5, 30, 25], "av": {"1": "0"}},
            "z": {"vid": "3", "z": [0.5], "xy": [], "av": {"1": "0"}},
        },
    }
    (tmp_path / "via3.json").write_text(json.dumps(project), encoding="utf-8")
    objects = read(tmp_path / "via3.json", "via")
    assert boxes(objects) == [("a.jpg", "cat", list(BOX)), ("a.jpg", "dog", list(BOX))]
    assert "segment of time cat" in objects.problems[0]


def test_dota(tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        photo(tmp_path / split / "images/P1.png")
    lines = "imagesource:GoogleEarth\ngsd:0.1\n10 5 30 5 30 25 10 25 ship 0\n20 5 30 15 20 25 10 15 plane 1\n"
    for split in ("train", "val"):
        (tmp_path / split / "labelTxt").mkdir()
        (tmp_path / split / "labelTxt/P1.txt").write_text(lines + "1 2 3 ship\n", encoding="utf-8")
    objects = read(tmp_path, "dota")
    assert [image.split for image in objects.images] == ["train", "val"]
    assert boxes(objects)[:2] == [("P1.png", "plane", list(BOX)), ("P1.png", "plane", list(BOX))]
    ship, plane = objects.images[0].objects
    assert ship.is_valid and not plane.is_valid and plane.outlines[0].tolist()[0] == [20, 5]
    assert "line 5: 4 words" in objects.problems[0] and "test has no annotations" in objects.notes[0]


def test_kitti(tmp_path: Path) -> None:
    photo(tmp_path / "training/image_2/000001.png")
    photo(tmp_path / "training/image_2/000002.png")
    (tmp_path / "training/label_2").mkdir()
    lines = (
        "Car 0.5 1 1.2 10.00 5.00 30.00 25.00 1.5 1.6 3.7 1.0 2.0 3.0 -1.5\n"
        "DontCare -1 -1 -10 40 5 50 9 -1 -1 -1 -1000 -1000 -1000 -10\n"
        "Car 0 0 0 30 5 10 25 1.5 1.6 3.7 1.0 2.0 3.0 -1.5\n"
    )
    (tmp_path / "training/label_2/000001.txt").write_text(lines, encoding="utf-8")
    objects = read(tmp_path, "kitti")
    assert boxes(objects) == [("000001.png", "Car", list(BOX))]
    assert objects.images[0].objects[0].attributes == {"truncated": "1", "occluded": "1"}
    assert "no area" in objects.problems[0] and "1 images have no file of labels" in objects.problems[1]
    assert "1 regions that are marked DontCare" in objects.notes[0]


def test_kitti_of_fiftyone(tmp_path: Path) -> None:
    """Its images lie in `data`, where others have them in `images`."""
    photo(tmp_path / "data/a.png")
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels/a.txt").write_text("cat 0.00 0 0.00 10 5 30 25 0 0 0 0 0 0 0", encoding="utf-8")
    assert boxes(read(tmp_path, "kitti")) == [("a.png", "cat", list(BOX))]


def test_classes_of_kitti_with_spaces(tmp_path: Path) -> None:
    """labelformat writes the names of classes as they are; a score may stand at the end."""
    photo(tmp_path / "image_2/a.png")
    numbers = "0.00 0 0.00 10 5 30 25 0 0 0 0 0 0 0"
    lines = (f"big dog {numbers}", f"cat {numbers} .5", f"Dont Care {numbers}", f"1 {numbers}")
    (tmp_path / "label_2").mkdir()
    (tmp_path / "label_2/a.txt").write_text("\n".join(lines), encoding="utf-8")
    objects = read(tmp_path, "kitti")
    assert [label for _, label, box in boxes(objects)] == ["1", "Dont Care", "big dog", "cat"]
    assert {tuple(box) for *_, box in boxes(objects)} == {BOX}


@pytest.mark.parametrize("kind", ["yolo", "voc"])
def test_text_files_beside_the_folder_of_images(kind: Format, tmp_path: Path) -> None:
    """V7's exports have the files of annotations one folder above the images, and YOLO's classes in darknet.labels."""
    photo(tmp_path / "images/a.png")
    if kind == "yolo":
        (tmp_path / "a.txt").write_text("1 .2 .3 .2 .4\n", encoding="utf-8")
        (tmp_path / "darknet.labels").write_text("dog\ncat\n", encoding="utf-8")
    else:
        sides = "<xmin>11</xmin><ymin>6</ymin><xmax>30</xmax><ymax>25</ymax>"
        box = f"<object><name>cat</name><bndbox>{sides}</bndbox></object>"
        (tmp_path / "a.xml").write_text(f"<annotation>{box}</annotation>", encoding="utf-8")
    assert boxes(read(tmp_path, kind)) == [("a.png", "cat", list(BOX))]


def test_images_without_any_text_file_are_no_data_set(tmp_path: Path) -> None:
    """Their labels lie elsewhere: all images would be learnt as images without objects."""
    photo(tmp_path / "images/a.png")
    (tmp_path / "data.yaml").write_text("train: images\nval: images\nnames: [cat]\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"no image has a text file of its objects"):
        read_set(tmp_path, "yolo")
    (tmp_path / "labels").mkdir()  # all images are of the background
    assert [len(one.objects) for one in read_set(tmp_path, "yolo").images] == [0]


def panoptic(folder: Path, *segments: dict[str, object]) -> Path:
    numbers = np.zeros((HEIGHT, WIDTH), np.int64)
    numbers[5:25, 10:30] = 70000
    numbers[30:, :] = 5
    colours = np.stack([numbers % 256, numbers // 256 % 256, numbers // 65536], axis=-1).astype(np.uint8)
    (folder / "annotations/panoptic_val").mkdir(parents=True)
    image.write(folder / "annotations/panoptic_val/a.png", colours)
    photo(folder / "images/val/a.jpg")
    data = {
        "images": [{"id": 1, "file_name": "a.jpg", "height": HEIGHT, "width": WIDTH}],
        "annotations": [{"image_id": 1, "file_name": "a.png", "segments_info": list(segments)}],
        "categories": [{"id": 3, "name": "cat", "isthing": 1}, {"id": 9, "name": "road", "isthing": 0}],
    }
    (folder / "annotations/panoptic_val.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def test_panoptic(tmp_path: Path) -> None:
    source = panoptic(
        tmp_path,
        {"id": 70000, "category_id": 3, "iscrowd": 0},
        {"id": 5, "category_id": 9, "iscrowd": 0},
        {"id": 6, "category_id": 3, "iscrowd": 0},
        {"id": 5, "category_id": 4, "iscrowd": 0},
    )
    objects = read(source, "panoptic")
    assert boxes(objects) == [("a.jpg", "cat", list(BOX)), ("a.jpg", "road", [0.0, 30.0, 100.0, 50.0])]
    assert objects.images[0].split == "val" and "1 of 2 classes are stuff" in objects.notes[0]
    assert ["no pixel" in objects.problems[0], "no such category" in objects.problems[1]] == [True, True]
    masks = AnnotatedMasks(source, split="val")
    assert np.unique(masks[0].mask[5:25, 10:30]).tolist() == [1] and masks[0].mask[49, 0] == 2
    (source / "annotations/panoptic_val/a.png").unlink()
    with pytest.raises(InputError, match="the PNG file of segments is not there"):
        read_set(source, "panoptic")


@pytest.mark.parametrize("number", [[], [5], {}, True, None, "x", 5.5, 10**30, -1, 1e308])
def test_segments_whose_number_is_none(tmp_path: Path, number: object) -> None:
    segments = [
        {"id": number, "category_id": 3},
        {"id": "5", "category_id": 9},
        {"id": 70000.0, "category_id": 3},
    ]
    objects = read(panoptic(tmp_path, *segments), "panoptic")
    assert [one.label for one in objects.images[0].objects] == ["road", "cat"]
    assert len(objects.problems) == 1 and "no pixel" in objects.problems[0]


def brush(mask: np.ndarray) -> list[int]:
    """Label Studio's packing, in blocks of values as they are and blocks of one value."""
    values = np.repeat(mask[..., None] * 255, 4, axis=-1).ravel().tolist()
    text = f"{len(values):032b}{7:05b}" + "".join(f"{bits:04b}" for bits in (2, 3, 7, 15))
    half = len(values) // 2
    text += "0" + "11" + f"{half - 1:016b}" + "".join(f"{value:08b}" for value in values[:half])
    at = half
    while at < len(values):
        end = next((one for one in range(at, len(values)) if values[one] != values[at]), len(values))
        text += "1" + "11" + f"{end - at - 1:016b}" + f"{values[at]:08b}"
        at = end
    text += "0" * (-len(text) % 8)
    return [int(text[at : at + 8], 2) for at in range(0, len(text), 8)]


def result(kind: str, **value: object) -> dict[str, object]:
    return {"type": kind, "value": {**value, kind: value.get(kind, ["cat"])}}


def task(*results: object, name: str = "/data/upload/1/0123abcd-a.jpg", **more: object) -> dict[str, object]:
    return {"id": 1, "data": {"image": name}, "annotations": [{"result": list(results), **more}]}


def test_label_studio(tmp_path: Path) -> None:
    photo(tmp_path / "images/a.jpg")
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[5:25, 10:30] = True
    sides = {"x": 10, "y": 10, "width": 20, "height": 40}
    tasks = [
        task(
            result("rectanglelabels", **sides, rotation=0, rectanglelabels=["cat", "old"]),
            result("rectanglelabels", **sides, rotation=90),
            result("polygonlabels", points=[[10, 10], [30, 10], [30, 50], [10, 50]]),
            result("ellipselabels", x=20, y=30, radiusX=10, radiusY=20, rotation=0),
            result("brushlabels", format="rle", rle=brush(mask)),
            result("brushlabels", format="rle", rle=brush(mask)[:40]),
            result("keypointlabels", x=1, y=1, width=1),
            result("choices", choices=["sunny"]),
            result("rectanglelabels", **{**sides, "x": None}),
        ),
        {"id": 2, "data": {"image": "b.jpg"}, "annotations": [{"result": [], "was_cancelled": True}]},
        task(name="s3://bucket/c.jpg"),
        task(result("rectanglelabels", **sides), name="https://x.org/a.jpg"),
    ]
    (tmp_path / "project.json").write_text(json.dumps(tasks), encoding="utf-8")
    objects = read(tmp_path / "project.json", "labelstudio")
    assert boxes(objects) == [
        ("a.jpg", "cat", [-10.0, 5.0, 10.0, 25.0]),  # turned around its first corner
        *[("a.jpg", "cat", list(BOX))] * 4,
        ("a.jpg", "old", list(BOX)),
    ]
    assert [one.has_shape for one in objects.images[0].objects] == [False, False, True, True, True, True]
    told = "\n".join(objects.problems)
    for text in (
        "too early",
        "keypointlabels",
        "choices",
        "x is None",
        "not annotated",
        "c.jpg is not in",
        "further task",
    ):
        assert text in told


def test_label_studio_with_labels_apart_and_images_of_one_name(tmp_path: Path) -> None:
    """<Polygon> with <Labels> (label-studio#6750), and two folders that have a 1.jpg (label-studio#7096)."""
    points = {"points": [[10, 10], [30, 10], [30, 50], [10, 50]]}
    tasks = []
    for folder in ("b", "a"):
        photo(tmp_path / f"images/{folder}/1.jpg")
        shape = {"id": "x", "type": "polygon", "value": points}
        labels = {"id": "x", "type": "labels", "value": {**points, "labels": [folder]}}
        tasks.append(task(shape, labels, name=f"/data/local-files/?d=photos/{folder}/1.jpg"))
    (tmp_path / "project.json").write_text(json.dumps(tasks), encoding="utf-8")
    objects = read(tmp_path / "project.json", "labelstudio")
    assert boxes(objects) == [("a/1.jpg", "a", list(BOX)), ("b/1.jpg", "b", list(BOX))]
    assert not objects.problems
    tasks[0]["data"] = {"image": "1.jpg"}
    (tmp_path / "project.json").write_text(json.dumps(tasks), encoding="utf-8")
    with pytest.raises(InputError, match=r"several images have the name(?s:.)*--images"):
        read_set(tmp_path / "project.json", "labelstudio")


def test_label_studio_without_details(tmp_path: Path) -> None:
    photo(tmp_path / "a.jpg")
    value = {"x": 10, "y": 10, "width": 20, "height": 40, "rotation": 0, "rectanglelabels": ["cat"]}
    entry = {"image": "/data/local-files/?d=photos/a.jpg", "id": 1, "label": [value], "annotator": 1}
    (tmp_path / "min.json").write_text(json.dumps([entry]), encoding="utf-8")
    assert boxes(read(tmp_path / "min.json", "labelstudio")) == [("a.jpg", "cat", list(BOX))]
    (tmp_path / "a.jpg").unlink()
    with pytest.raises(InputError, match=r"none of the images is there(?s:.)*--images"):
        read_set(tmp_path / "min.json", "labelstudio")


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_tables_of_label_studio(suffix: str, delimiter: str, tmp_path: Path) -> None:
    photo(tmp_path / "images/a.jpg")
    sides = {"x": 10, "y": 10, "width": 20, "height": 40, "rotation": 0}
    cell = json.dumps([{**sides, "rectanglelabels": ["cat"], "note": "two,\nlines"}])
    text = io.StringIO()
    table = csv.writer(text, delimiter=delimiter)
    table.writerow(["annotation_id", "annotator", "id", "image", "label", "lead_time"])
    table.writerow([1, "a@b.c", 1, "/data/upload/1/0123abcd-a.jpg", cell, 2.5])
    table.writerow([2, "a@b.c", 2, "gone.jpg", "", 2.5])
    (tmp_path / f"result{suffix}").write_text("\ufeff" + text.getvalue(), encoding="utf-8")
    objects = read(tmp_path / f"result{suffix}", "labelstudio")
    assert boxes(objects) == [("a.jpg", "cat", list(BOX))] and "gone.jpg" in objects.problems[0]


@pytest.mark.parametrize(
    "packed", [[], [1, 2], "text", [300], brush(np.ones((HEIGHT, WIDTH), bool))[:-30], [255] * 60]
)
def test_damaged_brushes(packed: object) -> None:
    with pytest.raises(ValueError):
        decode_brush(packed, (HEIGHT, WIDTH))


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        (
            "via.json",
            json.dumps(via2(region("rect", {"class": "cat"}, **RECT))),
            "an image of the annotations",
        ),
        ("via.json", json.dumps({"_via_img_metadata": {"a": {"regions": []}}}), "no file name"),
        ("labels.json", '[{"data": {"image": "a.jpg"}, "annotations": []}]', "none of the images"),
    ],
)
def test_faults_of_files(name: str, content: str, error: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises((InputError, FormatError), match=error):
        read_set(tmp_path / name, detect_format(tmp_path / name))


def test_data_sets_read_them_as_they_are(tmp_path: Path) -> None:
    photo(tmp_path / "a.jpg")
    for split in ("train", "val"):
        data = via2(region("rect", {"class": "cat"}, **RECT))
        (tmp_path / f"via_{split}.json").write_text(json.dumps(data), encoding="utf-8")
    dataset = AnnotatedDetection(tmp_path, split="val")
    assert len(dataset) == 1 and dataset.class_names == ("cat",)
    assert dataset[0].boxes.tolist() == [list(BOX)]
    with pytest.raises(OarError, match="no such subset"):
        len(AnnotatedDetection(tmp_path, split="test"))
    report = convert_data(tmp_path, tmp_path / "out", "yolo")
    assert report.source_format == "via" and report.images == 2
    assert len(AnnotatedDetection(tmp_path / "out", split="train")) == 1
