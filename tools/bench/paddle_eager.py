"""framework.paddle against Paddle in one run: training steps, small operations, memory, first steps, importing.

Parts: lenet (batch 64), resnet18 (8 of 224x224), lstm (32 of 48 words, two layers both ways), bert (base, 4 of 128
tokens), each eagerly, and under to_static (Paddle compiles the network, framework.paddle the whole step); tiny (1,000
operations in a row on [8, 8]); start (the first step of LeNet in a new process, with no program compiled and with all);
import. Every competitor is a process of its own and they take turns, one step each; medians of the wall time and of the
CPU time of the process, which is the fairer one on a shared machine. Memory is the peak of resident memory during steps
after the first one. Ratios are ours to Paddle's eager mode; below 1 we are faster. `--python` is the interpreter of an
environment that has paddlepaddle; nothing of the framework is imported there.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tools.bench.peers import REPO, Run, Worker, arguments, opened, pin, serve, take_turns

OURS = "framework.paddle"
TINY = 1000  # operations in a row


def lenet(paddle: Any) -> tuple[Any, list[np.ndarray], Any]:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((64, 1, 28, 28)).astype(np.float32)
    return paddle.vision.models.LeNet(), [images], rng.integers(0, 10, (64, 1))


def resnet18(paddle: Any) -> tuple[Any, list[np.ndarray], Any]:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((8, 3, 224, 224)).astype(np.float32)
    return paddle.vision.models.resnet18(), [images], rng.integers(0, 1000, (8, 1))


def lstm(paddle: Any) -> tuple[Any, list[np.ndarray], Any]:
    nn = paddle.nn

    class Classifier(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(8000, 128)
            self.lstm = nn.LSTM(128, 128, num_layers=2, direction="bidirectional")
            self.fc = nn.Linear(256, 2)

        def forward(self, tokens: Any) -> Any:
            outputs, _ = self.lstm(self.embedding(tokens))
            return self.fc(paddle.mean(outputs, axis=1))

    rng = np.random.default_rng(0)
    return Classifier(), [rng.integers(0, 8000, (32, 48))], rng.integers(0, 2, (32, 1))


def bert(paddle: Any, layers: int = 12) -> tuple[Any, list[np.ndarray], Any]:
    nn = paddle.nn

    class Bert(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(30522, 768), nn.Embedding(512, 768)
            self.kinds = nn.Embedding(2, 768)
            self.norm, self.dropout = nn.LayerNorm(768), nn.Dropout(0.1)
            block = nn.TransformerEncoderLayer(768, 12, 3072, 0.1, "gelu")
            self.encoder = nn.TransformerEncoder(block, layers)
            self.pool, self.fc = nn.Linear(768, 768), nn.Linear(768, 2)

        def forward(self, tokens: Any, kinds: Any) -> Any:
            places = paddle.arange(tokens.shape[1], dtype="int64").unsqueeze(0)
            mask = ((tokens == 0).astype("float32") * -1e4).unsqueeze([1, 2])
            x = self.words(tokens) + self.places(places) + self.kinds(kinds)
            x = self.encoder(self.dropout(self.norm(x)), mask)
            return self.fc(paddle.tanh(self.pool(x[:, 0])))

    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 30522, (4, 128))
    return Bert(), [tokens, np.zeros_like(tokens)], rng.integers(0, 2, (4, 1))


NETWORKS = {"lenet": lenet, "resnet18": resnet18, "lstm": lstm, "bert": bert}


def training(paddle: Any, case: str, mode: str) -> Run:
    """A training step. mode: eager; net (the network under to_static); step (all of the step under to_static)."""
    paddle.seed(0)
    net, inputs, labels = NETWORKS[case](paddle)
    net.train()
    call = paddle.jit.to_static(net) if mode == "net" else net
    optimizer = paddle.optimizer.Adam(1e-4, parameters=net.parameters())
    arguments = [paddle.to_tensor(x) for x in (*inputs, labels)]

    def step(*arguments: Any) -> Any:
        loss = paddle.nn.functional.cross_entropy(call(*arguments[:-1]), arguments[-1])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = paddle.jit.to_static(step) if mode == "step" else step
    return lambda: float(run(*arguments))


def tiny(paddle: Any) -> Run:
    """CPU microseconds of the process an operation on [8, 8]: without a gradient, forward with one, backward."""
    a, weight = paddle.full([8, 8], 1.0), paddle.full([8, 8], 1.0)
    weight.stop_gradient = False
    operations = (
        lambda x: x * a,
        lambda x: x + a,
        lambda x: paddle.matmul(x, a) * 0.125,
        lambda x: paddle.nn.functional.relu(x),
        lambda x: paddle.tanh(x),
    )

    def run() -> dict[str, float]:
        found: dict[str, list[float]] = {"plain": [], "forward": [], "backward": []}
        for operation in operations:
            for start, name in ((a, "plain"), (weight, "forward")):
                x, begin = start, time.process_time()
                for _ in range(TINY):
                    x = operation(x)
                x.numpy()
                found[name].append((time.process_time() - begin) / TINY * 1e6)
            begin = time.process_time()
            x.backward()
            weight.grad.numpy()
            found["backward"].append((time.process_time() - begin) / TINY * 1e6)
            weight.clear_gradient()
        return {name: statistics.fmean(values) for name, values in found.items()}

    return run


def memory() -> dict[str, float]:
    """Megabytes: resident now, and the most since the last call."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kilobytes = {
        line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("VmRSS", "VmHWM"))
    }
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return {"rss": kilobytes["VmRSS"] / 1024, "peak": kilobytes["VmHWM"] / 1024}


