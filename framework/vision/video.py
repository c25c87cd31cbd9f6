"""Videos frame by frame: decoding runs ahead of the reader and encoding behind the writer, each on a thread.

Files go through the FFmpeg inside OpenCV's wheels. It reads H.264, MPEG-4, VP8, VP9, MJPEG and more; it writes
MPEG-4 part 2, VP8, VP9 and MJPEG. Sound is not kept.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import cv2
import numpy as np

from framework.core.disk import disk_errors, free_bytes, temporary_beside
from framework.core.errors import InputError, ShapeError
from framework.vision.image import check_file, pad, to_bgr

SUFFIXES = (
    *(".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv", ".flv", ".ts"),
    *(".3gp", ".3g2", ".asf", ".f4v", ".m2ts", ".m2v", ".mts", ".mxf", ".ogv", ".vob"),
)
_CODECS = {".mp4": ("mp4v",), ".avi": ("MJPG",), ".webm": ("VP90", "VP80")}  # in the order to try them
_DEFAULT_FPS = 25.0
_STREAM = re.compile(r"(rtsps?|rtmps?|https?|udp|tcp|srt|mms)://", re.IGNORECASE)
_STREAM_WAIT_MS = 20_000  # without an image
_POLL_S = 0.1  # how often a waiting thread checks whether it is still needed


class VideoReader(contextlib.AbstractContextManager["VideoReader"]):
    """The frames of a video file, a camera or a stream, in order, as `[H, W, 3]` uint8 RGB.

        with VideoReader("street.mp4") as video:
            for frame in video:
                ...

    A file can be iterated again and starts anew. One that ends before its time is no error: compare `frames_read`
    with `frame_count`. At most `prefetch` decoded frames wait in memory. Of each `stride` frames the first is given.

    A text such as rtsp://camera/stream or http://camera/video.mjpg is a stream: FFmpeg opens it, and gives up after 20
    seconds without an image.

    Raises:
        InputError: the file is missing, empty, no video, or has no frame that can be decoded; there is no such camera
            or stream; `prefetch` or `stride` is below 1.
    """

    fps: float
    """How many frames are given for a second of video: as the file says, or 25 where it says nothing of use, over
    `stride`."""
    frame_count: int | None
    """How many frames are given by what the file's header promises, an estimate; None for cameras and streams, and
    where it promises nothing."""
    size_hw: tuple[int, int]
    """(height, width) of the frames, after the rotation that the file asks for."""
    frames_read: int
    """How many frames the current or the last iteration has given."""
    time: float
    """Seconds from the first frame to the one given last, by the timestamps of the file, so that frames may last
    differently long; 1 / `fps` after the one before where it has no later timestamp."""

    def __init__(self, source: str | os.PathLike[str] | int, *, prefetch: int = 4, stride: int = 1) -> None:
        for name, number in (("prefetch", prefetch), ("stride", stride)):
            if number < 1:
                raise InputError(
                    f"{name} is out of range", where="VideoReader", received=number, allowed="1 or more"
                )
        self._source, self._prefetch, self._stride = source, prefetch, stride
        self._closed = False
        self._running: list[tuple[threading.Event, threading.Thread]] = []
        self._opened: tuple[cv2.VideoCapture, np.ndarray] | None = None
        self.frames_read, self.time = 0, 0.0
        capture, first = self._opened = self._open()
        fps, count = capture.get(cv2.CAP_PROP_FPS), capture.get(cv2.CAP_PROP_FRAME_COUNT)
        self.fps = (fps if math.isfinite(fps) and 0 < fps < 1000 else _DEFAULT_FPS) / stride
        is_file = not isinstance(source, int) and not is_stream(source)
        known = is_file and math.isfinite(count) and count >= 1
        self.frame_count = -(-int(count) // stride) if known else None
        self.size_hw = first.shape[0], first.shape[1]

    def _open(self) -> tuple[cv2.VideoCapture, np.ndarray]:
        """The capture and its first frame: only a decoded frame proves that there is an image."""
        if isinstance(self._source, int):
            where = f"camera {self._source}"
            capture = cv2.VideoCapture(self._source)
            problem = "the camera gives no image"
            fix = "check its number, and that no other program holds it"
        elif is_stream(self._source):
            where = hide_password(str(self._source))
            limits = [
                cv2.CAP_PROP_OPEN_TIMEOUT_MSEC,
                _STREAM_WAIT_MS,
                cv2.CAP_PROP_READ_TIMEOUT_MSEC,
                _STREAM_WAIT_MS,
            ]
            capture = cv2.VideoCapture(str(self._source), _file_backend(), limits)
            problem = "the stream gives no image"
            fix = "check that it plays elsewhere: ffplay or VLC, with the same address; user and password stand in it"
        else:
            path = check_file(self._source, "video")
            where = _spell(path)
            if path.stat().st_size == 0:
                raise InputError("the video is empty", where=where, received="0 bytes")
            capture = cv2.VideoCapture(where, _file_backend())
            problem = "no frame of this video can be decoded"
            fix = "check that it plays, and convert it: ffmpeg -i INPUT -c:v libx264 OUTPUT.mp4"
        read, bgr = capture.read() if capture.isOpened() else (False, None)
        if not read or bgr is None:
            capture.release()
            raise InputError(
                problem,
                where=where,
                allowed=None
                if isinstance(self._source, int) or is_stream(self._source)
                else "a video with images, complete to its index",
                fix=fix,
            )
        return capture, to_bgr(bgr)

    def __iter__(self) -> Iterator[np.ndarray]:
        if self._closed:
            raise InputError("the video is closed", where=self._source, fix="iterate inside the `with` block")
        (capture, frame), self._opened = self._opened or self._open(), None
        self.frames_read, self.time = 0, 0.0
        frames: queue.Queue[tuple[np.ndarray, float] | Exception | None] = queue.Queue(self._prefetch)
        stop = threading.Event()
        start_ms = capture.get(cv2.CAP_PROP_POS_MSEC)

        def decode() -> None:
            try:
                read = True
                while read and not stop.is_set():
                    if not all(capture.grab() for _ in range(self._stride - 1)):
                        _put(frames, None, stop)
                        return
                    read, bgr = capture.read()
                    seconds = (capture.get(cv2.CAP_PROP_POS_MSEC) - start_ms) / 1000
                    _put(frames, (to_bgr(bgr), seconds) if read else None, stop)
            except Exception as error:  # a thread's error belongs to who iterates
                _put(frames, error, stop)
            finally:
                capture.release()

        thread = threading.Thread(target=decode, name="VideoReader", daemon=True)
        self._running.append((stop, thread))
        thread.start()
        try:
            item: tuple[np.ndarray, float] | Exception | None = (frame, 0.0)
            while item is not None:
                if isinstance(item, Exception):
                    raise item
                frame, seconds = item
                if self.frames_read:
                    later = math.isfinite(seconds) and seconds > self.time
                    self.time = seconds if later else self.time + 1 / self.fps
                self.frames_read += 1
                yield frame
                item = _get(frames, stop)
        finally:
            stop.set()
            thread.join()
            self._running.remove((stop, thread))

    def close(self) -> None:
        """Stops decoding and lets go of the file; iterations under way end."""
        self._closed = True
        for stop, thread in list(self._running):
            stop.set()
            thread.join()
        if self._opened is not None:
            self._opened[0].release()
            self._opened = None

    def __exit__(self, *_: object) -> None:
        self.close()


class VideoWriter(contextlib.AbstractContextManager["VideoWriter"]):
    """Writes `[H, W, 3]` uint8 RGB frames of `size_hw` to .mp4 (MPEG-4 part 2), .avi (MJPEG) or .webm (VP9, else VP8).

    The file appears under its name when `close` succeeds, or the `with` block ends without an exception; otherwise
    nothing is left. Odd sides gain one repeated row or column, as the codecs store even sides alone. At most `backlog`
    frames wait to be encoded; `write` blocks when they do.

    Raises:
        InputError: the suffix, the rate or the size is none that can be written, or this OpenCV has no such encoder.
    """

    frame_count: int
    """How many frames were handed over."""

    def __init__(
        self, path: str | os.PathLike[str], fps: float, size_hw: tuple[int, int], *, backlog: int = 8
    ) -> None:
        self._path, self._size_hw = Path(path), (int(size_hw[0]), int(size_hw[1]))
        suffix = self._path.suffix.lower()
        if suffix not in _CODECS:
            raise InputError(
                "videos are not written in this format",
                where=path,
                received=f"suffix {self._path.suffix!r}",
                allowed=", ".join(_CODECS),
            )
        if not (math.isfinite(fps) and fps > 0) or min(self._size_hw) < 1 or backlog < 1:
            raise InputError(
                "a video cannot have this rate, size or backlog",
                where=path,
                received=f"{fps} frames per second, {self._size_hw}, {backlog}",
                allowed="fps > 0, sides >= 1, backlog >= 1",
            )
        self.frame_count = 0
        self._temporary = temporary_beside(self._path)
        _spell(self._temporary)
        with disk_errors(self._path):  # encoders do not say why they cannot write
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._temporary.touch()
        self._encoder = self._open(suffix, fps)
        self._frames: queue.Queue[np.ndarray | None] = queue.Queue(backlog)
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = threading.Thread(
            target=self._encode, name="VideoWriter", daemon=True
        )
        self._thread.start()

    def _open(self, suffix: str, fps: float) -> cv2.VideoWriter:
        height, width = (side + side % 2 for side in self._size_hw)
        for codec in _CODECS[suffix]:
            fourcc = cv2.VideoWriter.fourcc(*codec)
            encoder = cv2.VideoWriter(str(self._temporary), _file_backend(), fourcc, fps, (width, height))
            if encoder.isOpened():
                return encoder
            encoder.release()
        self._temporary.unlink(missing_ok=True)
        raise InputError(
            "this OpenCV cannot encode the video",
            where=self._path,
            received=f"{' or '.join(_CODECS[suffix])}, {width}x{height}, {fps} frames per second",
            fix="write .avi, which every build can, or install opencv-python-headless from PyPI",
        )

    def write(self, frame: np.ndarray) -> None:
        """Hands over one frame; it is copied, so it may be changed afterwards.

        Raises:
            ShapeError: the frame is not uint8 `[H, W, 3]` of the video's size.
            InputError: the video is closed.
        """
        if self._thread is None:
            raise InputError("the video is closed", where=self._path, fix="write inside the `with` block")
        if frame.dtype != np.uint8 or frame.shape != (*self._size_hw, 3):
            raise ShapeError(
                "the frame does not fit the video",
                where=self._path,
                received=f"{frame.dtype} {list(frame.shape)}",
                allowed=f"uint8 {[*self._size_hw, 3]}",
            )
        bgr = to_bgr(frame)
        height, width = self._size_hw
        if height % 2 or width % 2:
            bgr = pad(bgr, 0, 0, width % 2, height % 2, value=None)
        if not _put(self._frames, bgr, self._stop):
            self.abort()
            raise self._error or InputError("the video is closed", where=self._path)
        self.frame_count += 1

    def _encode(self) -> None:
        try:
            while (frame := _get(self._frames, self._stop)) is not None:
                self._encoder.write(frame)
        except Exception as error:  # handed to the next write or close
            self._error = error
            self._stop.set()

    def close(self) -> None:
        """Waits for the encoder and puts the file in its place. A second call does nothing.

        Raises:
            InputError: no frame was written, or the file did not get whole (a full disk).
        """
        if self._thread is None:
            return
        _put(self._frames, None, self._stop)
        self._finish()
        try:
            if self._error is not None:
                raise self._error
            if self.frame_count == 0:
                raise InputError("a video needs a frame", where=self._path, received="0 frames")
            if not _has_image(self._temporary):
                left = free_bytes(self._path)
                raise InputError(
                    "the video could not be written",
                    where=self._path,
                    received=f"{self.frame_count} frames, of which none can be read back"
                    + ("" if left is None else f"; {left:,} bytes left on the disk"),
                    fix="free some space, or choose a folder on another disk",
                )
            with disk_errors(self._path):
                os.replace(self._temporary, self._path)
        finally:
            self._temporary.unlink(missing_ok=True)

    def abort(self) -> None:
        """Throws away what was written."""
        if self._thread is not None:
            self._stop.set()
            self._finish()
            self._temporary.unlink(missing_ok=True)

    def _finish(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._encoder.release()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def is_stream(source: object) -> bool:
    """Whether a source is the address of a stream, such as rtsp://camera/stream."""
    return isinstance(source, str) and _STREAM.match(source) is not None


