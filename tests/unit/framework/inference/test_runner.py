from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from framework.export import Artifact
from framework.inference import runner
from framework.vision import image as vision_image
from framework.vision.video import VideoReader, VideoWriter


class Result:
    def __init__(self, image: np.ndarray, source: str, page: int) -> None:
        self.image, self.source, self.page = image, source, page

    def to_dict(self) -> dict:
        return {"input": Path(self.source).name, "page": self.page, "red": int(self.image[0, 0, 0])}

    def draw(self) -> np.ndarray:
        return np.concatenate([self.image, self.image], axis=1)

    def overlay(self) -> np.ndarray:
        return 255 - self.image


class Ahead:
    """Takes the next item before it gives a result, as the OCR reader does."""

    def pages(self, items: Iterable[runner.Item]) -> Iterator[Result]:
        waiting = None
        for item in items:
            if waiting is not None:
                yield Result(*waiting)
            waiting = item
        if waiting is not None:
            yield Result(*waiting)


def picture(red: int, size: int = 8) -> np.ndarray:
    return np.full((size, size, 3), (red, 0, 0), np.uint8)


def read_json(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


# -- files -------------------------------------------------------------------------------------------------------------


def test_stems():
    def names(*files: str) -> list[str]:
        return list(runner.stems(map(Path, files)).values())

    assert names("d/a.png", "d/b.jpg") == ["a", "b"]
    assert names("a.png", "a.jpg", "b.png") == ["a.png", "a.jpg", "b"]
    assert names("A.png", "a.jpg") == ["A.png", "a.jpg"]  # one file on Windows
    assert names("a.png", "a.jpg", "a.png.bmp") == ["a.png", "a.jpg", "a.png_2"]
    assert names("x/a.png", "y/a.png", "z/A.PNG") == ["a.png", "a.png_2", "A.PNG_3"]
    assert names("a.png", "a.png") == ["a"] and names() == []


def test_write_json_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.json"
    runner.write_json(path, {"text": "Füße 猫"})
    assert "Füße 猫" in path.read_text(encoding="utf-8") and read_json(path) == {"text": "Füße 猫"}
    with pytest.raises(TypeError):
        runner.write_json(path, {"text": object()})

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(runner.os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        runner.write_json(path, {"text": "new"})
    assert read_json(path) == {"text": "Füße 猫"}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


# -- images ------------------------------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_read(tmp_path: Path):
    folder, out = tmp_path / "in", tmp_path / "out" / "deep"
    for number in (1, 2, 10):
        vision_image.write(folder / f"page{number}.png", picture(number))
    (folder / "page3.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    report = runner.run(Ahead(), out, image_dir=str(folder))
    assert report.exit_code == 1 and len(report.failed) == 1
    assert report.failed[0][0].endswith("page3.png") and "could not be decoded" in report.failed[0][1]
    assert [p.name for p in report.written] == [
        "page1.json", "page1.png", "page2.json", "page2.png", "page10.json", "page10.png",
    ]  # fmt: skip
    for number in (1, 2, 10):
        assert read_json(out / f"page{number}.json") == {
            "input": f"page{number}.png",
            "page": 1,
            "red": number,
        }
        assert vision_image.read(out / f"page{number}.png").shape == (8, 16, 3)
    assert sorted(p.name for p in out.iterdir()) == sorted(p.name for p in report.written)
    assert f"6 files in {out}" in report.summary() and "1 failed:\n" in report.summary()


def test_one_file_without_a_drawing(tmp_path: Path):
    vision_image.write(tmp_path / "a.png", picture(7))
    report = runner.run(Ahead(), tmp_path, image_file=str(tmp_path / "a.png"), draw=False)
    assert report.exit_code == 0 and [p.name for p in report.written] == ["a.json"]
    assert (vision_image.read(tmp_path / "a.png") == picture(7)).all()


def test_a_source_is_never_overwritten(tmp_path: Path):
    vision_image.write(tmp_path / "a.png", picture(7))
    with pytest.raises(
        InputError, match=r"a\.png: the drawn result would replace its source\n(.*\n)+.*--output_dir"
    ):
        runner.run(Ahead(), tmp_path, image_dir=str(tmp_path))
    assert (vision_image.read(tmp_path / "a.png") == picture(7)).all()
    make_video(tmp_path / "clip.mp4", 2)
    with pytest.raises(InputError, match=r"clip\.mp4: the drawn result"):
        runner.run(Ahead(), tmp_path, video_file=str(tmp_path / "clip.mp4"))
    with VideoReader(tmp_path / "clip.mp4") as video:
        assert len(list(video)) == 2


def test_a_folder_without_pictures(tmp_path: Path):
    with pytest.raises(InputError, match=r"the folder holds no picture\n  allowed: files such as \.jpg"):
        runner.run(Ahead(), tmp_path, image_dir=str(tmp_path))
    assert runner.Report().summary() == "nothing to do" and runner.Report().exit_code == 0


# -- PDF ---------------------------------------------------------------------------------------------------------------


class Pages(list):
    def __init__(self, file: Path, *, dpi: float) -> None:
        super().__init__(picture(n) for n in (1, 2, 3))

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, *_: object) -> None: ...


class BrokenPages(Pages):
    def __iter__(self) -> Iterator[np.ndarray]:
        yield self[0]
        yield self[1]
        raise InputError("page 3 is damaged")


def test_pages_of_a_pdf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runner, "PdfReader", Pages)
    report = runner.run(Ahead(), tmp_path, pdf_file="scan.pdf", draw=False)
    assert [p.name for p in report.written] == ["scan_page1.json", "scan_page2.json", "scan_page3.json"]
    assert [read_json(p)["page"] for p in report.written] == [1, 2, 3]


def test_a_damaged_page_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runner, "PdfReader", BrokenPages)
    report = runner.run(Ahead(), tmp_path, pdf_file="scan.pdf")
    assert report.failed == [("scan.pdf", "page 3 is damaged")] and report.exit_code == 1
    assert (tmp_path / "scan_page1.png").exists()


