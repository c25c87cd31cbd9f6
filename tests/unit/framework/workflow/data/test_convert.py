"""Data sets from one format to another: what is written, said, and refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from detection.data.annotated import CvatDetection, YoloDetection
from detection.data.coco import CocoDetection
from detection.data.voc import VocDetection
from framework.commands.data import main
from framework.core.errors import InputError
from framework.vision import image
from framework.vision.annotations.labelme_xml import read_labelme_xml
from framework.vision.video import VideoWriter
from framework.workflow.data.convert import Target, convert_data, detect_format
from segmentation.data.annotated import CvatMasks, YoloMasks
from segmentation.data.coco import CocoMasks

TRAIN = Path("annotations/instances_train.json")
SQUARE = [10, 5, 30, 5, 30, 25, 10, 25]


def coco(root: Path, *, outlines: bool = True, crowd: int = 0) -> Path:
    for name in ("a.jpg", "cam/b.jpg"):
        (root / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        image.write(root / "images" / name, np.full((50, 100, 3), 90, np.uint8))
    names = ("a.jpg", "cam/b.jpg")
    images = [{"id": key, "file_name": name, "height": 50, "width": 100} for key, name in enumerate(names)]
    annotations = [
        {
            "id": 1,
            "image_id": 0,
            "category_id": 5,
            "bbox": [10, 5, 20, 20],
            "iscrowd": 0,
            "attributes": {"age": "3"},
        },
        {"id": 2, "image_id": 1, "category_id": 2, "bbox": [10, 5, 20, 20], "iscrowd": crowd},
    ]
    for one in annotations:
        one["segmentation"] = [SQUARE] if outlines or one["id"] == 1 else []
    categories = [{"id": 5, "name": "dog"}, {"id": 2, "name": "cat"}]
    file = root / "all.json"
    file.write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories}), encoding="utf-8"
    )
    return file


def boxes_of(
    dataset: CocoDetection | YoloDetection | CvatDetection,
) -> list[tuple[list[int], list[list[float]]]]:
    samples = [dataset[index] for index in range(len(dataset))]
    return [
        (one.labels.tolist(), one.boxes.tolist())
        for one in samples
        if one.labels is not None and one.boxes is not None
    ]


def test_coco_to_yolo_to_cvat_and_back(tmp_path: Path) -> None:
    source = coco(tmp_path)
    report = convert_data(source, tmp_path / "yolo", "yolo")
    assert report.source_format == "coco" and report.counts == {"cat": 1, "dog": 1}
    assert "attributes of 1 objects are not written" in str(report) and "no part to evaluate" in str(report)
    assert (
        (tmp_path / "yolo/labels/cam/b.txt")
        .read_text(encoding="utf-8")
        .startswith("0 0.100000 0.100000 0.300000")
    )
    convert_data(tmp_path / "yolo/data.yaml", tmp_path / "cvat", "cvat")
    convert_data(tmp_path / "cvat/annotations.xml", tmp_path / "coco", "coco")
    expected = boxes_of(CocoDetection(tmp_path, Path("all.json"), "images"))
    assert boxes_of(YoloDetection(tmp_path / "yolo", "train")) == [
        (labels, [pytest.approx(box, abs=1e-3) for box in boxes]) for labels, boxes in expected
    ]
    assert boxes_of(CvatDetection(tmp_path / "cvat", split="train")) == expected
    assert boxes_of(CocoDetection(tmp_path / "coco", TRAIN, "images/train")) == expected


def test_masks_of_every_format_are_the_same(tmp_path: Path) -> None:
    source = coco(tmp_path)
    convert_data(source, tmp_path / "yolo", "yolo")
    convert_data(source, tmp_path / "cvat", "cvat")
    sets = [
        CocoMasks(tmp_path, Path("all.json"), "images"),
        YoloMasks(tmp_path / "yolo"),
        CvatMasks(tmp_path / "cvat"),
    ]
    assert {data.class_names for data in sets} == {("background", "cat", "dog")}
    for index in range(2):
        first, *others = (data[index].mask for data in sets)
        assert first is not None and first.max() and all(np.array_equal(first, other) for other in others)


def test_boxes_where_an_object_has_no_outline_and_no_crowds(tmp_path: Path) -> None:
    report = convert_data(coco(tmp_path, outlines=False), tmp_path / "yolo", "yolo")
    assert "boxes are written: 1 of 2 objects have no outline" in str(report)
    assert (tmp_path / "yolo/labels/a.txt").read_text(
        encoding="utf-8"
    ) == "1 0.200000 0.300000 0.200000 0.400000\n"
    report = convert_data(coco(tmp_path, crowd=1), tmp_path / "crowds", "yolo")
    assert "1 objects that are crowds or difficult" in str(report)
    assert (tmp_path / "crowds/labels/cam/b.txt").read_text(encoding="utf-8") == ""


@pytest.mark.parametrize("to", ["yolo", "coco", "cvat", "voc"])
def test_objects_outside_of_their_image_are_left_out(tmp_path: Path, to: Target) -> None:
    """ultralytics#13924: DOTA's crops have outlines beyond the image."""
    lines = "70 30 120 30 120 45 70 45 ship 0\n{} plane 0\n-9 -9 0 -9 0 20 -9 20 plane 0\n"
    (tmp_path / "labelTxt").mkdir()
    (tmp_path / "labelTxt/a.txt").write_text(lines.format("120 5 140 5 140 20 120 20"), encoding="utf-8")
    (tmp_path / "images").mkdir()
    image.write(tmp_path / "images/a.png", np.zeros((50, 100, 3), np.uint8))
    report = convert_data(tmp_path, tmp_path / "out", to)
    assert report.counts == {"plane": 0, "ship": 1}
    assert report.left_out == (
        "a.png: plane at 120, 5, 140, 20: no area on the image of 100 x 50",
        "a.png: plane at -9, -9, 0, 20: no area on the image of 100 x 50",
    )


