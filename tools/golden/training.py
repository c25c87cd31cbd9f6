"""Makes tests/golden/data/training/*.npz: the losses of ResNet-18 trained by Paddle and by torch, step by step.

Run it from the root of the repository, once with paddlepaddle 2.6.2 and paddleclas 2.6, once with torch (none of our
code but training_cases.py):

    python tools/golden/training.py paddle [case ...]
    python tools/golden/training.py torch [case ...]        in float32 and in float64

Each file holds `loss` and `lr` of each step.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from training_cases import BATCH, CASES, CLASSES, DECAY, MEAN, MOMENTUM, STD, Case, samples, weights

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "training"


def batches(case: Case, dtype: str) -> Any:
    images, labels = samples()
    x = ((images / 255 - MEAN) / STD).astype(dtype).transpose(0, 3, 1, 2)
    for start in range(0, case.steps * BATCH, BATCH):
        yield np.ascontiguousarray(x[start : start + BATCH]), labels[start : start + BATCH]


def paddle_run(case: Case) -> dict[str, np.ndarray]:
    import paddle  # type: ignore[import-not-found]
    from paddleclas.ppcls.arch.backbone.legendary_models.resnet import ResNet18  # type: ignore

    model = ResNet18(class_num=CLASSES)
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


if __name__ == "__main__":
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or CASES:
        case = CASES[name]
        if sys.argv[1] == "paddle":
            runs = {"paddle": paddle_run(case)}
        else:
            runs = {"torch": torch_run(case, "float32"), "float64": torch_run(case, "float64")}
        for kind, run in runs.items():
            np.savez(OUTPUT / f"{name}_{kind}.npz", **run)
            print(f"{name}_{kind}", " ".join(f"{loss:.6f}" for loss in run["loss"]))
