"""The tables of ranking models: whole on each device, or divided among them and trained by the rows that are met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from framework import nn
from framework.core.errors import ConfigError
from framework.nn import initializer as I
from framework.nn.table_options import CountFilterEntry, ProbabilityEntry, TableOptimizer


@dataclass(frozen=True)
class ShardedTable:
    """Settings of nn.ShardedEmbedding, see there; `embedding: sharded` of a model stands for these.

    Attributes:
        ids: exact: `size` of EncodeFeatures is the rows of the table; hashed: it may be larger, up to 2**31 - 1, and
            values that share a row are told apart by `hashes` of them.
        optimizer: Of the rows that are met.
        learning_rate: Of the table alone; None is that of the training.
        weight_decay: L2 of the rows that are met; the decay of the training's optimizer does not reach a table.
        entry: {count_filter: 10} trains a row from the tenth time on, {probability: 0.1} by chance.
    """

    ids: Literal["exact", "hashed"] = "exact"
    optimizer: TableOptimizer = "adam"
    learning_rate: float | None = None
    weight_decay: float = 0.0
    hashes: int = 1
    entry: CountFilterEntry | ProbabilityEntry | None = None

    def __post_init__(self) -> None:
        rates = (self.learning_rate or 0.0, self.weight_decay)
        if min(rates) < 0 or self.hashes < 1 or (self.hashes > 1 and self.ids == "exact"):
            raise ConfigError(
                "a setting of the table is out of range",
                where="model.embedding",
                received=f"learning_rate {self.learning_rate}, weight_decay {self.weight_decay}, ids {self.ids}, "
                f"hashes {self.hashes}",
                allowed="rates from 0, hashes from 1 and more where ids are hashed",
            )


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """What the models with tables of ids have in common.

    Attributes:
        embedding: dense: nn.Embedding. sharded, or the settings of a ShardedTable: nn.ShardedEmbedding, under the same
            names, so that either reads what the other wrote.
    """

    embedding: Literal["dense", "sharded"] | ShardedTable = "dense"

    @property
    def hashed_ids(self) -> bool:
        """Whether the model takes more ids than its tables have rows."""
        return isinstance(self.embedding, ShardedTable) and self.embedding.ids == "hashed"

    def make_table(self, rows: int, width: int, init: I.Initializer, padding: int | None = None) -> nn.Layer:
        """A layer of ids to vectors of `width`; `padding` has zeros and is not trained."""
        if self.embedding == "dense":
            return nn.Embedding(rows, width, padding, weight_attr=init)
        options = ShardedTable() if self.embedding == "sharded" else self.embedding
        return nn.ShardedEmbedding(
            rows,
            width,
            options.ids,
            padding_idx=padding,
            hashes=options.hashes,
            entry=options.entry,
            optimizer=options.optimizer,
            learning_rate=options.learning_rate,
            weight_decay=options.weight_decay,
            weight_attr=init,
        )
