"""framework.vision.annotations: YOLO, CVAT and COCO in and out, and what is said of lines that are none."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.coco import coco_dict, read_coco
from framework.vision.annotations.cvat import cvat_xml, read_cvat
from framework.vision.annotations.objects import AnnotatedObject, join_outlines, signed_area
from framework.vision.annotations.voc import read_voc_folder
from framework.vision.annotations.yolo import read_yolo, yolo_lines


def photo(path: Path, size_hw: tuple[int, int] = (50, 100)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.write(path, np.full((*size_hw, 3), 90, np.uint8))
    return path


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def ultralytics(
    root: Path, data: str = "path: .\ntrain: images/train\nval: images/val\nnames: {0: cat, 1: dog}\n"
) -> Path:
    photo(root / "images/train/a.jpg")
    photo(root / "images/train/deep/b.png")
    photo(root / "images/val/c.jpg")
    text(root / "labels/train/a.txt", "0 0.5 0.5 0.2 0.4\n1 0.1 0.1 0.3 0.1 0.3 0.5\n")
    text(root / "labels/val/c.txt", "1 0.5 0.5 1 1 0.87\n")
    return text(root / "data.yaml", data)


def test_a_data_set_of_ultralytics(tmp_path: Path) -> None:
    read = read_yolo(ultralytics(tmp_path), "train")
    assert read.class_names == ("cat", "dog") and [one.name for one in read.images] == [
        "train/a.jpg",
        "train/deep/b.png",
    ]
    box, outline = read.images[0].objects
    assert (box.label, box.box, box.outlines) == ("cat", (40, 15, 60, 35), ())
    assert outline.label == "dog" and outline.box == pytest.approx((10, 5, 30, 25))
    assert outline.outlines[0].tolist() == pytest.approx(np.array([[10, 5], [30, 5], [30, 25]]))
    assert read.images[1].objects == () and "1 images have no text file" in read.notes[0]
    everything = read_yolo(tmp_path)
    assert [one.split for one in everything.images] == ["train", "train", "val"]
    assert everything.images[2].objects[0].box == (0, 0, 100, 50) and "a score" in everything.notes[0]


@pytest.mark.parametrize(
    "data",
    [
        "train: ../images/train\nval: ../images/val\nnc: 2\nnames: [cat, dog]\n",  # Roboflow
        "train: [images/train]\nvalid: images/val\nnames: [cat, dog]\n",
        "train: train.txt\nnames: [cat, dog]\n",
        "path: /nowhere\ntrain: images/train\nnames:\n  0: cat\n  1: dog\n",
        "path: C:\\Users\\me\\set\ntrain: images\\train\nnames: [cat, dog]\n",
        "train: ..\\images\\train\nnames: [cat, dog]\n",
        "train: windows.txt\nnames: [cat, dog]\n",
    ],
)
def test_spellings_of_a_data_yaml(tmp_path: Path, data: str) -> None:
    root = tmp_path / "set"
    text(root / "train.txt", "./images/train/a.jpg\nimages/train/deep/b.png\n\n")
    text(root / "windows.txt", ".\\images\\train\\a.jpg\nimages\\train\\deep\\b.png\n")
    assert len(read_yolo(ultralytics(root, data), "train").images) == 2


@pytest.mark.parametrize(
    "train",
    [
        "/content/my-set-1/images/train",
        "my-set-1/images/train",
        "C:\\\\me\\\\images\\\\train",
        "elsewhere.txt",
    ],
)
def test_paths_of_another_machine(tmp_path: Path, train: str) -> None:
    """Roboflow's notebooks write the whole path, or one from the folder above."""
    text(tmp_path / "elsewhere.txt", "/content/a/images/train/a.jpg\n/content/a/images/train/deep/b.png\n")
    read = read_yolo(ultralytics(tmp_path, f"train: {train}\nval: images/val\nnames: [cat, dog]\n"))
    assert [one.split for one in read.images] == ["train", "train", "val"]
    assert any("is taken" in line for line in read.notes) == ("elsewhere" not in train)
    # One name alone is no end: other data may have a folder of this name.
    with pytest.raises(InputError, match="no such folder of images"):
        read_yolo(ultralytics(tmp_path, "train: /gone/images\nnames: [cat, dog]\n"))


