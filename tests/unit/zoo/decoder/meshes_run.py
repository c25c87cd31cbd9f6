"""Trains small decoders on meshes of eight virtual devices: `python -m …meshes_run CASE…` prints a JSON line a case."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import Any

if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import numpy as np

import framework
from framework import nn
from framework.config import build
from framework.distributed import ParallelOptions, Partitioner
from framework.engine.callbacks import Callback, Row
from framework.engine.experiment import TrainOptions
from framework.engine.task import Losses, Task
from framework.engine.trainer import Trainer
from framework.io import DataLoader, Dataset
from framework.nn import functional as F
from framework.optimizer import AdamW
from zoo.decoder.llama import LlamaConfig
from zoo.decoder.qwen_moe import Qwen3MoeConfig

STEPS, BATCH, TOKENS = 3, 8, 16
SIZE: dict[str, Any] = {
    **{
        "vocab_size": 64,
        "hidden_size": 32,
        "num_layers": 2,
        "num_heads": 4,
        "num_kv_heads": 2,
        "head_dim": 8,
    },
    **{"intermediate_size": 48, "max_positions": TOKENS},
}
MODELS: dict[str, Any] = {
    "llama": LlamaConfig(**SIZE),
    "qwen3_moe": Qwen3MoeConfig(**SIZE, num_experts=4, top_k=2, expert_size=24),
}
MESHES: dict[str, ParallelOptions | None] = {
    "one": None,
    "data": ParallelOptions(),
    "fsdp": ParallelOptions(fsdp=8, smallest=16),
    "fsdp tensor": ParallelOptions(data=2, fsdp=2, tensor=2, smallest=16),
    "expert": ParallelOptions(fsdp=2, expert=4, smallest=16),
}


class Texts(Dataset):
    def __len__(self) -> int:
        return BATCH * STEPS

    def __getitem__(self, index: int) -> np.ndarray:
        return np.random.default_rng(index).integers(0, 64, TOKENS).astype(np.int32)


@dataclass(frozen=True)
class NextToken(Task):
    """The cross entropy of each token behind those before it."""

    def pack(self, sample: Any) -> dict[str, np.ndarray]:
        return {"ids": sample}

    def loss(self, model: nn.Layer, batch: Any) -> Losses:
        logits, target = model(batch["ids"])[:, :-1], batch["ids"][:, 1:]
        return Losses(F.cross_entropy(logits.reshape(-1, 64), target.reshape(-1)), {})

    def infer(self, model: nn.Layer, inputs: Any) -> Any:
        return {"logits": model(inputs["ids"])}

    def metrics(self, labels: tuple[str, ...]) -> dict[str, Any]:
        return {}


class Rows(Callback):
    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_log(self, trainer: Trainer, row: Row) -> None:
        self.losses.append(float(row["loss"]))


def train(model: str, mesh: str) -> list[float]:
    framework.seed(0)
    options, rows, task = MESHES[mesh], Rows(), NextToken()
    loader = DataLoader(
        Texts(), batch_size=BATCH, pack=task.pack, shuffle=True, drop_last=True, num_workers=0
    )
    trainer = Trainer(
        build(MODELS[model]),
        task,
        AdamW(learning_rate=0.003),
        loader,
        TrainOptions(iters=STEPS, log_every=1, save_every=100),
        callbacks=(rows,),
        partitioner=Partitioner(jax.devices()[:1] if options is None else None, options),
    )
    trainer.fit()
    return rows.losses


def main(cases: list[str]) -> None:
    for case in cases:
        model, _, mesh = case.partition("/")
        print(json.dumps({"case": case, "losses": train(model, mesh)}), flush=True)


if __name__ == "__main__":
    main(
        sys.argv[1:]
        or [f"{model}/{mesh}" for model in MODELS for mesh in MESHES if mesh != "expert" or "moe" in model]
    )
