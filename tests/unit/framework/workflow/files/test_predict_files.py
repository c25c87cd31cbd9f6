from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from framework.core import disk
from framework.core.disk import DiskError
from framework.core.errors import ConfigError, InputError, OarError
from framework.vision import image as vision_image
from framework.vision.video import VideoReader, VideoWriter
from framework.workflow import VisionPredictor
from framework.workflow.domain import result as domain_result
from framework.workflow.domain.predictor import ImageItem, LanguagePredictor, Row, RowPredictor, Text
from framework.workflow.files import predict_files as runner
from framework.workflow.files import videos
from framework.workflow.files.sources import open_sources


class Result:
    def __init__(self, image: np.ndarray, source: str, page: int) -> None:
        self.image, self.source, self.page = image, source, page
        self.is_empty = not image[0, 0, 0]

    def to_dict(self) -> dict:
        return {"input": Path(self.source).name, "page": self.page, "red": int(self.image[0, 0, 0])}

    def draw(self) -> np.ndarray:
        return np.concatenate([self.image, self.image], axis=1)

    def overlay(self) -> np.ndarray:
        return 255 - self.image


class Ahead(VisionPredictor):
    """Takes the next item before it gives a result, as the OCR pipeline does."""

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Result]:
        waiting = None
        for item in items:
            if waiting is not None:
                yield Result(*waiting[:3])
            waiting = item
        if waiting is not None:
            yield Result(*waiting[:3])


def image(red: int, size: int = 8) -> np.ndarray:
    return np.full((size, size, 3), (red, 0, 0), np.uint8)


