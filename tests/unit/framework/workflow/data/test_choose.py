"""framework.workflow.data.choose and split: shares, groups, classes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from detection.data.annotated import YoloDetection
from framework.commands.data import main
from framework.core.errors import ConfigError, InputError
from framework.vision import image
from framework.workflow.data.choose import GroupRule, choose
from framework.workflow.data.split import split_data

HERE = Path("here")


@pytest.mark.parametrize("seed", range(4))
def test_each_class_has_its_share(seed: int) -> None:
    """As sklearn's StratifiedShuffleSplit: the numbers of each class, rounded."""
    classes = ["a"] * 50 + ["b"] * 30 + ["c"] * 10 + ["d"] * 2
    numbers = choose([(i,) for i in range(92)], 0.2, seed, HERE, [(name,) for name in classes])
    held_out = Counter(name for name, number in zip(classes, numbers) if number)
    assert held_out == {"a": 10, "b": 6, "c": 2, "d": 1}


@pytest.mark.parametrize("seed", range(4))
def test_groups_stay_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 40, 400).tolist()
    numbers = choose([(group,) for group in groups], 0.25, seed, HERE)
    assert all(len({n for g, n in zip(groups, numbers) if g == group}) == 1 for group in set(groups))
    assert 0.2 < np.mean(numbers) < 0.32
    classes = [("cat",) if group % 4 else ("dog",) for group in groups]
    numbers = choose([(group,) for group in groups], 0.25, seed, HERE, classes)
    assert all(len({n for g, n in zip(groups, numbers) if g == group}) == 1 for group in set(groups))
    for name in ("cat", "dog"):
        assert 0.15 < np.mean([n for one, n in zip(classes, numbers) if one == (name,)]) < 0.35


def test_images_of_several_classes() -> None:
    rng = np.random.default_rng(0)
    classes = [
        {name for name, p in (("car", 0.9), ("bus", 0.2), ("tram", 0.03)) if rng.random() < p}
        for _ in range(300)
    ]
    numbers = choose([(i,) for i in range(300)], 0.2, 1, HERE, classes)
    for name in ("car", "bus", "tram"):
        share = np.mean([number for one, number in zip(classes, numbers) if name in one])
        assert 0.1 < share < 0.3
    assert choose([(i,) for i in range(300)], 0.2, 1, HERE, classes) == numbers


def test_samples_join_over_content_and_group() -> None:
    keys = [((0, "x"), (1, "g")), ((0, "x"), (1, "h")), ((0, "y"), (1, "h")), ((0, "z"), (1, "i"))]
    for seed in range(5):
        numbers = choose(keys, 0.25, seed, HERE)
        assert len(set(numbers[:3])) == 1 and numbers[3] != numbers[0]
    with pytest.raises(InputError, match=r"a part would be empty(?s:.)*3 samples in one group"):
        choose(keys[:3], 0.5, 0, HERE)


def test_groups_of_names() -> None:
    names = ["p1/a_1.jpg", "p1/a_2.jpg", "p2/b_1.jpg"]
    assert GroupRule("folder").groups(names, HERE) == ["p1", "p1", "p2"]
    assert GroupRule(r"([a-z]+)_\d+$").groups(names, HERE) == ["a", "a", "b"]
    assert GroupRule("p.").groups(names, HERE) == ["p1", "p1", "p2"]
    with pytest.raises(InputError, match="1 of 3 names have no group"):
        GroupRule("p1").groups(names, HERE)
    with pytest.raises(ConfigError, match="no regular expression"):
        GroupRule("(")