def test_no_pdf(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 and no more")
    report = runner.run(Ahead(), tmp_path / "out", pdf_file=str(tmp_path / "a.pdf"))
    assert report.exit_code == 1 and "no PDF that can be read" in report.failed[0][1]


# -- video -------------------------------------------------------------------------------------------------------------


def make_video(path: Path, frames: int) -> None:
    with VideoWriter(path, 5.0, (32, 48)) as video:
        for number in range(frames):
            video.write(np.full((32, 48, 3), 40 * number, np.uint8))


def test_a_video(tmp_path: Path):
    make_video(tmp_path / "clip.mp4", 5)
    out = tmp_path / "out"
    report = runner.run(Ahead(), out, video_file=str(tmp_path / "clip.mp4"))
    assert report.exit_code == 0 and sorted(p.name for p in out.iterdir()) == ["clip.jsonl", "clip.mp4"]
    lines = [json.loads(line) for line in (out / "clip.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["frame"], line["time"]) for line in lines] == [
        (0, 0),
        (1, 0.2),
        (2, 0.4),
        (3, 0.6),
        (4, 0.8),
    ]
    assert "page" not in lines[0]
    for number, line in enumerate(lines):
        assert math.isclose(line["red"], 40 * number, abs_tol=6)  # the codec is lossy
    with VideoReader(out / "clip.mp4") as video:
        assert video.fps == 5 and video.size_hw == (32, 48)
        for number, frame in enumerate(video):
            assert abs(float(frame.mean()) - (255 - 40 * number)) < 8
        assert video.frames_read == 5


def test_a_video_without_drawings_and_one_that_is_none(tmp_path: Path):
    make_video(tmp_path / "clip.mp4", 2)
    report = runner.run_video(Ahead(), tmp_path / "clip.mp4", tmp_path / "out", draw=False)
    assert [p.name for p in report.written] == ["clip.jsonl"]
    (tmp_path / "no.mp4").write_bytes(b"no video")
    report = runner.run_video(Ahead(), tmp_path / "no.mp4", tmp_path / "out")
    assert report.exit_code == 1 and not report.written
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["clip.jsonl"]


class Stumbles(Ahead):
    def pages(self, items: Iterable[runner.Item]) -> Iterator[Result]:
        for number, result in enumerate(super().pages(items)):
            if number == 2:
                raise InputError("frame 2 is damaged")
            yield result


def test_nothing_is_left_of_a_video_that_failed(tmp_path: Path):
    make_video(tmp_path / "clip.mp4", 4)
    report = runner.run_video(Stumbles(), tmp_path / "clip.mp4", tmp_path / "out")
    assert report.failed[0][1] == "frame 2 is damaged" and not report.written
    assert not list((tmp_path / "out").iterdir())


# -- what is given -----------------------------------------------------------------------------------------------------


def test_sources_are_checked_before_a_model_is_loaded(tmp_path: Path):
    file = tmp_path / "a.png"
    file.write_bytes(b"")
    runner.check_sources(str(file), None, None, None)
    runner.check_sources(None, str(tmp_path), None, None)
    for given, message in (
        ((None, str(file), None, None), r"no such folder\n  received: a file\n.*--image_dir takes folders"),
        (
            (str(tmp_path), None, None, None),
            r"no such file\n  received: a folder\n.*the other options take files",
        ),
        (
            (None, None, str(tmp_path / "no.pdf"), None),
            r"no\.pdf: there is no such file\n  received: nothing.*\n.*check",
        ),
        ((None, None, None, ""), r"no such file\n  received: a folder"),
        ((None, None, None, None), r"no such file\n  received: nothing at this path"),
    ):
        with pytest.raises(InputError, match=message):
            runner.check_sources(*given)


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.yml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "domain"), [("domain: cooking\n", "cooking"), ("a: 1\n", "None"), ("domain: [ocr]\n", r"\[")]
)
def test_domains_that_cannot_run(tmp_path: Path, text: str, domain: str):
    message = rf"mine\.yml: this domain cannot run models\n  received: domain: .*{domain}.*\n  allowed: .*ocr"
    with pytest.raises(ConfigError, match=message):
        runner.open_predictor(config(tmp_path, text), None, None, "auto", ())
    with pytest.raises(ConfigError, match=message):
        runner.export(config(tmp_path, text), tmp_path / "out", ())


def test_an_artifact_without_a_domain(tmp_path: Path):
    folder = Artifact({"kind": "jit"}).save(tmp_path / "net")
    with pytest.raises(ConfigError, match=r"infer_cfg\.yml: this domain cannot(.*\n)+.*framework\.jit\.load"):
        runner.open_predictor(None, str(folder), None, "auto", ())


def test_the_domain_opens_and_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import ocr.api

    opened = []
    monkeypatch.setattr(ocr.api, "open_predictor", lambda *args: opened.append(args) or Ahead())
    monkeypatch.setattr(
        ocr.api, "export_artifact", lambda *args: opened.append(args) or Artifact({"domain": "ocr"})
    )
    path = config(tmp_path, "domain: ocr\n")
    assert isinstance(runner.open_predictor(path, None, "cpu", "auto", ["a=1"]), Ahead)
    folder = runner.export(path, tmp_path / "out", ["a=1"])
    assert folder == tmp_path / "out" / "mine" and (folder / "infer_cfg.yml").is_file()
    runner.open_predictor(None, str(folder), None, "float32", [])
    assert opened == [
        (path, None, "cpu", "auto", ("a=1",)),
        (path, ("a=1",)),
        (None, str(folder), None, "float32", ()),
    ]
