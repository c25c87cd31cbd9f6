"""A whole training of ResNet-18 by Paddle and by torch: weights, batches and settings, which the test has too.

The losses and rates of each step; torch's in float32 and in float64, which tells how much of a difference is rounding.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tools.golden.network import find, import_paddle

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "training"
STEPS, BATCH, SIDE, CLASSES = 50, 8, 64, 10
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MOMENTUM, DECAY = 0.9, 1e-3


class Case(NamedTuple):
    """A learning rate for each step: a warmup that goes over into a cosine, or steps where `boundaries` are given."""

    rate: float
    steps: int = STEPS
    warmup: int = 0
    boundaries: tuple[int, ...] = ()


CASES = {
    "warmup_cosine": Case(0.004, warmup=10),
    "piecewise": Case(0.005, steps=20, boundaries=(8, 14)),  # the short one
}


def weights(shapes: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """A fresh network: each entry of the state dict drawn from the CRC of its name, in the scale that training starts
    from. Matrices are [in, out].

    The normalisations at the end of residual branches begin small, as in trainings that begin them with 0. From 1 on,
    rounding grows tenfold every three steps: torch's own float32 and float64 losses are 1e-3 apart after ten.
    """
    return {name: _weight(name, tuple(shape)) for name, shape in shapes.items()}


def _weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.RandomState(zlib.crc32(name.encode("utf-8")))
    if len(shape) == 4:
        values = rng.standard_normal(shape) * math.sqrt(2 / math.prod(shape[1:]))
    elif len(shape) == 2:
        values = rng.uniform(-1, 1, shape) / math.sqrt(shape[0])
    else:
        values = np.full(shape, float(name.endswith((".weight", "._variance"))))
        if name.endswith("conv1.bn.weight"):
            values *= 0.1
    return values.astype(np.float32)


def samples() -> tuple[np.ndarray, np.ndarray]:
    """Images [STEPS * BATCH, SIDE, SIDE, 3] uint8 in the order they are trained on, and their classes.

    Each class has a pattern of its own under the noise, so there is something to learn.
    """
    rng = np.random.RandomState(11)
    patterns = rng.randint(0, 256, (CLASSES, 8, 8, 3)).repeat(SIDE // 8, 1).repeat(SIDE // 8, 2)
    labels = rng.randint(0, CLASSES, STEPS * BATCH)
    noise = rng.normal(0, 30, (len(labels), SIDE, SIDE, 3))
    return (0.4 * patterns[labels] + 76 + noise).clip(0, 255).astype(np.uint8), labels


def batches(case: Case, dtype: str) -> Any:
    images, labels = samples()
    x = ((images / 255 - MEAN) / STD).astype(dtype).transpose(0, 3, 1, 2)
    for start in range(0, case.steps * BATCH, BATCH):
        yield np.ascontiguousarray(x[start : start + BATCH]), labels[start : start + BATCH]


def paddle_run(case: Case) -> dict[str, np.ndarray]:
    paddle = import_paddle()
    resnet18 = find("paddleclas.ppcls.arch.backbone.legendary_models.resnet.ResNet18")
    model = resnet18(class_num=CLASSES)
    state = model.state_dict()
    for name, value in weights({name: value.shape for name, value in state.items()}).items():
        state[name].set_value(value)
    model.train()
    lr = paddle.optimizer.lr
    if case.boundaries:
        values = [case.rate * 0.1**i for i in range(len(case.boundaries) + 1)]
        schedule = lr.PiecewiseDecay(list(case.boundaries), values)
    else:
        schedule = lr.LinearWarmup(
            lr.CosineAnnealingDecay(case.rate, case.steps - case.warmup), case.warmup, 0.0, case.rate
        )
    optimizer = paddle.optimizer.Momentum(
        schedule, MOMENTUM, model.parameters(), weight_decay=paddle.regularizer.L2Decay(DECAY)
    )
    losses, rates = [], []
    for x, labels in batches(case, "float32"):
        loss = paddle.nn.functional.cross_entropy(model(paddle.to_tensor(x)), paddle.to_tensor(labels))
        loss.backward()
        losses.append(float(loss))
        rates.append(schedule.get_lr())
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
    return {"loss": np.array(losses), "lr": np.array(rates)}


def torch_model() -> Any:
    """ResNet-18 with PaddleClas' names, and its projection in the first block."""
    import torch
    from torch import nn

    class ConvBN(nn.Module):
        def __init__(self, fan_in: int, fan_out: int, kernel: int, stride: int) -> None:
            super().__init__()
            self.conv = nn.Conv2d(fan_in, fan_out, kernel, stride, kernel // 2, bias=False)
            self.bn = nn.BatchNorm2d(fan_out)

        def forward(self, x: Any) -> Any:
            return self.bn(self.conv(x))

    class Block(nn.Module):
        def __init__(self, fan_in: int, fan_out: int, stride: int, project: bool) -> None:
            super().__init__()
            self.conv0, self.conv1 = ConvBN(fan_in, fan_out, 3, stride), ConvBN(fan_out, fan_out, 3, 1)
            self.short = ConvBN(fan_in, fan_out, 1, stride) if project else nn.Identity()

        def forward(self, x: Any) -> Any:
            return torch.relu(self.conv1(torch.relu(self.conv0(x))) + self.short(x))

    class ResNet18(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(ConvBN(3, 64, 7, 2))
            widths, blocks, before = (64, 128, 256, 512), [], 64
            for stage, width in enumerate(widths):
                blocks += [Block(before, width, 1 + (stage > 0), True), Block(width, width, 1, False)]
                before = width
            self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(512, CLASSES)

        def forward(self, x: Any) -> Any:
            x = nn.functional.max_pool2d(torch.relu(self.stem(x)), 3, 2, 1)
            return self.fc(self.blocks(x).mean((2, 3)))

    return ResNet18()


def torch_run(case: Case, dtype: str) -> dict[str, np.ndarray]:
    import torch

    model = torch_model().to(getattr(torch, dtype)).train()
    spelling = {"running_mean": "_mean", "running_var": "_variance"}
    for name, tensor in model.state_dict().items():
        head, _, leaf = name.rpartition(".")
        if leaf == "num_batches_tracked":
            continue
        ours, shape = f"{head}.{spelling.get(leaf, leaf)}", tuple(tensor.shape)
        value = weights({ours: shape[::-1] if len(shape) == 2 else shape})[ours]
        tensor.copy_(torch.from_numpy(value.T if value.ndim == 2 else value))
    optimizer = torch.optim.SGD(model.parameters(), case.rate, MOMENTUM, weight_decay=DECAY)
    lr = torch.optim.lr_scheduler

    def factor(step: int) -> float:
        if step < case.warmup:
            return step / case.warmup
        return (1 + np.cos(np.pi * (step - case.warmup) / (case.steps - case.warmup))) / 2

    schedule: Any = lr.LambdaLR(optimizer, factor)
    if case.boundaries:
        schedule = lr.MultiStepLR(optimizer, case.boundaries, 0.1)
    losses, rates = [], []
    for x, labels in batches(case, dtype):
        loss = torch.nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(labels))
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return {"loss": np.array(losses), "lr": np.array(rates)}


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, dict[str, np.ndarray]]]:
    """Cases are `paddle` and `torch`."""
    for kind in cases:
        for case, settings in CASES.items():
            if kind == "paddle":
                yield OUTPUT / f"{case}_paddle.npz", paddle_run(settings)
            else:
                yield OUTPUT / f"{case}_torch.npz", torch_run(settings, "float32")
                yield OUTPUT / f"{case}_float64.npz", torch_run(settings, "float64")
