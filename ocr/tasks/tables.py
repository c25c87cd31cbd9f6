"""The structure of tables: what is trained, scored and exported of the networks that find it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import plain, register
from framework.core.errors import ConfigError, InputError
from framework.core.model_config import ConfigT, setting_of
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Metric, Task
from framework.nn import functional as F
from framework.nn.functional.losses import entropy_of_logits
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from ocr.tables.html import read_structure
from ocr.tables.stage import BoxForm, BoxScale, TableOptions
from ocr.tables.structure import (
    END,
    START,
    GridCell,
    TableDictionary,
    merge_cells,
    place_cells,
    split_cells,
    starts_cell,
)
from ocr.tasks.contracts import GridNetwork, StructureNetwork

_MOST = (40, 14)  # rows and columns of the merges that are trained


_BOX_UNITS = {
    "content": "shares of the table without its padding",
    "padded": "shares of the input image",
    "none": "none: boxes are not learnt",
}


@register("task")
@dataclass(frozen=True)
class TableStructure(Task[Sample, StructureNetwork]):
    """The tokens of a table's HTML and the box of each cell, by SLANet and SLANeXt.

    Inputs: "image" [N, H, W, 3] uint8 RGB, the table at the top left, and "size" [N, 2] int32, the rows and columns of
    pixels that are no padding.

    The loss is the cross-entropy of all steps up to the longest table of the batch, beyond a table's end too, where the
    start's token is expected, as upstream has it; and smooth L1 of the coordinates of cells with text.

    Attributes:
        dictionary: The tokens; a model with `num_tokens: null` gets as many.
        max_text_length: Tables of more tokens are left out of training; in evaluation they count.
        loc_weight: Share of the coordinates' loss.
        box_scale: What coordinates are shares of, see TableOptions; "none" with a `loc_weight` of 0.
        size_hw: Of the images that an exported program takes.
        score_head: Whether thead and tbody count for `acc`; of the Chinese models they do not.

    Source: PaddleOCR configs/table/SLANet.yml, ppocr/losses/table_att_loss.py
    """

    box_form: ClassVar[BoxForm] = "corners"

    normalize: Normalize
    dictionary: TableDictionary = field(default_factory=TableDictionary)
    max_text_length: int = 500
    loc_weight: float = 2.0
    box_scale: BoxScale = "content"
    size_hw: tuple[int, int] = (488, 488)
    score_head: bool = True

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        packed = self.pack_evaluated(sample)
        cells, cell_boxes, filled = cells_of(sample)
        tokens = self.spell(sample)
        numbers = self.dictionary.encode(tokens)
        steps = self.max_text_length + 2
        given = np.full(steps, self.dictionary.padding, np.int32)
        given[0] = self.dictionary.numbers[START]
        boxes, known = np.zeros((steps, 4), np.float32), np.zeros(steps, np.float32)
        counts = numbers is not None and len(numbers) <= self.max_text_length
        if counts:
            assert numbers is not None
            given[1 : len(numbers) + 1] = numbers
            given[len(numbers) + 1] = self.dictionary.numbers[END]
            split = tokens if self.dictionary.merge else split_cells(tokens)
            places = [place for place, token in enumerate(split) if starts_cell(token)]
            height, width = sample.size_hw if self.box_scale != "content" else packed["size"].tolist()
            scaled = cell_boxes / np.array([width, height] * 2, np.float32)
            for cell, place in enumerate(places[: len(cells)]):
                boxes[place + 1], known[place + 1] = scaled[cell], filled[cell]
        return {
            **packed,
            "tokens": given,
            "boxes": np.clip(boxes, 0, 1),
            "known": known,
            "length": np.array(len(numbers) if counts and numbers is not None else 0, np.int32),
            "counts": np.array(counts, np.float32),
        }

    def pack_evaluated(self, sample: Sample) -> dict[str, np.ndarray]:
        return _pack_image(sample)

    def spell(self, sample: Sample) -> list[str]:
        """The tokens of a sample's structure, cells without spans as one."""
        return merge_cells(read_structure(str(sample.text)))

    def prepare(self, batch: Batch) -> jax.Array:
        """The images as the network takes them, [N, H, W, 3] float32."""
        return _normalize(batch, self.normalize)

    def adapt_model(self, config: ConfigT) -> ConfigT:
        if getattr(config, "num_tokens", 0) is not None:
            return config
        return replace(config, num_tokens=len(self.dictionary.tokens), max_text_length=self.max_text_length)

    def check(self, model: StructureNetwork, labels: tuple[str, ...]) -> None:
        tokens = setting_of(model, "num_tokens", int)
        if tokens is not None and tokens != len(self.dictionary.tokens):
            raise ConfigError(
                "the model and the dictionary have different numbers of tokens",
                where="model.num_tokens",
                received=f"{tokens} for {len(self.dictionary.tokens)} with start and end",
                allowed="null: as many as the dictionary has",
                fix="-o model.num_tokens=null",
            )

    def loss(self, model: StructureNetwork, batch: Batch) -> Losses:
        tokens, counts = batch["tokens"], batch["counts"][:, None]
        said = model(self.prepare(batch), tokens[:, :-1])
        steps = jnp.arange(tokens.shape[1] - 1)[None]
        run = (steps <= batch["length"].max()).astype(jnp.float32) * counts
        picked = jnp.take_along_axis(
            jax.nn.log_softmax(said.logits.astype(jnp.float32), axis=-1), tokens[:, 1:, None], axis=-1
        )[..., 0]
        structure = -(picked * run).sum() / jnp.maximum(run.sum(), 1.0)
        wanted, mask = batch["boxes"][:, 1:], (batch["known"][:, 1:] * counts)[..., None]
        if said.boxes.shape[-1] == 8:
            wanted = wanted[..., jnp.array([0, 1, 2, 1, 2, 3, 0, 3])]
        apart = F.smooth_l1_loss(said.boxes.astype(jnp.float32) * mask, wanted * mask, reduction="sum")
        boxes = self.loc_weight * apart / jnp.maximum(mask.sum() * wanted.shape[-1], 1.0)
        hits = jnp.where(said.logits.argmax(axis=-1) == tokens[:, 1:], run, 0.0).sum() / jnp.maximum(
            run.sum(), 1.0
        )
        terms = {"structure": structure, "boxes": boxes, "accuracy": hits}
        return Losses(structure + boxes, terms, run.sum())

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "tokens": {"meaning": "numbers of tokens of HTML"},
            "probabilities": {"meaning": "of each token", "range": [0, 1]},
            "boxes": {
                "meaning": "cell of each token",
                "format": self.box_form,
                "unit": _BOX_UNITS[self.box_scale],
            },
        }

    def infer(self, model: StructureNetwork, inputs: Batch) -> dict[str, jax.Array]:
        """{"tokens": [N, T] int32, "probabilities": [N, T], "boxes": [N, T, 4 or 8]}; behind the last step all is 0."""
        tokens, probabilities, boxes, _ = model.read(self.prepare(inputs))
        return {"tokens": tokens, "probabilities": probabilities, "boxes": boxes}

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, JSON]:
        """What an artifact's config holds, so that it runs as the table stage."""
        own = {"tokens": self.dictionary.tokens, "box_scale": self.box_scale, "box_form": self.box_form}
        options = TableOptions(self.normalize, self.size_hw, **own)
        return {"kind": "table", "options": plain(options)}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        from ocr.tables.scores import TokenScores

        return {"structure": TokenScores(self.dictionary.tokens, self.score_head)}


