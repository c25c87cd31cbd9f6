"""detection.data.voc: the layouts, the convention of boxes, and every message."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from detection.data.voc import VocDetection, VocObject, read_voc
from framework.core.errors import ConfigError, FormatError, InputError
from framework.vision import image

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[5] / "shared")) / "data"
CAT = ("cat", (1, 1, 5, 4), "0")
DOG = ("dog", (3, 2, 8, 6), "1")


def xml(*objects: tuple[str, tuple[object, ...], str], size_hw: tuple[int, int] = (6, 8)) -> str:
    def one(name: str, box: tuple[object, ...], difficult: str) -> str:
        sides = "".join(f"<{s}>{v}</{s}>" for s, v in zip(("xmin", "ymin", "xmax", "ymax"), box))
        part = "<part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>"
        return f"<object><name>{name}</name><difficult>{difficult}</difficult><bndbox>{sides}</bndbox>{part}</object>"

    size = f"<size><width>{size_hw[1]}</width><height>{size_hw[0]}</height><depth>3</depth></size>"
    return f"<annotation><filename>other.jpg</filename>{size}{''.join(one(*row) for row in objects)}</annotation>"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def source_image(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.write(path, np.full((6, 8, 3), 77, np.uint8))


def standard(root: Path) -> Path:
    """a has a cat and a difficult dog, b nothing, c (of no split) a bird."""
    for name, objects in (("a", (CAT, DOG)), ("b", ()), ("c", (("bird", (1, 1, 4, 4), "0"),))):
        write(root / "Annotations" / f"{name}.xml", xml(*objects))
        source_image(root / "JPEGImages" / f"{name}.jpg")
    write(root / "ImageSets" / "Main" / "train.txt", "a\nb\n\n")
    write(root / "ImageSets" / "Main" / "cat_train.txt", "a  1\nb -1\n")
    return root


def test_the_boxes_of_voc(tmp_path: Path) -> None:
    """Columns 1 to 5 of VOC are pixels 0 to 4, which reach from 0 to 5."""
    write(tmp_path / "a.xml", xml(CAT, DOG, ("zero", (0, 0, 3.5, 2), "x")))
    size_hw, objects = read_voc(tmp_path / "a.xml")
    assert size_hw == (6, 8)
    assert objects == (
        VocObject("cat", (0, 0, 5, 4), False),
        VocObject("dog", (2, 1, 8, 6), True),
        VocObject("zero", (0, 0, 3.5, 2), False),
    )


def test_the_layout_of_voc(tmp_path: Path) -> None:
    dataset = VocDetection(standard(tmp_path), "train")
    assert len(dataset) == 2 and dataset.class_names == ("bird", "cat", "dog") and dataset.problems == ()
    full, empty = dataset[0], dataset[1]
    assert full.id == str(tmp_path / "JPEGImages" / "a.jpg")
    assert full.boxes is not None and full.labels is not None and full.valid is not None
    assert full.boxes.tolist() == [[0, 0, 5, 4], [2, 1, 8, 6]] and full.boxes.dtype == np.float32
    assert full.labels.tolist() == [1, 2] and full.valid.tolist() == [True, False]
    assert empty.boxes is not None and empty.boxes.shape == (0, 4)
    assert [sample.id for sample in VocDetection(tmp_path, "cat_train")] == [full.id, empty.id]
    assert len(VocDetection(tmp_path)) == 3


@pytest.mark.parametrize(("images", "annotations"), [("images", "annotations"), ("", "")])
def test_a_folder_for_each_split(tmp_path: Path, images: str, annotations: str) -> None:
    for split, name in (("train", "cat"), ("val", "bird")):
        write(tmp_path / split / annotations / "x.y.xml", xml((name, (1, 1, 4, 4), "0")))
        source_image(tmp_path / split / images / "x.y.PNG")
    for split, label in (("train", 1), ("val", 0)):  # numbered alike, though neither has both
        dataset = VocDetection(tmp_path, split)
        assert dataset.class_names == ("bird", "cat")
        sample = dataset[0]
        assert sample.labels is not None and sample.labels.tolist() == [label]
        assert sample.id == str(tmp_path / split / images / "x.y.PNG")
    alone = VocDetection(tmp_path / "val")
    assert alone.class_names == ("bird",) and len(alone) == 1


def test_paddledetections_list(tmp_path: Path) -> None:
    standard(tmp_path)
    lines = "JPEGImages/c.jpg Annotations/c.xml\nJPEGImages/a.jpg Annotations/a.xml\n"
    for text in (lines, lines.replace("/", "\\")):  # PaddleX writes lists on Windows
        write(tmp_path / "mine.txt", text)
        dataset = VocDetection(tmp_path, "mine", classes=("dog", "bird", "cat"))
        assert dataset.class_names == ("dog", "bird", "cat")
        assert [sample.labels.tolist() for sample in dataset] == [[1], [2, 0]]
    write(tmp_path / "train_list.txt", lines)
    assert len(VocDetection(tmp_path, "train")) == 2  # PaddleX's name of it
    write(tmp_path / "mine.txt", "JPEGImages/c.jpg\n")
    with pytest.raises(
        InputError, match=r"a line must name an image and an annotation(?s:.)*JPEGImages/c\.jpg"
    ):
        len(VocDetection(tmp_path, "mine"))
    (tmp_path / "mine.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="the list is not UTF-8"):
        len(VocDetection(tmp_path, "mine"))


def test_boxes_outside_of_the_image_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a.xml", xml(("cat", (40, 3, 50, 9), "0"), ("cat", (3, 3, 4, 4), "0")))
    source_image(tmp_path / "a.jpg")
    dataset = VocDetection(tmp_path)
    assert dataset[0].boxes.tolist() == [[2, 2, 4, 4]]  # pyright: ignore[reportOptionalMemberAccess]
    assert len(dataset.problems) == 1
    assert "object 1 (cat): box (39.0, 2.0, 50.0, 9.0) lies outside of its image, " in dataset.problems[0]


def test_boxes_without_an_area_are_left_out(tmp_path: Path) -> None:
    boxes = ((3, 3, 3, 5), (3, 3, 5, 3), (5, 3, 3, 5), (3, 3, 4, 4))
    write(tmp_path / "a.xml", xml(*(("cat", box, "0") for box in boxes)))
    source_image(tmp_path / "a.jpg")
    dataset = VocDetection(tmp_path)
    assert dataset[0].boxes.tolist() == [[2, 2, 4, 4]]  # pyright: ignore[reportOptionalMemberAccess]
    assert (
        len(dataset.problems) == 3
        and "a.xml, object 1 (cat): box (2.0, 2.0, 3.0, 5.0)" in dataset.problems[0]
    )


def test_what_is_missing(tmp_path: Path) -> None:
    standard(tmp_path)
    with pytest.raises(InputError, match=r"there are no annotations(?s:.)*check root and split"):
        len(VocDetection(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="there are no annotations"):
        len(VocDetection(tmp_path, "test"))
    write(tmp_path / "deeper" / "val" / "a.xml", xml(CAT))
    with pytest.raises(InputError, match="set split to 'val'"):
        len(VocDetection(tmp_path / "deeper"))
    write(tmp_path / "ImageSets" / "Main" / "train.txt", "\n")
    with pytest.raises(InputError, match="the list names no image"):
        len(VocDetection(tmp_path, "train"))
    write(tmp_path / "ImageSets" / "Main" / "train.txt", "a\nz\n")
    with pytest.raises(InputError, match=r"1 of 2 annotations are not there(?s:.)*z\.xml"):
        len(VocDetection(tmp_path, "train"))
    (tmp_path / "JPEGImages" / "b.jpg").unlink()
    with pytest.raises(InputError, match=r"1 of 3 images are not there(?s:.)*b\.jpg"):
        len(VocDetection(tmp_path))


def test_classes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    standard(tmp_path)
    with pytest.raises(InputError, match=r"no object is of the class 'dogs'(?s:.)*did you mean 'dog'"):
        len(VocDetection(tmp_path, "train", classes=("cat", "dogs")))
    whole, cats = VocDetection(tmp_path, "train"), VocDetection(tmp_path, "train", classes=("cat",))
    every = [whole[i] for i in range(len(whole))]
    for old, new in zip(every, (cats[i] for i in range(len(cats))), strict=True):
        assert old.labels is not None and old.boxes is not None and new.boxes is not None
        assert np.array_equal(new.boxes, old.boxes[old.labels == whole.class_names.index("cat")])
        assert new.labels is not None and not new.labels.any()
    assert "1 objects of other classes are left out: dog 1" in caplog.text
    turned = VocDetection(tmp_path, "train", classes=("dog", "cat"))
    assert turned.class_names == ("dog", "cat")
    names = [
        sorted(one.class_names[label] for labels in one.read_labels() for label in labels.tolist())
        for one in (whole, turned)
    ]
    assert names[0] == names[1]
    for wrong in ((), ("cat", "cat")):
        with pytest.raises(ConfigError, match=r"VocDetection\.classes"):
            VocDetection(tmp_path, "train", classes=wrong)
    write(tmp_path / "empty" / "a.xml", xml())
    with pytest.raises(InputError, match="no annotation has an object"):
        len(VocDetection(tmp_path / "empty"))


def test_an_image_of_another_size(tmp_path: Path) -> None:
    source_image(tmp_path / "a.jpg")
    write(tmp_path / "a.xml", xml(CAT, size_hw=(8, 6)))
    with pytest.raises(InputError, match=r"another size(?s:.)*6 high and 8 wide(?s:.)*8 high and 6 wide"):
        VocDetection(tmp_path)[0]
    write(tmp_path / "a.xml", xml(CAT, size_hw=(0, 0)))  # some tools do not fill it in
    assert VocDetection(tmp_path)[0].size_hw == (6, 8)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("<annotation><object>", FormatError, r"a\.xml: the annotation is not XML"),
        ("", FormatError, "the annotation is not XML"),
        ("<annotations/>", FormatError, "no VOC annotation(?s:.)*<annotations>"),
        ('<?xml version="1.0" encoding="klingon"?><annotation/>', FormatError, "the annotation is not XML"),
        (xml(("", (1, 1, 2, 2), "0")), InputError, "object 1: an object has no name"),
        (xml(CAT, ("cat", (1, 1, 2), "0")), InputError, "object 2: an object has no box(?s:.)*ymax: None"),
        (xml(("cat", (1, "two", 3, 4), "0")), InputError, "ymin: two"),
        (xml(("cat", (1, "nan", 3, 4), "0")), InputError, "ymin: nan"),
        (xml(("cat", ("inf", 1, 3, 4), "0")), InputError, "xmin: inf"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, kind: type[Exception], message: str) -> None:
    write(tmp_path / "a.xml", text)
    with pytest.raises(kind, match=message):
        read_voc(tmp_path / "a.xml")


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE a [<!ENTITY x "boom"><!ENTITY y "&x;&x;&x;&x;">]>',
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE a SYSTEM "http://127.0.0.1/a.dtd">',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(tmp_path: Path, declaration: str, encoding: str) -> None:
    text = f'<?xml version="1.0"?>{declaration}{xml(CAT).replace("cat", "cat")}'
    (tmp_path / "a.xml").write_text(text, encoding=encoding)
    with pytest.raises(FormatError, match="declares a document type"):
        read_voc(tmp_path / "a.xml")


@pytest.mark.skipif(not (SHARED / "bccd").is_dir(), reason="OAR_SHARED has no data/bccd")
def test_real_files() -> None:
    train, val = (VocDetection(SHARED / "bccd", split) for split in ("train", "val"))
    assert (len(train), len(val)) == (205, 87) and train.class_names == (
        "Platelets",
        "RBC",
        "WBC",
    ) == val.class_names
    assert len(train.problems) == len(val.problems) == 1
    raccoons = [VocDetection(SHARED / "raccoon", split) for split in ("train", "val")]
    assert [len(one) for one in raccoons] == [90, 30] and raccoons[0].class_names == ("raccoon",)
    sample = raccoons[0][0]
    assert sample.boxes is not None and sample.boxes.tolist() == [[80, 87, 522, 408]]


@pytest.mark.parametrize("name", ["yard cam", "yard cam 1", "scan -1", "a.b c", "two  blanks"])
def test_names_of_a_list_hold_blanks(tmp_path: Path, name: str) -> None:
    write(tmp_path / "Annotations" / f"{name}.xml", xml(CAT))
    source_image(tmp_path / "JPEGImages" / f"{name}.jpg")
    for line in (name, f"{name}  1", f"{name} -1", f"{name}.jpg"):
        write(tmp_path / "ImageSets" / "Main" / "train.txt", f"{line}\n")
        assert VocDetection(tmp_path, "train")[0].id == str(tmp_path / "JPEGImages" / f"{name}.jpg")


@pytest.mark.parametrize("line", ["i/a b.jpg x/a b.xml", "i/a b.jpg\tx/a b.xml"])
def test_paths_of_a_list_hold_blanks(tmp_path: Path, line: str) -> None:
    write(tmp_path / "x" / "a b.xml", xml(CAT))
    source_image(tmp_path / "i" / "a b.jpg")
    write(tmp_path / "train.txt", f"{line}\n")
    assert len(VocDetection(tmp_path, "train")) == 1


def test_images_without_an_annotation_are_said(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        source_image(tmp_path / "images" / f"{name}.jpg")
    write(tmp_path / "annotations" / "b.xml", xml(CAT))
    dataset = VocDetection(tmp_path)
    assert (
        len(dataset) == 1 and len(dataset.problems) == 2 and "a.jpg has no annotation" in dataset.problems[0]
    )
    background = VocDetection(tmp_path, unlabelled="background")
    assert [len(sample.boxes) for sample in background if sample.boxes is not None] == [0, 1, 0]
    assert background.problems == ()


def test_images_of_a_list_without_an_annotation(tmp_path: Path) -> None:
    root = standard(tmp_path)
    source_image(root / "JPEGImages" / "d.jpg")
    write(root / "ImageSets" / "Main" / "train.txt", "a\nd\n")
    with pytest.raises(InputError, match="1 of 2 annotations are not there"):
        len(VocDetection(root, "train"))
    sample = VocDetection(root, "train", unlabelled="background")[1]
    assert sample.boxes is not None and len(sample.boxes) == 0