@pytest.mark.parametrize(
    ("box", "note"),
    [
        ([60, 5, 90, 45], "1 of 2 objects reach beyond their images (a.jpg: dog at 60, 5, 150, 50)"),
        ([60, 5, 40, 45], None),
        (
            [0.1, 0.2, 0.3, 0.4],
            "1 of 2 objects are less than a pixel wide or high (a.jpg: dog at 0.1, 0.2, 0.4, ",
        ),
    ],
)
def test_boxes_that_cannot_be_right_are_told(tmp_path: Path, box: list[float], note: str | None) -> None:
    """mmdetection#3446: corners for sizes; such boxes were cut without a word."""
    file = coco(tmp_path)
    content = json.loads(file.read_text(encoding="utf-8"))
    content["annotations"][0] |= {"bbox": box, "segmentation": []}
    file.write_text(json.dumps(content), encoding="utf-8")
    notes = convert_data(file, tmp_path / "out", "coco").notes
    assert [one.startswith(note) for one in notes] == [True] if note else not notes
    content["annotations"][1] |= {"bbox": box, "segmentation": []}
    file.write_text(json.dumps(content), encoding="utf-8")
    notes = convert_data(file, tmp_path / "twice", "coco").notes
    assert not note or notes[0].endswith("?")


@pytest.mark.parametrize("to", ["yolo", "coco", "cvat", "voc"])
@pytest.mark.parametrize("field", ["name", "age"])
def test_half_characters_in_names_are_refused(tmp_path: Path, to: Target, field: str) -> None:
    file = coco(tmp_path)
    text = file.read_text(encoding="utf-8").replace('"dog"' if field == "name" else '"3"', '"d\\udce9"')
    file.write_text(text, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"all\.json: a name or an attribute is no valid Unicode(?s:.)*udce9"
    ):
        convert_data(file, tmp_path / "out", to)
    assert not (tmp_path / "out").exists()


