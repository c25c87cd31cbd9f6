"""Which way up a page is, and how it is bent: what is trained, scored and exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import plain, register
from framework.core.errors import ConfigError, InputError
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Task
from framework.nn.layer import Layer
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from ocr.pages.stages import PageOrientationOptions
from ocr.tasks.text import TextLineOrientation
from ocr.text.preprocess import PAGE_TURNS


@register("task")
@dataclass(frozen=True)
class PageOrientation(TextLineOrientation):
    """By how many quarter turns clockwise pages are turned, 0 to 3. Input: "image" [N, H, W, 3] uint8 RGB.

    Attributes:
        size_hw: Of the images, in pixels.
        short_side, patches, thresh: How the reader looks at a page; see PageOrientationOptions.
        turn_all: Each image, which is square, is seen in all four directions. In training what it shows besides its
            direction then says nothing about the label, so that a network from scratch begins to learn much sooner; in
            inference the mean of four readings has no preference of a direction.

    Raises:
        ConfigError: images that are not square cannot be turned so.
    """

    size_hw: tuple[int, int] = (224, 224)
    short_side: int = 256
    patches: int = 0
    thresh: float = 0.5
    turn_all: bool = False

    def __post_init__(self) -> None:
        if self.turn_all and self.size_hw[0] != self.size_hw[1]:
            raise ConfigError(
                "an image of two different sides has another shape when it is turned by 90 degrees",
                where="task.turn_all",
                received=f"size_hw {list(self.size_hw)}",
                allowed="a square",
                fix="-o task.turn_all=false",
            )

    def loss(self, model: Layer, batch: Batch) -> Losses:
        if not self.turn_all:
            return super().loss(model, batch)
        labels = [(batch["label"] + turns) % len(PAGE_TURNS) for turns in range(len(PAGE_TURNS))]
        turned = {"image": _turn_all(batch["image"]), "label": jnp.concatenate(labels)}
        return super().loss(model, turned)

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"probability": [N, 4] float32}, with `turn_all` of the mean logits of an image in its four directions"""
        if not self.turn_all:
            return super().infer(model, inputs)
        count = len(PAGE_TURNS)
        logits = self.logits(model, {"image": _turn_all(inputs["image"])})
        logits = logits.reshape(count, inputs["image"].shape[0], count)
        # Of an image turned by k quarters the class of k turns more is that of the image as it was.
        mean = sum(jnp.roll(logits[turns], -turns, axis=-1) for turns in range(count)) / count
        return {"probability": jax.nn.softmax(mean, axis=-1)}

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        if sample.labels is None or sample.labels.ndim != 0:
            raise InputError("a sample has no direction", where=sample.id, allowed="one class index")
        return {"image": sample.image, "label": np.asarray(sample.labels, np.int32)}

    def logits(self, model: Layer, inputs: Batch) -> jax.Array:
        return model(self.normalize(inputs["image"]))

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, JSON]:
        options = PageOrientationOptions(
            self.normalize, self.short_side, self.size_hw, self.patches, self.thresh, self.turn_all
        )
        return {"kind": "document_orientation", "options": plain(options)}


def _turn_all(images: jax.Array) -> jax.Array:
    """[N, S, S, C] -> [4 N, S, S, C]: all images as they are, then all turned clockwise by one, two, three quarters."""
    # rot90 turns counter-clockwise from the first to the second axis.
    return jnp.concatenate([jnp.rot90(images, -turns, axes=(1, 2)) for turns in range(len(PAGE_TURNS))])


@register("task")
@dataclass(frozen=True)
class PageUnwarping(Task[Sample, Layer]):
    """How a photographed page is bent; of inference alone. Input: "image" [N, 712, 488, 3] uint8 RGB."""

    normalize: Normalize

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "grid": {"format": "x, y", "unit": "where to read the input image, -1 to 1 from edge to edge"}
        }

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"grid": [N, h, w, 2] float32}: see UVDoc"""
        return {"grid": model(self.normalize(inputs["image"]))}
