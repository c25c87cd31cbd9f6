"""framework.vision.video: frames in and out, early ends, broken files, threads that stop."""

import math
import os
import struct
import threading
import time
import wave
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import numpy as np
import pytest

from framework.core.errors import InputError, ShapeError
from framework.vision import video
from framework.vision.video import VideoReader, VideoWriter

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).parents[5] / "shared"))


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    deadline = time.monotonic() + 5
    while any(thread.name.startswith("Video") for thread in threading.enumerate()):
        assert time.monotonic() < deadline, threading.enumerate()
        time.sleep(0.01)


def frames(count: int, size_hw: tuple[int, int] = (48, 64)) -> list[np.ndarray]:
    """Red grows with the frame's number, blue is constant."""
    return [np.full((*size_hw, 3), (10 + 10 * index, 60, 200), np.uint8) for index in range(count)]


def written(path: Path, count: int = 12, size_hw: tuple[int, int] = (48, 64), fps: float = 25) -> Path:
    with VideoWriter(path, fps, size_hw) as writer:
        for frame in frames(count, size_hw):
            writer.write(frame)
    return path


class Capture:
    """cv2.VideoCapture, to be changed by a test: OpenCV's own classes crash when they are subclassed and collected."""

    original = cv2.VideoCapture

    def __init__(self, *args):
        self.inner = Capture.original(*args)

    def read(self):
        return self.inner.read()

    def get(self, what):
        return self.inner.get(what)

    def __getattr__(self, name):
        return getattr(self.inner, name)


@pytest.mark.parametrize("suffix", [".mp4", ".avi", ".webm"])
def test_round_trip(tmp_path, suffix):
    path = written(tmp_path / f"видео 视频{suffix}")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    with VideoReader(path) as reader:
        got = list(reader)
        assert (reader.fps, reader.frame_count, reader.size_hw, reader.frames_read) == (25, 12, (48, 64), 12)
    for before, after in zip(frames(12), got, strict=True):
        assert after.dtype == np.uint8 and after.shape == (48, 64, 3)
        np.testing.assert_allclose(after[24, 32].astype(int), before[24, 32], atol=12)


@pytest.mark.parametrize("suffix", [".mp4", ".avi", ".webm"])
@pytest.mark.parametrize("size_hw", [(33, 47), (1, 1), (2, 3)])
def test_odd_sizes_gain_a_row_or_a_column(tmp_path, suffix, size_hw):
    with VideoReader(written(tmp_path / f"odd{suffix}", 5, size_hw)) as reader:
        assert reader.size_hw == (size_hw[0] + size_hw[0] % 2, size_hw[1] + size_hw[1] % 2)
        got = list(reader)
    assert len(got) == 5
    assert got[-1][-1, -1, 2] > 150  # repeated, not black


@pytest.mark.parametrize("fps", [29.97, 23.976, 12.5, 0.5, 1000 / 33])
def test_rates(tmp_path, fps):
    with VideoReader(written(tmp_path / "a.mp4", 4, fps=fps)) as reader:
        assert reader.fps == pytest.approx(fps, abs=0.01) and len(list(reader)) == 4


@pytest.mark.parametrize(("said", "expected"), [(0.0, 25), (float("nan"), 25), (90_000, 25), (60, 60)])
def test_senseless_rates_and_counts(tmp_path, monkeypatch, said, expected):
    path = written(tmp_path / "a.avi", 2)

    class Changed(Capture):
        def get(self, what):
            return said if what == cv2.CAP_PROP_FPS else -9.2e18

    monkeypatch.setattr(video.cv2, "VideoCapture", Changed)
    with VideoReader(path) as reader:
        assert reader.fps == expected and reader.frame_count is None
        assert len(list(reader)) == 2


def test_iterating_again_and_two_at_once(tmp_path):
    with VideoReader(written(tmp_path / "a.avi")) as reader:
        assert len(list(reader)) == len(list(reader)) == 12
        pairs = [(one[0, 0, 0], two[0, 0, 0]) for one, two in zip(reader, reader, strict=True)]
        assert len(pairs) == 12 and all(one == two for one, two in pairs)


