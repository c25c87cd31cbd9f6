"""What a recipe learns in Oar and in torch: the same architecture, samples, schedule and length, over several seeds.

python tools/bench/learning.py -c configs/classification/cifar_resnet/resnet20_cifar10.yml --seeds 0 1 -o
train.epochs=10

torch gets the batches of the config's own loaders, so augmentation and order are the same; its loop, network, loss and
optimizer are torch's. Each side draws its first weights itself: kernels from He's normal distribution of the fan-in.
Printed are the accuracy after the last epoch, CPU seconds of the whole run, the compiling included, and CPU
milliseconds of a training step with its data, the steps of the first epoch left out.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from framework.config import load
from framework.engine.callbacks import Callback
from framework.engine.experiment import Experiment, bind_experiment
from framework.engine.trainer import Trainer
from framework.inference import keep_memory
from framework.optimizer import AdamW, Momentum
from framework.workflow.train import run as workflow
from zoo.layers.variants import scaled_width
from zoo.vision.pp_lcnet import HEAD_WIDTH, STAGES, STEM_WIDTH, VARIANTS


class Run(NamedTuple):
    accuracy: float
    seconds: float
    step_ms: float


class _Clock(Callback):
    """CPU time of the steps after the first epoch."""

    def __init__(self) -> None:
        self.spent, self.count, self.mark = 0.0, 0, None

    def on_log(self, trainer: Trainer, row: Any) -> None:
        self.log(row["epoch"] > 0, trainer.steps_per_epoch)

    def log(self, counts: bool, steps: int) -> None:
        """An epoch of training has ended; between this and `begin` there may be an evaluation."""
        if counts and self.mark is not None:
            self.spent, self.count = self.spent + time.process_time() - self.mark, self.count + steps
        self.mark = None

    def on_step(self, trainer: Any, step: int) -> None:
        if self.mark is None:
            self.mark = time.process_time()

    @property
    def step_ms(self) -> float:
        return 1000 * self.spent / max(1, self.count)


def ours(experiment: Experiment) -> Run:
    began, clock = time.process_time(), _Clock()
    trainer = workflow.make_trainer(experiment, None)
    trainer.options = replace(
        experiment.train, log_every=trainer.steps_per_epoch, eval_every=trainer.total_steps
    )
    trainer.callbacks = (clock,)
    scores = trainer.fit()
    return Run(next(iter(scores.values())), time.process_time() - began, clock.step_ms)


def theirs(experiment: Experiment) -> Run:
    began, clock = time.process_time(), _Clock()
    options, task, optim = experiment.train, experiment.task, experiment.optim
    assert experiment.data.train and experiment.data.eval and options.epochs
    if task.mixup or task.cutmix or options.ema or optim.grad_clip or not isinstance(optim, Momentum | AdamW):
        raise SystemExit("torch's side knows Momentum and AdamW, without mixup, EMA or clipping")
    torch.manual_seed(options.seed)
    model = network(experiment.model).to(memory_format=torch.channels_last)
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight)
    loader = workflow.make_loader(experiment.data.train, task, options.seed, train=True)
    total = options.epochs * len(loader)
    schedule = optim.schedule.resolve(total, len(loader))
    sides = {True: [], False: []}  # whether weight decay applies
    for parameter in model.parameters():
        sides[parameter.ndim > 1 or optim.decay_norm_and_bias].append(parameter)
    decay = optim.weight_decay or 0.0
    groups = [{"params": sides[True], "weight_decay": decay}, {"params": sides[False], "weight_decay": 0.0}]
    if isinstance(optim, Momentum):
        descent = torch.optim.SGD(groups, 1.0, optim.momentum, nesterov=optim.use_nesterov)
    else:
        descent = torch.optim.AdamW(groups, 1.0, (optim.beta1, optim.beta2), optim.epsilon)

    mean, std = (torch.tensor(v).view(3, 1, 1) * 255 for v in (task.normalize.mean, task.normalize.std))

    def images(batch: dict[str, np.ndarray]) -> torch.Tensor:
        return (torch.from_numpy(batch["image"]).permute(0, 3, 1, 2) - mean) / std

    step = 0
    for epoch in range(options.epochs):
        for batch in loader.batches(epoch):
            clock.on_step(None, step)
            for group in descent.param_groups:
                group["lr"] = schedule.at(step)
            labels = torch.from_numpy(batch.data["label"]).long()
            loss = F.cross_entropy(model(images(batch.data)), labels, label_smoothing=task.label_smoothing)
            descent.zero_grad()
            loss.backward()
            descent.step()
            step += 1
        clock.log(epoch > 0, len(loader))
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for batch in workflow.make_loader(experiment.data.eval, task, options.seed, train=False).batches(0):
            right = model(images(batch.data)).argmax(1).numpy() == batch.data["label"]
            hits, count = hits + right[batch.data["valid"]].sum(), count + batch.data["valid"].sum()
    return Run(hits / count, time.process_time() - began, clock.step_ms)


# -- the networks in torch -------------------------------------------------------------------------------------------


def network(config: Any) -> nn.Module:
    known = {"CifarResNetConfig": cifar_resnet, "PPLCNetConfig": pp_lcnet}
    kind = type(config).__name__
    if kind not in known:
        raise SystemExit(f"torch's side has no {kind}, only {', '.join(known)}")
    return known[kind](config)


def conv_bn(
    fan_in: int, fan_out: int, kernel: int, stride: int = 1, groups: int = 1, act: Any = None
) -> nn.Module:
    conv = nn.Conv2d(fan_in, fan_out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(fan_out), act or nn.Identity())


class _Residual(nn.Module):
    def __init__(self, fan_in: int, fan_out: int, stride: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            conv_bn(fan_in, fan_out, 3, stride, act=nn.ReLU()), conv_bn(fan_out, fan_out, 3)
        )
        self.stride, self.half = stride, (fan_out - fan_in) // 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        short = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.half, self.half))
        return torch.relu(self.branch(x) + short)


def cifar_resnet(config: Any) -> nn.Module:
    depth = (int(config.variant.removeprefix("resnet")) - 2) // 6
    parts: list[nn.Module] = [conv_bn(3, 16, 3, act=nn.ReLU())]
    before = 16
    for stage, width in enumerate((16, 32, 64)):
        for number in range(depth):
            parts.append(_Residual(before, width, 2 if stage and not number else 1))
            before = width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, config.num_classes))


class _Gate(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = (nn.Conv2d(channels, channels // 4, 1), nn.ReLU(), nn.Conv2d(channels // 4, channels, 1))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), *inner, nn.Hardsigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x)


def pp_lcnet(config: Any) -> nn.Module:
    scale, act = VARIANTS[config.variant].scale, nn.Hardswish()
    before = scaled_width(STEM_WIDTH, scale)
    parts: list[nn.Module] = [conv_bn(3, before, 3, 2, act=act)]
    for stage, blocks in enumerate(STAGES.values()):
        for number, block in enumerate(blocks):
            width, stride = scaled_width(block.width, scale), 2 if stage and not number else 1
            parts.append(conv_bn(before, before, block.kernel_size, stride, before, act))
            parts += [_Gate(before)] * block.squeeze
            parts.append(conv_bn(before, width, 1, act=act))
            before = width
    head = (nn.AdaptiveAvgPool2d(1), nn.Conv2d(before, HEAD_WIDTH, 1, bias=False), act, nn.Flatten())
    return nn.Sequential(*parts, *head, nn.Dropout(0.2), nn.Linear(HEAD_WIDTH, config.num_classes))


# -- the comparison --------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-c", "--config", required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1, help="processors that both sides may use")
    parser.add_argument("-o", "--opt", nargs="+", default=[], metavar="key=value")
    args = parser.parse_args()
    logging.getLogger("oar").setLevel(logging.WARNING)
    keep_memory()
    torch.set_num_threads(args.threads)
    if sys.platform == "linux":  # XLA makes a thread for each processor that it may use
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-args.threads :])
    runs: dict[str, list[Run]] = {"Oar": [], "torch": []}
    print(f"{'':6} {'seed':>4} {'accuracy':>9} {'CPU s':>8} {'CPU ms a step':>14}")
    for seed in args.seeds:
        experiment = bind_experiment(load(args.config, (*args.opt, f"train.seed={seed}")))
        for name, run in (("Oar", ours), ("torch", theirs)):
            runs[name].append(run(experiment))
            accuracy, seconds, step = runs[name][-1]
            print(f"{name:6} {seed:4} {accuracy:9.2%} {seconds:8.1f} {step:14.1f}", flush=True)
    for name, found in runs.items():
        accuracy, seconds, step = (statistics.mean(column) for column in zip(*found))
        spread = statistics.stdev(run.accuracy for run in found) if len(found) > 1 else 0.0
        print(
            f"{name:6} mean {accuracy:9.2%} {seconds:8.1f} {step:14.1f}   deviation of accuracy {spread:.2%}"
        )


if __name__ == "__main__":
    main()
