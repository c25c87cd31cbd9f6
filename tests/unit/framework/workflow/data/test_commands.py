"""Splitting, drawing and measuring data: what is written, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from framework.commands.data import main
from framework.core.disk import DiskError
from framework.core.errors import ConfigError, InputError
from framework.vision import image
from framework.vision.sample import Sample
from framework.workflow.data.commands import draw_sample, draw_samples, measure_data, split_data


def paint(path: Path, value: int, size_hw: tuple[int, int] = (40, 60)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.write(path, np.full((*size_hw, 3), value, np.uint8))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten dogs, of which two are alike, and five cats, one in a folder of its own."""
    for number in range(10):
        paint(tmp_path / f"all/dog/{number}.png", max(1, number))
    for number in range(5):
        paint(tmp_path / f"all/cat/{'deep/' if number == 4 else ''}{number}.png", 100 + number)
    return tmp_path / "all"


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.png")}


def test_a_folder_is_divided_by_class(folder: Path, tmp_path: Path) -> None:
    report = split_data(folder, tmp_path / "out", share=0.2)
    train, val = names(tmp_path / "out/train"), names(tmp_path / "out/val")
    assert report.counts == (len(train), len(val)) and not train & val and train | val == names(folder)
    assert sum(name.startswith("cat") for name in val) == 1
    assert {"dog/0.png", "dog/1.png"} <= train or {"dog/0.png", "dog/1.png"} <= val  # the same content
    assert str(report).splitlines()[0] == f"{tmp_path}/out/train: {len(train)} samples"
    split_data(folder, tmp_path / "again", share=0.2)
    split_data(folder, tmp_path / "other", share=0.2, seed=5)
    assert names(tmp_path / "again/val") == val != names(tmp_path / "other/val")


def test_images_and_what_belongs_to_them_stay_together(tmp_path: Path) -> None:
    for number in range(5):
        paint(tmp_path / f"all/images/{number}.jpg", number)
        paint(tmp_path / f"all/masks/{number}.png", number)
    assert split_data(tmp_path / "all", tmp_path / "out").counts == (4, 1)
    for part, count in (("train", 4), ("val", 1)):
        stems = [
            sorted(path.stem for path in (tmp_path / "out" / part / kind).iterdir())
            for kind in ("images", "masks")
        ]
        assert stems[0] == stems[1] and len(stems[0]) == count
    (tmp_path / "all/masks/3.png").unlink()
    with pytest.raises(InputError, match=r"1 of 5 images have no file of their name in masks(?s:.)*3\.jpg"):
        split_data(tmp_path / "all", tmp_path / "other")


def test_a_coco_file_is_divided_by_image(tmp_path: Path) -> None:
    data = {
        "images": [{"id": n, "file_name": f"{n}.png"} for n in range(10)],
        "annotations": [{"id": n, "image_id": n % 10, "category_id": 1} for n in range(25)],
        "categories": [{"id": 1, "name": "cat"}],
    }
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    assert split_data(tmp_path / "a.json", tmp_path / "out", share=0.3).counts == (7, 3)
    parts = [
        json.loads((tmp_path / f"out/{part}.json").read_text(encoding="utf-8")) for part in ("train", "val")
    ]
    for part in parts:
        assert {one["image_id"] for one in part["annotations"]} == {one["id"] for one in part["images"]}
        assert part["categories"] == data["categories"]
    assert sum(len(part["annotations"]) for part in parts) == 25


def test_lines_keep_their_header(tmp_path: Path) -> None:
    lines = [f"text {n}\t{n % 2}" for n in range(10)]
    (tmp_path / "a.tsv").write_text("\n".join(["text\tlabel", *lines, lines[0], ""]), encoding="utf-8")
    split_data(tmp_path / "a.tsv", tmp_path / "out", header=True)
    train, val = (
        (tmp_path / f"out/{part}.tsv").read_text(encoding="utf-8").splitlines() for part in ("train", "val")
    )
    assert train[0] == val[0] == "text\tlabel"
    assert not set(train[1:]) & set(val[1:]) and sorted(train[1:] + val[1:]) == sorted([*lines, lines[0]])


