"""Tables of boxes of other programs: their columns, shares and pixels, and where their images are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.vision.annotations.box_table import is_box_table, read_box_tables

BOXES = [("a.jpg", "cat", (10, 5, 30, 25)), ("a.jpg", "dog", (0, 0, 100, 50)), ("b.jpg", "cat", (1, 2, 3, 4))]


def photos(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        image.write(folder / name, np.full((50, 100, 3), 90, np.uint8))


def table(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def boxes_of(source: Path) -> list[tuple[str, str, tuple[float, ...]]]:
    read = read_box_tables(source)
    return [
        (one.path.name, entry.label, tuple(round(side, 3) for side in entry.box))
        for one in read.images
        for entry in one.objects
    ]


def test_columns_of_several_programs(tmp_path: Path) -> None:
    photos(tmp_path, "a.jpg", "b.jpg")
    rows = {
        "tensorflow": (
            "filename,width,height,class,xmin,ymin,xmax,ymax",
            *(f"{name},100,50,{label},{','.join(map(str, box))}" for name, label, box in BOXES),
        ),
        "retinanet": tuple(f"{name},{','.join(map(str, box))},{label}" for name, label, box in BOXES),
        "corner": (
            "image_name,x,y,w,h,label",
            *(f"{name},{a},{b},{c - a},{d - b},{label}" for name, label, (a, b, c, d) in BOXES),
        ),
        "quoted": (
            '"Label","Image Path","X_Max","X_Min","Y_Max","Y_Min"',
            *(f'"{label}","./{name}",{c},{a},{d},{b}' for name, label, (a, b, c, d) in BOXES),
        ),
        "spreadsheet": (
            "\ufefffilename;class;xmin;ymin;xmax;ymax",
            *(f"{name};{label};{a},0;{b},00;{c};{d}" for name, label, (a, b, c, d) in BOXES),
        ),
        "tabs": (
            "filename\tclass\txmin\tymin\txmax\tymax",
            *("\t".join((name, label, *map(str, box))) for name, label, box in BOXES),
        ),
    }
    for name, lines in rows.items():
        assert is_box_table(table(tmp_path / f"{name}.csv", *lines)), name
        assert boxes_of(table(tmp_path / f"{name}.csv", *lines)) == BOXES, name


def test_the_table_of_makesense(tmp_path: Path) -> None:
    """Older versions of makesense.ai write no names of columns."""
    photos(tmp_path, "a.png")
    assert boxes_of(
        table(tmp_path / "labels.csv", "cat,1,2,10,4,a.png,40,30", "big dog,5,6,7,8,a.png,40,30")
    ) == [
        ("a.png", "cat", (1, 2, 11, 6)),
        ("a.png", "big dog", (5, 6, 12, 14)),
    ]


def test_the_tables_of_open_images(tmp_path: Path) -> None:
    photos(tmp_path / "images/train", "a.jpg", "b.jpg")
    flags = "IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
    first = f"ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,{flags}"
    rows = [
        f"{Path(name).stem},x,/m/{label},1,{a / 100},{c / 100},{b / 50},{d / 50},0,0,{int(label == 'dog')},0,0"
        for name, label, (a, b, c, d) in BOXES
    ]
    table(tmp_path / "annotations/train-annotations-bbox.csv", first, *rows)
    table(tmp_path / "annotations/class-descriptions.csv", "/m/cat,cat", "/m/dog,dog")
    table(tmp_path / "annotations/train-images-with-rotation.csv", "ImageID,Subset,OriginalURL", "a,train,x")
    assert boxes_of(tmp_path) == BOXES
    read = read_box_tables(tmp_path)
    assert [one.is_valid for one in read.images[0].objects] == [True, False], "a group is a crowd"
    assert read.class_names == ("cat", "dog")


def test_files_a_split_images_without_objects_and_rows_that_are_wrong(tmp_path: Path) -> None:
    photos(tmp_path, "train/a.jpg", "test/b.jpg", "train/empty.jpg")
    rows = (
        "a.jpg,1,1,9,9,cat",
        "empty.jpg,,,,,",
        "a.jpg,9,9,9,20,cat",
        "a.jpg,1,1,x,9,cat",
        "a.jpg,1,1,9,9,",
    )
    table(tmp_path / "train_labels.csv", *rows)
    table(tmp_path / "test_labels.csv", "b.jpg,1,1,9,9,dog")
    table(tmp_path / "notes.csv", "name,age", "x,3")
    read = read_box_tables(tmp_path)
    assert sorted((one.path.name, one.split, len(one.objects)) for one in read.images) == [
        *(("a.jpg", "train", 1), ("b.jpg", "test", 1), ("empty.jpg", "train", 0)),
    ]
    problems = sorted(line.partition("row ")[2] for line in read.problems)
    assert [line[:2] for line in problems] == ["3:", "4:", "5:"]
    assert "has no area" in problems[0] and "no class" in problems[2]


def test_two_spellings_of_an_image_and_two_images_of_one_name(tmp_path: Path) -> None:
    photos(tmp_path, "images/one/a.jpg", "images/two/a.jpg", "images/b.jpg")
    lines = ("images/one/a.jpg", "images/two/a.jpg", "b.jpg", "images\\b.jpg", "./images/b.jpg", "b")
    read = read_box_tables(table(tmp_path / "t.csv", *(f"{name},1,1,9,9,cat" for name in lines)))
    assert [(one.name, len(one.objects)) for one in read.images] == [
        *(("one/a.jpg", 1), ("two/a.jpg", 1), ("b.jpg", 4)),
    ]


def test_tables_that_are_refused(tmp_path: Path) -> None:
    photos(tmp_path, "a.jpg")
    assert not is_box_table(table(tmp_path / "c.csv", "filename,label", "a.jpg,cat"))
    assert not is_box_table(tmp_path / "absent.csv") and not is_box_table(tmp_path / "a.jpg")
    for lines, error, message in (
        (("filename,label", "a.jpg,cat"), FormatError, "no columns of boxes"),
        (("a.jpg,1,1,9,9,cat", "a.jpg,1"), FormatError, "row 2: a row has too few columns"),
        (
            ("x.jpg,1,1,9,9,cat",),
            InputError,
            "row 1: an image of the annotations is not there(?s:.)*--images",
        ),
        (("a.jpg,,,,,",), InputError, "the table has no object"),
    ):
        with pytest.raises(error, match=message):
            read_box_tables(table(tmp_path / "t.csv", *lines))
    table(tmp_path / "a_train.csv", "a.jpg,1,1,9,9,cat")
    table(tmp_path / "b_train.csv", "a.jpg,1,1,9,9,cat")
    with pytest.raises(InputError, match="several tables of boxes are of one split"):
        read_box_tables(tmp_path)