@register("task")
@dataclass(frozen=True)
class TableGrid(Task[Sample, GridNetwork]):
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
        from ocr.tables.grid import make_targets

        packed = self.pack_evaluated(sample)
        targets = make_targets(*cells_of(sample), sample.size_hw, _MOST)
        return {**packed, **{f"target_{name}": value for name, value in targets._asdict().items()}}

    def pack_evaluated(self, sample: Sample) -> dict[str, np.ndarray]:
        return _pack_image(sample)

    def loss(self, model: GridNetwork, batch: Batch) -> Losses:
        want = {
            name.removeprefix("target_"): value for name, value in batch.items() if name.startswith("target_")
        }
        counts = want["counts"]
        splits = model.split(_normalize(batch, self.normalize))
        right, down = model.join(splits.features, want["between_rows"] > 0.5, want["between_columns"] > 0.5)
        parts = {
            "rows": _mean(_bce(splits.between_rows, want["between_rows"]), _along(batch, 0), counts),
            "columns": _mean(_bce(splits.between_columns, want["between_columns"]), _along(batch, 1), counts),
            "head": _mean(_bce(splits.head, want["head"]), _along(batch, 0), counts),
        }
        config = model.config
        grid = want["grid"][:, : config.rows, : config.columns]
        merged = 0.0
        for logits, name in ((right, "right"), (down, "down")):
            target = want[name][:, : config.rows, : config.columns]
            merged = merged + _mean(
                _bce(logits, target), grid * (1 + (self.span_weight - 1) * target), counts
            )
        parts["merge"] = self.merge_weight * jnp.asarray(merged)
        return Losses(sum(parts.values(), jnp.float32(0)), parts, counts.sum())

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            name: {"meaning": meaning, "range": [0, 1]}
            for name, meaning in {
                "between_rows": "probability that a row of pixels lies between two rows, every second one",
                "head": "probability that a row of pixels is of the head, every second one",
                "between_columns": "probability that a column of pixels lies between two, every second one",
                "right": "probability that a cell goes on into its neighbour on the right",
                "down": "probability that a cell goes on into the one below",
            }.items()
        }

    def infer(self, model: GridNetwork, inputs: Batch) -> dict[str, jax.Array]:
        """Probabilities: {"between_rows", "head": [N, H/2], "between_columns": [N, W/2], "right", "down": [N, R, C]}"""
        found = model(_normalize(inputs, self.normalize))
        return {name: jax.nn.sigmoid(value.astype(jnp.float32)) for name, value in found._asdict().items()}

    def check(self, model: GridNetwork, labels: tuple[str, ...]) -> None:
        """Any model fits that `split`s and `join`s."""

    def describe_stage(self, buckets: tuple[int, ...] | None) -> dict[str, JSON]:
        """As of TableStructure."""
        return {"kind": "table", "options": plain(TableOptions(self.normalize, (384, 384), "grid"))}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        from ocr.tables.scores import GridScores

        return {"structure": GridScores()}