# -- the comparison --------------------------------------------------------------------------------------------------


def _worker(args: argparse.Namespace, world: str, case: str, mode: str, **env: str) -> Worker:
    name = f"{'Paddle' if world == 'paddle' else 'ours'} {mode}"
    python = args.python if world == "paddle" else sys.executable
    return Worker(name, python, __name__, world, case, mode, threads=args.threads, **env)


def network(case: str, args: argparse.Namespace) -> None:
    modes = (("paddle", "eager"), ("paddle", "net"), (OURS, "eager"), (OURS, "step"))
    workers = opened([_worker(args, world, case, mode) for world, mode in modes])
    try:
        take_turns(workers, args.rounds, warm=2)
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


def small_operations(args: argparse.Namespace) -> None:
    workers = [_worker(args, world, "tiny", "") for world in ("paddle", OURS)]
    take_turns(workers, args.rounds, warm=2)
    for name in ("plain", "forward", "backward"):
        peer, ours = (statistics.median(step["result"][name] for step in worker.steps) for worker in workers)
        print(
            f"  tiny      {name:9} Paddle {peer:6.2f} us, ours {ours:6.2f} us of CPU an operation: {ours / peer:.2f}x"
        )
    for worker in workers:
        worker.close()


def first_steps(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as home:
        for world, what in (("paddle", ""), (OURS, "cold"), (OURS, "cached"), (OURS, "cached")):
            worker = _worker(args, world, "lenet", "eager", OAR_HOME=home)
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
            subprocess.run(command, check=True, cwd=REPO)
            times[name].append(time.perf_counter() - begin)
    for name, values in times.items():
        print(f"  {name:30} {statistics.median(values):.2f} s")


def paddle_eager(argv: list[str]) -> None:
    parts = ("tiny", "start", "import", "lenet", "lstm", "resnet18", "bert")
    parser = arguments(__doc__, only=parts, rounds=15, threads=2)
    parser.add_argument("--python", required=True, help="interpreter of an environment that has paddlepaddle")
    args = parser.parse_args(argv)
    pin(args.threads)
    for part in args.only:
        print(f"{part}: load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        other = {"tiny": small_operations, "start": first_steps, "import": importing}.get(part)
        other(args) if other is not None else network(part, args)


if __name__ == "__main__":  # a competitor, see `Worker`
    world, case, mode = sys.argv[1:]
    paddle = importlib.import_module(world)
    serve(lambda: (tiny(paddle) if case == "tiny" else training(paddle, case, mode), {}), memory)