def photo(path: Path, level: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.write(path, np.full((20, 30, 3), level, np.uint8))


def test_yolo_by_group_and_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(24):
        photo(tmp_path / f"in/images/cam{number // 2}_{number}.png", 5 + number)
        if number != 3:
            line = f"{number // 2 % 2} 0.5 0.5 0.2 0.2\n"
            file = tmp_path / f"in/labels/cam{number // 2}_{number}.txt"
            file.parent.mkdir(exist_ok=True)
            file.write_text(line, encoding="utf-8")
    (tmp_path / "in/classes.txt").write_text("cat\ndog\n", encoding="utf-8")
    command = ["split", str(tmp_path / "in"), str(tmp_path / "out"), "--share", "0.25", "--stratify"]
    assert main([*command, "--group_by", r"(cam\d+)_"]) == 0
    assert "1 images have no file of labels" in capsys.readouterr().out
    assert yaml.safe_load((tmp_path / "out/data.yaml").read_text(encoding="utf-8"))["names"] == {
        0: "cat",
        1: "dog",
    }
    train, val = (YoloDetection(tmp_path / "out", split) for split in ("train", "val"))
    cameras = [{Path(str(one.id)).stem.split("_")[0] for one in data} for data in (train, val)]
    assert not cameras[0] & cameras[1] and len(train) + len(val) == 24 and 4 <= len(val) <= 8
    assert {int(label) for sample in val if sample.labels is not None for label in sample.labels} == {0, 1}


def test_tables_by_column(tmp_path: Path) -> None:
    rows = [
        f"text {number},user{number // 4},{'rare' if number % 8 == 0 else 'often'}" for number in range(80)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["text,user,label", *rows]) + "\n", encoding="utf-8")
    split_data(tmp_path / "a.csv", tmp_path / "out", 0.25, header=True, group_by="user", stratify=True)
    train, val = (
        [
            line.split(",")
            for line in (tmp_path / f"out/{part}.csv").read_text(encoding="utf-8").splitlines()[1:]
        ]
        for part in ("train", "val")
    )
    assert not {row[1] for row in train} & {row[1] for row in val} and len(train) + len(val) == 80
    assert 0.15 < sum(row[2] == "rare" for row in val) / 10 < 0.4
    with pytest.raises(InputError, match=r"there is no such column(?s:.)*text, user, label"):
        split_data(tmp_path / "a.csv", tmp_path / "out2", header=True, group_by="name")
    lines = [json.dumps({"text": str(n), "doc": n // 5}) for n in range(20)]
    (tmp_path / "b.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    report = split_data(tmp_path / "b.jsonl", tmp_path / "out3", group_by="doc")
    assert report.counts == (15, 5)


def test_class_folders_by_group(tmp_path: Path) -> None:
    for number in range(20):
        photo(tmp_path / f"in/{'cat' if number % 2 else 'dog'}/patient{number // 4}_{number}.png", number * 9)
    split_data(tmp_path / "in", tmp_path / "out", 0.2, group_by=r"(patient\d+)_")
    train, val = (
        {path.stem.split("_")[0] for path in (tmp_path / "out" / part).rglob("*.png")}
        for part in ("train", "val")
    )
    assert len(val) == 1 and not train & val and (tmp_path / "out/val/cat").is_dir()


def test_what_systems_put_beside_classes_is_none(tmp_path: Path) -> None:
    """A folder that came out of an archive of macOS, looked at with Windows' Explorer."""
    for number in range(4):
        photo(tmp_path / "photos" / ("cat" if number % 2 else "dog") / f"{number}.png", number)
    for name in ("__MACOSX/._0.png", "cat/Thumbs.db", "dog/desktop.ini", "dog/._0.png"):
        (tmp_path / "photos" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "photos" / name).write_bytes(b"x")
    split_data(tmp_path / "photos", tmp_path / "out", share=0.5)
    written = [path.relative_to(tmp_path / "out").parts for path in (tmp_path / "out").rglob("*.*")]
    assert sorted((part, folder) for part, folder, _ in written) == [
        *[("train", "cat"), ("train", "dog"), ("val", "cat"), ("val", "dog")]
    ]


@pytest.mark.parametrize(("title", "stands"), [("id,text,label", True), ("id,remark,label", False)])
def test_a_line_of_usual_titles_stands_in_both_parts(tmp_path: Path, title: str, stands: bool) -> None:
    lines = [f"{n},text {n},{'rare' if n % 5 == 0 else 'common'}" for n in range(20)]
    (tmp_path / "a.csv").write_text("\n".join([title, *lines]) + "\n", encoding="utf-8")
    report = split_data(tmp_path / "a.csv", tmp_path / "out", 0.25)
    parts = [
        (tmp_path / "out" / f"{part}.csv").read_text(encoding="utf-8").splitlines()
        for part in ("train", "val")
    ]
    assert [part[0] == title for part in parts].count(True) == 1 + stands
    assert sum(report.counts) == 20 + (not stands)
