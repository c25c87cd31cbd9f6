"""Frame steps, texts of each image, files of events, and streams as sources."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.vision import image
from framework.vision.video import VideoWriter
from framework.workflow import VisionPredictor
from framework.workflow.domain.predictor import ImageItem
from framework.workflow.domain.result import ImageResult
from framework.workflow.files.predict_files import check_sources, predict_files, predict_sources, run_images
from framework.workflow.files.sources import open_sources
from framework.workflow.files.videos import ClipTimes, name_source, run_video


@dataclass(frozen=True)
class Level(ImageResult):
    level: int = 0

    def _content(self) -> dict[str, int]:
        return {"level": self.level}

    def overlay(self) -> np.ndarray:
        return self.pixels


class Events:
    """A line for each frame, and how many there were."""

    def __init__(self, stem: str, stride: int) -> None:
        self.name, self.head, self.count = f"{stem}_events.csv", f"{stride}\n", 0

    @property
    def tail(self) -> str:
        return f"{self.count}\n"

    def text(self, result: Level, number: int) -> str:
        self.count += 1
        return f"{number} {result.level // 10}\n"

    def summary(self) -> list[str]:
        return [f"{self.count} frames"]


class Levels(VisionPredictor[Level]):
    text_suffixes = (".txt",)

    def predict_stream(self, items: Iterator[ImageItem]) -> Iterator[Level]:  # type: ignore[override]
        for item in items:
            height, width = item.image.shape[:2]
            level = round(float(item.image.mean()))
            yield Level(source=item.source, width=width, height=height, image=item.image, level=level)

    def to_text(self, result: Level, suffix: str) -> str:
        return f"{result.level // 10}{suffix}\n"

    def event_writer(self, stem: str, stride: int = 1) -> Events:
        return Events(stem, stride)


def clip(path: Path) -> Path:
    with VideoWriter(path, 12, (48, 64)) as video:
        for number in range(10):
            video.write(np.full((48, 64, 3), 20 * number + 5, np.uint8))
    return path


def test_every_fourth_frame_with_texts_and_events(tmp_path: Path) -> None:
    report = predict_files(
        Levels(), tmp_path / "out", video_file=str(clip(tmp_path / "a.avi")), draw=False, stride=4
    )
    lines = [json.loads(line) for line in (tmp_path / "out/a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["frame"], line["time"], line["level"] // 10) for line in lines] == [
        *((0, 0, 0), (4, 0.333, 8), (8, 0.667, 16))
    ]
    assert (tmp_path / "out/a_events.csv").read_text(encoding="utf-8") == "4\n0 0\n1 8\n2 16\n3\n"
    names = sorted(path.name for path in (tmp_path / "out/labels").iterdir())
    assert names == ["a_1.txt", "a_5.txt", "a_9.txt"] and "3 frames" in report.summary()
    assert (tmp_path / "out/labels/a_5.txt").read_text(encoding="utf-8") == "8.txt\n"


def test_texts_of_images_lie_in_labels(tmp_path: Path) -> None:
    image.write(tmp_path / "b.png", np.full((4, 5, 3), 100, np.uint8))
    report = run_images(Levels(), [tmp_path / "b.png"], tmp_path / "out", draw=False)
    assert (tmp_path / "out/labels/b.txt").read_text(encoding="utf-8") == "10.txt\n"
    assert tmp_path / "out/labels/b.txt" in report.written


def test_streams_are_sources(tmp_path: Path) -> None:
    check_sources(None, None, None, "rtsp://camera/stream")
    with open_sources(["rtsp://camera/stream"], (".png",), with_streams=True) as sources:
        assert sources.streams == ("rtsp://camera/stream",) and sources.files == ()
    with pytest.raises(InputError), open_sources(["rtsp://camera/stream"], (".png",)):
        pass
    assert name_source("rtsp://user:secret@10.0.0.2:554/cam/1?profile=2") == "10_0_0_2_554_cam_1"
    report = run_video(Levels(), "rtsp://user:secret@127.0.0.1:9/cam", tmp_path / "out")
    assert report.exit_code == 1 and "the stream gives no image" in report.summary()
    assert "secret" not in report.summary()


@pytest.mark.parametrize(
    ("seconds", "gaps"),
    [
        ([0, 0.1, 0.2, 0.3], [0, 0, 0, 0]),
        ([0, 0.103, 0.198, 0.304], [0, 0, 0, 0]),  # as milliseconds round them, or a camera wavers
        ([0, 0.5, 0.51, 0.52, 0.7], [0, 4, -1, -1, 1]),
        ([0, 0, 0, 0.3], [0, 0, 0, 0]),  # no times
        ([0, 95443.7, 95443.8], [0, 600, 0]),  # a count of 33 bits at 90 kHz that begins anew
    ],
)
def test_frames_keep_their_times_in_a_clip_of_one_rate(seconds: list[float], gaps: list[int]) -> None:
    times = ClipTimes(10.0)
    assert [times.next_gap(one) for one in seconds] == gaps


@pytest.mark.parametrize("name", ["phone.3gp", "camcorder.MTS", "camera.mxf"])
def test_videos_of_phones_and_camcorders_are_no_images(tmp_path: Path, name: str) -> None:
    with VideoWriter(tmp_path / "clip.mp4", 5.0, (16, 16)) as video:
        video.write(np.zeros((16, 16, 3), np.uint8))
    clip = (tmp_path / "clip.mp4").rename(tmp_path / name)
    with open_sources([str(clip)], (".png",)) as sources:
        report = predict_sources(Levels(), tmp_path / "out", sources, draw=False)
    assert report.exit_code == 0 and (tmp_path / "out" / f"{clip.stem}.jsonl").is_file()


def test_videos_of_one_name_keep_their_outputs_apart(tmp_path: Path) -> None:
    """camera1/clip.mp4 and camera2/clip.mp4, or clip.mp4 and clip.avi: the second one's replaced the first one's."""
    paths = [tmp_path / name for name in ("a/clip.mp4", "b/clip.mp4", "b/clip.avi", "b/other.mp4")]
    for frames, path in enumerate(paths, start=1):
        path.parent.mkdir(exist_ok=True)
        with VideoWriter(path, 5.0, (16, 16)) as video:
            for _ in range(frames):
                video.write(np.zeros((16, 16, 3), np.uint8))
    with open_sources([str(path) for path in paths], (".png",)) as sources:
        report = predict_sources(Levels(), tmp_path / "out", sources)
    assert report.exit_code == 0 and len(set(report.written)) == len(report.written)
    lines = {
        path.name: len(path.read_text("utf-8").splitlines()) for path in (tmp_path / "out").glob("*.jsonl")
    }
    assert lines == {"clip.mp4.jsonl": 1, "clip.mp4_2.jsonl": 2, "clip.avi.jsonl": 3, "other.jsonl": 4}