def read_json(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


# -- images ------------------------------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_read(tmp_path: Path):
    folder, out = tmp_path / "in", tmp_path / "out" / "deep"
    for number in (1, 2, 10):
        vision_image.write(folder / f"page{number}.png", image(number))
    (folder / "page3.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    report = runner.predict_files(Ahead(), out, image_dir=str(folder))
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
    vision_image.write(tmp_path / "a.png", image(7))
    report = runner.predict_files(Ahead(), tmp_path, image_file=str(tmp_path / "a.png"), draw=False)
    assert report.exit_code == 0 and [p.name for p in report.written] == ["a.json"]
    assert (vision_image.read(tmp_path / "a.png") == image(7)).all()


def test_a_source_is_never_overwritten(tmp_path: Path):
    vision_image.write(tmp_path / "a.png", image(7))
    with pytest.raises(
        InputError, match=r"a\.png: the drawn result would replace its source\n(.*\n)+.*--output_dir"
    ):
        runner.predict_files(Ahead(), tmp_path, image_dir=str(tmp_path))
    assert (vision_image.read(tmp_path / "a.png") == image(7)).all()
    make_video(tmp_path / "clip.mp4", 2)
    with pytest.raises(InputError, match=r"clip\.mp4: the drawn result"):
        runner.predict_files(Ahead(), tmp_path, video_file=str(tmp_path / "clip.mp4"))
    with VideoReader(tmp_path / "clip.mp4") as video:
        assert len(list(video)) == 2


def test_images_in_which_nothing_is_found(tmp_path: Path):
    class Finds(Ahead):
        empty_note = "no object has a score of 0.5 or more"

    for number in (0, 1, 2, 0):
        vision_image.write(tmp_path / f"in/{number}{len(list(tmp_path.rglob('*.png')))}.png", image(number))
    report = runner.predict_files(Finds(), tmp_path / "out", image_dir=str(tmp_path / "in"))
    assert report.notes == ["2 of 4 images: no object has a score of 0.5 or more"]
    assert not runner.predict_files(Ahead(), tmp_path / "out", image_dir=str(tmp_path / "in")).notes


def test_masks_beside_their_images_are_not_read(tmp_path: Path):
    """As Roboflow's export of masks has them; a mask that is named itself is read."""
    for name in ("a.jpg", "a_mask.png", "alone_mask.png", "b.jpg"):
        vision_image.write(tmp_path / name, image(1))
    with open_sources([str(tmp_path)], (".png", ".jpg")) as sources:
        assert [file.path.name for file in sources.files] == ["a.jpg", "alone_mask.png", "b.jpg"]
        assert sources.notes == (f"{tmp_path}: 1 file is not read: masks beside their images (…_mask)",)
    with open_sources([str(tmp_path / "a_mask.png")], (".png", ".jpg")) as sources:
        assert len(sources.files) == 1 and not sources.notes


def test_a_folder_without_images(tmp_path: Path):
    with pytest.raises(InputError, match=r"the folder holds no image\n  allowed: files such as \.jpg"):
        runner.predict_files(Ahead(), tmp_path, image_dir=str(tmp_path))


class ResultWriter:
    """The file of all results as a list of (number, red)."""

    head, tail = "[", "]"

    def __init__(self, name: str) -> None:
        self.name = name

    def text(self, result: Result, number: int) -> str:
        return f"({number}, {result.image[0, 0, 0]})"


class Saves(Ahead):
    def result_writer(self, stem: str, files: list[str] | None = None) -> ResultWriter:
        return ResultWriter(f"{stem}.txt" if files is None else "all.json")


def test_one_file_of_all_results(tmp_path: Path):
    for name, red in (("a", 1), ("all", 2), ("c", 3)):
        vision_image.write(tmp_path / "in" / f"{name}.png", image(red))
    (tmp_path / "in" / "b.png").write_bytes(b"broken")
    report = runner.predict_files(
        Saves(), tmp_path / "out", image_dir=str(tmp_path / "in"), draw=False, save=True
    )
    assert [p.name for p in report.written] == ["a.json", "all_2.json", "c.json", "all.json"]
    assert (tmp_path / "out" / "all.json").read_text(encoding="utf-8") == "[(0, 1)(1, 2)(2, 3)]"
    assert len(report.failed) == 1 and read_json(tmp_path / "out" / "all_2.json")["red"] == 2


def test_a_domain_without_a_file_of_all_results(tmp_path: Path):
    vision_image.write(tmp_path / "a.png", image(7))
    with pytest.raises(ConfigError, match=r"no single file for all results\n  received: --save_results"):
        runner.predict_files(Ahead(), tmp_path / "out", image_file=str(tmp_path / "a.png"), save=True)
    with pytest.raises(
        ConfigError, match=r"no single file for the pages of a PDF\n  received: --save_results"
    ):
        runner.predict_files(Saves(), tmp_path / "out", pdf_file="a.pdf", save=True)
    make_video(tmp_path / "clip.mp4", 2)
    with pytest.raises(ConfigError, match=r"no single file for all results"):
        runner.predict_files(Ahead(), tmp_path / "out", video_file=str(tmp_path / "clip.mp4"), save=True)


# -- PDF ---------------------------------------------------------------------------------------------------------------


class Pages(list):
    def __init__(self, file: Path, *, dpi: float) -> None:
        super().__init__(image(n) for n in (1, 2, 3))

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
    report = runner.predict_files(Ahead(), tmp_path, pdf_file="scan.pdf", draw=False)
    assert [p.name for p in report.written] == ["scan_page1.json", "scan_page2.json", "scan_page3.json"]
    assert [read_json(p)["page"] for p in report.written] == [1, 2, 3]


def test_a_damaged_page_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runner, "PdfReader", BrokenPages)
    report = runner.predict_files(Ahead(), tmp_path, pdf_file="scan.pdf")
    assert report.failed == [("scan.pdf", "page 3 is damaged")] and report.exit_code == 1
    assert (tmp_path / "scan_page1.png").exists()


def test_no_pdf(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 and no more")
    report = runner.predict_files(Ahead(), tmp_path / "out", pdf_file=str(tmp_path / "a.pdf"))
    assert report.exit_code == 1 and "no PDF that can be read" in report.failed[0][1]


# -- video -------------------------------------------------------------------------------------------------------------


def make_video(path: Path, frames: int) -> None:
    with VideoWriter(path, 5.0, (32, 48)) as video:
        for number in range(frames):
            video.write(np.full((32, 48, 3), 40 * number, np.uint8))


def test_a_video(tmp_path: Path):
    make_video(tmp_path / "clip.mp4", 5)
    out = tmp_path / "out"
    report = runner.predict_files(Ahead(), out, video_file=str(tmp_path / "clip.mp4"))
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
    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Result]:
        for number, result in enumerate(super().predict_stream(items)):
            if number == 2:
                raise InputError("frame 2 is damaged")
            yield result


def test_nothing_is_left_of_a_video_that_failed(tmp_path: Path):
    make_video(tmp_path / "clip.mp4", 4)
    report = runner.run_video(Stumbles(), tmp_path / "clip.mp4", tmp_path / "out")
    assert report.failed[0][1] == "frame 2 is damaged" and not report.written
    assert not list((tmp_path / "out").iterdir())


def test_the_file_of_all_results_of_a_video(tmp_path: Path):
    make_video(tmp_path / "clip.mp4", 3)
    report = runner.predict_files(
        Saves(), tmp_path / "out", video_file=str(tmp_path / "clip.mp4"), draw=False, save=True
    )
    assert [p.name for p in report.written] == ["clip.jsonl", "clip.txt"]
    text = (tmp_path / "out" / "clip.txt").read_text(encoding="utf-8")
    assert text.startswith("[(0, ") and text.count("(") == 3 and text.endswith(")]")


@dataclass(frozen=True)
class Doubled(domain_result.Result):
    text: str

    def to_dict(self) -> dict[str, domain_result.Json]:
        return {"text": self.text}


class Doubles(RowPredictor[domain_result.Result]):
    """Reads a file of numbers, a line each."""

    def read_file(self, path: Path) -> Iterator[Row | OarError]:
        for line in path.read_text(encoding="utf-8").splitlines():
            yield {"x": line} if line.isdigit() else InputError("this is no number", received=line)

    def predict_stream(self, items: Iterable[Row]) -> Iterator[domain_result.Result]:
        return (Doubled(2 * str(row["x"])) for row in items)

    def predict_attempts(self, rows: Iterable[Row | OarError]) -> Iterator[domain_result.Result | OarError]:
        for row in rows:
            yield row if isinstance(row, OarError) else next(self.predict_stream([row]))


def test_a_line_that_is_no_row_has_its_error_and_the_others_their_results(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1\nx\n2\n", encoding="utf-8")
    report = runner.run_rows(Doubles(), {tmp_path / "a.csv": "a.csv"}, tmp_path / "out")
    lines = lines_of(tmp_path / "out" / "a.jsonl")
    assert [line.get("text") for line in lines] == ["11", None, "22"] and "no number" in lines[1]["error"]
    assert [name for name, _ in report.failed] == ["a.csv, row 2"]


class Turned(LanguagePredictor[domain_result.Result]):
    """The second text of a pair before the first."""

    pairs = True

    def predict_stream(self, items: Iterable[Text]) -> Iterator[domain_result.Result]:
        return (Doubled(f"{item[1]}, {item[0]}") for item in items)

    def predict_attempts(self, texts: Iterable[Text]) -> Iterator[domain_result.Result | OarError]:
        return self.predict_stream(texts)


def test_a_line_without_a_second_text_has_its_error_and_the_others_their_results(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("a\tbc\n\nno tab\nde\tfgh\tleft out\n", encoding="utf-8")
    report = runner.predict_files(Turned(), tmp_path / "out", text_file=str(tmp_path / "pairs.txt"))
    first, second, third = map(
        json.loads, (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    )
    assert (first, third) == ({"text": "bc, a"}, {"text": "fgh, de"})
    assert "line 3" in second["error"] and "two texts with a tab" in second["error"]
    assert [name for name, _ in report.failed] == ["text 2"]
    (tmp_path / "texts.txt").write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(InputError, match="takes two texts"):
        runner.predict_files(Turned(), tmp_path / "none", text_file=str(tmp_path / "texts.txt"))
    with pytest.raises(InputError, match="takes two texts"):
        runner.predict_files(Turned(), tmp_path / "none", text="one")
    assert not (tmp_path / "none").exists()


class Timed(Ahead):
    """Is asked for the frames of a video at their rate."""

    def predict_video(self, frames: Iterable[ImageItem], frame_rate: float) -> Iterator[Result]:
        self.frame_rate = frame_rate
        return super().predict_stream(frames)

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Result]:
        raise AssertionError("these are the frames of a video")


def test_a_predictor_that_knows_of_time_is_told_the_rate(tmp_path: Path):
    make_video(tmp_path / "clip.mp4", 3)
    predictor = Timed()
    runner.run_video(predictor, tmp_path / "clip.mp4", tmp_path / "out", draw=False)
    assert predictor.frame_rate == 5


class Video:
    """Stands for VideoReader: `there` frames, of which the header promises `frame_count`."""

    fps, frames_read, time = 5.0, 0, 0.0
    there, frame_count = 40, None

    def __init__(self, source: Path | int | str, *, stride: int = 1) -> None: ...

    def __enter__(self) -> Video:
        return self

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[np.ndarray]:
        for number in range(self.there):
            self.frames_read += 1
            yield image(5 * number % 256, 16)


def test_times_of_frames_that_last_differently_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """openmpf#1313: the times in the results are those of the file."""

    class Uneven(Video):
        def __iter__(self) -> Iterator[np.ndarray]:
            for number, self.time in enumerate((0.0, 0.04, 5.0, 5.5)):
                yield np.full((16, 16, 3), 80 * number, np.uint8)

    monkeypatch.setattr(videos, "VideoReader", Uneven)
    runner.run_video(Ahead(), tmp_path / "clip.mp4", tmp_path / "out")
    assert [line["time"] for line in lines_of(tmp_path / "out" / "clip.jsonl")] == [0, 0.04, 5, 5.5]
    with VideoReader(tmp_path / "out" / "clip.mp4") as clip:  # at 5 frames a second; each one is inverted
        levels = [255 - round(float(frame.mean())) for frame in clip]
    assert np.allclose(levels, [0] + 24 * [80] + 3 * [160] + [240], atol=10)


@pytest.mark.parametrize(("seconds", "note"), [(3.12, False), (3.02, False), (1.0, True)])
def test_a_video_whose_frames_are_counted_by_its_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, note: bool
):
    """A Matroska file with frames of different lengths stores no number of frames: OpenCV multiplies 3.17 s by 30."""

    class Long(Video):
        fps, frame_count, there = 30.0, 95, 12

        def __iter__(self) -> Iterator[np.ndarray]:
            for frame in super().__iter__():
                self.time = seconds * self.frames_read / self.there
                yield frame

    monkeypatch.setattr(videos, "VideoReader", Long)
    report = runner.run_video(Ahead(), tmp_path / "clip.mp4", tmp_path / "out", draw=False)
    assert len(report.notes) == note


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("promised", "note"), [(100, True), (42, True), (41, False), (40, False), (None, False)]
)
def test_a_video_that_ends_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, promised: int | None, note: bool
):
    monkeypatch.setattr(videos, "VideoReader", type("Short", (Video,), {"frame_count": promised}))
    report = runner.run_video(Ahead(), tmp_path / "clip.mp4", tmp_path / "out")
    assert report.exit_code == 0 and len(lines_of(tmp_path / "out" / "clip.jsonl")) == 40
    assert report.notes == (
        [f"{tmp_path / 'clip.mp4'}: the video ends after 40 of {promised} frames"] if note else []
    )
    assert [p.name for p in report.written] == ["clip.mp4", "clip.jsonl"]
    with VideoReader(tmp_path / "out" / "clip.mp4") as video:
        assert len(list(video)) == 40 and video.fps == 5