def test_voc_and_labelme_are_known_by_their_files(tmp_path: Path) -> None:
    for folder in ("voc/images", "voc/annotations", "me"):
        (tmp_path / folder).mkdir(parents=True)
    pixels = np.full((50, 100, 3), 90, np.uint8)
    image.write(tmp_path / "voc/images/a.jpg", pixels)
    image.write(tmp_path / "voc/images/b.jpg", pixels)
    box = "<bndbox><xmin>11</xmin><ymin>6</ymin><xmax>30</xmax><ymax>25</ymax></bndbox>"
    size = "<size><width>100</width><height>50</height></size>"
    xml = f"<annotation>{size}<object><name>dog</name>{box}</object></annotation>"
    (tmp_path / "voc/annotations/a.xml").write_text(xml, encoding="utf-8")
    report = convert_data(tmp_path / "voc", tmp_path / "out", "yolo")
    assert (report.source_format, report.counts) == ("voc", {"dog": 1}) and "b.jpg has no annotation" in str(
        report
    )
    assert (tmp_path / "out/labels/a.txt").read_text(
        encoding="utf-8"
    ) == "0 0.200000 0.300000 0.200000 0.400000\n"
    image.write(tmp_path / "me/a.jpg", pixels)
    shapes = [
        {"label": "dog", "points": [[10, 5], [30, 25]], "shape_type": "rectangle"},
        {"label": "dog", "points": [[10, 5], [30, 25]], "shape_type": "line"},
    ]
    (tmp_path / "me/a.json").write_text(
        json.dumps({"shapes": shapes, "imagePath": "a.jpg"}), encoding="utf-8"
    )
    report = convert_data(tmp_path / "me", tmp_path / "out2", "cvat")
    assert report.source_format == "labelme" and "1 line dog: no area" in str(report)


def test_voc_as_a_target_and_back(tmp_path: Path) -> None:
    source = coco(tmp_path, crowd=1)
    convert_data(source, tmp_path / "yolo", "cvat")
    report = convert_data(source, tmp_path / "voc", "voc")
    assert report.files == (tmp_path / "voc/Annotations",) and "the boxes of 2 outlines" in str(report)
    assert sorted(path.name for path in (tmp_path / "voc/JPEGImages").iterdir()) == ["a.jpg", "cam_b.jpg"]
    data = VocDetection(tmp_path / "voc", "train")
    assert data.class_names == ("cat", "dog") and len(data) == 2
    first, second = data[0], data[1]
    assert first.boxes is not None and first.boxes.tolist() == [[10, 5, 30, 25]]
    assert second.valid is not None and second.valid.tolist() == [False], "a crowd is difficult"
    again = convert_data(tmp_path / "voc", tmp_path / "coco", "coco")
    assert again.source_format == "voc" and (tmp_path / "coco" / TRAIN).is_file()
    data = json.loads((tmp_path / "coco" / TRAIN).read_text(encoding="utf-8"))
    assert [one.get("attributes") for one in data["annotations"]] == [{"age": "3"}, None]
    assert (tmp_path / "voc/labelmap.txt").read_text(encoding="utf-8").splitlines()[1:] == [
        "cat:::",
        "dog:::",
    ]


def test_splits_and_names_of_voc(tmp_path: Path) -> None:
    pixels = np.full((50, 100, 3), 90, np.uint8)
    for name in ("train/a.jpg", "val/a.jpg", "val/b.jpg"):
        (tmp_path / "in/images" / name).parent.mkdir(parents=True, exist_ok=True)
        image.write(tmp_path / "in/images" / name, pixels)
        text = tmp_path / "in/labels" / name
        text.parent.mkdir(parents=True, exist_ok=True)
        text.with_suffix(".txt").write_text("1 0.5 0.5 0.25 0.5\n", encoding="utf-8")
    yaml_file = tmp_path / "in/data.yaml"
    yaml_file.write_text("train: images/train\nval: images/val\nnames: [zebra, ant]\n", encoding="utf-8")
    report = convert_data(yaml_file, tmp_path / "out", "voc")
    assert "read again they are sorted, here zebra, ant" in str(report)
    lists = tmp_path / "out/ImageSets/Main"
    assert (lists / "train.txt").read_text(encoding="utf-8") == "train_a\n"
    assert (lists / "val.txt").read_text(encoding="utf-8") == "val_a\nval_b\n"
    boxes = VocDetection(tmp_path / "out", "val")[1].boxes
    assert boxes is not None and boxes.tolist() == [[37.5, 12.5, 62.5, 37.5]]
    convert_data(tmp_path / "out", tmp_path / "yolo", "yolo")
    assert sorted(path.name for path in (tmp_path / "yolo/images/val").iterdir()) == [
        "val_a.jpg",
        "val_b.jpg",
    ]


