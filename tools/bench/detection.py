"""Time of detectors at batch 1 against other runtimes on equal graphs, and of the whole tool on a video.

python tools/bench/detection.py [--shared ../shared] [--model picodet_s] [--rounds 20]
python tools/bench/detection.py --video ../shared/data/videos/car-detection.mp4 --model_dir DIR [--rounds 3]

PicoDet-s (ESNet) at 320 runs from its official ONNX file, PP-YOLOE+ s at 640 from weights drawn by name and the graph
of pp_yoloe_onnx.py; normalisations are folded on both sides. "network" is what the graph computes, "detect" also makes
boxes and suppresses; both are exported programs. All run in turn, so medians and ratios compare; the CPU time of the
process stands beside the wall time because machines are shared. OpenVINO runs where it is installed.

`--video` tracks through a video as tools/infer.py does and prints the frame rates of the program alone, on the same
batches, and of everything, with the resident memory in each quarter of the video.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import jax
import numpy as np
from pp_yoloe_onnx import pp_yoloe

from detection.models.picodet_esnet import PicoDetESNetConfig
from detection.models.pp_yoloe import REG_MAX, PPYOLOEConfig
from framework.config import build
from framework.export import TensorSpec, lower_layer
from framework.inference import Engine, keep_memory, runner
from framework.inference.image_predictor import prepared
from framework.io.named_weights import named_weights
from framework.vision.sample import Sample
from framework.vision.video import VideoReader
from zoo.loading import load_weights_into

Run = Callable[[], list[np.ndarray]]
PROJECTION = "yolo_head.proj_conv.weight"


def picodet_s(shared: Path) -> tuple[Any, bytes, int]:
    """(model, ONNX graph, size) from the official file."""
    file = shared / "weights" / "picodet_s_320" / "picodet_s_320_coco_sim.onnx"
    return load_weights_into(build(PicoDetESNetConfig(deploy=True)), file), file.read_bytes(), 320


def pp_yoloe_plus_s(shared: Path) -> tuple[Any, bytes, int]:
    """(model, ONNX graph, size) of drawn weights, whose scores spread so that the suppression has work."""
    model = build(PPYOLOEConfig(deploy=True))
    state = named_weights(model.state_shapes())
    state[PROJECTION] = np.arange(REG_MAX + 1, dtype=np.float32).reshape(1, -1, 1, 1)
    for level in range(3):
        state[f"yolo_head.pred_cls.{level}.weight"] *= 10
        state[f"yolo_head.pred_cls.{level}.bias"] -= 6
    model.set_state_dict(state)
    return model, pp_yoloe(state, 640), 640


MODELS = {"picodet_s": picodet_s, "pp_yoloe_plus_s": pp_yoloe_plus_s}


def ours(model: Any, image: np.ndarray) -> dict[str, Run]:
    spec = {"image": TensorSpec(image.shape)}
    runs: dict[str, Run] = {}
    for precision in ("float32", "bfloat16"):
        for name, method in (("network", "forward"), ("detect", "detect")):
            after = lambda out: {f"{n:02}": leaf for n, leaf in enumerate(jax.tree.leaves(out))}  # noqa: E731
            engine = Engine(*lower_layer(model, spec, after=after, precision=precision, method=method))  # type: ignore[arg-type]
            runs[f"oar {precision} {name}"] = lambda engine=engine: list(engine({"image": image}).values())
    return runs


def others(graph: bytes, image: np.ndarray) -> dict[str, Run]:
    import onnxruntime

    threads = os.cpu_count() or 1
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Its threads would otherwise spin between calls and take the cores from the others of this run.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    flat = np.ascontiguousarray(image.transpose(0, 3, 1, 2))
    feed = {session.get_inputs()[0].name: flat}
    runs: dict[str, Run] = {"onnxruntime network": lambda: session.run(None, feed)}  # type: ignore[dict-item]
    if importlib.util.find_spec("openvino"):
        import openvino

        for precision in ("f32", "bf16"):
            hints = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads}
            compiled = openvino.Core().compile_model(openvino.Core().read_model(graph), "CPU", hints)
            runs[f"openvino {precision} network"] = lambda compiled=compiled: list(compiled(flat).values())
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


class Watched:
    """A predictor that notes how the resident memory grows over the frames, in MB."""

    def __init__(self, predictor: Any) -> None:
        self.predictor = predictor
        self.memory: list[float] = []

    def pages(self, items: Iterable[Any]) -> Iterator[Any]:
        return self.predictor.pages(items)

    def frames(self, items: Iterable[Any], frame_rate: float) -> Iterator[Any]:
        for result in self.predictor.frames(items, frame_rate):
            self.memory.append(resident())
            yield result


def resident() -> float:
    """Resident memory in MB; 0 where the system does not tell as Linux does."""
    status = Path("/proc/self/statm")
    return int(status.read_text(encoding="utf-8").split()[1]) * 4096 / 2**20 if status.is_file() else 0.0


def video(file: Path, model_dir: Path, rounds: int) -> None:
    predictor: Any = runner.open_predictor(None, str(model_dir), None, "auto", (), {"tracker": "bytetrack"})
    model = predictor.model
    with VideoReader(file) as reader:
        samples = [prepared(Sample(frame), model.transforms).image for frame in itertools.islice(reader, 64)]
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
            report = runner.run_video(watched, file, Path(folder))
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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--model", choices=MODELS, action="append", help="default: all")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--video", type=Path)
    parser.add_argument("--model_dir", type=Path, help="the artifact that looks at the video")
    args = parser.parse_args()
    keep_memory()
    if args.video:
        if args.model_dir is None:
            parser.error("--video needs --model_dir")
        video(args.video, args.model_dir, args.rounds)
        return 0
    for name in args.model or MODELS:
        model, graph, size = MODELS[name](args.shared)
        image = np.random.default_rng(0).standard_normal((1, size, size, 3)).astype(np.float32)
        runs = {**ours(model.eval(), image), **others(graph, image)}
        apart = difference(runs["oar float32 network"](), runs["onnxruntime network"]())
        print(f"{name} at {size}, {os.cpu_count()} threads, outputs differ by {apart:.0e}")
        race(runs, args.rounds, "onnxruntime network")
    return 0


if __name__ == "__main__":
    sys.exit(main())
