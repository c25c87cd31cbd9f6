"""Components of one's own: a model, a data set, a transform, a loss, a task and a callback."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import Kind, register
from framework.core.transform import Transform
from framework.engine.callbacks import Callback
from framework.engine.task import Batch, Losses, Metric, Task
from framework.io import Dataset
from framework.nn import functional as F
from framework.vision.sample import Sample
from zoo.classification.tasks import TopAccuracy


@dataclass(frozen=True)
class ShapeNetConfig:
    num_classes: int = 2
    width: int = 8


@register("model", config=ShapeNetConfig)
class ShapeNet(nn.Layer):
    """[N, H, W, 3] -> logits [N, num_classes]."""

    def __init__(self, config: ShapeNetConfig) -> None:
        super().__init__()
        self.config = config
        self.conv1 = nn.Conv2D(3, config.width, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2D(config.width, 2 * config.width, 3, stride=2, padding=1)
        self.fc = nn.Linear(2 * config.width, config.num_classes)

    def forward(self, x: jax.Array) -> jax.Array:
        x = F.relu(self.conv1(x))  # [N, H/2, W/2, width]
        x = F.relu(self.conv2(x))  # [N, H/4, W/4, 2 * width]
        return self.fc(x.max(axis=(1, 2)))


@register("dataset")
@dataclass(frozen=True)
class DrawnShapes(Dataset):
    """Bars and dots, drawn when they are asked for; labels are 0 and 1."""

    count: int = 64
    side: int = 32
    seed: int = 0
    class_names = ("bar", "dot")

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Sample:
        rng = np.random.default_rng((self.seed, index))
        pixels = np.full((self.side, self.side, 3), 40, np.uint8)
        y, x = rng.integers(4, self.side - 16, 2)
        height = 12 if index % 2 == 0 else 4
        pixels[y : y + height, x : x + 4] = 220
        return Sample(pixels, labels=np.array(index % 2), source_size=pixels.shape[:2], id=str(index))


@register("transform")
@dataclass(frozen=True)
class Dim(Transform[Sample]):
    """Brightness times a factor that is drawn between `low` and 1."""

    low: float = 0.6

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        return sample.replace(image=(sample.image * rng.uniform(self.low, 1.0)).astype(np.uint8))


@register("loss")
@dataclass(frozen=True)
class HingeLoss:
    """How much the right logit is short of `margin` above each other one."""

    margin: float = 1.0

    def __call__(self, logits: jax.Array, label: jax.Array) -> jax.Array:
        right = jnp.take_along_axis(logits, label[:, None], axis=1)
        others = 1 - jax.nn.one_hot(label, logits.shape[1], dtype=logits.dtype)
        return (others * jnp.maximum(0.0, self.margin - right + logits)).sum(axis=1).mean()


@register("task")
@dataclass(frozen=True)
class ShapeTask(Task):
    """What goes to the device, what is minimised, what is exported, and what is measured."""

    loss_fn: Annotated[HingeLoss, Kind("loss")] = field(default_factory=HingeLoss)

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        return {"image": sample.image, "label": np.asarray(sample.labels, np.int32)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        return Losses(self.loss_fn(self._logits(model, batch), batch["label"]))

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        return {"scores": F.softmax(self._logits(model, inputs))}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"accuracy": TopAccuracy((1,))}

    def _logits(self, model: nn.Layer, inputs: Batch) -> jax.Array:
        return model(inputs["image"].astype(jnp.float32) / 255)


@register("callback")
@dataclass(frozen=True)
class ScoreFile(Callback):
    """A line for every evaluation."""

    path: str

    def on_eval(self, trainer, row) -> None:
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"step {row['step']}: top1 {row['top1']:.3f}\n")
