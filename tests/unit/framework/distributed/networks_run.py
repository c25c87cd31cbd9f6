"""Trains small networks on divisions of devices: `python -m …networks_run NAME STEPS OPTIONS…`.

NAME is one of `NETWORKS`; OPTIONS are those of `parallel:` in JSON, and null is one device. DEVICES in the environment
says how many devices this process has; the variables of `oar launch` join several processes; RATE is a factor of the
networks' learning rates. Prints a JSON line for each of the OPTIONS: the losses of the steps.

With FLOAT64 set, all that is float32 otherwise is computed in float64. Sums in another order then differ by 1e-16
instead of 1e-7, and no training of a few steps makes that large: what differs is a fault.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = (  # compiled fast, as in tests/conftest.py
        f"--xla_force_host_platform_device_count={os.environ.get('DEVICES', '1')} "
        "--xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true"
    )

import jax
import jax.numpy as jnp
import numpy as np

if os.environ.get("FLOAT64"):  # before anything of ours reads the type
    jax.config.update("jax_enable_x64", True)
    jnp.float32 = jnp.float64

import framework
from detection.models.picodet import PicoDet, PicoDetConfig
from detection.tasks import ObjectDetection
from framework import nn
from framework.distributed import ParallelOptions, Partitioner, init_parallel_env
from framework.engine.experiment import TrainOptions
from framework.engine.trainer import Trainer
from framework.io import DataLoader, Dataset
from framework.nn import functional as F
from framework.optimizer import AdamW, Momentum, Optimizer
from framework.vision.sample import Sample
from segmentation.losses import CrossEntropy, Dice, Mixed, OhemCrossEntropy
from segmentation.models.pp_liteseg import PPLiteSeg, PPLiteSegConfig
from segmentation.tasks import SemanticSegmentation, WeightedLoss
from tests.unit.framework.distributed.axes_run import Rows
from zoo.classification.tasks import ImageClassification
from zoo.recommendation.models.deepfm import DeepFM, DeepFMConfig
from zoo.recommendation.sample import RowSample
from zoo.recommendation.tasks import ClickPrediction
from zoo.vision.pp_lcnet import PPLCNetConfig
from zoo.vision.resnet import ResNet, ResNetConfig

BATCH, BATCHES = 8, 4


class Drawn(Dataset):
    """Samples that are drawn once."""

    def __init__(self, draw: Callable[[np.random.Generator], Any]) -> None:
        rng = np.random.default_rng(5)
        self.samples = [draw(rng) for _ in range(BATCH * BATCHES)]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        return self.samples[index]


def _image(rng: np.random.Generator, side: int) -> np.ndarray:
    return rng.integers(0, 256, (side, side, 3)).astype(np.uint8)


def _classified(rng: np.random.Generator) -> Sample:
    return Sample(_image(rng, 32), labels=np.asarray(rng.integers(0, 8)))


def _boxed(rng: np.random.Generator) -> Sample:
    """From none to six objects, some of them to ignore: shards have unequal numbers of positives."""
    count = int(rng.integers(0, 7))
    corners = rng.uniform(0, 40, (count, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(8, 24, (count, 2))], axis=1).astype(np.float32)
    labels, valid = rng.integers(0, 3, count).astype(np.int32), rng.random(count) < 0.8
    return Sample(_image(rng, 64), boxes=boxes, labels=labels, valid=valid)


def _masked(rng: np.random.Generator) -> Sample:
    """A share of the pixels is to ignore, in some samples nearly all: shards have unequal numbers of pixels."""
    mask = rng.integers(0, 4, (64, 64)).astype(np.int32)
    mask[rng.random((64, 64)) < rng.choice([0.0, 0.3, 0.97])] = 255
    return Sample(_image(rng, 64), mask=mask)


def _clicked(rng: np.random.Generator) -> RowSample:
    arrays = {
        "sparse": rng.integers(0, 200, 6).astype(np.int32),
        "dense": rng.random(4).astype(np.float32),
        "label": rng.integers(0, 2, 1).astype(np.float32),
    }
    return RowSample(arrays=arrays)


class Small(nn.Layer):
    """Convolutions with what could be computed shard by shard: statistics of the batch, and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2D(3, 16, 3, stride=2), nn.Conv2D(16, 32, 3, stride=2)
        self.norm, self.other_norm = nn.BatchNorm2D(16), nn.BatchNorm2D(32)
        self.dropout, self.head = nn.Dropout(0.2), nn.Linear(32, 8)

    def forward(self, images: jax.Array) -> jax.Array:
        x = F.relu(self.norm(self.first(images)))
        x = F.relu(self.other_norm(self.second(x)))
        return self.head(self.dropout(x.mean(axis=(1, 2))))


Network = tuple[nn.Layer, Any, Callable[[np.random.Generator], Any], Optimizer]
RATE = 1e-3 * float(os.environ.get("RATE", "1"))


def _classifier(model: nn.Layer, mixup: float = 0.0) -> Network:
    return model, ImageClassification(mixup=mixup), _classified, Momentum(RATE, 0.9, weight_decay=1e-4)


def _picodet() -> Network:
    config = PicoDetConfig("picodet_xs", 3, static_steps=4, backbone=PPLCNetConfig("pplcnet_x0_25"))
    return PicoDet(config), ObjectDetection(max_objects=6), _boxed, Momentum(RATE, 0.9, weight_decay=4e-5)


def _liteseg(loss: Any) -> Network:
    task = SemanticSegmentation(losses=(WeightedLoss(loss),) * 3)
    return PPLiteSeg(PPLiteSegConfig("xt", 4)), task, _masked, Momentum(RATE, 0.9, weight_decay=5e-4)


def _deepfm() -> Network:
    config = DeepFMConfig(200, 8, 4, 6, fc_sizes=(32, 16))
    return DeepFM(config), ClickPrediction(), _clicked, AdamW(RATE)


NETWORKS: dict[str, Callable[[], Network]] = {
    "small": lambda: _classifier(Small(), mixup=0.2),
    "resnet18": lambda: _classifier(ResNet(ResNetConfig("resnet18", 8))),
    "picodet": _picodet,
    "pp_liteseg": lambda: _liteseg(Mixed((CrossEntropy(), Dice()), (1.0, 0.5))),
    "pp_liteseg ohem": lambda: _liteseg(OhemCrossEntropy(min_kept=2000)),
    "deepfm": _deepfm,
}


def _widen(model: nn.Layer) -> None:
    """Turn all of a model into float64."""
    for _, parameter in model.named_parameters():
        parameter._value = parameter.value.astype(np.float64)
        parameter.dtype = np.dtype(np.float64)
    for layer in model.sublayers(include_self=True):
        for name, buffer in layer._buffers.items():
            if buffer.dtype == np.float32:
                layer._buffers[name] = np.asarray(buffer, np.float64)


def train(name: str, steps: int, options: dict[str, Any] | None) -> list[float]:
    """The losses of the steps of a network on one division of the devices."""
    framework.seed(0)
    model, task, draw, optimizer = NETWORKS[name]()
    if os.environ.get("FLOAT64"):
        _widen(model)
    loader = DataLoader(
        Drawn(draw), batch_size=BATCH, pack=task.pack, shuffle=True, drop_last=True, num_workers=0
    )
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
    return losses


def main(name: str, steps: str, texts: Sequence[str]) -> None:
    init_parallel_env()
    for text in texts:
        losses = train(name, int(steps), json.loads(text))
        print(json.dumps({"options": json.loads(text), "losses": losses}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
