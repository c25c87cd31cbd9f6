"""A whole training: ResNet-18 through the Trainer, loss by loss, against Paddle 2.6.2 and torch.

The references are written by `tools.golden training`; its `float64` run tells how much of a difference is rounding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework import optimizer
from framework.engine.callbacks import Callback, Row
from framework.engine.experiment import TrainOptions
from framework.engine.trainer import Trainer
from framework.io.dataset import Dataset
from framework.io.loader import DataLoader
from framework.optimizer import lr
from framework.vision.sample import Sample
from tools.golden.training import (
    BATCH,
    CASES,
    CLASSES,
    DECAY,
    MEAN,
    MOMENTUM,
    STD,
    Case,
    samples,
    weights,
)
from zoo.classification.tasks import ImageClassification, Normalize
from zoo.vision.resnet import ResNet, ResNetConfig

DATA = Path(__file__).parent / "data" / "training"


class Samples(Dataset):
    def __init__(self) -> None:
        self.images, self.labels = samples()

    def __getitem__(self, index: int) -> Sample:
        return Sample(self.images[index], labels=np.asarray(self.labels[index]), id=index)

    def __len__(self) -> int:
        return len(self.images)


class Record(Callback):
    def __init__(self) -> None:
        self.rows: list[Row] = []

    def on_log(self, trainer: Trainer, row: Row) -> None:
        self.rows.append(row)


def schedule(case: Case) -> lr.LRScheduler:
    if case.boundaries:
        values = tuple(case.rate * 0.1**i for i in range(len(case.boundaries) + 1))
        return lr.PiecewiseDecay(case.boundaries, values)
    after = lr.CosineAnnealingDecay(case.rate)  # lasts to the end
    return lr.LinearWarmup(after, case.warmup, 0.0, case.rate)


def train(case: Case) -> dict[str, np.ndarray]:
    """`loss` and `lr` of every step."""
    task = ImageClassification(Normalize(MEAN, STD))
    model = ResNet(ResNetConfig("resnet18", CLASSES))
    model.set_state_dict(weights(model.state_shapes()))
    momentum = optimizer.Momentum(schedule(case), MOMENTUM, weight_decay=DECAY)
    loader = DataLoader(Samples(), batch_size=BATCH, drop_last=True, pack=task.pack, num_workers=0)
    record = Record()
    options = TrainOptions(iters=case.steps, log_every=1)
    Trainer(model, task, momentum, loader, options, callbacks=[record]).fit()
    return {name: np.array([row[name] for row in record.rows]) for name in ("loss", "lr")}


def reference(name: str, kind: str) -> dict[str, Any]:
    with np.load(DATA / f"{name}_{kind}.npz") as stored:
        return dict(stored)


def check(name: str, tolerance: float) -> None:
    ours = train(CASES[name])
    for kind in ("paddle", "torch", "float64"):
        theirs = reference(name, kind)
        assert len(theirs["loss"]) == CASES[name].steps
        np.testing.assert_allclose(ours["lr"], theirs["lr"], rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(ours["loss"], theirs["loss"], rtol=tolerance, err_msg=kind)


def test_the_first_losses_are_those_of_paddle_and_torch() -> None:
    check("piecewise", 1e-4)


@pytest.mark.slow
def test_the_losses_stay_those_of_paddle_and_torch() -> None:
    exact = reference("warmup_cosine", "float64")["loss"]
    assert exact[-5:].mean() < 0.8 * exact[:5].mean(), "nothing was learnt: the comparison would say little"
    check("warmup_cosine", 1e-3)
