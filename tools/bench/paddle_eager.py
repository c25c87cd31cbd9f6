"""framework.paddle against Paddle in one run: training steps, small operations, memory, first steps, importing.

python tools/bench/paddle_eager.py --python PATH [--only lenet tiny ...] [--rounds 15] [--threads 2]

Parts: lenet (batch 64), resnet18 (8 of 224x224), lstm (32 of 48 words, two layers both ways), bert (base, 4 of 128
tokens), each eagerly, and under to_static (Paddle compiles the network, framework.paddle the whole step); tiny (1,000
operations in a row on [8, 8]); start (the first step of LeNet in a new process, with no program compiled and with all);
import. Every competitor is a process of its own and they take turns, one step each; medians of the wall time and of the
CPU time of the process, which is the fairer one on a shared machine. Memory is the peak of resident memory during steps
after the first one. Ratios are ours to Paddle's eager mode; below 1 we are faster. `--python` is the interpreter of an
environment that has paddlepaddle.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OURS = "framework.paddle"


class Worker:
    """A competitor in its own process."""

    def __init__(self, python: str, world: str, case: str, mode: str, env: dict[str, str]) -> None:
        self.name = f"{'Paddle' if world == 'paddle' else 'ours'} {mode}"
        self.steps: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [python, str(HERE / "paddle_eager_run.py"), world, case, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if os.environ.get("CI") else None,
            text=True,
            encoding="utf-8",
            env=env,
        )
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


def environment(threads: int, home: str | None = None) -> dict[str, str]:
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "JAX_PLATFORMS": "cpu"}
    return env | ({"OAR_HOME": home} if home else {})


def in_turn(workers: list[Worker], rounds: int, request: str = "step") -> None:
    for number in range(rounds + 2):
        for worker in workers:
            worker.step(request)
            if number == 1:
                worker.steps.clear()  # the first ones warm the allocators up


def network(case: str, args: argparse.Namespace) -> None:
    workers = []
    for world, mode in (("paddle", "eager"), ("paddle", "net"), (OURS, "eager"), (OURS, "step")):
        python = args.python if world == "paddle" else sys.executable
        worker = Worker(python, world, case, mode, environment(args.threads))
        if "error" in worker.ready:
            print(f"  {case} {worker.name}: {worker.ready['error']}")
        else:
            workers.append(worker)
    try:
        in_turn(workers, args.rounds)
        for worker in workers:
            worker.step("memory")
            worker.step("memory")  # the peak since the one before
        peer = workers[0]
        for worker in workers:
            wall, cpu, peak = worker.median("wall"), worker.median("cpu"), worker.steps[-1]["peak"]
            line = f"  {case:9} {worker.name:12} wall {wall * 1e3:7.1f} ms  cpu {cpu * 1e3:7.1f} ms"
            line += f"  peak {peak:6.0f} MB (with the first step {worker.ready['peak']:.0f})"
            line += f"  first step {worker.ready['first']:5.1f} s  loss {worker.steps[-1]['result']:.4f}"
            if worker is not peer:
                line += f"  wall {wall / peer.median('wall'):.2f}x cpu {cpu / peer.median('cpu'):.2f}x"
                line += f" memory {peak / peer.steps[-1]['peak']:.2f}x"
            print(line, flush=True)
    finally:
        for worker in workers:
            worker.close()


def tiny(args: argparse.Namespace) -> None:
    workers = [
        Worker(
            args.python if world == "paddle" else sys.executable, world, "tiny", "", environment(args.threads)
        )
        for world in ("paddle", OURS)
    ]
    in_turn(workers, args.rounds)
    for name in ("plain", "forward", "backward"):
        peer, ours = (statistics.median(step["result"][name] for step in worker.steps) for worker in workers)
        print(
            f"  tiny      {name:9} Paddle {peer:6.2f} us, ours {ours:6.2f} us of CPU an operation: {ours / peer:.2f}x"
        )
    for worker in workers:
        worker.close()


def start(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as home:
        for world, what in (("paddle", ""), (OURS, "cold"), (OURS, "cached"), (OURS, "cached")):
            python = args.python if world == "paddle" else sys.executable
            worker = Worker(python, world, "lenet", "eager", environment(args.threads, home))
            ready = worker.ready
            print(
                f"  start     {worker.name} {what}: importing and building {ready['import_and_build']:.2f} s, "
                f"first step {ready['first']:.2f} s"
            )
            worker.close()


def importing(args: argparse.Namespace) -> None:
    commands = {
        "import paddle (Paddle)": [args.python, "-c", "import paddle"],
        "import framework": [sys.executable, "-c", "import framework"],
        "from framework import paddle": [sys.executable, "-c", "from framework import paddle"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(min(args.rounds, 7)):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, cwd=HERE.parents[1], env=environment(args.threads))
            times[name].append(time.perf_counter() - begin)
    for name, values in times.items():
        print(f"  {name:30} {statistics.median(values):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", required=True, help="interpreter of an environment that has paddlepaddle")
    parts = ("tiny", "start", "import", "lenet", "lstm", "resnet18", "bert")
    parser.add_argument("--only", nargs="+", default=list(parts), choices=parts)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])
    for part in args.only:
        print(f"{part}: load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        other = {"tiny": tiny, "start": start, "import": importing}.get(part)
        if other is not None:
            other(args)
        else:
            network(part, args)


if __name__ == "__main__":
    main()
