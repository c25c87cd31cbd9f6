"""The networks that tools/bench/paddle_eager.py times, written for Paddle; started as a program in either interpreter.

`world` is paddle or framework.paddle. Nothing of this project is imported with Paddle's interpreter.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TINY = 1000  # operations in a row
Step = Callable[[], Any]


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


def training(paddle: Any, case: str, mode: str) -> Step:
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


def tiny(paddle: Any) -> Step:
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


def main(world: str, case: str, mode: str) -> None:
    """Answer every line of the standard input with one step, as JSON; the first answer is about the first step."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print must not come between
    started = time.perf_counter()
    paddle = importlib.import_module(world)
    run = tiny(paddle) if case == "tiny" else training(paddle, case, mode)
    built = time.perf_counter()
    result = run()
    first = {"import_and_build": built - started, "first": time.perf_counter() - built, **memory()}
    print(json.dumps({**first, "result": result}), file=answers, flush=True)
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        result = run()
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "result": result}
        print(json.dumps(took | (memory() if line.strip() == "memory" else {})), file=answers, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main(*sys.argv[1:])
