"""The formats of WIDER FACE, CrowdHuman, MOTChallenge, VisDrone and BDD100K, in the forms in which they are offered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from detection.data.annotated import AnnotatedDetection
from framework.commands.data import parser
from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.formats import Format, detect_format, read_set
from framework.vision.annotations.objects import AnnotatedSet


def save(path: Path) -> None:
    image.write(path, np.full((50, 100, 3), 90, np.uint8))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def told(read: AnnotatedSet) -> list[tuple[str, str, list[tuple[str, tuple[float, ...], bool]]]]:
    return [
        (image.split, image.name, [(one.label, one.box, one.is_valid) for one in image.objects])
        for image in read.images
    ]


def test_the_command_takes_every_format() -> None:
    for kind in get_args(Format):
        given = parser().parse_args(["convert", "in", "out", "--to", "coco", "--from", kind])
        assert given.source_format == kind


def test_wider_face(tmp_path: Path) -> None:
    lists = tmp_path / "wider_face_split"
    for split in ("train", "val"):
        for name in ("0--Parade/a.jpg", "1--Riot/a.jpg"):
            save(tmp_path / f"WIDER_{split}/images" / name)
    write(
        lists / "wider_face_train_bbx_gt.txt",
        "0--Parade/a.jpg\n3\n10 5 20 30 2 0 0 0 1 0 \n40 5 9 9 0 0 0 1 0 0 \n1 1 0 5 0 0 0 0 0 0\n"
        "1--Riot/a.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \n",
    )
    file = write(lists / "wider_face_val_bbx_gt.txt", "1--Riot/a.jpg\n1\n2.5 3 4 5 car\n")
    assert detect_format(tmp_path) == "widerface" == detect_format(file)
    read = read_set(tmp_path, "widerface")
    assert told(read) == [
        ("train", "0--Parade/a.jpg", [("face", (10, 5, 30, 35), True), ("face", (40, 5, 49, 14), False)]),
        ("train", "1--Riot/a.jpg", []),
        ("val", "1--Riot/a.jpg", [("car", (2.5, 3, 6.5, 8), True)]),
    ]
    assert read.images[0].path.parts[-4] == "WIDER_train" and read.images[2].path.parts[-4] == "WIDER_val"
    assert read.images[0].objects[0].attributes == {"blur": "2", "occlusion": "1"}
    assert len(read.problems) == 1 and "face 3: face: [1.0, 1.0, 1.0, 6.0] has no area" in read.problems[0]
    assert len(read_set(file, "widerface").images) == 1
    for text in ("1--Riot/a.jpg\n2\n1 1 5 5 0 0 0 0 0 0\n", "1--Riot/a.jpg\nface\n", "1 2 3\n1\n"):
        write(file, text)
        with pytest.raises(FormatError, match=r"wider_face_val_bbx_gt\.txt"):
            read_set(file, "widerface")


def test_crowd_human(tmp_path: Path) -> None:
    save(tmp_path / "Images/1,a0b.jpg")
    full = {"hbox": [1, 1, 3, 3], "vbox": [2, 2, 9, 9]}
    boxes = [
        {"tag": "person", "fbox": [-5, 4, 20, 70], "extra": {"occ": 1, "box_id": 0}, **full},
        {"tag": "person", "fbox": [5, 4, 20, 10], "extra": {"ignore": 1}, **full},
        {"tag": "mask", "fbox": [50, 4, 20, 10], "extra": {}, **full},
        {"tag": "person", "fbox": [50, 4, 0, 10], **full},
        {"tag": "person", "vbox": [50, 4, 9, 10]},
    ]
    line = json.dumps({"ID": "1,a0b", "gtboxes": boxes})
    file = write(tmp_path / "annotation_val.odgt", f"{line}\n")
    assert detect_format(tmp_path) == "crowdhuman" == detect_format(file)
    read = read_set(tmp_path, "crowdhuman")
    assert told(read) == [
        (
            "val",
            "Images/1,a0b.jpg",
            [
                ("person", (-5, 4, 15, 74), True),
                ("person", (5, 4, 25, 14), False),
                ("person", (50, 4, 70, 14), False),
            ],
        )
    ]
    assert len(read.problems) == 2 and read.class_names == ("person",)
    assert len(AnnotatedDetection(root=tmp_path, split="val")) == 1
    write(file, '{"ID": "b"}\n')
    with pytest.raises(FormatError, match="line 1: the line has no image with boxes"):
        read_set(file, "crowdhuman")


def test_mot_sequences(tmp_path: Path) -> None:
    lines = (
        "1,1,10,5,20,30,1,1,0.9\n1,2,40,5,9,9,0,7,1\n1,3,40,5,9,9,0,3,1\n2,1,11.5,5,20,30,0,1,0.9\n2,2,1,2\n"
    )
    for name in ("MOT17-02-DPM", "MOT17-02-SDP", "MOT17-04-SDP"):
        for frame in ("000001.jpg", "000002.jpg", "000003.jpg"):
            save(tmp_path / "train" / name / "img1" / frame)
        write(tmp_path / "train" / name / "gt/gt.txt", lines)
    save(tmp_path / "test/MOT17-01-DPM/img1/000001.jpg")
    assert detect_format(tmp_path) == "mot"
    read = read_set(tmp_path, "mot")
    first = [
        (
            "train",
            "MOT17-02-DPM/000001.jpg",
            [("pedestrian", (10, 5, 30, 35), True), ("pedestrian", (40, 5, 49, 14), False)],
        ),
        ("train", "MOT17-02-DPM/000002.jpg", [("pedestrian", (11.5, 5, 31.5, 35), False)]),
        ("train", "MOT17-02-DPM/000003.jpg", []),
    ]
    assert told(read)[:3] == first and len(read.images) == 6
    assert read.images[0].objects[0].attributes == {"track_id": "1"}
    assert "line 5: 4 columns, but a line has 6 or more" in read.problems[0]
    assert any("2 boxes of classes that are no persons" in note for note in read.notes)
    assert any("MOT17-02-SDP" in note for note in read.notes)
    one = tmp_path / "train/MOT17-04-SDP"
    write(one / "gt/labels.txt", "cat\ndog\n")
    write(one / "seqinfo.ini", "[Sequence]\nimDir=frames\n")
    write(one / "gt/gt.txt", "7,1,10,5,20,30,1,2,1\n7,1,10,5,20,30,1,3,1\n")
    save(one / "frames/frame_0007.png")
    read = read_set(one, "mot")
    assert told(read) == [("", "frame_0007.png", [("dog", (10, 5, 30, 35), True)])]
    assert "class 3, but gt/labels.txt has 2" in read.problems[0]
    write(one / "gt/gt.txt", "8,1,10,5,20,30\n")
    (one / "gt/labels.txt").unlink()
    with pytest.raises(InputError, match=r"1 frames with boxes are not there(?s:.*)received: 8"):
        read_set(one, "mot")


def test_vis_drone(tmp_path: Path) -> None:
    for split in ("train", "val"):
        folder = tmp_path / f"VisDrone2019-DET-{split}"
        save(folder / "images/a.jpg")
        write(folder / "annotations/a.txt", "10,5,20,30,1,4,0,2\n1,1,5,5,0,0,0,0,\n2,2,6,6,1,11,0,0\n")
    write(tmp_path / "VisDrone2019-DET-val/annotations/a.txt", "10,5,20,30,0,1,1,0\n1,1,5,5,1,12,0,0\n")
    assert detect_format(tmp_path) == "visdrone" == detect_format(tmp_path / "VisDrone2019-DET-val")
    read = read_set(tmp_path, "visdrone")
    assert told(read) == [
        ("train", "a.jpg", [("car", (10, 5, 30, 35), True)]),
        ("val", "a.jpg", [("pedestrian", (10, 5, 30, 35), False)]),
    ]
    assert len(read.class_names) == 10 and read.class_names[3] == "car"
    assert read.images[0].objects[0].attributes == {"occluded": "1"}
    assert "category 12" in read.problems[0] and "2 regions to ignore" in read.notes[0]
    with pytest.raises(InputError, match="there are no annotations of VisDrone"):
        read_set(tmp_path / "none", "visdrone")


@pytest.mark.parametrize("is_scalabel", [False, True])
def test_bdd100k(tmp_path: Path, is_scalabel: bool) -> None:
    """The last pixels are inside: Scalabel 0.3's `box2d_to_xyxy` makes (10, 5, 30, 25) of this box."""
    save(tmp_path / "images/100k/val/a.jpg")
    save(tmp_path / "images/100k/val/b.jpg")
    box = {"x1": 10, "y1": 5, "x2": 29, "y2": 24}
    labels = [
        {"category": "car", "box2d": box, "attributes": {"occluded": True, "trafficLightColor": "none"}},
        {"category": "rider", "box2d": box, "attributes": {"crowd": True}},
        {"category": "lane", "poly2d": []},
        {"category": "car", "box2d": {"x1": 1}},
    ]
    frames = [{"name": "a.jpg", "labels": labels}, {"name": "b.jpg", "labels": None}]
    data = {"frames": frames, "config": {}} if is_scalabel else frames
    file = write(tmp_path / "labels/det_val.json", json.dumps(data))
    assert detect_format(file) == "bdd100k" == detect_format(tmp_path / "labels")
    read = read_set(file, "bdd100k", tmp_path / "images")
    boxes = [("car", (10, 5, 30, 25), True), ("rider", (10, 5, 30, 25), False)]
    assert told(read) == [("", "100k/val/a.jpg", boxes), ("", "100k/val/b.jpg", [])]
    assert read.images[0].objects[0].attributes["occluded"] == "True"
    assert "label 3" in read.problems[0] and "1 labels without a box" in read.notes[0]
    write(file, "[3]")
    with pytest.raises(FormatError, match="not BDD100K's"):
        read_set(file, "bdd100k", tmp_path / "images")
