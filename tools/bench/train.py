"""Images per second of a training step, against torch and Paddle in the same run.

python tools/bench/train.py [--models resnet50 mobilenet_v3] [--precisions float32 bfloat16] [--rounds 7]
    [--paddle_python PATH]

A step is forward, backward and the update by Momentum, on one batch that is already in memory. Oar runs the engine's
own step; torch runs torchvision's network in channels_last, eagerly; Paddle runs paddle.vision's, eagerly. bfloat16 is
autocast (O1) in all of them, and `bfloat16-O2` is Oar's O2 against the same peers.

Every competitor is a process of its own, and they take turns: one step each, `--rounds` times. Beside the median of the
wall time stands that of the CPU time of the process, which is the fairer one where a machine is shared. A ratio above 1
says that Oar is faster. Peers that are not installed are skipped with a message.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

LEARNING_RATE, MOMENTUM, WEIGHT_DECAY, NUM_CLASSES = 0.01, 0.9, 1e-4, 1000
PEERS = ("oar", "torch", "paddle")


def batch(size, pixels):
    """Images [N, H, W, 3], float32, and labels [N], int64."""
    import numpy as np

    rng = np.random.default_rng(0)
    images = rng.standard_normal((size, pixels, pixels, 3)).astype(np.float32)
    return images, rng.integers(0, NUM_CLASSES, size)


# -- competitors: each gives a function that does one step and returns its loss -------------------------------------


def oar(model, precision, images, labels):
    from dataclasses import dataclass

    import jax

    from framework import nn
    from framework.engine.experiment import TrainOptions
    from framework.engine.step import init_state, train_step
    from framework.engine.task import Losses
    from framework.inference import keep_memory
    from framework.nn import functional as F
    from framework.optimizer import Momentum
    from zoo.vision.mobilenet_v3 import MobileNetV3, MobileNetV3Config
    from zoo.vision.resnet import ResNet, ResNetConfig

    @dataclass(frozen=True)
    class Classify:
        def loss(self, model, batch):
            return Losses(F.cross_entropy(model(batch["image"]), batch["label"]))

    os.environ["OAR_COMPILATION_CACHE"] = "off"  # the compile time is reported, too
    keep_memory()
    layer = (
        ResNet(ResNetConfig("resnet50"))
        if model == "resnet50"
        else MobileNetV3(MobileNetV3Config("mobilenetv3_large_x1_0"))
    )
    level = "O2" if precision.endswith("O2") else "O1"
    options = TrainOptions(iters=1, amp=precision.partition("-")[0], amp_level=level)
    optimizer = Momentum(LEARNING_RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY).resolve(1)
    how = optimizer.param_groups(layer)
    graphdef, params, buffers = nn.split(layer.train())
    state = init_state(params, buffers, how, optimizer, options)
    step = train_step(
        graphdef, Classify(), optimizer, optimizer.schedule, how, options, jax.local_devices()[0]
    )
    data = {"image": jax.numpy.asarray(images), "label": jax.numpy.asarray(labels.astype("int32"))}

    def run():
        nonlocal state
        state, log = step(state, data)
        jax.block_until_ready(state)
        return float(log["loss"])

    return run


def torch(model, precision, images, labels):
    import torch

    try:
        import torchvision
    except (
        RuntimeError
    ):  # built for another torch, it misses two of its own operators: none of the networks uses them
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision

    net = torchvision.models.resnet50() if model == "resnet50" else torchvision.models.mobilenet_v3_large()
    net = net.train().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), LEARNING_RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
    x = torch.from_numpy(images).permute(0, 3, 1, 2).to(memory_format=torch.channels_last)
    y = torch.from_numpy(labels)
    low = precision != "float32"

    def run():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return run


def paddle(model, precision, images, labels):
    import paddle

    paddle.set_device("cpu")
    net = (
        paddle.vision.models.resnet50()
        if model == "resnet50"
        else paddle.vision.models.mobilenet_v3_large(scale=1.0)
    )
    optimizer = paddle.optimizer.Momentum(
        LEARNING_RATE, MOMENTUM, parameters=net.parameters(), weight_decay=WEIGHT_DECAY
    )
    x, y = paddle.to_tensor(images.transpose(0, 3, 1, 2)), paddle.to_tensor(labels)
    low = precision != "float32"

    def run():
        with paddle.amp.auto_cast(enable=low, level="O1", dtype="bfloat16"):
            loss = paddle.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return float(loss)

    return run


# -- processes --------------------------------------------------------------------------------------------------------


def work(peer, model, precision, size, pixels):
    """Answer every line of the standard input with one step: its loss, wall and CPU seconds, as JSON."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print must not come between
    try:
        run = {"oar": oar, "torch": torch, "paddle": paddle}[peer](model, precision, *batch(size, pixels))
        started = time.perf_counter()
        run()
        print(json.dumps({"first": time.perf_counter() - started}), file=answers, flush=True)
    except Exception as error:  # whatever a peer lacks, the others are measured
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), file=answers, flush=True)
        return
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        loss = run()
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "loss": loss}
        print(json.dumps(took), file=answers, flush=True)


