"""What the tasks ask of their models. What a model takes and gives is written at the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from framework.core.types import JSON

if TYPE_CHECKING:  # what runs artifacts loads no layers
    import jax

    from framework.nn.layer import Layer
    from ocr.layers.mbart_decoder import FormulaHead
    from ocr.layers.sla_head import Structure
    from ocr.models.table_grid_net import GridLogits, Splits, TableGridNetConfig


@runtime_checkable
class DescribesStage(Protocol):
    """A task whose artifact runs as a stage of a pipeline, or of a document reader."""

    def describe_stage(self, buckets: tuple[int, ...] | None) -> Mapping[str, JSON]:
        """What the artifact's config holds: the `kind` of the stage, its `options` and more. `buckets` are those of the
        evaluation."""
        ...


@runtime_checkable
class ReadsColumns(Protocol):
    """A recogniser that gives the best class of each column and its probability without all logits in memory."""

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array]: ...


@runtime_checkable
class LearnsSymbols(Protocol):
    """A recogniser that is not trained by CTC, such as one that has a place for each symbol.

    Its config's `max_text_length` is the task's.
    """

    def symbol_loss(self, x: jax.Array, target: jax.Array, length: jax.Array, counts: jax.Array) -> jax.Array:
        """The loss [] of normalised images x and their texts: the mean over their symbols and their ends.

        Args:
            target: [N, max_text_length] int32, symbols and then 0.
            length: [N] int32, the symbols of each text.
            counts: [N] float32, 0 for texts that do not count.
        """
        ...


@runtime_checkable
class ModelPair(Protocol):
    """Two models that are trained side by side, as Distillation."""

    @property
    def pair(self) -> tuple[Layer, Layer]: ...


class StructureNetwork(Protocol):
    """A network that says the tokens and boxes of a table, as SLANet and TableMaster."""

    def __call__(self, x: jax.Array, tokens: jax.Array | None = None) -> Structure: ...

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]: ...


class GridNetwork(Protocol):
    """A network that finds rows, columns and merges, as TableGridNet."""

    @property
    def config(self) -> TableGridNetConfig: ...

    def __call__(self, x: jax.Array) -> GridLogits: ...

    def split(self, x: jax.Array) -> Splits: ...

    def join(
        self, features: jax.Array, between_rows: jax.Array, between_columns: jax.Array
    ) -> tuple[jax.Array, jax.Array]: ...


class FormulaNetwork(Protocol):
    """A network that says the tokens of a formula, as PPFormulaNet."""

    head: FormulaHead

    def __call__(self, x: jax.Array, tokens: jax.Array | None = None) -> jax.Array: ...

    def read(self, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]: ...