class Slow(Result):
    """Later results are drawn faster, so that they could overtake earlier ones."""

    def overlay(self) -> np.ndarray:
        time.sleep(0.01 * (40 - self.page) / 40)
        return self.image


def test_drawings_keep_their_order_and_few_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    alive: weakref.WeakSet[Slow] = weakref.WeakSet()
    most = 0

    class Draws(VisionPredictor):
        def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Result]:
            nonlocal most
            for item in items:
                result = Slow(*item[:3])
                alive.add(result)
                most = max(most, len(alive))
                yield result

    monkeypatch.setattr(videos, "VideoReader", Video)
    report = runner.run_video(Draws(), tmp_path / "clip.mp4", tmp_path / "out")
    assert report.exit_code == 0
    assert [line["red"] for line in lines_of(tmp_path / "out" / "clip.jsonl")] == list(range(0, 200, 5))
    with VideoReader(tmp_path / "out" / "clip.mp4") as video:
        reds = [float(frame[..., 0].mean()) for frame in video]
    assert len(reds) == 40
    assert all(math.isclose(red, 5 * number, abs_tol=8) for number, red in enumerate(reds))
    assert most < 16  # of 40 frames


def test_a_drawing_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Fails(Result):
        def overlay(self) -> np.ndarray:
            raise InputError("cannot be drawn")

    class Draws(VisionPredictor):
        def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Result]:
            return (Fails(*item[:3]) for item in items)

    monkeypatch.setattr(videos, "VideoReader", Video)
    report = runner.run_video(Draws(), tmp_path / "clip.mp4", tmp_path / "out")
    assert report.failed == [(str(tmp_path / "clip.mp4"), "cannot be drawn")]
    assert not list((tmp_path / "out").iterdir())


