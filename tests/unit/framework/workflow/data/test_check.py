"""The check of a configuration's data: what it finds in each domain, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from framework.vision import image
from framework.workflow.data.check import check_data, make_reports


def paint(path: Path, value: int, size_hw: tuple[int, int] = (8, 10)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.write(path, np.full((*size_hw, 3), value, np.uint8))
    return path


def faults(config: str, *overrides: str) -> dict[str, tuple[str, ...]]:
    """The lists that are not empty, by part and title."""
    return {
        f"{part}: {title}": tuple(found)
        for part, report in make_reports(config, overrides)
        for title, found in report.faults().items()
        if found
    }


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    for number, path in enumerate(("train/a/1", "train/a/2", "train/b/3", "val/a/4", "val/b/5")):
        paint(tmp_path / f"{path}.png", number)
    return tmp_path


CLOTHES = "pp_lcnet_x0_25_clothing"


def roots(folder: Path, *more: str) -> list[str]:
    return [f"data.{part}.dataset.root={folder.as_posix()}" for part in ("train", "eval")] + list(more)


def test_images_with_classes(classes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = roots(classes, "model.num_classes=2")
    assert check_data(CLOTHES, good) == 0
    assert "3 images: 3 of 10 x 8" in capsys.readouterr().out
    paint(classes / "train/b/again.png", 1)  # as train/a/2
    paint(classes / "val/b/leak.png", 2)  # as train/b/3
    (classes / "val/b/5.png").write_bytes(b"\x89PNG")
    found = faults(CLOTHES, *good)
    assert list(found) == [
        "data.train: images that are there before with another class",
        "data.eval: images that cannot be used",
        "together: samples of data.eval that are in data.train too",
    ]
    assert found["data.train: images that are there before with another class"] == (
        f"{classes}/train/b/again.png is b, {classes}/train/a/2.png is a",
    )
    assert (
        "5.png: an image of the data set cannot be read" in found["data.eval: images that cannot be used"][0]
    )
    assert check_data(CLOTHES, good) == 1
    capsys.readouterr()
    assert check_data(CLOTHES, good, "train") == 1 and "data.eval" not in capsys.readouterr().out


def test_classes_that_do_not_fit(classes: Path) -> None:
    paint(classes / "val/c/6.png", 9)
    (lines,) = faults(CLOTHES, *roots(classes)).values()
    assert lines[0].startswith("model.num_classes is 10 (") and lines[0].endswith("-o model.num_classes=2")
    assert lines[1:] == ("data.eval has c alone: no sample to train on",)


def test_an_evaluation_without_a_class_is_no_fault(classes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paint(classes / "train/c/7.png", 9)
    lines = faults(CLOTHES, *roots(classes)).get("together: settings that do not fit the data", ())
    assert [line.partition(":")[0][:24] for line in lines] == ["model.num_classes is 10 "]
    assert lines[0].endswith("data.train has 3: -o model.num_classes=3")
    check_data(CLOTHES, [*roots(classes), "model.num_classes=3"])
    assert "data.eval has no class c: training goes on" in capsys.readouterr().out


def test_what_cannot_be_checked(classes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_data(CLOTHES, roots(classes / "none")) == 2
    assert "there is no such folder or zip archive" in capsys.readouterr().err
    assert check_data(CLOTHES, ["data={}"]) == 2
    assert "the configuration has no such data" in capsys.readouterr().err


def test_objects(tmp_path: Path) -> None:
    paint(tmp_path / "1.png", 1)
    paint(tmp_path / "2.png", 2)
    boxes = ([0, 0, 4, 4], [20, 0, 4, 4], [2, 2, 0, 3], [5, 5, 9, 3])
    data = {
        "images": [{"id": n, "file_name": f"{n}.png", "height": 8, "width": 10} for n in (1, 2)],
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        "annotations": [{"id": n, "image_id": 1, "category_id": 1, "bbox": b} for n, b in enumerate(boxes)],
    }
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    keys = {"type": "CocoDetection", "root": tmp_path.as_posix(), "annotations": "a.json"}
    given = [f"data.train.dataset.{key}={value}" for key, value in keys.items()]
    found = faults("picodet_s_320_bccd", *given, "data.eval=null", "model.num_classes=2")
    assert found == {
        "data.train: images with boxes beyond their edges": ("1, 10 x 8: [5.0, 5.0, 14.0, 8.0]",),
        "data.train: entries that are left out": (
            "annotation 1 on image 1: box [20, 0, 4, 4] lies outside of its image, 10 wide and 8 high",
            "annotation 2 on image 1: box [2, 2, 0, 3] has no area",
        ),
    }


def test_parts_with_nothing_to_learn(tmp_path: Path) -> None:
    paint(tmp_path / "images/1.png", 1)
    paint(tmp_path / "masks/1.png", 255)
    data = {
        "images": [{"id": 1, "file_name": "1.png", "height": 8, "width": 10}],
        "categories": [{"id": 1, "name": "a"}],
    }
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    keys = {"type": "CocoDetection", "root": tmp_path.as_posix(), "annotations": "a.json", "images": "images"}
    given = [f"data.train.dataset.{key}={value}" for key, value in keys.items()]
    title = "data.train: parts with nothing to learn"
    assert faults("picodet_s_320_bccd", *given, "data.eval=null", "model.num_classes=1") == {
        title: ("there is no object",)
    }
    keys = {"type": "MaskFolder", "root": tmp_path.as_posix(), "masks": "masks", "images": "images"}
    given = [f"data.train.dataset.{key}={value}" for key, value in keys.items()]
    more = ("data.train.dataset.label_map={}", "data.eval=null")
    assert faults("pp_liteseg_stdc1_membrane", *given, *more) == {title: ("there is no pixel with a class",)}


def test_more_objects_than_there_is_room_for(tmp_path: Path) -> None:
    paint(tmp_path / "1.png", 1)
    data = {
        "images": [{"id": 1, "file_name": "1.png", "height": 8, "width": 10}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{"id": n, "image_id": 1, "category_id": 1, "bbox": [n, 0, 1, 1]} for n in range(4)],
    }
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    keys = {"type": "CocoDetection", "root": tmp_path.as_posix(), "annotations": "a.json"}
    given = [f"data.train.dataset.{key}={value}" for key, value in keys.items()]
    settings = ("data.eval=null", "model.num_classes=1", "task.max_objects=3")
    assert faults("picodet_s_320_bccd", *given, *settings) == {
        "together: settings that do not fit the data": (
            "task.max_objects is 3, data.train has up to 4 objects on an image: -o task.max_objects=4",
        )
    }


def test_people_with_keypoints(tmp_path: Path) -> None:
    paint(tmp_path / "1.png", 1)
    person = {
        "id": 1,
        "image_id": 1,
        "category_id": 1,
        "bbox": [0, 0, 9, 8],
        "keypoints": [1, 1, 2, 30, 4, 1],
    }
    data = {
        "images": [{"id": 1, "file_name": "1.png", "height": 8, "width": 10}],
        "categories": [{"id": 1, "name": "person", "keypoints": ["nose", "tail"]}],
        "annotations": [person],
    }
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    keys = {"root": tmp_path.as_posix(), "annotations": "a.json", "images": "''", "keypoints": "null"}
    given = [f"data.train.dataset.{key}={value}" for key, value in keys.items()]
    ((_, report), _) = make_reports("higherhrnet_hrnet_w32_512", [*given, "data.eval=null"])
    assert report.summary()[2:] == ["nose          1  100.0%", "tail          1  100.0%"]
    assert report.faults()["samples with keypoints beyond the image"] == ("1, 10 x 8: [30.5, 4.5]",)


def test_masks(tmp_path: Path) -> None:
    for name in ("1", "2", "3"):
        paint(tmp_path / f"image/{name}.png", int(name))
    paint(tmp_path / "label/1.png", 0)
    paint(tmp_path / "label/2.png", 7)
    paint(tmp_path / "label/3.png", 0, (8, 8))
    given = [f"data.train.dataset.root={tmp_path.as_posix()}", "data.eval=null"]
    (lines,) = faults("pp_liteseg_stdc1_membrane", *given).values()
    assert "2.png: the mask has values outside the classes (7: 80 pixels)" in lines[0]
    assert "3.png: the mask has another size than its image" in lines[1]


def test_texts(tmp_path: Path) -> None:
    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return (tmp_path / name).as_posix()

    given = ["model.num_classes=2"]
    for part, text in (("train", "t\tl\ngood\tx\nbad\ty\n\tx\ngood\ty\n"), ("eval", "t\tl\nbad\ty\nso\tx\n")):
        keys = {"path": write(f"{part}.tsv", text), "text": "t", "label": "l"}
        given += [f"data.{part}.dataset.{key}={value}" for key, value in keys.items()]
    found = faults("text_cnn_snips", *given)
    assert found == {
        "data.train: blank texts": ("line 4",),
        "data.train: texts that are there before with another class": ("line 5, as line 2: good",),
        "together: samples of data.eval that are in data.train too": (
            f"{tmp_path}/eval.tsv, line 2, as {tmp_path}/train.tsv, line 3",
        ),
    }
    write("train.tsv", "t\tl\ngood\nbad\ty\nso\tz\n")
    lines = faults("text_cnn_snips", *given, "data.train.dataset.classes=[x, y]")
    assert lines["data.train: lines that cannot be read"] == (
        "line 2: a column is missing: column 1",
        "1 with 'z', which is not in `classes`",
    )


def test_what_transforms_and_the_task_refuse(tmp_path: Path) -> None:
    """A column by another name, and a label that is none: training would stop at them."""
    config = """
