"""detection.data.check and its command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detection.data.__main__ import main
from detection.data.check import open_dataset, validate
from framework.core.errors import InputError
from framework.vision import image


def written(folder: Path, *annotations: dict[str, Any], source_images: int = 2) -> Path:
    for number in range(source_images):
        image.write(folder / "val" / f"{number}.png", np.full((200, 300, 3), number, np.uint8))
    images = [{"id": n, "file_name": f"{n}.png", "height": 200, "width": 300} for n in range(source_images)]
    entries = [{"id": number, **one} for number, one in enumerate(annotations)]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "elephant"}]
    data = {"images": images, "categories": categories, "annotations": entries}
    (folder / "val.json").write_text(json.dumps(data), encoding="utf-8")
    return folder / "val.json"


def box(image_id: int, category_id: int, *xywh: float, **more: Any) -> dict[str, Any]:
    return {"image_id": image_id, "category_id": category_id, "bbox": list(xywh), **more}


def test_report(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        box(0, 1, 0, 0, 10, 10),
        box(0, 1, 0, 0, 50, 50),
        box(0, 2, 0, 0, 200, 100),
        box(0, 2, 0, 0, 20, 20, iscrowd=1),
        box(1, 1, 290, 0, 12, 10),
        box(1, 1, 5, 5, 0, 9),
        source_images=4,
    )
    (tmp_path / "val" / "3.png").write_bytes(b"")
    report = validate(open_dataset(file, images="val"))
    assert (report.images, report.without, report.ignored, report.sizes) == (4, 1, 1, (2, 1, 1))
    assert report.classes == (("cat", 3, 2), ("elephant", 1, 1))
    assert report.outside == ("1, 300 x 200: [290.0, 0.0, 302.0, 10.0]",)
    assert len(report.broken) == 1 and "3.png" in report.broken[0]
    assert report.left_out == ("annotation 5 on image 1: box [5, 5, 0, 9] has no area",)
    assert not report.is_clean
    lines = str(report).splitlines()
    assert lines[0] == "4 images, 1 of them without objects"
    assert lines[3:5] == ["cat             3  75.0%         2", "elephant        1  25.0%         1"]


def test_long_lists_are_cut(tmp_path: Path) -> None:
    file = written(tmp_path, *(box(0, 1, 5, 5, 0, 9) for _ in range(12)))
    lines = str(validate(open_dataset(file, images="val"))).splitlines()
    assert lines[-12] == "12 entries that are left out" and lines[-1] == "  ... and 2 more"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, box(0, 1, 0, 0, 10, 10), box(1, 2, 290, 0, 11, 10))  # a pixel beyond: rounding
    assert main(["check", str(file), "--images", "val"]) == 0
    assert "2 images, 0 of them without objects" in capsys.readouterr().out
    file = written(tmp_path, box(0, 1, 0, 0, 0, 0))
    assert main(["check", str(file), "--images", "val"]) == 1
    assert main(["check", str(tmp_path / "nowhere")]) == 2
    assert "there is no such file or folder" in capsys.readouterr().err


def test_voc_folder(tmp_path: Path) -> None:
    image.write(tmp_path / "val" / "a.png", np.zeros((9, 9, 3), np.uint8))
    sides = "".join(
        f"<{side}>{value}</{side}>" for side, value in zip(("xmin", "ymin", "xmax", "ymax"), (1, 1, 6, 6))
    )
    text = f"<annotation><object><name>cat</name><bndbox>{sides}</bndbox></object></annotation>"
    (tmp_path / "val" / "a.xml").write_text(text, encoding="utf-8")
    report = validate(open_dataset(tmp_path, "val"))
    assert report.is_clean and report.classes == (("cat", 1, 1),)
    with pytest.raises(InputError, match="no such file or folder"):
        open_dataset(tmp_path / "none")