def test_a_file_a_split_of_cvat_and_of_coco(tmp_path: Path) -> None:
    convert_data(coco(tmp_path / "in"), tmp_path / "cvat", "cvat")
    for name in ("train", "val"):
        shutil.copy(tmp_path / "cvat/annotations.xml", tmp_path / f"cvat/{name}.xml")
    (tmp_path / "cvat/annotations.xml").unlink()
    assert detect_format(tmp_path / "cvat") == "cvat"
    for split in ("train", "val"):
        assert len(CvatDetection(tmp_path / "cvat", split=split)) == 2
        assert len(CvatMasks(tmp_path / "cvat", split=split)) == 2
    report = convert_data(tmp_path / "cvat", tmp_path / "coco", "coco")
    names = ["instances_train.json", "instances_val.json"]
    assert [path.name for path in report.files] == names and report.images == 4
    data = json.loads((tmp_path / "coco" / TRAIN).read_text(encoding="utf-8"))
    assert [one["file_name"] for one in data["images"]] == ["a.jpg", "cam/b.jpg"]
    assert (tmp_path / "coco/images/val/cam/b.jpg").is_file()
    assert detect_format(tmp_path / "coco") == "coco"
    report = convert_data(tmp_path / "coco", tmp_path / "yolo", "yolo")
    assert report.counts == {"cat": 2, "dog": 2} and (tmp_path / "yolo/labels/val/a.txt").is_file()


def test_subsets_of_cvat_are_a_project_of_tasks(tmp_path: Path) -> None:
    """CVAT and Datumaro read images with a subset from a project alone, in the folder of their subset."""
    convert_data(coco(tmp_path / "in"), tmp_path / "cvat", "cvat")
    root = ElementTree.parse(tmp_path / "cvat/annotations.xml").getroot()
    assert root.findtext("meta/task/size") == "2" and root.find("meta/project") is None
    assert [one.get("subset") for one in root.findall("image")] == [None, None]
    for name in ("train", "val"):
        shutil.copy(tmp_path / "cvat/annotations.xml", tmp_path / f"cvat/{name}.xml")
    (tmp_path / "cvat/annotations.xml").unlink()
    convert_data(tmp_path / "cvat", tmp_path / "again", "cvat")
    root = ElementTree.parse(tmp_path / "again/annotations.xml").getroot()
    tasks = root.findall("meta/project/tasks/task")
    assert [one.findtext("subset") for one in tasks] == ["Train", "Validation"]
    assert [one.findtext("size") for one in tasks] == ["2", "2"] and root.find("meta/task") is None
    assert (root.findtext("meta/project/subsets") or "").split("\n") == ["Train", "Validation"]
    assert [one.text for one in root.findall("meta/project/labels/label/name")] == ["cat", "dog"]
    for one in root.findall("image"):
        assert (tmp_path / "again/images" / one.get("subset", "") / one.get("name", "")).is_file()
        assert tasks[int(one.get("task_id", ""))].findtext("subset") == one.get("subset")
    assert len({one.get("id") for one in root.findall("image")}) == 4
    expected = boxes_of(CocoDetection(tmp_path / "in", Path("all.json"), "images"))
    assert boxes_of(CvatDetection(tmp_path / "again", split="val")) == expected
    report = convert_data(tmp_path / "again", tmp_path / "yolo", "yolo")
    assert report.images == 4 and (tmp_path / "yolo/labels/val/cam/b.txt").is_file()


@pytest.mark.parametrize(
    ("files", "images"),
    [
        (
            ("annotations/instances_train2017.json", "annotations/instances_val2017.json"),
            ("train2017", "val2017"),
        ),
        (("train/_annotations.coco.json", "valid/_annotations.coco.json"), ("train", "valid")),
        (
            ("annotations/instances_train.json", "annotations/instances_val.json"),
            ("images/train", "images/val"),
        ),
    ],
)
def test_folders_of_coco(tmp_path: Path, files: tuple[str, ...], images: tuple[str, ...]) -> None:
    for file, folder in zip(files, images):
        source = coco(tmp_path / "scratch" / folder)
        (tmp_path / "in" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tmp_path / "in" / file)
        shutil.copytree(source.parent / "images", tmp_path / "in" / folder, dirs_exist_ok=True)
    (tmp_path / "in" / Path(files[0]).parent / "person_keypoints_train.json").write_text(
        "{}", encoding="utf-8"
    )
    report = convert_data(tmp_path / "in", tmp_path / "out", "yolo")
    assert report.source_format == "coco" and report.images == 4
    assert sorted(path.name for path in (tmp_path / "out/labels").iterdir()) == ["train", "val"]


def test_coco_is_written_with_the_lists_that_other_tools_ask_for(tmp_path: Path) -> None:
    convert_data(coco(tmp_path / "in"), tmp_path / "out", "coco")
    data = json.loads((tmp_path / "out/annotations/instances_default.json").read_text(encoding="utf-8"))
    assert list(data) == ["info", "licenses", "categories", "images", "annotations"]