domain: recommendation
task: {type: ClickPrediction}
data:
  train:
    dataset: {type: Rows, paths: [FOLDER/a.csv]}
    transforms: [{type: EncodeFeatures, sparse: [user], size: 10, labels: [click]}]
"""
    path = tmp_path / "c.yml"
    path.write_text(config.replace("FOLDER", tmp_path.as_posix()), encoding="utf-8")
    title = "together: settings that do not fit the data"
    for text, problem in (
        ("User,click\n" + "a,1\n" * 200, "the table has no column 'user', received columns User, click"),
        (
            "user,click\n" + "a,1\n" * 150 + "a,7\n" * 3,
            "a label is no probability, received 7, allowed 0 to 1",
        ),
    ):
        (tmp_path / "a.csv").write_text(text, encoding="utf-8")
        (line,) = faults(str(path))[title]
        assert line.startswith("data.train: sample ") and problem in line
    (tmp_path / "a.csv").write_text("user,click\na,1\na,1\n", encoding="utf-8")
    assert faults(str(path)) == {}


def test_texts_that_the_dictionary_cannot_write_and_pages_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        paint(tmp_path / f"{number}.png", number)
    (tmp_path / "lines.txt").write_text("0.png\tAB\n1.png\t1A\n2.png\tABABAB\n", encoding="utf-8")
    quad = [[1, 1], [6, 1], [6, 5], [1, 5]]
    regions = [
        {"transcription": text, "points": [[x + shift, y] for x, y in quad]}
        for text, shift in (("", 0), ("###", 0), ("text", 20))
    ]
    (tmp_path / "pages.txt").write_text(f"0.png\t{json.dumps(regions)}\n1.png\t[]\n", encoding="utf-8")
    (tmp_path / "blank.txt").write_text(f"2.png\t{json.dumps(regions[1:2])}\n", encoding="utf-8")

    def of(*files: str) -> list[str]:
        given = zip(("train", "eval"), files)
        return roots(tmp_path, *(f"data.{part}.dataset.labels=[{file}.txt]" for part, file in given))

    lines = [*of("lines"), "data.eval=null", "task.max_text_length=5"]
    assert faults(
        "PP-OCRv6_small_rec", *lines, "task.characters.weights=null", "task.characters.symbols=AB"
    ) == {
        "together: settings that do not fit the data": (
            "data.train: 1 of 3 texts have characters outside of the dictionary and are left out: "
            f"'1' ({tmp_path}/lines.txt:2)",
            f"data.train: 1 of 3 texts are longer than max_text_length 5 and are left out: {tmp_path}/lines.txt:3",
        )
    }
    assert faults("PP-OCRv6_small_det", *of("pages", "blank")) == {
        "data.train: regions outside of their page": (
            f"{tmp_path}/pages.txt:1 0.png: region 3, [[21.0, 1.0], [26.0, 1.0], [26.0, 5.0], [21.0, 5.0]]",
        ),
        "data.eval: parts with nothing to learn": ("there is no region that can be read",),
    }
    assert check_data("PP-OCRv6_small_det", of("pages", "blank")) == 1
    said = capsys.readouterr().out
    assert "2 pages, 1 of them without text to learn" in said
    assert "2 regions, 1 of them without a text; 1 more that nobody can read" in said
