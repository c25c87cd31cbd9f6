"""Trains on texts of several buckets, on one division of devices: `python -m …equality_run STEPS OPTIONS`.

OPTIONS are those of `parallel:` in JSON; null is one device. DEVICES in the environment says how many devices this
process has; the variables of `oar launch` join several processes. Prints a JSON line: the losses of the steps.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={os.environ.get('DEVICES', '1')}"

import jax
import numpy as np

import framework
from framework.distributed import ParallelOptions, Partitioner, init_parallel_env
from framework.engine.experiment import TrainOptions
from framework.engine.trainer import Trainer
from framework.io import BucketBatchSampler, DataLoader
from framework.io.collate import PadToBucket
from framework.nn.layer import Layer
from framework.optimizer import AdamW
from tests.unit.framework.distributed.axes_run import Classifier, Rows, Texts, TextTask

BATCH = 16
BUCKETS = (4, 8, 12)


class Words(Texts):
    """Texts without their padding."""

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        ids, label = super().__getitem__(index)
        return ids[ids != 0], label


def _texts() -> tuple[Layer, Any, DataLoader, Any]:
    dataset, task = Words(), TextTask()
    lengths = [len(dataset[index][0]) for index in range(len(dataset))]
    sampler = BucketBatchSampler(lengths, BUCKETS, BATCH, shuffle=True, drop_last=True)
    collate = PadToBucket(BUCKETS, {"ids": 0})
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate, pack=task.pack)
    return Classifier(), task, loader, AdamW(learning_rate=1e-3)


def train(steps: int, options: dict[str, Any] | None) -> dict[str, Any]:
    """What a run prints."""
    framework.seed(0)
    model, task, loader, optimizer = _texts()
    losses: list[float] = []
    trainer = Trainer(
        model,
        task,
        optimizer,
        loader,
        TrainOptions(iters=steps, log_every=1),
        callbacks=(Rows(losses),),
        partitioner=Partitioner(
            jax.devices()[:1] if options is None else None,
            None if options is None else ParallelOptions(**options, smallest=16),
        ),
    )
    trainer.fit()
    return {"losses": losses}


def main(steps: str, text: str) -> None:
    init_parallel_env()
    print(json.dumps(train(int(steps), json.loads(text))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
