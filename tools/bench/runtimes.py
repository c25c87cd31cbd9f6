"""What the benches of inference share: other runtimes on an ONNX graph, a race of all, and the tool on a video."""

from __future__ import annotations

import importlib.util
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from framework.vision.sample import Sample
from framework.vision.video import VideoReader
from framework.workflow import ImageItem, ImageResult, VisionPredictor, open_predictor
from framework.workflow.domain.samples import apply_transforms
from framework.workflow.files.predict_files import run_video

Run = Callable[[], list[np.ndarray]]


def others(graph: bytes, image: np.ndarray, what: str = "network") -> dict[str, Run]:
    """ONNX Runtime and, where it is installed, OpenVINO on a graph of one image [1, C, H, W] float32."""
    import onnxruntime

    threads = os.cpu_count() or 1
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Its threads would otherwise spin between calls and take the cores from the others of this run.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    flat = np.ascontiguousarray(image.transpose(0, 3, 1, 2))
    feed = {session.get_inputs()[0].name: flat}
    runs: dict[str, Run] = {f"onnxruntime {what}": lambda: session.run(None, feed)}  # type: ignore[dict-item]
    if importlib.util.find_spec("openvino"):
        import openvino

        for precision in ("f32", "bf16"):
            hints = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads}
            compiled = openvino.Core().compile_model(openvino.Core().read_model(graph), "CPU", hints)
            runs[f"openvino {precision} {what}"] = lambda compiled=compiled: list(compiled(flat).values())
    return runs


def race(runs: dict[str, Run], rounds: int, base: str) -> None:
    """Run all in turn; medians in milliseconds, and ratios to `base`."""
    wall: dict[str, list[float]] = {name: [] for name in runs}
    cpu: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 2):
        for name, run in runs.items():
            started, used = time.perf_counter(), time.process_time()
            run()
            if turn >= 2:
                wall[name].append(time.perf_counter() - started)
                cpu[name].append(time.process_time() - used)
    print(f"{'':26}{'median':>8}{'least':>8}{'cpu':>8} ms   ratios to {base}: median, least, cpu")
    for name in runs:
        measures = [[f(times[key]) for key in (name, base)] for f, times in _measures(wall, cpu)]
        times = "".join(f"{own * 1e3:8.2f}" for own, _ in measures)
        print(f"{name:26}{times}      " + "".join(f"{own / other:7.2f}" for own, other in measures))


def _measures(wall: dict[str, list[float]], cpu: dict[str, list[float]]) -> list[tuple[Any, dict]]:
    return [(statistics.median, wall), (min, wall), (statistics.median, cpu)]


def difference(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """The largest difference of two networks' outputs relative to their scale, whatever their order and layout."""
    left, right = (
        sorted((np.sort(x.ravel()) for x in arrays), key=lambda x: (x.size, x[0])) for arrays in (a, b)
    )
    return max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in zip(left, right, strict=True))


class Watched(VisionPredictor[ImageResult]):
    """A predictor that notes how the resident memory grows over the frames, in MB."""

    def __init__(self, predictor: VisionPredictor[Any]) -> None:
        self.predictor = predictor
        self.memory: list[float] = []

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[ImageResult]:
        return self.predictor.predict_stream(items)

    def predict_video(self, frames: Iterable[ImageItem], frame_rate: float) -> Iterator[ImageResult]:
        for result in self.predictor.predict_video(frames, frame_rate):
            self.memory.append(resident())
            yield result


def resident() -> float:
    """Resident memory in MB; 0 where the system does not tell as Linux does."""
    status = Path("/proc/self/statm")
    return int(status.read_text(encoding="utf-8").split()[1]) * 4096 / 2**20 if status.is_file() else 0.0


def video(file: Path, model_dir: Path, rounds: int, options: Mapping[str, Any]) -> None:
    """Frame rates of the program alone and of the tool, and the memory that the tool takes; see `Watched`."""
    predictor: Any = open_predictor(model_dir, options=options)
    model = predictor.runner
    with VideoReader(file) as reader:
        samples = [
            apply_transforms(Sample(frame), model.transforms).image for frame in itertools.islice(reader, 64)
        ]
    size = min(model.batch_size, len(samples))
    batches = [{"image": np.stack(samples[at : at + size])} for at in range(0, len(samples) - size + 1, size)]
    frames = sum(len(batch["image"]) for batch in batches)

    def alone() -> int:
        for batch in batches:
            model.engine(batch)
        return frames

    with tempfile.TemporaryDirectory() as folder:
        watched = Watched(predictor)

        def everything() -> int:
            watched.memory.clear()
            report = run_video(watched, file, Path(folder))
            if report.failed:
                raise SystemExit(f"error: {report.failed}")
            return len(watched.memory)

        rates: dict[str, list[tuple[float, float]]] = {"program": [], "tool": []}
        for turn in range(rounds + 1):
            for name, run in (("program", alone), ("tool", everything)):
                started, used = time.perf_counter(), time.process_time()
                count = run()
                if turn:
                    spent = time.perf_counter() - started, time.process_time() - used
                    rates[name].append((spent[0] / count, spent[1] / count))
        with VideoReader(Path(folder) / f"{file.stem}.mp4") as written, VideoReader(file) as source:
            for _ in written:
                pass
            print(f"written: {written.frames_read} frames at {written.fps} a second")
            print(f"source:  {source.frame_count} frames at {source.fps} a second")
    medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in rates.items()}
    for name, (wall, cpu) in medians.items():
        print(f"{name:8} {1 / wall:7.1f} frames a second, {cpu * 1e3:6.2f} ms of CPU a frame")
    print(f"the tool runs at {medians['program'][0] / medians['tool'][0]:.0%} of the program's own rate")
    quarter = max(len(watched.memory) // 4, 1)
    peaks = [max(watched.memory[at : at + quarter]) for at in range(0, 4 * quarter, quarter)]
    print("resident memory, MB, in the quarters: " + ", ".join(f"{peak:.0f}" for peak in peaks))