def test_leaving_early_stops_the_decoder(tmp_path):
    reader = VideoReader(written(tmp_path / "a.avi", 20), prefetch=1)
    for index, _ in enumerate(reader):
        if index == 2:
            break
    assert reader.frames_read == 3
    reader.close()
    with pytest.raises(InputError, match="the video is closed"):
        next(iter(reader))


def test_closing_ends_iterations_under_way(tmp_path):
    reader = VideoReader(written(tmp_path / "a.avi", 20), prefetch=1)
    iterator = iter(reader)
    next(iterator)
    reader.close()
    assert list(iterator) == []
    os.remove(tmp_path / "a.avi")  # nothing holds the file


def test_decoding_runs_ahead(tmp_path, monkeypatch):
    path, decoded = written(tmp_path / "a.avi", 20), []

    class Changed(Capture):
        def read(self):
            decoded.append(threading.current_thread().name)
            return super().read()

    monkeypatch.setattr(video.cv2, "VideoCapture", Changed)
    with VideoReader(path, prefetch=3) as reader:
        iterator = iter(reader)
        next(iterator)
        time.sleep(0.3)
        assert len(decoded) == 5  # the first, three in the queue, one waiting for room
        assert set(decoded[1:]) == {"VideoReader"}


def test_early_end_is_tolerated(tmp_path):
    data = written(tmp_path / "a.avi", 40).read_bytes()
    (tmp_path / "cut.avi").write_bytes(data[: len(data) * 2 // 3])
    with VideoReader(tmp_path / "cut.avi") as reader:
        count = len(list(reader))
        assert 5 < count == reader.frames_read < 40


def test_decoder_errors_reach_the_reader(tmp_path, monkeypatch):
    path = written(tmp_path / "a.avi", 5)

    class Changed(Capture):
        calls = 0

        def read(self):
            Changed.calls += 1
            if Changed.calls == 3:
                raise RuntimeError("decoder broke")
            return super().read()

    monkeypatch.setattr(video.cv2, "VideoCapture", Changed)
    with VideoReader(path) as reader, pytest.raises(RuntimeError, match="decoder broke"):
        list(reader)
    assert reader.frames_read == 2


def test_reader_errors(tmp_path):
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "text.mp4").write_text("no video " * 100, encoding="utf-8")
    data = written(tmp_path / "a.mp4").read_bytes()
    (tmp_path / "cut.mp4").write_bytes(data[: len(data) // 2])  # an mp4's index is at its end
    with wave.open(str(tmp_path / "sound.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(8000))
    for name, message in (
        ("gone.mp4", "there is no such video file"),
        ("", "a folder, not one video"),
        ("empty.mp4", r"empty\.mp4: the video is empty"),
        ("text.mp4", "no frame of this video can be decoded"),
        ("cut.mp4", "no frame of this video can be decoded"),
        ("sound.wav", "no frame of this video can be decoded"),
    ):
        with pytest.raises(InputError, match=message):
            VideoReader(tmp_path / name)
    with pytest.raises(InputError, match="prefetch is out of range"):
        VideoReader(tmp_path / "a.mp4", prefetch=0)


def test_camera(monkeypatch):
    class Camera:
        def __init__(self, index):
            self.left = 3 if index == 0 else 0

        def isOpened(self):
            return self.left > 0

        def read(self):
            self.left -= 1
            return (True, np.zeros((4, 6, 3), np.uint8)) if self.left >= 0 else (False, None)

        def get(self, _):
            return 30.0

        def release(self):
            pass

    monkeypatch.setattr(video.cv2, "VideoCapture", Camera)
    with VideoReader(0) as reader:
        assert reader.frame_count is None and reader.size_hw == (4, 6) and len(list(reader)) == 3
    with pytest.raises(
        InputError, match=r"^camera 7: the camera gives no image\n  what to do: check its number"
    ):
        VideoReader(7)


def test_real_videos():
    folder = SHARED / "data" / "videos"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here (OAR_SHARED)")
    with VideoReader(folder / "mmyolo_demo.mp4") as reader:
        assert reader.frame_count == 67 == len(list(reader)) and reader.fps == 30


# ---- writer ----


def test_frames_may_be_changed_after_writing(tmp_path):
    frame = np.zeros((32, 32, 3), np.uint8)
    with VideoWriter(tmp_path / "a.avi", 10, (32, 32)) as writer:
        for index in range(10):
            frame[:] = 20 * index
            writer.write(frame)
        assert writer.frame_count == 10
    with VideoReader(tmp_path / "a.avi") as reader:
        np.testing.assert_allclose([f[16, 16, 0] for f in reader], np.arange(10) * 20, atol=4)


def test_exception_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="mine"), VideoWriter(tmp_path / "a.mp4", 10, (32, 32)) as writer:
        writer.write(np.zeros((32, 32, 3), np.uint8))
        raise RuntimeError("mine")
    assert list(tmp_path.iterdir()) == []
    writer.abort()  # a second time is harmless


def test_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = written(tmp_path / "a.avi", 3)
    old = path.read_bytes()
    writer = VideoWriter(path, 10, (32, 32))
    writer.write(np.zeros((32, 32, 3), np.uint8))
    assert path.read_bytes() == old
    writer.close()
    assert path.read_bytes() != old
    writer.close()
    with pytest.raises(InputError, match="the video is closed"):
        writer.write(np.zeros((32, 32, 3), np.uint8))


def test_writer_errors(tmp_path):
    with pytest.raises(InputError, match=r"not written in this format[\s\S]*\.mp4, \.avi, \.webm"):
        VideoWriter(tmp_path / "a.gif", 25, (4, 4))
    for fps, size_hw in ((0, (4, 4)), (float("nan"), (4, 4)), (25, (0, 4))):
        with pytest.raises(InputError, match="cannot have this rate, size or backlog"):
            VideoWriter(tmp_path / "a.mp4", fps, size_hw)
    with (
        pytest.raises(InputError, match="a video needs a frame"),
        VideoWriter(tmp_path / "a.mp4", 25, (4, 4)),
    ):
        pass
    with VideoWriter(tmp_path / "b.avi", 25, (4, 6)) as writer:
        writer.write(np.zeros((4, 6, 3), np.uint8))
        for wrong in (np.zeros((6, 4, 3), np.uint8), np.zeros((4, 6, 3)), np.zeros((4, 6), np.uint8)):
            with pytest.raises(ShapeError, match="the frame does not fit the video"):
                writer.write(wrong)
    assert [p.name for p in tmp_path.iterdir()] == ["b.avi"]


def test_missing_encoder(tmp_path, monkeypatch):
    monkeypatch.setattr(video, "_CODECS", {".mp4": ("zzzz",)})
    with pytest.raises(InputError, match="this OpenCV cannot encode the video"):
        VideoWriter(tmp_path / "a.mp4", 25, (4, 4))
    assert list(tmp_path.iterdir()) == []


def test_encoder_errors_reach_the_writer(tmp_path):
    class Broken:
        def write(self, frame):
            raise RuntimeError("encoder broke")

        def release(self):
            pass

    def broken_writer() -> VideoWriter:
        writer = VideoWriter(tmp_path / "a.mp4", 25, (4, 4), backlog=1)
        writer._encoder.release()
        writer._encoder = Broken()  # pyright: ignore[reportAttributeAccessIssue]
        return writer

    writer = broken_writer()
    with pytest.raises(RuntimeError, match="encoder broke"):
        for _ in range(9):
            writer.write(np.zeros((4, 4, 3), np.uint8))
    writer = broken_writer()
    writer.write(np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(RuntimeError, match="encoder broke"):
        writer.close()
    assert list(tmp_path.iterdir()) == []


def test_file_that_cannot_be_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(video, "_has_image", lambda path: False)
    with pytest.raises(InputError, match="the video could not be written"):
        written(tmp_path / "a.mp4")
    assert list(tmp_path.iterdir()) == []


def test_every_third_frame(tmp_path: Path) -> None:
    path = written(tmp_path / "a.avi", 20, fps=12)
    with VideoReader(path) as reader:
        every = list(reader)
    with VideoReader(path, stride=3) as reader:
        assert (reader.fps, reader.frame_count) == (4, 7)
        third = list(reader)
    assert len(third) == 7 and all(np.array_equal(*pair) for pair in zip(third, every[::3]))
    with pytest.raises(InputError, match="stride is out of range"):
        VideoReader(path, stride=0)


class Camera(BaseHTTPRequestHandler):
    """A camera of six images in the form that network cameras send."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        for level in range(0, 240, 40):
            done, jpeg = cv2.imencode(".jpg", np.full((48, 64, 3), level, np.uint8))
            assert done
            head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n\r\n"
            self.wfile.write(head.encode() + jpeg.tobytes() + b"\r\n")
        self.wfile.write(b"--frame--\r\n")

    def log_message(self, *_: object) -> None: ...


def test_a_stream_over_http() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Camera) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with VideoReader(f"http://127.0.0.1:{server.server_port}/video.mjpg") as reader:
                assert reader.frame_count is None and reader.size_hw == (48, 64)
                levels = [int(frame.mean()) for frame in reader]
        finally:
            server.shutdown()
    assert levels[0] < 10 and levels == sorted(levels) and len(levels) >= 5


def test_a_stream_that_is_not_there_hides_its_password() -> None:
    with pytest.raises(InputError, match="the stream gives no image") as caught:
        VideoReader("rtsp://user:secret@127.0.0.1:9/stream")
    assert "secret" not in str(caught.value) and "user:***@" in str(caught.value)


def set_frame_times(path: Path, milliseconds: list[int]) -> None:
    """Rewrite how long each frame of an .mp4 of OpenCV lasts. Its index is the last box, so that nothing else moves."""
    content = path.read_bytes()
    (scale,) = struct.unpack(">I", content[content.index(b"mdhd") + 16 :][:4])
    durations = [round(one * scale / 1000) for one in milliseconds]
    table = struct.pack(">4xI", len(durations)) + b"".join(struct.pack(">II", 1, one) for one in durations)
    start = content.index(b"stts") - 4
    old, new = struct.unpack(">I", content[start:][:4])[0], 8 + len(table)
    content = content[:start] + struct.pack(">I", new) + b"stts" + table + content[start + old :]
    for name in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
        at = content.index(name) - 4
        size = struct.unpack(">I", content[at:][:4])[0] + new - old
        content = content[:at] + struct.pack(">I", size) + content[at + 4 :]
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("stride", "expected"), [(1, [0, 0.04, 0.08, 5.08, 5.58, 5.62]), (2, [0, 0.08, 5.58])]
)
def test_times_are_those_of_the_file(tmp_path: Path, stride: int, expected: list[float]):
    """PySceneDetect#168: of a video of variable frame rate the mean rate says when no frame is shown."""
    path = written(tmp_path / "a.mp4", 6, fps=1)
    set_frame_times(path, [40, 40, 5000, 500, 40, 380])  # as long as before in all
    with VideoReader(path, stride=stride) as reader:
        for _ in range(2):
            assert [reader.time for _ in reader] == pytest.approx(expected, abs=1e-3)


def test_times_without_timestamps_follow_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stamps = iter([0.0, 40.0, 40.0, 0.0, math.nan, 400.0])

    class Stamped(Capture):
        def get(self, what):
            return next(stamps, 0.0) if what == cv2.CAP_PROP_POS_MSEC else super().get(what)

    monkeypatch.setattr(video.cv2, "VideoCapture", Stamped)
    with VideoReader(written(tmp_path / "a.avi", 6)) as reader:
        assert [reader.time for _ in reader] == pytest.approx([0, 0.04, 0.08, 0.12, 0.16, 0.4])
