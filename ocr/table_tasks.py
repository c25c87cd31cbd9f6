"""The structure of tables: what is trained, scored and exported of the networks that find it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import register
from framework.core.errors import InputError
from framework.engine.task import Batch, Losses, Metric, Task
from framework.nn.layer import Layer
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from ocr.table_html import read_structure
from ocr.table_structure import GridCell, place_cells


@register("task")
@dataclass(frozen=True)
class TableGrid(Task):
    """Rows, columns and merged cells of an image that is one table, by TableGridNet. Inputs: "image" [N, H, W, 3] uint8
    RGB, the table at the top left, and "size" [N, 2] int32, the rows and columns of pixels that are no padding.

    Trained on data sets of tables with HTML and a box for each cell, such as SyntheticTables and PubTabNet.

    Attributes:
        merge_weight: Share of the merges' loss; those of rows, columns and head count 1.
        span_weight: How many times a merge counts as much as none, since there are few.
    """

    normalize: Normalize
    merge_weight: float = 1.0
    span_weight: float = 3.0

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        from ocr.table_grid import make_targets

        packed = self.pack_evaluated(sample)
        assert sample.boxes is not None and sample.valid is not None
        cells = _cells_of(sample)
        targets = make_targets(cells, sample.boxes, sample.valid, sample.size_hw, _MOST)
        return {**packed, **{f"target_{name}": value for name, value in targets._asdict().items()}}

    def pack_evaluated(self, sample: Sample) -> dict[str, np.ndarray]:
        if not isinstance(sample.text, str):
            raise InputError(
                "a sample has no structure",
                where=sample.id,
                allowed="HTML as text, as of PubTabNet and SyntheticTables",
            )
        return {
            "image": sample.image,
            "size": np.array(_visible(sample), np.int32),
            "html": np.array(sample.text),
        }

    def loss(self, model: Layer, batch: Batch) -> Losses:
        network: Any = model
        want = {
            name.removeprefix("target_"): value for name, value in batch.items() if name.startswith("target_")
        }
        counts = want["counts"]
        splits = network.split(_normalize(batch, self.normalize))
        right, down = network.join(splits.features, want["between_rows"] > 0.5, want["between_columns"] > 0.5)
        parts = {
            "rows": _mean(_bce(splits.between_rows, want["between_rows"]), _along(batch, 0), counts),
            "columns": _mean(_bce(splits.between_columns, want["between_columns"]), _along(batch, 1), counts),
            "head": _mean(_bce(splits.head, want["head"]), _along(batch, 0), counts),
        }
        config = network.config
        grid = want["grid"][:, : config.rows, : config.columns]
        merged = 0.0
        for logits, name in ((right, "right"), (down, "down")):
            target = want[name][:, : config.rows, : config.columns]
            merged = merged + _mean(
                _bce(logits, target), grid * (1 + (self.span_weight - 1) * target), counts
            )
        parts["merge"] = self.merge_weight * jnp.asarray(merged)
        return Losses(sum(parts.values(), jnp.float32(0)), parts)

    def infer(self, model: Layer, inputs: Batch) -> dict[str, jax.Array]:
        """Probabilities: {"between_rows", "head": [N, H/2], "between_columns": [N, W/2], "right", "down": [N, R, C]}"""
        found = model(_normalize(inputs, self.normalize))
        return {name: jax.nn.sigmoid(value.astype(jnp.float32)) for name, value in found._asdict().items()}

    def check(self, model: Layer, labels: tuple[str, ...]) -> None:
        """Any model fits that `split`s and `join`s."""

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        from ocr.table_scores import GridScores

        return {"structure": GridScores()}


_MOST = (40, 14)  # rows and columns of the merges that are trained


def _cells_of(sample: Sample) -> list[GridCell]:
    cells = place_cells(read_structure(str(sample.text)))
    assert sample.boxes is not None
    if len(cells) != len(sample.boxes):
        raise InputError(
            "cells and boxes of a table differ in number",
            where=sample.id,
            received=f"{len(cells)} cells, {len(sample.boxes)} boxes",
        )
    return cells


def _visible(sample: Sample) -> tuple[int, int]:
    """(rows, columns) of pixels that are no padding; the table stands at the top left."""
    height, width = sample.size_hw
    if sample.warp is None:
        return height, width
    rows, columns = sample.warp.source_hw
    corner = sample.warp.points(np.array([[columns, rows]], np.float64))[0]
    return min(max(round(float(corner[1])), 1), height), min(max(round(float(corner[0])), 1), width)


def _normalize(batch: Batch, normalize: Normalize) -> jax.Array:
    """float32, 0 in the padding, as upstream pads after normalisation."""
    image, size = batch["image"], batch["size"]
    rows = jnp.arange(image.shape[1])[None, :, None, None] < size[:, 0, None, None, None]
    columns = jnp.arange(image.shape[2])[None, None, :, None] < size[:, 1, None, None, None]
    return jnp.where(rows & columns, normalize(image), 0.0)


def _along(batch: Batch, axis: int) -> jax.Array:
    """[N, L] float32: 1 for places of a projection that are no padding."""
    length = batch["image"].shape[1 + axis] // 2
    return (2 * jnp.arange(length)[None] < batch["size"][:, axis, None]).astype(jnp.float32)


def _bce(logits: jax.Array, target: jax.Array) -> jax.Array:
    logits = logits.astype(jnp.float32)
    return jnp.maximum(logits, 0) - logits * target + jnp.log1p(jnp.exp(-jnp.abs(logits)))


def _mean(values: jax.Array, weight: jax.Array, counts: jax.Array) -> jax.Array:
    """Mean over the tables that count of each one's weighted mean."""
    axes = tuple(range(1, values.ndim))
    each = (values * weight).sum(axis=axes) / jnp.maximum(weight.sum(axis=axes), 1.0)
    return (each * counts).sum() / jnp.maximum(counts.sum(), 1.0)