def test_separators_of_windows_in_double_quotes_are_explained(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"no YAML\n(.*\n)*.*unknown escape(.*\n)*.*in double ones"):
        read_yolo(text(tmp_path / "data.yaml", 'train: "images\\images"\nnames: [cat]\n'))


def test_a_folder_as_labelimg_leaves_it(tmp_path: Path) -> None:
    photo(tmp_path / "a b.jpg")
    text(tmp_path / "a b.txt", "1 0.5 0.5 0.2 0.4\n")
    text(tmp_path / "classes.txt", "cat\ndog\n")
    read = read_yolo(tmp_path)
    assert read.class_names == ("cat", "dog") and [one.label for one in read.images[0].objects] == ["dog"]


def test_names_alone_in_a_data_yaml(tmp_path: Path) -> None:
    """As supervision writes it."""
    ultralytics(tmp_path, "names:\n- cat\n- dog\nnc: 2\n")
    assert [len(one.objects) for one in read_yolo(tmp_path, "train").images] == [2, 0]
    assert len(read_yolo(tmp_path).images) == 3


def test_darknets_files_as_cvat_writes_them(tmp_path: Path) -> None:
    photo(tmp_path / "obj_train_data/a.jpg")
    text(tmp_path / "obj_train_data/a.txt", "1 0.5 0.5 0.2 0.4\n")
    text(tmp_path / "obj.names", "cat\ndog\n")
    text(tmp_path / "train.txt", "data/obj_train_data/a.jpg\n")
    text(
        tmp_path / "obj.data",
        "classes = 2\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n",
    )
    read = read_yolo(tmp_path, "train")
    assert read.class_names == ("cat", "dog") and read.images[0].objects[0].label == "dog"
    with pytest.raises(InputError, match="no such part"):
        read_yolo(tmp_path, "val")


def test_lines_that_are_left_out(tmp_path: Path) -> None:
    ultralytics(tmp_path)
    text(
        tmp_path / "labels/train/a.txt",
        "0 0.5 0.5 0.2 0.2\n0 0.5  0.5 0.2 0.2\n0 0.9 0.5 0.4 0.2\n"
        "0 0.5 0.5 0 0.2\n0 0.9 0.5 0.205 0.2\n0 1.5 0.5 0.2 0.2\n0 0.5 0.5 -0.2 0.2\n",
    )
    read = read_yolo(tmp_path, "train")
    assert [one.box for one in read.images[0].objects] == [
        pytest.approx((40, 20, 60, 30)),
        pytest.approx((70, 20, 100, 30)),
        pytest.approx((79.75, 20, 100, 30)),
    ]
    assert [problem.partition("line ")[2] for problem in read.problems] == [
        "2: it comes twice",
        "4: 0 0.5 0.5 0 0.2 has no area in its image",
        "6: 0 1.5 0.5 0.2 0.2 has no area in its image",
        "7: 0 0.5 0.5 -0.2 0.2 has a side below 0",
    ]
    assert any("an object reaches beyond its image and is cut there" in note for note in read.notes)


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("0 12 20 30 40", InputError, "coordinates are pixels"),
        ("2 0.5 0.5 0.1 0.1", InputError, "a class has no name(?s:.)*class 2(?s:.)*0 to 1"),
        ("cat 0.5 0.5 0.1 0.1", FormatError, "no object of YOLO's format"),
        ("0 0.5 0.5", FormatError, "line 1: the line is no object"),
        ("0 0.5 0.5 nan 0.1", FormatError, "no object"),
        ("0 0.1 0.1 0.2 0.2 0.3 0.3 0.4", FormatError, "no object"),
    ],
)
def test_lines_that_are_wrong(tmp_path: Path, line: str, error: type[Exception], message: str) -> None:
    ultralytics(tmp_path)
    text(tmp_path / "labels/train/a.txt", line)
    with pytest.raises(error, match=message):
        read_yolo(tmp_path, "train")


