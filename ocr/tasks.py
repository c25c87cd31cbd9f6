"""What the programs of the three text models compute, as they are exported."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework.config import register
from framework.engine.task import Batch, Task
from framework.nn.layer import Layer
from framework.vision.normalize import Normalize


@register("task")
@dataclass(frozen=True)
class TextDetection(Task):
    """Where text is. Inputs: "image" [N, H, W, 3] uint8 RGB and "size" [N, 2] int32, the rows and columns of each that
    are no padding."""

    normalize: Normalize

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"probability": [N, H, W] float32}"""
        image, size = inputs["image"], inputs["size"]
        rows = jnp.arange(image.shape[1])[None, :, None] < size[:, 0, None, None]
        columns = jnp.arange(image.shape[2])[None, None, :] < size[:, 1, None, None]
        valid = (rows & columns)[..., None]
        return {"probability": model(_normalize_valid(image, self.normalize, valid)).probability}


@register("task")
@dataclass(frozen=True)
class TextRecognition(Task):
    """What lines say. Inputs: "image" [N, H, W, 3] uint8 RGB and "width" [N] int32, the columns that are no padding."""

    normalize: Normalize

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"indices": [N, T] int32 of symbols, "probabilities": [N, T] float32}"""
        valid = _valid_columns(inputs)
        indices, probabilities = model.read(_normalize_valid(inputs["image"], self.normalize, valid))
        return {"indices": indices, "probabilities": probabilities}


@register("task")
@dataclass(frozen=True)
class TextLineOrientation(Task):
    """Which lines stand on their heads. Inputs as of TextRecognition."""

    normalize: Normalize

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"probability": [N, 2] float32, of upright and of upside down}"""
        logits = model(_normalize_valid(inputs["image"], self.normalize, _valid_columns(inputs)))
        return {"probability": jax.nn.softmax(logits, axis=-1)}


def _valid_columns(inputs: Batch) -> jax.Array:
    """[N, 1, W, 1] bool: which columns are line and not padding."""
    columns = jnp.arange(inputs["image"].shape[2])[None, :] < inputs["width"][:, None]
    return columns[:, None, :, None]


def _normalize_valid(image: jax.Array, normalize: Normalize, valid: jax.Array) -> jax.Array:
    """uint8 RGB to the network's float32, 0 where `valid` is false, as upstream pads after normalisation."""
    return jnp.where(valid, normalize(image), 0.0)