def hide_password(address: str) -> str:
    """The address without a password, for messages and results."""
    return re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1:***@", address)


def _spell(path: Path) -> str:
    """The path as OpenCV takes it. Raises: InputError for a name that is no text, at which OpenCV ends the process."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            "the name of the video holds bytes that are no text",
            where=path,
            allowed="a name in UTF-8",
            fix="rename the file",
        ) from error
    return str(path)


def _file_backend() -> int:
    # Without it OpenCV also tries its image-sequence reader, which takes "clip01.mp4" for a pattern.
    has_ffmpeg = cv2.CAP_FFMPEG in cv2.videoio_registry.getStreamBackends()
    return cv2.CAP_FFMPEG if has_ffmpeg else cv2.CAP_ANY


def _has_image(path: Path) -> bool:
    capture = cv2.VideoCapture(str(path), _file_backend())
    read = capture.isOpened() and capture.read()[0]
    capture.release()
    return read


def _put(items: queue.Queue, item: object, stop: threading.Event) -> bool:
    """Whether the item got into the queue before `stop` was set."""
    while not stop.is_set():
        try:
            items.put(item, timeout=_POLL_S)
            return True
        except queue.Full:
            continue
    return False


def _get(items: queue.Queue, stop: threading.Event):
    """The next item, or None once `stop` is set."""
    while not stop.is_set():
        try:
            return items.get(timeout=_POLL_S)
        except queue.Empty:
            continue
    return None