class Worker:
    """A competitor in its own process."""

    def __init__(self, python, peer, model, precision, args):
        env = {**os.environ, "OMP_NUM_THREADS": str(args.threads), "JAX_PLATFORMS": "cpu"}
        size = ("--batch_size", str(args.batch_size), "--size", str(args.size))
        self.process = subprocess.Popen(
            [python, str(Path(__file__).resolve()), "--worker", peer, model, precision, *size],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=env,
        )
        self.name, self.steps = peer, []
        self.ready = self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process ended with {self.process.wait()}"}

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.steps.append(self._answer())

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def median(self, key):
        return statistics.median(step[key] for step in self.steps)


def compare(model, precision, args):
    """Run the competitors in turn and print a table."""
    pythons = {"oar": sys.executable, "torch": sys.executable, "paddle": args.paddle_python}
    print(f"\n{model} {precision}, batch {args.batch_size}, {args.size}x{args.size}, {args.threads} threads")
    workers = []
    try:
        for peer in args.peers:
            if not pythons[peer]:
                print(f"  {peer:<7} skipped: give its interpreter with --{peer}_python")
                continue
            worker = Worker(pythons[peer], peer, model, precision, args)
            workers.append(worker)
            if "error" in worker.ready:
                print(f"  {peer:<7} skipped: {worker.ready['error']}")
                workers.pop().close()
        for number in range(args.rounds + 1):
            for worker in workers:
                worker.step()
                if number == 0:
                    worker.steps.clear()  # it warmed the allocator up
        own = next((worker for worker in workers if worker.name == "oar"), None)
        for worker in workers:
            wall, cpu = worker.median("wall"), worker.median("cpu")
            least = min(step["wall"] for step in worker.steps)
            line = f"  {worker.name:<7} {args.batch_size / wall:7.2f} images/s  wall {wall * 1e3:6.0f} ms"
            line += (
                f" (min {least * 1e3:.0f})  cpu {cpu * 1e3:6.0f} ms  first step {worker.ready['first']:.1f} s"
            )
            if own is not None and worker is not own:
                line += f"  oar is {wall / own.median('wall'):.2f}x by wall, {cpu / own.median('cpu'):.2f}x by cpu"
            print(line, flush=True)
    finally:
        for worker in workers:
            worker.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["resnet50", "mobilenet_v3"])
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16", "bfloat16-O2"])
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--paddle_python", help="interpreter of an environment that has paddlepaddle")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(*args.worker, args.batch_size, args.size)
        return 0
    if hasattr(
        os, "sched_setaffinity"
    ):  # inherited by the processes; XLA makes as many threads as it sees cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])
    for model in args.models:
        for precision in args.precisions:
            compare(model, precision, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
