"""A small problem: points of two classes, a network with dropout and normalisation, and its task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.distributed import Partitioner
from framework.engine.experiment import TrainOptions
from framework.engine.task import Losses
from framework.engine.trainer import Trainer
from framework.io import DataLoader, Dataset
from framework.nn import functional as F
from framework.optimizer import Momentum


class Points(Dataset):
    """[2] float32, class 1 right of the diagonal."""

    def __init__(self, count: int = 24) -> None:
        self.points = np.random.default_rng(3).standard_normal((count, 2)).astype(np.float32)
        self.labels = (self.points[:, 0] > self.points[:, 1]).astype(np.int32)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        return self.points[index], self.labels[index]


class Accuracy:
    higher_is_better = True

    def __init__(self) -> None:
        self.right: list[bool] = []

    def update(self, outputs: Any, batch: Any) -> None:
        self.right += (outputs["scores"].argmax(axis=1) == batch["label"]).tolist()

    def result(self) -> dict[str, float]:
        return {"accuracy": float(np.mean(self.right)), "count": float(len(self.right))}


@dataclass(frozen=True)
class PointTask:
    def pack(self, sample: Any) -> dict[str, np.ndarray]:
        return {"x": sample[0], "label": sample[1]}

    def loss(self, model: nn.Layer, batch: Any) -> Losses:
        logits = model(batch["x"])
        return Losses(F.cross_entropy(logits, batch["label"]), {"largest": jnp.abs(logits).max()})

    def infer(self, model: nn.Layer, inputs: Any) -> dict[str, jax.Array]:
        return {"scores": F.softmax(model(inputs["x"]))}

    def metrics(self, labels: tuple[str, ...]) -> dict[str, Any]:
        return {"accuracy": Accuracy()}

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        pass


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Trainer]:
    """A Trainer of the small problem; keywords are TrainOptions, but for those of the signature."""

    def made(
        folder: Path | None = None,
        dataset: Dataset | None = None,
        workers: int = 0,
        optimizer: Any = None,
        callbacks: Any = (),
        partitioner: Partitioner | None = None,
        dropout: float = 0.2,
        **options: Any,
    ) -> Trainer:
        framework.seed(0)
        model = nn.Sequential(
            nn.Linear(2, 8), nn.BatchNorm1D(8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 2)
        )
        dataset, task = dataset or Points(), PointTask()
        how = {"batch_size": 4, "pack": task.pack, "num_workers": workers}
        train = DataLoader(dataset, shuffle=True, drop_last=True, **how)
        evaluated = DataLoader(Points(10), pad_last=True, **how)
        return Trainer(
            model,
            task,
            optimizer or Momentum(0.1, 0.9),
            train,
            TrainOptions(**({"epochs": 3, "log_every": 1} | options)),
            eval=evaluated,
            folder=folder,
            callbacks=callbacks,
            partitioner=partitioner or Partitioner(jax.devices()[:1]),
        )

    return made
