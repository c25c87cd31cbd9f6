"""Run a predictor over a video, a camera or a stream, and write what it finds of each frame."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
from tqdm import tqdm

from framework.core.disk import DiskError
from framework.core.errors import OarError
from framework.core.interrupts import catch_interrupt
from framework.vision.video import VideoReader, VideoWriter, hide_password
from framework.workflow.domain.outputs import Report, make_folder, spare_sources, text_file
from framework.workflow.domain.predictor import ImageItem, ImagePredictor, ResultWriter
from framework.workflow.domain.result import ImageResult

I = TypeVar("I", bound=ImageResult)  # noqa: E741
_DRAWERS, _DRAWN_AHEAD = 2, 8
_LONGEST_S = 60
_TEXTS = "labels"  # the folder of the texts of each image


@contextmanager
def open_writer(writer: ResultWriter[I] | None, output_dir: Path) -> Iterator[Callable[[I, int], object]]:
    """A function of (result, number) that adds to the file of all results; it does nothing without a writer."""
    if writer is None:
        yield lambda result, number: None
        return
    with text_file(output_dir / writer.name) as out:
        out.write(writer.head)
        yield lambda result, number: out.write(writer.text(result, number))
        out.write(writer.tail)


def write_texts(result: I, predictor: ImagePredictor[I], output_dir: Path, stem: str) -> list[Path]:
    """Write the texts of a result that the predictor writes of each image, into the folder `labels`."""
    written = []
    for suffix in predictor.text_suffixes:
        make_folder(output_dir / _TEXTS)
        written.append(output_dir / _TEXTS / f"{stem}{suffix}")
        with text_file(written[-1]) as out:
            out.write(predictor.to_text(result, suffix))
    return written


def name_source(source: Path | int | str) -> str:
    """The stem of the outputs of a video, a camera or a stream."""
    if isinstance(source, Path):
        return source.stem
    return f"camera{source}" if isinstance(source, int) else _stream_stem(source)


def _stream_stem(address: str) -> str:
    without = re.sub(r"^[a-z]+://([^/@]*@)?", "", address.split("?")[0], flags=re.IGNORECASE)
    return re.sub(r"[^\w-]+", "_", without).strip("_") or "stream"


def _ends_early(video: VideoReader, total: int) -> bool:
    """Whether a video that promises `total` frames ends before its time. The number is an estimate: of formats that
    store none it is the length of the video times its rate, though frames may last differently long."""
    count = video.frames_read
    by_time = (
        video.time * video.fps * count / max(count - 1, 1)
    )  # with the last frame, which lasts as the others do
    return max(count, by_time) < total - 1


class ClipTimes:
    """Where frames that last differently long stand in a clip of `fps` frames a second, so that they keep their times.

    What lasts longer than a minute is cut to a minute: streams, and files of broadcasts, begin to count anew.
    """

    def __init__(self, fps: float) -> None:
        self._fps, self._longest = fps, max(1, round(_LONGEST_S * fps))
        self._frames, self._skipped, self._seconds = 0, 0, -1.0

    def next_gap(self, seconds: float) -> int:
        """How many times the frame before stands before the next one, whose time this is; -1: it has no place."""
        later, self._seconds = seconds > self._seconds, max(seconds, self._seconds)
        gap = round(seconds * self._fps) - self._skipped - self._frames if later else 0
        self._skipped += max(0, gap - self._longest)
        gap = min(gap, self._longest)
        self._frames += max(gap + 1, 0)
        return max(gap, -1)


def run_video(
    predictor: ImagePredictor[I],
    source: Path | int | str,
    output_dir: Path,
    draw: bool = True,
    save: bool = False,
    stride: int = 1,
    stem: str | None = None,
) -> Report:
    """Every frame of a video: <stem>.jsonl with a line a frame, and <stem>.mp4 at the same frame rate.

    Times are those of the file. In the drawing, which has one rate, a frame that lasts long is there several times, and
    of those that fall on one place the first is there.
    Decoding, the model, drawing and encoding run side by side, each a few frames ahead of the next. A video that ends
    before its time, or at Ctrl+C, is written up to there, and the report says so. A number is a camera, a text the
    address of a stream. Of each `stride` frames the first is read; frames are numbered as in the video. `stem` is that
    of the file by default.
    """
    report, stopped = Report(), threading.Event()
    make_folder(output_dir)
    stem = stem or name_source(source)
    label = hide_password(source) if isinstance(source, str) else str(source)
    lines, clip = output_dir / f"{stem}.jsonl", output_dir / f"{stem}.mp4"
    results_file = predictor.result_writer(stem) if save else None
    if draw and isinstance(source, Path):
        spare_sources([source], [clip])
    try:
        with ExitStack() as stack:
            video = stack.enter_context(VideoReader(source, stride=stride))
            events = predictor.event_writer(stem, stride)
            out = stack.enter_context(text_file(lines))
            add = stack.enter_context(open_writer(results_file, output_dir))
            add_events = stack.enter_context(open_writer(events, output_dir))
            total = video.frame_count
            bar = stack.enter_context(tqdm(total=total, unit="frame", disable=not sys.stderr.isatty()))
            stack.enter_context(catch_interrupt(stopped))
            writer: VideoWriter | None = None
            before: np.ndarray | None = None
            clip_times = ClipTimes(video.fps)
            texts: list[Path] = []
            times: deque[float] = deque()
            count = empty = 0
            for number, (result, image) in enumerate(
                _draw_overlays(_predict_frames(predictor, video, label, stopped, times), draw)
            ):
                count, empty = number + 1, empty + result.is_empty
                frame = number * stride
                seconds = times.popleft()
                facts = {"frame": frame, "time": round(seconds, 3), **result.to_dict()}
                facts.pop("page", None)
                out.write(json.dumps(facts, ensure_ascii=False) + "\n")
                add(result, frame)
                add_events(result, number)
                texts += write_texts(result, predictor, output_dir, f"{stem}_{frame + 1}")
                if image is not None:
                    if writer is None:
                        writer = stack.enter_context(VideoWriter(clip, video.fps, image.shape[:2]))
                    gap = clip_times.next_gap(seconds)
                    for _ in range(gap):
                        writer.write(image if before is None else before)
                    if gap >= 0:
                        writer.write(image)
                    before = image
                bar.update(1)
        report.written += [path for path, there in ((clip, writer is not None), (lines, True)) if there]
        report.note_empty(empty, count, "frames", predictor.empty_note)
        report.notes += [] if events is None else events.summary()
        files = (results_file, events)
        report.written += [output_dir / file.name for file in files if file is not None] + texts
        if stopped.is_set():
            report.note_stop(isinstance(source, Path))  # which is how one ends with a camera
        elif total is not None and _ends_early(video, total):
            report.notes.append(f"{label}: the video ends after {video.frames_read} of {total} frames")
    except DiskError:
        raise
    except OarError as error:
        report.failed.append((label, str(error)))
    return report


def _predict_frames(
    predictor: ImagePredictor[I],
    video: VideoReader,
    label: str,
    stopped: threading.Event,
    times: deque[float],
) -> Iterator[I]:
    """The results of the frames, in order; `times` gains the seconds of each frame that is read."""

    def items() -> Iterator[ImageItem]:
        for number, frame in enumerate(video, start=1):
            times.append(video.time)
            yield ImageItem(frame, label, number, time=video.time)
            if stopped.is_set():
                return

    return predictor.predict_video(items(), video.fps)


def _draw_overlays(results: Iterator[I], draw: bool) -> Iterator[tuple[I, np.ndarray | None]]:
    """Each result, in order, with its overlay, which is drawn on another thread."""
    if not draw:
        yield from ((result, None) for result in results)
        return
    waiting: deque[tuple[I, Future[np.ndarray]]] = deque()
    with ThreadPoolExecutor(_DRAWERS, "oar-draw") as pool:
        for result in results:
            waiting.append((result, pool.submit(result.overlay)))
            if len(waiting) > _DRAWN_AHEAD:
                ready, image = waiting.popleft()
                yield ready, image.result()
        for ready, image in waiting:
            yield ready, image.result()
