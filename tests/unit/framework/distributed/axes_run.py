"""Trains a small text classifier on meshes of eight virtual devices: `python -m …axes_run CASE…`.

Prints a JSON line a case: the losses of its steps, and what of its state the first device holds.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import numpy as np

import framework
from framework import nn
from framework.distributed import ParallelOptions, Partitioner
from framework.engine.callbacks import Callback, Row
from framework.engine.experiment import TrainOptions
from framework.engine.task import Losses
from framework.engine.trainer import Trainer
from framework.io import DataLoader, Dataset
from framework.nn import functional as F
from framework.optimizer import Adam
from zoo.text.bert import Bert, BertConfig

STEPS, BATCH, TOKENS = 3, 16, 12
SIZE = {
    **{"vocab_size": 64, "hidden_size": 16, "num_layers": 4, "num_heads": 4, "intermediate_size": 32},
    **{"dropout": 0.0, "attention_dropout": 0.0, "max_positions": TOKENS},
}


class Texts(Dataset):
    """Ids [T] with padding 0 at the end, of one of two classes."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        self.ids = rng.integers(1, 64, (BATCH * STEPS, TOKENS)).astype(np.int32)
        for row, length in enumerate(rng.integers(3, TOKENS + 1, len(self.ids))):
            self.ids[row, length:] = 0
        self.labels = (self.ids[:, 0] > 32).astype(np.int32)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        return self.ids[index], self.labels[index]


class Classifier(nn.Layer):
    def __init__(self, dropout: float = 0.0, experts: float | None = None, is_moe: bool = False) -> None:
        super().__init__()
        config = BertConfig("bert-base-uncased", **{**SIZE, "dropout": dropout, "attention_dropout": dropout})
        self.bert = Bert(config)
        if is_moe:
            self.moe = nn.MoE(16, 32, 8, capacity_factor=experts)
        self.is_moe = is_moe
        self.head = nn.Linear(16, 2)

    def forward(self, ids: jax.Array) -> jax.Array:
        hidden = self.bert(ids)
        if self.is_moe:
            return self.head(hidden.hidden[:, 0] + self.moe(hidden.hidden, ids != 0)[:, 0])
        return self.head(hidden.pooled)


@dataclass(frozen=True)
class TextTask:
    def pack(self, sample: Any) -> dict[str, np.ndarray]:
        return {"ids": sample[0], "label": sample[1]}

    def loss(self, model: nn.Layer, batch: Any) -> Losses:
        logits = model(batch["ids"])
        return Losses(F.cross_entropy(logits, batch["label"]), {"largest": (logits**2).mean()})

    def metrics(self, labels: tuple[str, ...]) -> dict[str, Any]:
        return {}


class Rows(Callback):
    def __init__(self, losses: list[float]) -> None:
        self.losses = losses

    def on_log(self, trainer: Trainer, row: Row) -> None:
        self.losses.append(float(row["loss"]))


def make(
    options: ParallelOptions | None, folder: Path | None = None, steps: int = STEPS, **model: Any
) -> tuple[Trainer, list[float]]:
    """A Trainer, and the list that its losses go to. Without options on one device."""
    framework.seed(0)
    devices = jax.devices()[:1] if options is None else None
    losses: list[float] = []
    task: Any = TextTask()
    loader = DataLoader(
        Texts(), batch_size=BATCH, pack=task.pack, shuffle=True, drop_last=True, num_workers=0
    )
    trainer = Trainer(
        Classifier(**model),
        task,
        Adam(learning_rate=0.01),
        loader,
        TrainOptions(iters=steps, log_every=1, save_every=1),
        folder=folder,
        callbacks=(Rows(losses),),
        partitioner=Partitioner(devices, options),
    )
    return trainer, losses


CASES: dict[str, tuple[ParallelOptions | None, dict[str, Any]]] = {
    "one": (None, {}),
    "data": (ParallelOptions(), {}),
    "sequence": (ParallelOptions(sequence=4, fsdp=2, smallest=16), {}),
    "sequence tensor": (ParallelOptions(sequence=2, tensor=2, smallest=16), {}),
    "gpipe": (ParallelOptions(pipeline=4, smallest=16), {}),
    "gpipe tensor": (ParallelOptions(pipeline=2, tensor=2, micro_batches=2, smallest=16), {}),
    "gpipe fsdp": (ParallelOptions(pipeline=2, fsdp=4, micro_batches=4, smallest=16), {}),
    "1f1b": (ParallelOptions(pipeline=4, schedule="1f1b", smallest=16), {}),
    "1f1b fsdp": (ParallelOptions(pipeline=2, fsdp=2, micro_batches=4, schedule="1f1b", smallest=16), {}),
    "one dropout": (None, {"dropout": 0.1}),
    "sequence dropout": (ParallelOptions(sequence=4, smallest=16), {"dropout": 0.1}),
    "one experts": (None, {"is_moe": True}),
    "experts": (ParallelOptions(expert=4, smallest=16), {"is_moe": True}),
    "experts sequence": (ParallelOptions(expert=2, sequence=2, tensor=2, smallest=16), {"is_moe": True}),
}


def main(names: list[str]) -> None:
    for name in names or list(CASES):
        options, model = CASES[name]
        trainer, losses = make(options, **model)
        trainer.fit()
        leaves = jax.tree.leaves((trainer.state.params, trainer.state.optimizer))
        held = sum(leaf.addressable_shards[0].data.nbytes for leaf in leaves)
        share = held / sum(leaf.nbytes for leaf in leaves)
        print(json.dumps({"case": name, "losses": losses, "share": share}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