def _pack_image(sample: Sample) -> dict[str, np.ndarray]:
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


def cells_of(sample: Sample) -> tuple[list[GridCell], np.ndarray, np.ndarray]:
    """The cells of a label with their boxes, and which of them say something."""
    cells = place_cells(read_structure(str(sample.text)))
    boxes, filled = sample.boxes, sample.valid
    if boxes is None or filled is None or len(cells) != len(boxes):
        raise InputError(
            "cells and boxes of a table differ in number",
            where=sample.id,
            received=f"{len(cells)} cells, {'no' if boxes is None or filled is None else len(boxes)} boxes",
        )
    return cells, boxes, filled


def _visible(sample: Sample) -> tuple[int, int]:
    """(rows, columns) of pixels that are no padding; the table stands at the top left."""
    height, width = sample.size_hw
    if sample.warp is None:
        return height, width
    rows, columns = sample.warp.source_hw
    corner = sample.warp.points(np.array([[columns, rows]], np.float64))[0]
    return min(max(round(float(corner[1])), 1), height), min(max(round(float(corner[0])), 1), width)


def inside(batch: Batch) -> jax.Array:
    """[N, H, W, 1]: which pixels are no padding."""
    image, size = batch["image"], batch["size"]
    rows = jnp.arange(image.shape[1])[None, :, None, None] < size[:, 0, None, None, None]
    columns = jnp.arange(image.shape[2])[None, None, :, None] < size[:, 1, None, None, None]
    return rows & columns


def _normalize(batch: Batch, normalize: Normalize) -> jax.Array:
    """float32, 0 in the padding, as upstream pads after normalisation."""
    return jnp.where(inside(batch), normalize(batch["image"]), 0.0)


def _along(batch: Batch, axis: int) -> jax.Array:
    """[N, L] float32: 1 for places of a projection that are no padding."""
    length = batch["image"].shape[1 + axis] // 2
    return (2 * jnp.arange(length)[None] < batch["size"][:, axis, None]).astype(jnp.float32)


def _bce(logits: jax.Array, target: jax.Array) -> jax.Array:
    return entropy_of_logits(logits.astype(jnp.float32), target)


def _mean(values: jax.Array, weight: jax.Array, counts: jax.Array) -> jax.Array:
    """Mean over the tables that count of each one's weighted mean."""
    axes = tuple(range(1, values.ndim))
    each = (values * weight).sum(axis=axes) / jnp.maximum(weight.sum(axis=axes), 1.0)
    return (each * counts).sum() / jnp.maximum(counts.sum(), 1.0)
