"""What measurements share: processes that take turns, runs that race in one process, other runtimes on a graph."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

REPO = Path(__file__).resolve().parents[2]
Run = Callable[[], Any]


def arguments(doc: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """A parser that prints `doc` for --help; each default is an option of its type."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in defaults.items():
        if isinstance(value, (list, tuple)):
            parser.add_argument(f"--{name}", nargs="+", default=list(value), choices=value)
        else:
            parser.add_argument(f"--{name}", type=str if value is None else type(value), default=value)
    return parser


def pin(threads: int) -> None:
    """Let this process and those that it starts use so many cores; XLA makes as many threads as it sees."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


# -- processes that take turns ---------------------------------------------------------------------------------------


def serve(start: Callable[[], tuple[Run, dict[str, Any]]], memory: Callable[[], dict] = dict) -> None:
    """Answer every line of the standard input with one step: wall and CPU seconds and its result, as JSON. The first
    answer is about the first step, with what `start` tells; or an error, whatever a peer lacks."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print must not come between
    try:
        began = time.perf_counter()
        run, ready = start()
        built = time.perf_counter()
        result = run()
        ready |= {"import_and_build": built - began, "first": time.perf_counter() - built, "result": result}
        print(json.dumps({**ready, **memory()}), file=answers, flush=True)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), file=answers, flush=True)
        return
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        result = run()
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "result": result}
        print(json.dumps(took | (memory() if line.strip() == "memory" else {})), file=answers, flush=True)


class Worker:
    """A competitor in its own process: a module run as `-m module words…`, which calls `serve`."""

    def __init__(
        self, name: str, python: str, module: str, *words: str, threads: int = 2, **env: str
    ) -> None:
        self.name, self.steps = name, []
        settings = {**os.environ, "OMP_NUM_THREADS": str(threads), "JAX_PLATFORMS": "cpu", **env}
        self.process = subprocess.Popen(
            [python, "-m", module, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=None if os.environ.get("BENCH_ERRORS") else subprocess.DEVNULL, text=True, encoding="utf-8",
            env=settings, cwd=REPO,
        )  # fmt: skip
        self.ready = self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process ended with {self.process.wait()}"}

    def step(self, request: str = "step") -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{request}\n")
        self.process.stdin.flush()
        self.steps.append(self._answer())

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()

    def median(self, key: str) -> float:
        return statistics.median(step[key] for step in self.steps)


def opened(workers: Sequence[Worker]) -> list[Worker]:
    """Those that are ready; the others are closed with a message."""
    for worker in workers:
        if "error" in worker.ready:
            print(f"  {worker.name:<7} skipped: {worker.ready['error']}")
            worker.close()
    return [worker for worker in workers if "error" not in worker.ready]


def take_turns(workers: Sequence[Worker], rounds: int, warm: int = 1) -> None:
    """One step each, `rounds` times, after some that warm the allocators up."""
    for number in range(rounds + warm):
        for worker in workers:
            if number == warm:
                worker.steps.clear()
            worker.step()


def compare(workers: Sequence[Worker], rounds: int, count: int, what: str) -> None:
    """Medians of all, and how many times as fast the first is; `count` of `what` a step."""
    workers = opened(workers)
    try:
        take_turns(workers, rounds)
        for worker in workers:
            wall, cpu = worker.median("wall"), worker.median("cpu")
            least = min(step["wall"] for step in worker.steps)
            line = f"  {worker.name:<7} {count / wall:7.2f} {what}/s  wall {wall * 1e3:6.0f} ms (min {least * 1e3:.0f})"
            line += f"  cpu {cpu * 1e3:6.0f} ms  first step {worker.ready['first']:.1f} s"
            if (own := workers[0]) is not worker:
                ratios = wall / own.median("wall"), cpu / own.median("cpu")
                line += f"  {own.name} is {ratios[0]:.2f}x by wall, {ratios[1]:.2f}x by cpu"
            print(line, flush=True)
    finally:
        for worker in workers:
            worker.close()


# -- runs that race in one process -----------------------------------------------------------------------------------


def race(runs: Mapping[str, Run], rounds: int, base: str) -> None:
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
    kinds = ((statistics.median, wall), (min, wall), (statistics.median, cpu))
    for name in runs:
        measures = [[kind(times[key]) for key in (name, base)] for kind, times in kinds]
        times = "".join(f"{own * 1e3:8.2f}" for own, _ in measures)
        print(f"{name:26}{times}      " + "".join(f"{own / other:7.2f}" for own, other in measures))


def difference(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """The largest difference of two networks' outputs relative to their scale, whatever their order and layout."""
    left, right = (
        sorted((np.sort(x.ravel()) for x in arrays), key=lambda x: (x.size, x[0])) for arrays in (a, b)
    )
    return max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in zip(left, right, strict=True))


def onnxruntime_session(graph: Any, threads: int | None = None) -> Any:
    """A session whose threads do not spin between calls, where they would take the cores from the others of a run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if threads is not None:
        options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    graph = graph if isinstance(graph, bytes) else str(graph)
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def openvino_model(graph: Any, precision: str, **hints: Any) -> Any:
    """A compiled model; `precision` is f32 or bf16."""
    import openvino

    core = openvino.Core()
    hints = {"INFERENCE_PRECISION_HINT": precision, **hints}
    return core.compile_model(
        core.read_model(graph if isinstance(graph, bytes) else str(graph)), "CPU", hints
    )


def others(graph: Any, image: np.ndarray, what: str = "network") -> dict[str, Run]:
    """ONNX Runtime and, where it is installed, OpenVINO on a graph of one image [N, H, W, C] float32."""
    threads = os.cpu_count() or 1
    session = onnxruntime_session(graph, threads)
    flat = np.ascontiguousarray(image.transpose(0, 3, 1, 2))
    runs: dict[str, Run] = {
        f"onnxruntime {what}": lambda: session.run(None, {session.get_inputs()[0].name: flat})
    }
    for precision in ("f32", "bf16") if importlib.util.find_spec("openvino") else ():
        model = openvino_model(graph, precision, INFERENCE_NUM_THREADS=threads)
        runs[f"openvino {precision} {what}"] = lambda model=model: list(model(flat).values())
    return runs


def cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def resident() -> float:
    """Resident memory in MB; 0 where the system does not tell as Linux does."""
    status = Path("/proc/self/statm")
    return int(status.read_text(encoding="utf-8").split()[1]) * 4096 / 2**20 if status.is_file() else 0.0