def test_a_camera_runs_until_it_is_interrupted_and_the_recording_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Camera(Video):
        there = 10_000

    class Interrupted(Ahead):
        def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Result]:
            for number, result in enumerate(super().predict_stream(items)):
                if number == 3:
                    signal.raise_signal(signal.SIGINT)
                yield result

    monkeypatch.setattr(videos, "VideoReader", Camera)
    before = signal.getsignal(signal.SIGINT)
    report = runner.predict_files(Interrupted(), tmp_path, camera_id=2)
    assert signal.getsignal(signal.SIGINT) is before and report.exit_code == 0
    assert [p.name for p in report.written] == ["camera2.mp4", "camera2.jsonl"]
    lines = lines_of(tmp_path / "camera2.jsonl")
    assert len(lines) == 5 and lines[0]["input"] == "2"  # the fourth result, and the frame read ahead
    with VideoReader(tmp_path / "camera2.mp4") as video:
        assert len(list(video)) == 5


class Stops(Ahead):
    """Ctrl+C is pressed at the third result."""

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Result]:
        for number, result in enumerate(super().predict_stream(items)):
            if number == 2:
                signal.raise_signal(signal.SIGINT)
            yield result


def test_ctrl_c_in_a_folder_keeps_what_is_written(tmp_path: Path):
    for number in range(9):
        vision_image.write(tmp_path / "in" / f"{number}.png", image(number))
    before = signal.getsignal(signal.SIGINT)
    report = runner.predict_files(Stops(), tmp_path / "out", image_dir=str(tmp_path / "in"))
    assert signal.getsignal(signal.SIGINT) is before
    assert report.exit_code == 130 and report.summary().endswith("stopped; what is written stays")
    assert [p.name for p in report.written if p.suffix == ".json"] == [f"{n}.json" for n in range(4)]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(p.name for p in report.written)


