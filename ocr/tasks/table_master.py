"""The structure of tables as TableMaster learns it: with tokens of empty cells, and boxes by their centers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import register
from framework.engine.task import Batch, Losses
from framework.nn.functional.slopes import absolute
from framework.vision.sample import Sample
from ocr.tables.html import read_contents
from ocr.tables.stage import BoxForm, BoxScale
from ocr.tables.structure import TableDictionary, mark_empty
from ocr.tasks.contracts import StructureNetwork
from ocr.tasks.tables import TableStructure, cells_of, inside


@register("task")
@dataclass(frozen=True)
class TableMasterStructure(TableStructure):
    """The tokens of a table's HTML and the box of each cell, by TableMaster. Inputs are those of TableStructure.

    The padding is black before the normalisation. The loss is the mean cross-entropy of all tokens and each table's
    end, and the L1 distance of the boxes of cells with text, the sum over the four coordinates.

    Attributes:
        max_text_length: Tables of more tokens are left out of training; in evaluation they count.
        loc_weight: Share of the boxes' loss.
        score_head: Whether thead and tbody count for `acc`.

    Source: PaddleOCR configs/table/table_master.yml, ppocr/losses/table_master_loss.py. Upstream's configuration takes
        the corners of PubTabNet's boxes for center and size; here they are converted.
    """

    box_form: ClassVar[BoxForm] = "center"

    dictionary: TableDictionary = field(default_factory=lambda: TableDictionary("table_master"))
    loc_weight: float = 1.0
    box_scale: BoxScale = "padded"
    size_hw: tuple[int, int] = (480, 480)

    def spell(self, sample: Sample) -> list[str]:
        contents = ["".join(tokens) for tokens in read_contents(str(sample.text))]
        _, _, filled = cells_of(sample)
        return mark_empty(super().spell(sample), contents, filled.tolist())

    def pack(self, sample: Sample) -> dict[str, np.ndarray]:
        packed = super().pack(sample)
        low, high = packed["boxes"][:, :2], packed["boxes"][:, 2:]
        return {**packed, "boxes": np.concatenate([(low + high) / 2, high - low], axis=1)}

    def prepare(self, batch: Batch) -> jax.Array:
        return self.normalize(jnp.where(inside(batch), batch["image"], 0))

    def loss(self, model: StructureNetwork, batch: Batch) -> Losses:
        tokens, counts = batch["tokens"], batch["counts"][:, None]
        said = model(self.prepare(batch), tokens[:, :-1])
        wanted = tokens[:, 1:]
        run = (wanted != self.dictionary.padding).astype(jnp.float32) * counts
        picked = jnp.take_along_axis(
            jax.nn.log_softmax(said.logits.astype(jnp.float32), axis=-1), wanted[..., None], axis=-1
        )[..., 0]
        total = jnp.maximum(run.sum(), 1.0)
        structure = -(picked * run).sum() / total
        mask = (batch["known"][:, 1:] * counts)[..., None]
        apart = absolute(said.boxes.astype(jnp.float32) - batch["boxes"][:, 1:]) * mask
        boxes = self.loc_weight * apart.sum() / jnp.maximum(mask.sum(), 1.0)
        hits = jnp.where(said.logits.argmax(axis=-1) == wanted, run, 0.0).sum() / total
        terms = {"structure": structure, "boxes": boxes, "accuracy": hits}
        return Losses(structure + boxes, terms, run.sum())
