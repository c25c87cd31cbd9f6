"""Trains small forms of networks on one division of devices: `python -m …equality_run NAME STEPS OPTIONS`.

OPTIONS are those of `parallel:` in JSON; null is one device. DEVICES in the environment says how many devices this
process has; the variables of `oar launch` join several processes. Prints a JSON line: the losses of the steps, and
mean, least and largest of the running statistics of all normalisations at the end.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Any

if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={os.environ.get('DEVICES', '1')}"

import jax
import numpy as np

import framework
from framework.config import Kind, bind, build
from framework.distributed import ParallelOptions, Partitioner, init_parallel_env
from framework.engine.experiment import TrainOptions
from framework.engine.task import Task
from framework.engine.trainer import Trainer
from framework.io import BucketBatchSampler, DataLoader, Dataset
from framework.io.collate import PadToBucket
from framework.nn.layer import Layer
from framework.optimizer import SGD, AdamW
from framework.vision.sample import Sample
from tests.unit.framework.distributed.axes_run import Classifier, Rows, Texts, TextTask

BATCH, BATCHES = 16, 4
BUCKETS = (4, 8, 12)
SECTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]] = {
    "resnet18": (
        ("zoo.classification", "zoo", "framework"),
        {"type": "ResNet", "variant": "resnet18", "num_classes": 4},
        {"type": "ImageClassification", "topk": [1]},
    ),
    "picodet": (
        ("detection", "zoo", "framework"),
        {
            **{"type": "PicoDet", "variant": "picodet_xs", "num_classes": 4, "static_steps": 10},
            "backbone": {"type": "PPLCNet", "variant": "pplcnet_x0_35"},
        },
        {"type": "ObjectDetection", "max_objects": 4},
    ),
    "pp_liteseg": (
        ("segmentation", "zoo", "framework"),
        {"type": "PPLiteSeg", "backbone": {"type": "STDC", "variant": "stdc1"}, "num_classes": 4},
        {
            "type": "SemanticSegmentation",
            "losses": [{"loss": {"type": "OhemCrossEntropy", "min_kept": 2000}}] * 3,
        },
    ),
}
"""(packages, model, task) of a configuration."""


class Images(Dataset):
    """Images [64, 64, 3] of noise with a bright square of one of four colours, and what tasks ask of it."""

    def __len__(self) -> int:
        return BATCH * BATCHES

    def __getitem__(self, index: int) -> Sample:
        rng = np.random.default_rng((7, index))
        image = rng.integers(0, 120, (64, 64, 3)).astype(np.uint8)
        kind, (top, left), size = index % 4, rng.integers(0, 32, 2), int(rng.integers(16, 32))
        colour = np.array([[255, 60, 60], [60, 255, 60], [60, 60, 255], [255, 255, 60]])[kind]
        image[top : top + size, left : left + size] = colour
        mask = np.zeros((64, 64), np.int32)
        mask[top : top + size, left : left + size] = kind
        return Sample(image, mask, labels=np.array(kind), id=str(index))


class Boxes(Images):
    """The same with the square's box."""

    def __getitem__(self, index: int) -> Sample:
        sample = super().__getitem__(index)
        assert sample.labels is not None
        lit = np.argwhere(sample.image.max(axis=-1) > 200)
        box = np.array([[*lit.min(0)[::-1], *(lit.max(0)[::-1] + 1)]], np.float32)
        return Sample(sample.image, boxes=box, labels=sample.labels[None], id=sample.id)


class Words(Texts):
    """Texts without their padding."""

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        ids, label = super().__getitem__(index)
        return ids[ids != 0], label


def _images(name: str) -> tuple[Layer, Any, DataLoader, Any]:
    packages, model, task = SECTIONS[name]
    bound: Task = bind(task, Annotated[Any, Kind("task")], packages)
    config = bind(model, Annotated[Any, Kind("model")], packages)
    dataset = Boxes() if name == "picodet" else Images()
    loader = DataLoader(dataset, batch_size=BATCH, pack=bound.pack, shuffle=True, drop_last=True)
    return build(config), bound, loader, SGD(learning_rate=1e-3)


def _texts() -> tuple[Layer, Any, DataLoader, Any]:
    dataset, task = Words(), TextTask()
    lengths = [len(dataset[index][0]) for index in range(len(dataset))]
    sampler = BucketBatchSampler(lengths, BUCKETS, BATCH, shuffle=True, drop_last=True)
    collate = PadToBucket(BUCKETS, {"ids": 0})
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate, pack=task.pack)
    return Classifier(), task, loader, AdamW(learning_rate=1e-3)


def main(name: str, steps: str, text: str) -> None:
    init_parallel_env()
    options = json.loads(text)
    framework.seed(0)
    model, task, loader, optimizer = _texts() if name == "bert" else _images(name)
    losses: list[float] = []
    trainer = Trainer(
        model,
        task,
        optimizer,
        loader,
        TrainOptions(iters=int(steps), log_every=1),
        callbacks=(Rows(losses),),
        partitioner=Partitioner(
            jax.devices()[:1] if options is None else None,
            None if options is None else ParallelOptions(**options, smallest=16),
        ),
    )
    trainer.fit()
    statistics = {
        key: [float(np.mean(value)), float(np.min(value)), float(np.max(value))]
        for key, value in trainer.partitioner.fetch(trainer.state.buffers).items()
    }
    print(json.dumps({"losses": losses, "statistics": statistics}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