def test_keypoints_behind_a_box(tmp_path: Path) -> None:
    ultralytics(tmp_path, "train: images/train\nkpt_shape: [2, 3]\nnames: [cat, dog]\n")
    text(tmp_path / "labels/train/a.txt", "0 0.5 0.5 0.2 0.4 0.1 0.1 2 0.3 0.3 1\n")
    read = read_yolo(tmp_path, "train")
    assert read.images[0].objects[0].box == pytest.approx((40, 15, 60, 35)) and "keypoints" in read.notes[0]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("train: images/gone\nnames: [a]\n", InputError, "no such folder of images(?s:.)*images/gone"),
        ("train: images/train\n", FormatError, "needs a name of its own"),
        ("train: images/train\nnames: [a, ]\nnames: {0: a, 1: }\n", FormatError, "needs a name of its own"),
        ("train: images/train\nnames: {1: a, 2: b}\n", FormatError, "the numbers of the classes have gaps"),
        ("test: images/val\nnames: [a]\n", InputError, "no such part"),
        ("- a\n", FormatError, "describes no data set"),
        ("a: [", FormatError, "no YAML"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, data: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_yolo(ultralytics(tmp_path, data), "train" if data.startswith("test") else "")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("[no, yes]", ("no", "yes")),
        ("{0: on, 1: null}", ("on", "null")),
        ("[01, 1.50]", ("01", "1.50")),
        ("\n  '0': 2024-01-02\n  '1': 'true'\n", ("2024-01-02", "true")),
    ],
)
def test_names_are_what_is_written(tmp_path: Path, names: str, expected: tuple[str, ...]) -> None:
    file = ultralytics(tmp_path, f"train: images/train\nnames: {names}\n")
    assert read_yolo(file, "train").class_names == expected


def test_outlines_and_boxes_as_lines() -> None:
    square = np.array([[10.0, 5], [30, 5], [30, 25], [10, 25]])
    ring = np.zeros((20, 20), bool)
    ring[2:18, 2:18] = True
    ring[8:12, 8:12] = False
    objects = [
        AnnotatedObject("dog", (10, 5, 30, 25), (square,)),
        AnnotatedObject("cat", (40, 10, 60, 30), (), ring),
    ]
    lines = list(yolo_lines(objects, ("cat", "dog"), (50, 100), segments=True))
    assert lines[0] == "1 0.100000 0.100000 0.300000 0.100000 0.300000 0.500000 0.100000 0.500000\n"
    points = np.array(lines[1].split()[1:], float).reshape(-1, 2) * (100, 50)
    assert abs(signed_area(points)) == 256 - 16
    assert points.min(axis=0).tolist() == [42, 12]
    assert (
        list(yolo_lines(objects, ("cat", "dog"), (50, 100), segments=False))[1]
        == "0 0.500000 0.400000 0.200000 0.400000\n"
    )


def test_the_outline_of_a_mask_has_its_pixels() -> None:
    full = AnnotatedObject("a", (10, 10, 15, 14), (), np.ones((4, 5), bool))
    corner = np.ones((4, 5), bool)
    corner[:2, 3:] = False
    for one in (full, AnnotatedObject("a", (10, 10, 15, 14), (), corner)):
        again = AnnotatedObject("a", one.box, one.find_outlines())
        assert np.array_equal(again.fill((30, 40)), one.fill((30, 40)))


def test_holes_of_a_mask() -> None:
    ring, corners = np.ones((7, 8), bool), np.ones((7, 8), bool)
    ring[2:5, 3:6], corners[:2, :2] = False, False
    assert AnnotatedObject("a", (0, 0, 8, 7), (), ring).has_holes
    assert not AnnotatedObject("a", (0, 0, 8, 7), (), corners).has_holes
    assert not AnnotatedObject("a", (0, 0, 8, 7)).has_holes


def test_lines_of_yolo_keep_the_holes_of_a_mask(tmp_path: Path) -> None:
    """As general_json2yolo writes them (ultralytics#1862, cvat#7520)."""
    photo(tmp_path / "a.jpg")
    mask = np.zeros((50, 100), bool)
    mask[5:40, 10:60], mask[10:30, 20:40], mask[15:20, 25:35], mask[33:36, 45:50] = True, False, True, False
    one = AnnotatedObject("a", (0, 0, 100, 50), (), mask)
    text(tmp_path / "a.txt", next(yolo_lines([one], ["a"], (50, 100), segments=True)))
    text(tmp_path / "classes.txt", "a\n")
    read = read_yolo(tmp_path).images[0].objects[0]
    assert np.count_nonzero(read.fill((50, 100)) != mask) <= 8  # corners of holes are cut by half a pixel