@pytest.mark.parametrize(
    "folders", [("Annotations", "Images"), ("images", "images"), ("", "")], ids=["capitals", "beside", "flat"]
)
def test_a_file_of_coco_for_each_image(tmp_path: Path, folders: tuple[str, str]) -> None:
    source = coco(tmp_path / "scratch")
    data = json.loads(source.read_text(encoding="utf-8"))
    for number, photo in enumerate(data["images"]):
        photo["file_name"] = f"{number}.jpg"
        (tmp_path / "in" / folders[1]).mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / folders[0]).mkdir(parents=True, exist_ok=True)
        image.write(tmp_path / "in" / folders[1] / f"{number}.jpg", np.full((50, 100, 3), 90, np.uint8))
        objects = [one for one in data["annotations"] if one["image_id"] == photo["id"]]
        one = {**data, "images": [photo], "annotations": objects}
        (tmp_path / "in" / folders[0] / f"{number}.json").write_text(json.dumps(one), encoding="utf-8")
    report = convert_data(tmp_path / "in", tmp_path / "out", "coco")
    assert report.images == 2 and report.counts == {"cat": 1, "dog": 1}
    shutil.copy(tmp_path / "in" / folders[0] / "0.json", tmp_path / "in" / folders[0] / "again.json")
    with pytest.raises(InputError, match="of one split and of the same images"):
        convert_data(tmp_path / "in", tmp_path / "twice", "coco")


def test_names_of_images_of_another_machine(tmp_path: Path) -> None:
    """No name leads out of the output, and Windows' separators and whole paths are read."""
    source = coco(tmp_path / "in")
    data = json.loads(source.read_text(encoding="utf-8"))
    for first, second in (
        ("..\\images\\a.jpg", "cam\\b.jpg"),
        ("C:\\photos\\a.jpg", "../images/cam/b.jpg"),
        (str(tmp_path / "in/images/a.jpg"), "/elsewhere/a.jpg"),
    ):
        data["images"][0]["file_name"], data["images"][1]["file_name"] = first, second
        if second == "/elsewhere/a.jpg":
            data["images"] = data["images"][:1]
            data["annotations"] = data["annotations"][:1]
        source.write_text(json.dumps(data), encoding="utf-8")
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        before = sorted(tmp_path.rglob("*"))
        convert_data(source, tmp_path / "out/here", "coco", images=tmp_path / "in/images")
        assert [one for one in sorted(tmp_path.rglob("*")) if "out" not in one.parts] == before
        assert any((tmp_path / "out/here/images").rglob("a.jpg"))
        assert len(CocoDetection(tmp_path / "in", Path("all.json"), "images")) == len(data["images"])
        assert len(CocoMasks(tmp_path / "in", Path("all.json"), "images")) == len(data["images"])


def test_images_that_do_not_belong_to_their_annotations(tmp_path: Path) -> None:
    source = coco(tmp_path / "in")
    image.write(tmp_path / "in/images/a.jpg", np.zeros((100, 50, 3), np.uint8))
    report = convert_data(source, tmp_path / "out", "coco")
    assert (report.images, report.counts) == (1, {"dog": 0, "cat": 1})
    assert report.left_out == (
        "a.jpg: the image is 50 wide and 100 high, but its annotation is of one that is 100 wide and 50 high",
    )
    image.write(tmp_path / "in/images/cam/b.jpg", np.zeros((100, 50, 3), np.uint8))
    with pytest.raises(InputError, match=r"all\.json: the images do not belong(.*\n)+.*cam/b\.jpg"):
        convert_data(source, tmp_path / "none", "coco")
    assert not (tmp_path / "none").exists()


def test_images_that_are_annotated_as_they_are_stored(tmp_path: Path) -> None:
    source = coco(tmp_path / "in")
    photo, mark = Image.new("RGB", (100, 50)), Image.Exif()
    mark[0x0112] = 6
    photo.save(tmp_path / "in/images/a.jpg", exif=mark)
    report = convert_data(source, tmp_path / "out", "coco")
    assert report.images == 2 and not report.left_out
    assert (
        "1 images are turned by their EXIF mark" in report.notes[0]
        and "orientation: stored" in report.notes[0]
    )