def test_what_cannot_be_split(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be split"):
        split_data(tmp_path / "none", tmp_path / "out")
    with pytest.raises(ConfigError, match="share to evaluate is out of range"):
        split_data(folder, tmp_path / "out", share=1)
    with pytest.raises(ConfigError, match="the seed is out of range"):
        split_data(folder, tmp_path / "out", seed=-1)
    with pytest.raises(InputError, match="there are no class folders"):
        split_data(folder / "dog", tmp_path / "out")
    split_data(folder, tmp_path / "out")
    with pytest.raises(InputError, match="there already"):
        split_data(folder, tmp_path / "out")
    (tmp_path / "a.txt").write_text("a\na\n", encoding="utf-8")
    with pytest.raises(InputError, match="a part would be empty"):
        split_data(tmp_path / "a.txt", tmp_path / "other")


def roots(folder: Path) -> list[str]:
    return [f"data.{part}.dataset.root={folder.as_posix()}" for part in ("train", "eval")]


def test_samples_are_drawn_as_the_model_sees_them(folder: Path, tmp_path: Path) -> None:
    split_data(folder, tmp_path / "out")
    written = draw_samples("pp_lcnet_x0_25_clothing", tmp_path / "drawn", roots(tmp_path / "out"), count=2)
    assert written == [tmp_path / "drawn/0.png", tmp_path / "drawn/1.png"]
    assert image.read(written[0]).shape == (128, 128, 3)
    (tmp_path / "a.tsv").write_text("a\tx\nb\ty\n", encoding="utf-8")
    keys = (f"path={tmp_path.as_posix()}/a.tsv", "text=0", "label=1")
    given = [f"data.eval.dataset.{key}" for key in keys]
    (written,) = draw_samples("text_cnn_snips", tmp_path / "texts", given, "eval", count=1)
    assert written.read_text(encoding="utf-8") == f"{tmp_path}/a.tsv, line 1\ta\tx\t1 tokens\n"
    with pytest.raises(ConfigError, match="no such data"):
        draw_samples("text_cnn_snips", tmp_path, ["data.eval=null"], "eval")


def test_every_label_is_drawn() -> None:
    grey = np.full((40, 60, 3), 90, np.uint8)
    boxes = np.array([[5, 5, 30, 30]], np.float32)
    keypoints = np.array([[[30, 20, 2]]], np.float32)
    for sample in (
        Sample(grey, mask=np.eye(40, 60, dtype=np.uint8)),
        Sample(grey, boxes=boxes, labels=np.array([0])),
        Sample(grey, boxes=boxes),
        Sample(grey, keypoints=keypoints),
        Sample(grey, labels=np.array(0)),
    ):
        drawn = draw_sample(sample, ("cat",))
        assert (drawn[:40] != grey).any() and (len(drawn) > 40) == (sample.mask is not None)
    assert draw_sample(Sample(np.linspace(0, 1, 12).reshape(2, 3, 2)), ()).max() > 200


def test_texts_are_drawn_at_their_polygons() -> None:
    square = np.array([[30, 60], [90, 60], [90, 90], [30, 90]], np.float32)
    page = Sample(
        np.zeros((120, 160, 3), np.uint8), polygons=(square,), text=("word",), valid=np.array([True])
    )
    drawn = draw_sample(page, ())
    assert drawn[60, 35:88].any() and not drawn[65:85, 40:80].any()
    unreadable = draw_sample(page.replace(valid=np.array([False])), ())
    assert not np.array_equal(drawn, unreadable) and drawn[:58].any()


def test_statistics(tmp_path: Path) -> None:
    paint(tmp_path / "1.png", 10)
    paint(tmp_path / "2.png", 30, (20, 60))
    data = {
        "images": [{"id": n, "file_name": f"{n}.png"} for n in (1, 2)],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 15, 10]}],
    }
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    keys = {"type": "CocoDetection", "root": tmp_path.as_posix(), "annotations": "a.json"}
    page = measure_data(
        "picodet_s_320_bccd", [f"data.train.dataset.{key}={value}" for key, value in keys.items()]
    )
    assert page.splitlines() == [
        "2 samples",
        "height 20 to 40, half up to 30",
        "width 60 to 60, half up to 60",
        "mean of each channel 16.7, 16.7, 16.7, deviation 9.4, 9.4, 9.4",
        "objects of an image 0 to 1, half up to 0.5",
        "side of an object, as a share of its image's 0.25 to 0.25, half up to 0.25",
    ]


def test_commands(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["split", str(folder), str(tmp_path / "out"), "--share", "0.4"]) == 0
    assert capsys.readouterr().out.endswith("out/val: 6 samples\n")
    given = ["-c", "pp_lcnet_x0_25_clothing", "-o", *roots(tmp_path / "out")]
    assert main(["show", "--count", "1", "--output_dir", str(tmp_path / "drawn"), *given]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/drawn/0.png\n"
    assert main(["stats", *given]) == 0 and "9 samples" in capsys.readouterr().out
    assert main(["split", str(tmp_path / "none"), str(tmp_path / "x")]) == 2
    assert "error: " in capsys.readouterr().err


def test_a_full_disk_leaves_nothing_of_a_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        path = tmp_path / "photos" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * number)
    copied: list[str] = []

    def fill(source: Path, target: Path) -> None:
        if len(copied) == 3:
            raise OSError(28, "No space left on device", str(target))
        copied.append(shutil.copyfile(source, target).name)

    monkeypatch.setattr(shutil, "copy2", fill)
    with pytest.raises(DiskError, match=r"the disk is full\n  received: [\d,]+ bytes left"):
        split_data(tmp_path / "photos", tmp_path / "out")
    assert len(copied) == 3 and not (tmp_path / "out").exists()
    monkeypatch.undo()
    assert split_data(tmp_path / "photos", tmp_path / "out").counts == (6, 2)