def test_the_name_of_a_class_in_the_place_of_its_number(tmp_path: Path) -> None:
    ultralytics(tmp_path, "train: images/train\nval: images/val\nnames: [gun, gun sight]\n")
    text(tmp_path / "labels/val/c.txt", "gun sight 0.5 0.5 0.2 0.2\n")
    with pytest.raises(FormatError, match=r"name of a class in the place(?s:.)*1 for 'gun sight'"):
        read_yolo(tmp_path / "data.yaml", "val")


def test_a_folder_that_is_the_whole_machine(tmp_path: Path) -> None:
    ultralytics(tmp_path, f"path: {tmp_path.anchor}\ntrain: .\nval: .\nnames: [a]\n")
    with pytest.raises(InputError, match="the whole file system"):
        read_yolo(tmp_path / "data.yaml", "train")


def test_runs_that_no_integer_holds(tmp_path: Path) -> None:
    shape = f'<mask label="cat" rle="1, {10**20}" left="0" top="0" width="2" height="2"></mask>'
    shape += f'<mask label="cat" rle="0, {10**12}" left="0" top="0" width="1000000" height="1000000"></mask>'
    image_entry = f'<image id="0" name="a.jpg" width="9" height="9">{shape}</image>'
    names = "<meta><task><labels><label><name>cat</name></label></labels></task></meta>"
    read = read_cvat(text(tmp_path / "a.xml", f"<annotations>{names}{image_entry}</annotations>"))
    assert not read.images[0].objects and "pixels for a mask of 2 x 2" in read.problems[0]
    assert "1000000 x 1000000 pixels is too large" in read.problems[1]


def test_outlines_are_joined_without_losing_area() -> None:
    one = np.array([[0.0, 0], [4, 0], [4, 4], [0, 4]])
    joined = join_outlines([one, one + 10, one + np.array([0, 20])])
    assert abs(signed_area(joined)) == pytest.approx(48)


CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations><version>1.1</version><meta><task><labels>
<label><name>dog</name><attributes><attribute><name>breed</name></attribute></attributes></label>
<label><name>cat</name></label></labels></task></meta>
<image id="0" name="cam/a.jpg" width="100" height="50" subset="Train">
<box label="dog" source="manual" occluded="1" xtl="10.5" ytl="5.00" xbr="30" ybr="25" z_order="0">
<attribute name="breed">pug</attribute></box>
<box label="cat" xtl="40" ytl="10" xbr="60" ybr="20" rotation="90"></box>
<polygon label="cat" points="1,1;9,1;9,9"></polygon>
<mask label="cat" rle="1, 2, 2, 3" left="70" top="30" width="4" height="2"></mask>
<ellipse label="cat" cx="50" cy="25" rx="10" ry="5"></ellipse>
<polyline label="dog" points="1,1;2,2"></polyline>
<points label="dog" points="1,1"></points>
<polygon label="cat" points="1,1;2,2"></polygon>
<tag label="cat"></tag>
</image>
<image id="1" name="b.jpg" width="100" height="50" subset="Validation"></image>
</annotations>"""


def test_shapes_of_cvat(tmp_path: Path) -> None:
    photo(tmp_path / "images/cam/a.jpg")
    photo(tmp_path / "images/b.jpg")
    read = read_cvat(text(tmp_path / "annotations.xml", CVAT))
    assert read.class_names == ("dog", "cat") and [one.split for one in read.images] == ["train", "val"]
    assert read.images[0].path == tmp_path / "images/cam/a.jpg"
    box, turned, polygon, mask, ellipse = read.images[0].objects
    assert box.box == (10.5, 5, 30, 25) and box.attributes == {"breed": "pug", "occluded": "1"}
    assert turned.box == pytest.approx((45, 5, 55, 25)) and len(turned.outlines[0]) == 4
    assert polygon.outlines[0].tolist() == [[1, 1], [9, 1], [9, 9]]
    assert mask.box == (71, 30, 74, 32) and mask.mask is not None
    assert mask.mask.tolist() == [[True, True, False], [True, True, True]]
    assert ellipse.box == pytest.approx((40, 20, 60, 30), abs=0.2)
    assert len(read.problems) == 4 and "1 x polyline dog, which has no area" in "".join(read.problems)
    assert "2 points, but a polygon has three or more" in read.problems[0]


def test_cvat_there_and_back(tmp_path: Path) -> None:
    first = read_cvat(text(tmp_path / "annotations.xml", CVAT))
    (tmp_path / "again.xml").write_bytes(cvat_xml(first.images, first.class_names))
    again = read_cvat(tmp_path / "again.xml")
    assert again.class_names == first.class_names and again.problems == ()
    for one, other in zip(first.images[0].objects, again.images[0].objects, strict=True):
        assert one.label == other.label and other.box == pytest.approx(one.box, abs=0.01)
        assert one.attributes == other.attributes and np.array_equal(
            one.fill((50, 100)), other.fill((50, 100))
        )
    root = ElementTree.parse(tmp_path / "again.xml").getroot()
    assert [one.text for one in root.iter("version")] == ["1.1"] and len(root.findall("image")) == 2


def test_polygons_of_a_group_are_one_object(tmp_path: Path) -> None:
    photo(tmp_path / "images/a.jpg")
    shapes = "".join(
        f'<polygon label="{label}" group_id="{group}" points="{x},1;{x + 8},1;{x + 8},9"/>'
        for label, group, x in (("cat", 1, 1), ("cat", 1, 20), ("dog", 1, 40), ("cat", 0, 60), ("cat", 0, 80))
    )
    boxes = '<box label="dog" group_id="2" xtl="1" ytl="1" xbr="5" ybr="5"/>' * 2
    entry = f'<image name="a.jpg" width="100" height="50">{shapes}{boxes}</image>'
    read = read_cvat(text(tmp_path / "annotations.xml", f"<annotations>{entry}</annotations>"))
    objects = read.images[0].objects
    assert [(one.label, len(one.outlines)) for one in objects] == [
        *(("cat", 2), ("dog", 1), ("cat", 1), ("cat", 1)),
        *(("dog", 0), ("dog", 0)),
    ]
    assert objects[0].box == (1, 1, 28, 9) and read.notes == ("2 grouped polygons are 1 objects",)
    (tmp_path / "again.xml").write_bytes(cvat_xml(read.images, read.class_names))
    again = read_cvat(tmp_path / "again.xml").images[0].objects
    assert [(one.label, len(one.outlines)) for one in again] == [
        (one.label, len(one.outlines)) for one in objects
    ]


def test_files_of_cvat_that_are_wrong(tmp_path: Path) -> None:
    for content, error, message in (
        ("<annotation/>", FormatError, "the file is not CVAT's"),
        ("<annotations/>", InputError, "the file has no images"),
        ("<annotations><track/></annotations>", InputError, "tracks of a video(?s:.)*oar data convert"),
        ('<annotations><image id="1"/></annotations>', FormatError, "an image has no name"),
        ("<!DOCTYPE a><annotations/>", FormatError, "document type"),
        ('<annotations><image name="a"/></annotations>', InputError, "the file has no label"),
    ):
        with pytest.raises(error, match=message):
            read_cvat(text(tmp_path / "a.xml", content))


def test_coco_of_masks_and_crowds(tmp_path: Path) -> None:
    read = read_cvat(text(tmp_path / "annotations.xml", CVAT))
    data = coco_dict(read.images, read.class_names)
    annotations = data["annotations"]
    assert isinstance(annotations, list)
    _, _, polygon, mask, _ = annotations
    assert isinstance(polygon, dict) and polygon["area"] == 32 and polygon["bbox"] == [1, 1, 8, 8]
    assert isinstance(mask, dict) and mask["area"] == 5 and isinstance(mask["segmentation"], dict)


def test_an_object_of_coco_with_damaged_run_lengths_keeps_its_box(tmp_path: Path) -> None:
    box = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 8, 8]}
    empty = {"size": [20, 30], "counts": [600]}
    start_and_length = {"size": [20, 30], "counts": [21, 8, 41, 8]}
    data = {
        "images": [{"id": 1, "file_name": "a.jpg", "height": 20, "width": 30}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": 1, **box, "segmentation": start_and_length},
            {"id": 2, **box, "segmentation": empty},
            {"id": 3, **box, "bbox": None, "segmentation": start_and_length},
        ],
    }
    read = read_coco(text(tmp_path / "a.json", json.dumps(data)), tmp_path)
    assert [one.box for one in read.images[0].objects] == [(1, 1, 9, 9)] * 2
    (note,), (problem,) = read.notes, read.problems
    assert "1 objects have an outline" in note and "annotation 1: no mask, but run lengths" in note
    assert "annotation 3 on image 1: neither a box" in problem


def test_outlines_of_coco_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    box = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 8, 8]}
    outlines = ([[0, 20, 30, 5, 6, 7, 8]], [[1, 1, 9, 1, 9, 9], [1, 1]], [[]], [], [[1, 1, 9, 1, 9, 9]])
    data = {
        "images": [{"id": 1, "file_name": "a.jpg", "height": 20, "width": 30}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": key, **box, "segmentation": one} for key, one in enumerate(outlines, start=1)],
    }
    read = read_coco(text(tmp_path / "a.json", json.dumps(data)), tmp_path)
    assert [len(one.outlines) for one in read.images[0].objects] == [0, 1, 0, 0, 1]
    (note,) = read.notes
    assert (
        note.startswith("2 objects have an outline")
        and "annotation 1: no mask" in note
        and "annotation 2: 1 of 2" in note
    )


def test_turned_boxes_of_rolabelimg_and_boxes_without_an_area(tmp_path: Path) -> None:
    """The corners by roLabelImg's own formula; swapped corners were written on as sides below 0."""
    photo(tmp_path / "a.jpg", (100, 200))
    turned = "<robndbox><cx>50</cx><cy>40</cy><w>40</w><h>20</h><angle>{}</angle></robndbox>"
    swapped = "<bndbox><xmin>60</xmin><ymin>40</ymin><xmax>10</xmax><ymax>20</ymax></bndbox>"
    boxes = (turned.format(0.5), turned.format(np.pi / 2), swapped)
    objects = "".join(f"<object><type>robndbox</type><name>ship</name>{box}</object>" for box in boxes)
    text(tmp_path / "a.xml", f"<annotation>{objects}</annotation>")
    read = read_voc_folder(tmp_path)
    first, upright = read.images[0].objects
    cos, sin = np.cos(0.5), np.sin(0.5)
    corners = [
        (50 + cos * x - sin * y, 40 + sin * x + cos * y)
        for x, y in ((-20, -10), (20, -10), (20, 10), (-20, 10))
    ]
    np.testing.assert_allclose(first.outlines[0], corners)
    assert upright.box == pytest.approx((40, 20, 60, 60))
    assert len(read.problems) == 1 and "has no area" in read.problems[0]
    text(tmp_path / "a.xml", "<annotation><object><name>ship</name><robndbox/></object></annotation>")
    with pytest.raises(InputError, match=r"cx: None(?s:.)*<robndbox> with cx"):
        read_voc_folder(tmp_path)


def test_label_files_whose_images_are_called_otherwise(tmp_path: Path):
    """As an export of each fifth frame of a video wrote them (cvat#1294)."""
    for name in ("images/train/5.jpg", "images/train/10.jpg"):
        photo(tmp_path / name)
    (tmp_path / "labels/train").mkdir(parents=True)
    for name, text in (("5", ""), ("frame_000001", "0 .5 .5 .2 .4\n"), ("classes", "cat\n")):
        (tmp_path / f"labels/train/{name}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "data.yaml").write_text("train: images/train\nnames: [cat]\n", encoding="utf-8")
    notes = read_yolo(tmp_path, "train").notes
    assert len(notes) == 2 and "1 text files have no image of their name" in notes[0]
    assert "frame_000001.txt" in notes[0] and "10.jpg" in notes[1]