def test_annotations_of_which_nothing_can_be_used(tmp_path: Path) -> None:
    source = coco(tmp_path / "in", outlines=False)
    data = json.loads(source.read_text(encoding="utf-8"))
    runs = {"size": [50, 100], "counts": [1, 2]}
    data["annotations"][0].update(bbox={"x": 1}, segmentation=[])
    data["annotations"][1].update(bbox=None, segmentation=runs)
    source.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(
        InputError,
        match=r"nothing of these(.*\n)+.*neither a box.*damaged: the runs do not cover the mask",
    ):
        convert_data(source, tmp_path / "out", "coco")
    data["annotations"] = []  # no objects at all are no fault
    source.write_text(json.dumps(data), encoding="utf-8")
    assert convert_data(source, tmp_path / "out", "coco").images == 2


def test_crowds_alone_are_objects(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """CVAT marks masks as crowds; of a file that has nothing else nothing would be learnt."""
    source = coco(tmp_path, crowd=1)
    data = json.loads(source.read_text(encoding="utf-8"))
    dataset = CocoDetection(tmp_path, Path("all.json"), "images")
    assert [dataset[index].valid.tolist() for index in range(2)] == [[True], [False]]
    data["annotations"][0]["iscrowd"] = 1
    source.write_text(json.dumps(data), encoding="utf-8")
    report = convert_data(source, tmp_path / "out", "yolo")
    assert sum(report.counts.values()) == 2 and "all 2 objects are marked as crowds" in str(report)
    dataset = CocoDetection(tmp_path, Path("all.json"), "images")
    assert [dataset[index].valid.tolist() for index in range(2)] == [[True], [True]]
    assert "all 2 objects are marked as crowds" in caplog.text


PIXELS = np.full((50, 100, 3), 90, np.uint8)
VOC_BOX = "<bndbox><xmin>11</xmin><ymin>6</ymin><xmax>30</xmax><ymax>25</ymax></bndbox>"
VOC = f"<annotation><object><name>cat</name>{VOC_BOX}</object></annotation>"
OUTLINED = VOC.replace("<bndbox>", "<polygon><x1>11</x1><y1>6</y1></polygon><bndbox>")
CVAT = (
    '<annotations><image name="a.jpg" width="100" height="50">'
    '<box label="cat" xtl="10" ytl="5" xbr="30" ybr="25"/></image></annotations>'
)
SHAPE = {"label": "cat", "points": [[10, 5], [30, 25]], "shape_type": "rectangle"}
LABELME = json.dumps({"shapes": [SHAPE], "imagePath": "a.jpg"})


@pytest.mark.parametrize(
    ("kind", "photo", "files"),
    [
        ("voc", "a.jpg", {"a.xml": VOC}),  # Roboflow
        ("voc", "images/a.jpg", {"Annotations/a.xml": VOC}),  # Label Studio
        ("voc", "data/a.jpg", {"labels/a.xml": VOC}),  # FiftyOne
        ("voc", "images/a.jpg", {"annotations/a.xml": OUTLINED}),  # supervision
        ("cvat", "data/a.jpg", {"labels.xml": CVAT}),  # FiftyOne
        ("labelme", "a.jpg", {"a.json": LABELME}),
        ("yolo", "images/a.jpg", {"labels/a.txt": "0 0.2 0.3 0.2 0.4\n", "classes.txt": "cat\n"}),
        ("csv", "a.jpg", {"_annotations.csv": "filename,class,xmin,ymin,xmax,ymax\na.jpg,cat,10,5,30,25\n"}),
    ],
)
def test_a_folder_a_split(tmp_path: Path, kind: str, photo: str, files: dict[str, str]) -> None:
    for split in ("train", "valid"):
        for name in (photo, *files):
            (tmp_path / "in" / split / name).parent.mkdir(parents=True, exist_ok=True)
        image.write(tmp_path / "in" / split / photo, PIXELS)
        for name, content in files.items():
            (tmp_path / "in" / split / name).write_text(content, encoding="utf-8")
    (tmp_path / "in/README.txt").write_text("exported", encoding="utf-8")
    report = convert_data(tmp_path / "in", tmp_path / "out", "coco")
    assert report.source_format == kind and report.counts == {"cat": 2} and report.left_out == ()
    assert [path.name for path in report.files] == ["instances_train.json", "instances_val.json"]
    for split in ("train", "val"):
        data = CocoDetection(tmp_path / "out", Path(f"annotations/instances_{split}.json"), f"images/{split}")
        assert boxes_of(data) == [([0], [[10, 5, 30, 25]])]
    assert any("outlines of 1 objects are not read" in line for line in report.notes) == (
        OUTLINED in files.values()
    )


def test_the_folders_of_yolo_without_a_yaml_are_splits(tmp_path: Path) -> None:
    for split in ("train", "val"):
        for folder in ("images", "labels"):
            (tmp_path / "in" / folder / split).mkdir(parents=True)
        image.write(tmp_path / f"in/images/{split}/a.jpg", PIXELS)
        (tmp_path / f"in/labels/{split}/a.txt").write_text("0 0.2 0.3 0.2 0.4\n", encoding="utf-8")
    (tmp_path / "in/data.yaml").write_text("names: [cat]\n", encoding="utf-8")  # supervision
    report = convert_data(tmp_path / "in", tmp_path / "out", "voc")
    assert sorted(path.name for path in (tmp_path / "out/ImageSets/Main").iterdir()) == [
        "train.txt",
        "val.txt",
    ]
    assert report.images == 2


def test_a_test_part_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    """Roboflow writes its line into data.yaml whether there is such a part or not."""
    for folder in ("images", "labels"):
        (tmp_path / "in/train" / folder).mkdir(parents=True)
    image.write(tmp_path / "in/train/images/a.jpg", PIXELS)
    text = "train: ../train/images\nval: ../train/images\ntest: ../test/images\nnames: [cat]\n"
    (tmp_path / "in/data.yaml").write_text(text, encoding="utf-8")
    report = convert_data(tmp_path / "in", tmp_path / "out", "coco")
    assert report.images == 1 and "there is no ../test/images" in "".join(report.notes)
    (tmp_path / "in/data.yaml").write_text(text.replace("val: ../train", "val: ../valid"), encoding="utf-8")
    with pytest.raises(InputError, match="there is no such folder of images"):
        convert_data(tmp_path / "in", tmp_path / "again", "coco")


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file or folder"):
        convert_data(tmp_path / "none", tmp_path / "out", "coco")


def test_files_that_only_look_like_yolo_or_coco(tmp_path: Path) -> None:
    image.write(tmp_path / "a.jpg", PIXELS)
    (tmp_path / "README.txt").write_text("0 0.5 0.5 0.5 0.5\n", encoding="utf-8")
    (tmp_path / "settings.json").write_text(json.dumps({"images": [], "regions": {}}), encoding="utf-8")
    with pytest.raises(InputError, match="the format of these data is not known"):
        detect_format(tmp_path)


def test_the_frames_of_a_video_that_was_annotated(tmp_path: Path) -> None:
    with VideoWriter(tmp_path / "a.avi", 5, (48, 64)) as video:
        for _ in range(6):
            video.write(np.full((48, 64, 3), 90, np.uint8))
    shapes = "".join(
        f'<box frame="{at}" xtl="{x}" ytl="5" xbr="{x + 10}" ybr="15" outside="0"/>'
        for at, x in ((1, 0), (3, 20))
    )
    xml = tmp_path / "annotations.xml"
    xml.write_text(f'<annotations><track id="0" label="cat">{shapes}</track></annotations>', encoding="utf-8")
    report = convert_data(xml, tmp_path / "out", "coco", images=tmp_path / "a.avi")
    assert report.images == 6 and report.counts == {"cat": 3}
    data = json.loads((tmp_path / "out/annotations/instances_default.json").read_text(encoding="utf-8"))
    assert [one["bbox"][0] for one in data["annotations"]] == [0, 10, 20]
    assert data["images"][1]["file_name"] == "frame_000001.png" and data["images"][1]["height"] == 48


def test_the_xml_of_labelme(tmp_path: Path) -> None:
    image.write(tmp_path / "a.jpg", np.full((50, 100, 3), 90, np.uint8))
    points = "".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in ((10, 5), (30, 5), (30, 25)))
    kinds = (("dog", "0", ""), ("dog", "0", "<type>bounding_box</type>"), ("cat", "1", ""))
    objects = "".join(
        f"<object><name>{name}</name><deleted>{deleted}</deleted>{more}<polygon>{points}</polygon></object>"
        for name, deleted, more in kinds
    )
    mask = "<object><name>dog</name><segm><mask>m.png</mask></segm></object>"
    size = "<imagesize><nrows>50</nrows><ncols>100</ncols></imagesize>"
    (tmp_path / "a.xml").write_text(f"<annotation>{objects}{mask}{size}</annotation>", encoding="utf-8")
    report = convert_data(tmp_path, tmp_path / "out", "cvat")
    assert report.source_format == "labelme" and report.counts == {"dog": 2}
    assert "marked as deleted" in str(report) and "there is no mask m.png" in str(report)
    read = (tmp_path / "out/annotations.xml").read_text(encoding="utf-8")
    assert read.count("<polygon") == 1 and read.count("<box") == 1


