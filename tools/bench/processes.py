"""Training in two processes of one core each, joined by gloo, against one process on the same two cores.

processes   images/s of ResNet-18 by the Trainer, its loader included; the runs take turns of a few steps. The batch is
            the same, so each process has half of it. `--all_reduce` also times an all-reduce of as many numbers as the
            network has parameters.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TextIO

if __name__ == "__main__":  # a worker: XLA makes as many threads as it sees cores
    os.sched_setaffinity(0, {int(core) for core in os.environ["BENCH_CORES"].split(",")})

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import framework
from framework.config import build
from framework.core.process import find_free_port
from framework.distributed import Partitioner, init_parallel_env
from framework.engine.callbacks import Callback
from framework.engine.experiment import TrainOptions
from framework.engine.trainer import Trainer
from framework.io import DataLoader, Dataset
from framework.optimizer import Momentum
from framework.vision.sample import Sample
from tools.bench.peers import Worker, arguments
from zoo.classification.tasks import ImageClassification
from zoo.vision.resnet import ResNetConfig

PARAMETERS = 11_699_112


def open_answers() -> TextIO:
    """The standard output, where nothing else comes between: gloo writes to its descriptor."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


class Images(Dataset):
    """Images in memory that are drawn once."""

    def __init__(self, count: int, size: int) -> None:
        rng = np.random.default_rng(0)
        self.count, self.images = count, rng.integers(0, 256, (64, size, size, 3), np.uint8)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Sample:
        return Sample(self.images[index % 64], labels=np.asarray(index % 1000))


class Turns(Callback):
    """Trains `steps` steps for each line of the standard input, and answers with the seconds that they took."""

    def __init__(self, steps: int, answers: TextIO) -> None:
        self.steps, self.answers = steps, answers
        self.start = time.perf_counter(), time.process_time()

    def on_step(self, trainer: Trainer, step: int) -> None:
        if step != 1 and (step - 1) % self.steps:
            return
        jax.block_until_ready(trainer.state)
        wall, cpu = self.start
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        if step:
            print(json.dumps({"first": took["wall"], **took}), file=self.answers, flush=True)
            if not sys.stdin.readline():
                trainer.stop = True
        self.start = time.perf_counter(), time.process_time()


def work(size: int, batch: int, steps: int) -> None:
    """Train ResNet-18 in turns, alone or as one of the processes that the environment names."""
    answers = open_answers()
    processes = init_parallel_env()
    framework.seed(0)
    task = ImageClassification()
    loader = DataLoader(
        Images(100_000, size), batch_size=batch, pack=task.pack, shuffle=True, drop_last=True, num_workers=1
    )
    assert batch % processes == 0
    Trainer(
        build(ResNetConfig("resnet18", 1000)),
        task,
        Momentum(0.01, 0.9, weight_decay=1e-4),
        loader,
        TrainOptions(iters=10_000, log_every=10_000),
        callbacks=(Turns(steps, answers),),
        partitioner=Partitioner(),
    ).fit()


def reduce_all(rounds: int) -> None:
    """All-reduces of PARAMETERS numbers, one for each line."""
    answers = open_answers()
    init_parallel_env()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    stacked = NamedSharding(mesh, PartitionSpec("data"))
    values = jax.make_array_from_callback(
        (jax.device_count(), PARAMETERS), stacked, lambda _: np.ones((1, PARAMETERS), np.float32)
    )
    total = jax.jit(lambda x: x.sum(0), out_shardings=NamedSharding(mesh, PartitionSpec()))
    jax.block_until_ready(total(values))
    print(json.dumps({"first": 0.0}), file=answers, flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(rounds):
            jax.block_until_ready(total(values))
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps(took), file=answers, flush=True)


def start(cores: list[str], words: list[str]) -> list[Worker]:
    """A process for each set of cores, all of one run."""
    master = f"127.0.0.1:{find_free_port()}"
    shared = {"PADDLE_MASTER": master, "PADDLE_TRAINERS_NUM": str(len(cores)), "OAR_JOIN_TIMEOUT": "600"}

    def one(rank: int) -> Worker:
        settings = {
            **(shared if len(cores) > 1 else {}),
            "PADDLE_TRAINER_ID": str(rank),
            "BENCH_CORES": cores[rank],
        }
        return Worker(f"{rank}", sys.executable, "tools.bench.processes", *words, threads=1, **settings)

    with ThreadPoolExecutor(len(cores)) as pool:  # each waits for the others
        return list(pool.map(one, range(len(cores))))


def processes(argv: list[str]) -> None:
    parser = arguments(__doc__, size=224, batch=32, steps=2, rounds=5)
    parser.add_argument("--all_reduce", action="store_true")
    options = parser.parse_args(argv)
    cores = [str(core) for core in sorted(os.sched_getaffinity(0))[:2]]
    words = ["train", str(options.size), str(options.batch), str(options.steps)]
    runs = {"one process": start([",".join(cores)], words), "two processes": start(cores, words)}
    if options.all_reduce:
        runs["all-reduce"] = start(cores, ["reduce", str(options.steps)])
    for workers in runs.values():
        for worker in workers:
            if "error" in worker.ready:
                raise SystemExit(
                    f"a process failed: {worker.ready['error']}; BENCH_ERRORS=1 shows what it says"
                )
    for _ in range(options.rounds):
        for workers in runs.values():
            with ThreadPoolExecutor(len(workers)) as pool:
                list(pool.map(Worker.step, workers))
    medians = {}
    for name, workers in runs.items():
        walls = [max(one.steps[turn]["wall"] for one in workers) for turn in range(options.rounds)]
        cpus = [sum(one.steps[turn]["cpu"] for one in workers) for turn in range(options.rounds)]
        wall, cpu, least = statistics.median(walls), statistics.median(cpus), min(walls)
        medians[name] = wall, cpu, least
        wall, cpu, least = (value / options.steps for value in medians[name])
        times = f"a step: wall {wall:.3f} s (least {least:.3f}), cpu of all {cpu:.3f} s"
        print(f"  {name:<14} {options.batch / wall:7.2f} images/s  {times}", flush=True)
    one, two = medians["one process"], medians["two processes"]
    print(
        f"  two processes have {one[0] / two[0]:.2f} of the images/s of one, {one[2] / two[2]:.2f} at the least times, "
        f"with {two[1] / one[1]:.2f} of its CPU time"
    )
    for workers in runs.values():
        for worker in workers:
            worker.process.kill()


if __name__ == "__main__":
    if sys.argv[1] == "train":
        work(*map(int, sys.argv[2:]))
    else:
        reduce_all(*map(int, sys.argv[2:]))
