"""Which way up a page is: what is trained, scored and exported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import plain, register
from framework.core.errors import ConfigError, InputError
from framework.engine.task import Batch, Losses
from framework.nn.layer import Layer
from framework.vision.sample import Sample
from ocr.page_stages import PageOrientationOptions
from ocr.stages import PAGE_TURNS
from ocr.tasks import TextLineOrientation


@register("task")
@dataclass(frozen=True)
class PageOrientation(TextLineOrientation):
    """By how many quarter turns clockwise pages are turned, 0 to 3. Input: "image" [N, H, W, 3] uint8 RGB.

    Attributes:
        size_hw: Of the images, in pixels.
        short_side, patches, thresh: How the reader looks at a page; see PageOrientationOptions.
        turn_all: In training each image, which is square, is seen in all four directions in one step: what it shows
            besides its direction then says nothing about the label, and training from scratch begins much sooner.

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
        image, label, count = batch["image"], batch["label"], len(PAGE_TURNS)
        # rot90 turns counter-clockwise from the first to the second axis.
        images = [jnp.rot90(image, -turns, axes=(1, 2)) for turns in range(count)]
        labels = [(label + turns) % count for turns in range(count)]
        return super().loss(model, {"image": jnp.concatenate(images), "label": jnp.concatenate(labels)})

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        if sample.labels is None or sample.labels.ndim != 0:
            raise InputError("a sample has no direction", where=sample.id, allowed="one class index")
        return {"image": sample.image, "label": np.asarray(sample.labels, np.int32)}

    def logits(self, model: Layer, inputs: Batch) -> jax.Array:
        return model(self.normalize(inputs["image"]))

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, Any]:
        options = PageOrientationOptions(
            self.normalize, self.short_side, self.size_hw, self.patches, self.thresh
        )
        return {"kind": "document_orientation", "options": plain(options)}