def test_masks_and_parts_of_the_xml_of_labelme(tmp_path: Path) -> None:
    """As Datumaro writes them: a mask in a file with transparent pixels; an outline and the box around it."""
    image.write(tmp_path / "Images/val/a.jpg", np.full((50, 100, 3), 90, np.uint8))
    pixels = np.zeros((50, 100, 4), np.uint8)
    pixels[5:25, 10:30] = 255, 203, 0, 153
    (tmp_path / "Masks/val").mkdir(parents=True)
    Image.fromarray(pixels).save(tmp_path / "Masks/val/m.png")
    parts = "<id>{}</id><parts><hasparts>{}</hasparts><ispartof>{}</ispartof></parts>"
    points = "".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in ((40, 5), (60, 5), (60, 25)))
    corners = "".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in ((40, 5), (60, 5), (60, 25), (40, 25)))
    objects = (
        "<segm><mask>m.png</mask></segm>",
        f"{parts.format(1, 2, '')}<polygon>{points}</polygon>",
        f"{parts.format(2, '', 1)}<type>bounding_box</type><polygon>{corners}</polygon>",
        f"{parts.format(3, '', '')}<type>bounding_box</type><polygon>{corners}</polygon>",
        "<segm><mask>../val/m.png</mask></segm>",
    )
    xml = "".join(f"<object><name>dog</name>{one}</object>" for one in objects)
    (tmp_path / "Annotations/val").mkdir(parents=True)
    (tmp_path / "Annotations/val/a.xml").write_text(f"<annotation>{xml}</annotation>", encoding="utf-8")
    read = read_labelme_xml(tmp_path)
    found = [(one.box, one.has_shape) for one in read.images[0].objects]
    box = (40.0, 5.0, 60.0, 25.0)
    assert found == [((10, 5, 30, 25), True), (box, True), (box, False)]
    assert (read.images[0].objects[0].fill((50, 100)) == (pixels[..., 3] > 0)).all()
    assert len(read.problems) == 1 and "there is no mask ../val/m.png" in read.problems[0]


