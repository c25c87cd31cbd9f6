from __future__ import annotations

import json
from pathlib import Path

import pytest

from framework.core.disk import DiskError
from framework.core.errors import InputError
from framework.workflow.domain import outputs


def read_json(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_stems():
    def names(*files: str) -> list[str]:
        return list(outputs.stems(map(Path, files)).values())

    assert names("d/a.png", "d/b.jpg") == ["a", "b"]
    assert names("a.png", "a.jpg", "b.png") == ["a.png", "a.jpg", "b"]
    assert names("A.png", "a.jpg") == ["A.png", "a.jpg"]  # one file on Windows
    assert names("a.png", "a.jpg", "a.png.bmp") == ["a.png", "a.jpg", "a.png_2"]
    assert names("x/a.png", "y/a.png", "z/A.PNG") == ["a.png", "a.png_2", "A.PNG_3"]
    assert names("a.png", "a.png") == ["a"] and names() == []
    reserved = outputs.stems([Path("bbox.png"), Path("Bbox.jpg"), Path("c.png")], ["bbox", "C"])
    assert list(reserved.values()) == ["bbox.png", "Bbox.jpg", "c_2"]


def test_write_json_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.json"
    outputs.write_json(path, {"text": "Füße 猫"})
    assert "Füße 猫" in path.read_text(encoding="utf-8") and read_json(path) == {"text": "Füße 猫"}
    with pytest.raises(TypeError):
        outputs.write_json(path, {"text": object()})

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(outputs.os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        outputs.write_json(path, {"text": "new"})
    assert read_json(path) == {"text": "Füße 猫"}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_text_file_is_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "a.txt"
    with outputs.text_file(path) as out:
        out.write("é\n")
        assert not path.exists()
    assert path.read_bytes() == "é\n".encode()
    with pytest.raises(ZeroDivisionError), outputs.text_file(path) as out:
        out.write(str(1 // 0))
    assert path.read_bytes() == "é\n".encode() and [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_that_cannot_be_made(tmp_path: Path):
    outputs.make_folder(tmp_path / "a" / "b")
    outputs.make_folder(tmp_path / "a" / "b")
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(
        DiskError, match=r"taken: a file stands where a folder is needed(.*\n)+.*another folder"
    ):
        outputs.make_folder(tmp_path / "taken")


def test_drawings_spare_their_sources(tmp_path: Path):
    source, other = tmp_path / "a.png", tmp_path / "b.png"
    outputs.spare_sources([source, other], [source])  # nothing is there yet
    source.write_bytes(b"")
    other.write_bytes(b"")
    outputs.spare_sources([source], [other, tmp_path / "c.png"])
    with pytest.raises(InputError, match=r"b\.png: the drawn result would replace its source"):
        outputs.spare_sources([source, other], [tmp_path / "c.png", tmp_path / "." / "b.png"])


def test_names_with_endings_do_not_meet():
    files = [Path("a.png"), Path("a_label.png"), Path("b.png"), Path("B_LABEL.png")]
    names = outputs.stems(files, endings=("", "_label"))
    assert list(names.values()) == ["a", "a_label_2", "b", "B_LABEL_2"]


def test_a_report():
    report = outputs.Report()
    assert report.summary() == "nothing to do" and report.exit_code == 0
    report.written.append(Path("out") / "a.json")
    report.notes.append("a.mp4: short")
    assert report.summary() == "1 files in out\na.mp4: short" and report.exit_code == 0
    report.failed.append(("b.png", "b.png: broken"))
    assert report.summary().endswith("1 failed:\n  b.png: broken") and report.exit_code == 1