def test_ctrl_c_in_a_video_keeps_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Long(Video):
        there = 10_000

    monkeypatch.setattr(videos, "VideoReader", Long)
    report = runner.run_video(Stops(), tmp_path / "clip.mp4", tmp_path)
    assert report.exit_code == 130 and len(lines_of(tmp_path / "clip.jsonl")) == 4
    assert (tmp_path / "clip.mp4").is_file()


def test_a_second_ctrl_c_ends_it(tmp_path: Path, ctrl_c_interrupts: None):
    class Twice(Stops):
        def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Result]:
            for result in super().predict_stream(items):
                if (tmp_path / "out" / "1.json").exists():
                    signal.raise_signal(signal.SIGINT)
                yield result

    for number in range(9):
        vision_image.write(tmp_path / "in" / f"{number}.png", image(number))
    with pytest.raises(KeyboardInterrupt):
        runner.predict_files(Twice(), tmp_path / "out", image_dir=str(tmp_path / "in"))


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no text are possible on Linux")
def test_a_name_that_is_no_text_is_no_obstacle(tmp_path: Path):
    folder = tmp_path / "in"
    vision_image.write(folder / "a.png", image(1))
    os.rename(os.fsencode(folder / "a.png"), os.fsencode(folder) + b"/caf\xe9.png")
    os.mkdir(os.fsencode(folder) + b"/x\xe9.png")
    (folder / os.fsdecode(b"bad\xe9.png")).write_bytes(b"no image")
    vision_image.write(folder / "z.png", image(2))
    report = runner.predict_files(Ahead(), tmp_path / "out", image_dir=str(folder))
    assert len(report.written) == 4 and len(report.failed) == 1
    assert report.summary().encode("utf-8") and r"bad\udce9.png" in report.summary()
    found = {read_json(path)["input"] for path in report.written if path.suffix == ".json"}
    assert found == {os.fsdecode(b"caf\xe9.png"), "z.png"}
    (folder / os.fsdecode(b"caf\xe9.mp4")).write_bytes(b"no video")
    report = runner.run_video(Ahead(), folder / os.fsdecode(b"caf\xe9.mp4"), tmp_path / "out")
    assert len(report.failed) == 1 and r"caf\udce9.mp4" in report.summary()