def test_what_cannot_be_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="the format of these data is not known"):
        detect_format(tmp_path)
    source = coco(tmp_path)
    (tmp_path / "images/a.jpg").unlink()
    with pytest.raises(InputError, match="1 of 2 images are not there"):
        convert_data(source, tmp_path / "out", "yolo")
    assert not (tmp_path / "out").exists()
    coco(tmp_path)
    assert main(["convert", str(source), str(tmp_path / "out"), "--to", "yolo", "--boxes_only"]) == 0
    assert "data.yaml: 2 objects of 2 classes" in capsys.readouterr().out
    assert main(["convert", str(source), str(tmp_path / "out"), "--to", "yolo"]) == 2
    assert "the output is there already" in capsys.readouterr().err


def test_the_lists_of_paddlex_are_splits(tmp_path: Path) -> None:
    """Pairs with Windows' separators, and names that hold blanks (PaddleX#1649, PaddleX#1528)."""
    for folder in ("JPEGImages", "Annotations"):
        (tmp_path / "in" / folder).mkdir(parents=True)
    for name, split in (("a (1)", "train"), ("b", "val")):
        image.write(tmp_path / f"in/JPEGImages/{name}.jpg", PIXELS)
        (tmp_path / f"in/Annotations/{name}.xml").write_text(VOC, encoding="utf-8")
        line = f"JPEGImages\\{name}.jpg Annotations\\{name}.xml\n"
        (tmp_path / f"in/{split}_list.txt").write_text(line, encoding="utf-8")
    report = convert_data(tmp_path / "in", tmp_path / "out", "coco")
    assert [path.name for path in report.files] == ["instances_train.json", "instances_val.json"]
