"""The centre loss of recognisers, which draws the features of a class together.

Source: Wen et al. 2016, https://doi.org/10.1007/978-3-319-46478-7_31; PaddleOCR ppocr/losses/center.py
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ConfigError, InputError, ShapeError
from framework.nn.layer import Layer
from ocr.losses.text import center_loss, moved_centers


@dataclass(frozen=True)
class CenterLoss:
    """Features of a column draw near to the centre of the class that the model sees there.

    Attributes:
        weight: Share of the loss.
        rate: How far the centres of a model with `centers: true` move towards the features of a batch.
        file: Centres that stay: .npz or .npy with an array [num_classes, channels], as upstream's center_file_path. The
            model then keeps none.
    """

    weight: float = 0.05
    rate: float = 0.5
    file: Path | None = None

    def __post_init__(self) -> None:
        if self.weight < 0 or not 0 <= self.rate <= 1:
            raise ConfigError(
                "this is no centre loss",
                where="task.center",
                received=f"weight {self.weight}, rate {self.rate}",
                allowed="weight from 0, rate from 0 to 1",
            )

    @cached_property
    def _centers(self) -> np.ndarray:
        assert self.file is not None
        try:
            found = np.load(self.file)
            return np.asarray(found if isinstance(found, np.ndarray) else found[found.files[0]], np.float32)
        except (OSError, ValueError, IndexError) as error:
            raise InputError(
                "the centres cannot be read",
                where=self.file,
                received=error,
                allowed=".npy or .npz with one array [num_classes, channels]",
            ) from None

    def loss(self, model: Layer, features: jax.Array, logits: jax.Array, counts: jax.Array) -> jax.Array:
        """[] of features [N, T, D], logits [N, T, C] and the lines' shares [N]; the model's own centres move.

        Raises:
            ConfigError: the model keeps no centres and there is no file. ShapeError: those of the file do not fit.
        """
        own: Any = getattr(model, "centers", None)
        if self.file is None and own is None:
            raise ConfigError(
                "a centre loss needs centres",
                where="task.center",
                received="none in the model, and no file",
                fix="-o model.centers=true, or task.center.file=centers.npz",
            )
        centers = jnp.asarray(self._centers) if self.file is not None else own
        if centers.shape != (logits.shape[-1], features.shape[-1]):
            raise ShapeError(
                "the centres are of another model",
                where="task.center.file",
                received=centers.shape,
                allowed=f"[{logits.shape[-1]}, {features.shape[-1]}]",
            )
        classes = jax.lax.stop_gradient(logits).argmax(axis=-1)
        weight = jnp.broadcast_to(counts[:, None].astype(jnp.float32), classes.shape)
        if self.file is None:
            still = jax.lax.stop_gradient(features)
            model.centers = moved_centers(still, classes, centers, weight, self.rate)  # type: ignore[attr-defined]
        return self.weight * center_loss(features, classes, centers, weight)