def test_a_full_disk_ends_the_run_and_what_is_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(4):
        vision_image.write(tmp_path / "in" / f"{number}.png", image(number))
    real, calls = os.replace, []

    def full(source, target):
        calls.append(target)
        if len(calls) == 4:
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(disk.os, "replace", full)
    with pytest.raises(DiskError, match=r"1\.png: the disk is full"):
        runner.predict_files(Ahead(), tmp_path / "out", image_dir=str(tmp_path / "in"))
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["0.json", "0.png", "1.json"]
    report = runner.predict_files(Ahead(), tmp_path / "out", image_dir=str(tmp_path / "in"))
    assert len(report.written) == 8  # there is room again


# -- what is given -----------------------------------------------------------------------------------------------------


def test_sources_are_checked_before_a_model_is_loaded(tmp_path: Path):
    file = tmp_path / "a.png"
    file.write_bytes(b"")
    runner.check_sources(str(file), None, None, None)
    runner.check_sources(None, str(tmp_path), None, None)
    runner.check_sources(None, None, None, None, 0)
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
        (
            ("https://example.org/a.png", None, None, None),
            r"an address, not a file[\s\S]*curl -LO https://ex",
        ),
        ((None, None, None, ""), r"no such file\n  received: a folder"),
        ((None, None, None, None, None), r"no such file\n  received: nothing at this path"),
    ):
        with pytest.raises(InputError, match=message):
            runner.check_sources(*given)


def test_extra_files_of_a_result(tmp_path: Path):
    class Two(VisionPredictor):
        extra_suffixes = ("_label.png",)

        def read(self, source):
            return ImageItem(np.full((2, 3, 3), 7, np.uint8), str(source))

        def predict_stream(self, items):
            return (Found(item.image) for item in items)

    class Found:
        is_empty = False

        def __init__(self, image):
            self.image = image

        def to_dict(self):
            return {"mean": float(self.image.mean())}

        def draw(self):
            return self.image

        def write_extra(self, suffix, path):
            path.write_bytes(b"label")

    files = [tmp_path / "in" / name for name in ("a.npy", "a_label.npy")]  # which `read` alone can read
    report = runner.run_images(Two(), files, tmp_path / "out")
    assert not report.failed
    names = ["a.json", "a.png", "a_label.png", "a_label_2.json", "a_label_2.png", "a_label_2_label.png"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert sorted(path.name for path in report.written) == names
    assert (tmp_path / "out" / "a_label.png").read_bytes() == b"label"
    report = runner.run_images(Two(), files, tmp_path / "plain", draw=False)
    assert sorted(path.name for path in report.written) == ["a.json", "a_label_2.json"]
