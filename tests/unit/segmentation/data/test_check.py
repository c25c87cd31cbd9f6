"""segmentation.data.check and its command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framework.core.errors import ConfigError
from segmentation.data.__main__ import main
from segmentation.data.check import validate
from segmentation.data.custom import MaskFolder
from zoo.classification.data import ImageFolder


def save(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values, np.uint8)).save(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, row in (("a", [0, 1, 1, 255]), ("b", [1, 1, 1, 1])):
        save(tmp_path / "images" / f"{name}.png", np.zeros((2, 4, 3)))
        save(tmp_path / "masks" / f"{name}.png", [row] * 2)
    return tmp_path


def test_report(root: Path) -> None:
    report = validate(MaskFolder(root, ("sky", "road", "elephant")))
    assert [(one.name, one.pixels, one.images) for one in report.classes] == [
        ("sky", 2, 1),
        ("road", 12, 2),
        ("elephant", 0, 0),
    ]
    assert report.ignored == 2 and report.images == 2 and report.is_clean and report.absent == ("elephant",)
    lines = str(report).splitlines()
    assert lines[0] == "2 images: 2 of 4 x 2, 3 channels of uint8"
    assert lines[1] == "14 pixels with a class, 2 without (12.5%)"
    assert lines[3].split() == ["road", "12", "85.71%", "2"]
    assert lines[-2:] == ["1 classes without a pixel: elephant", "0 images that cannot be used"]


def test_broken_files_are_named(root: Path) -> None:
    save(root / "masks" / "a.png", [[0, 9, 9, 255]] * 2)
    (root / "images" / "b.png").write_bytes(b"")
    report = validate(MaskFolder(root, 2))
    assert len(report.broken) == 2 and not report.is_clean
    assert "a.png: the mask has values outside the classes (9: 4 pixels)" in report.broken[0]
    assert "b.png" in report.broken[1]


def test_long_lists_are_cut(root: Path) -> None:
    for number in range(12):
        save(root / "images" / f"{number}.png", np.zeros((2, 4, 3)))
        save(root / "masks" / f"{number}.png", [[9] * 4] * 2)
    lines = str(validate(MaskFolder(root, 2))).splitlines()
    assert lines[-12] == "12 images that cannot be used" and lines[-1] == "  ... and 2 more"


def test_a_data_set_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no classes of pixels"):
        validate(ImageFolder(tmp_path))


def test_command_with_a_data_set(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["check", "--dataset", "MaskFolder", f"root={root}"]
    assert main([*arguments, "classes=[sky, road]"]) == 0
    assert "road" in capsys.readouterr().out
    save(root / "masks" / "a.png", [[0, 9, 9, 255]] * 2)
    assert main([*arguments, "classes=2"]) == 1
    assert main([*arguments, "classes=2", "label_map={9: 1}"]) == 0
    assert main([*arguments, "classes=1"]) == 2
    assert "cannot be told from any other" in capsys.readouterr().err


def test_command_with_a_configuration(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "a.yml"
    feed = f"{{dataset: {{type: MaskFolder, root: '{root.as_posix()}', classes: 2}}}}"
    config.write_text(f"domain: segmentation\ndata:\n  train: {feed}\n  eval: {feed}\n", encoding="utf-8")
    assert main(["check", "-c", str(config)]) == 0
    out = capsys.readouterr().out
    assert "== data.train" in out and "== data.eval" in out
    assert main(["check", "-c", str(config), "--part", "eval", "-o", "data.eval.dataset.classes=3"]) == 0
    out = capsys.readouterr().out
    assert "1 classes without a pixel: 2" in out and "==" not in out
    assert main(["check", "-c", str(config), "classes=3"]) == 2
    assert "settings belong to --dataset" in capsys.readouterr().err
    config.write_text("domain: segmentation\n", encoding="utf-8")
    assert main(["check", "-c", str(config)]) == 2
    assert "the configuration has no such data" in capsys.readouterr().err
