"""HostEmbedding: a table in the memory of the host or in a file, for ids that devices have no room for. HotEmbedding:
the vectors of some ids, for an exported model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from framework.core.dtypes import autocast
from framework.core.errors import ConfigError
from framework.nn import initializer as I
from framework.nn.functional.tables import split_ids
from framework.nn.host_table import Eviction, HostTable
from framework.nn.layer import Layer, ParamAttr
from framework.nn.lookups import Table, current_lookups
from framework.nn.sharded_embedding import Combiner, ShardedEmbedding, combine, id_words
from framework.nn.table_options import Entry, TableOptimizer, TableOptions


class HostEmbedding(Layer):
    """Vectors for any 64-bit ids, whose rows are in the memory of the host, or in a file that is mapped into it.

    There is no number of rows: the table grows by the ids that are met and that `entry` admits, and
    `layer.store.shrink()` deletes. A step pulls the rows of the distinct ids of its batch with the state of their
    optimizer, and pushes them back when it has updated them; the next step waits for that, so that numbers are those of
    a table on a device.
    Trained as ShardedEmbedding is; see there for arguments that are not below. A Trainer's checkpoints have the rows in
    a file beside the model. One process has the whole table. A program with it runs here and is not exported: see
    HotEmbedding.

    Args:
        eviction: Scores of rows, by which `entry=ShowClickEntry(…)` trains them and `store.shrink()` deletes them.
        scale: First values are uniform within ± scale; they follow from the id and the seed.
        path: A file for the rows; None: memory.
        prefetch: The name of an array of ids of a Trainer's batches, whose rows are read from the file while the step
            before is computed.
    """

    def __init__(
        self,
        features: int,
        *,
        padding_idx: int | None = None,
        combiner: Combiner | None = None,
        wide_ids: bool = False,
        entry: Entry | None = None,
        eviction: Eviction | None = None,
        optimizer: TableOptimizer = "rowwise_adagrad",
        learning_rate: float | None = None,
        epsilon: float | None = None,
        weight_decay: float = 0.0,
        initial_accumulator: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        scale: float = 0.01,
        path: str | Path | None = None,
        seed: int = 0,
        prefetch: str | None = None,
    ) -> None:
        super().__init__()
        self.features, self.padding_idx = features, padding_idx
        self.combiner: Combiner | None = combiner
        self.wide_ids, self.prefetch = wide_ids, prefetch
        self.table_options = TableOptions(
            optimizer,
            learning_rate,
            epsilon,
            weight_decay,
            initial_accumulator,
            betas,
            entry,
        )
        extras = {"sgd": 0, "rowwise_adagrad": 1, "adagrad": features, "adam": 2 * features}[optimizer]
        self.store = HostTable(
            features,
            extras,
            fill=0.0 if optimizer == "adam" else initial_accumulator,
            scale=scale,
            entry=entry,
            eviction=eviction,
            path=path,
            seed=seed,
        )
        # Updates that were done: a step reads it and leaves the next one, and so waits for the step before.
        self.version = Table((1, features), "float32", ParamAttr(), I.Constant(0.0))

    def forward(
        self,
        x: ArrayLike,
        weights: ArrayLike | None = None,
        show: ArrayLike | None = None,
        click: ArrayLike | None = None,
    ) -> jax.Array:
        """The vectors of ids x [...], [..., features]; with a combiner [..., n] gives [..., features].

        Args:
            weights: Of each id, for a combiner.
            show, click: For the scores of rows: of each id, or of each sample (all axes but the last); 1 and 0.
        """
        low, high = id_words(x, self.wide_ids)
        shape = low.shape
        low, high = low.reshape(-1), high.reshape(-1)
        valid = jnp.zeros(low.shape, jnp.int32)
        if self.padding_idx is not None:
            words = (jnp.uint32(int(word)) for word in split_ids(np.array(self.padding_idx)))
            valid = jnp.where((low == next(words)) & (high == next(words)), -1, 0)
        rows = (valid, low, high, self._per_id(show, 1.0, shape), self._per_id(click, 0.0, shape))
        vectors = self._look_up(rows).reshape(*shape, self.features)
        return (
            vectors
            if self.combiner is None
            else combine(self.combiner, vectors, valid.reshape(shape) >= 0, weights)
        )

    @staticmethod
    def _per_id(values: ArrayLike | None, otherwise: float, shape: tuple[int, ...]) -> jax.Array:
        array = jnp.asarray(otherwise if values is None else values, jnp.float32)
        if 0 < array.ndim < len(shape):
            array = array[..., None]
        return jnp.broadcast_to(array, shape).reshape(-1)

    def _look_up(self, rows: tuple[jax.Array, ...]) -> jax.Array:
        version, here = self._parameters["version"].value, current_lookups()
        if isinstance(version, Tracer) or any(isinstance(one, Tracer) for one in rows):
            pulled, index = pull_rows(self.store, version, rows)
        else:
            pulled, index = self.store.pull_words(version, *rows[:3])
        vectors = jnp.where((index >= 0)[:, None], jnp.asarray(pulled)[index, : self.features], 0)
        if here is not None:
            vectors = here.attach(self, rows, vectors)
        policy = autocast()
        return vectors if policy is None else policy.parameter(vectors)

    def extra_repr(self) -> str:
        return f"{len(self.store)} rows, {self.features}, {self.table_options.optimizer}"


def pull_rows(
    store: HostTable, version: jax.Array, rows: tuple[jax.Array, ...]
) -> tuple[jax.Array, jax.Array]:
    """`HostTable.pull_words` in a program."""
    count = len(rows[0])
    shapes = (
        jax.ShapeDtypeStruct((count, store.columns), jnp.float32),
        jax.ShapeDtypeStruct((count,), jnp.int32),
    )
    return jax.pure_callback(store.pull_words, shapes, version, *rows[:3])


class HotEmbedding(Layer):
    """The vectors of some ids, int32 or two words each; all others have one vector, the last row of weight.

    What a model is exported with: `HotEmbedding.of(layer, ids)` copies the rows of these ids from a ShardedEmbedding or
    a HostEmbedding, whose place it can take (`model.embed = nn.HotEmbedding.of(model.embed, ids)`).
    """

    def __init__(
        self,
        ids: np.ndarray,
        vectors: np.ndarray,
        other: np.ndarray | None = None,
        padding_idx: int | None = None,
        combiner: Combiner | None = None,
        wide_ids: bool = False,
    ) -> None:
        """Args: ids, vectors: [N], [N, features]. other: The vector of all other ids [features]; zeros."""
        super().__init__()
        ids = np.asarray(ids, np.int64)
        if len(np.unique(ids)) != len(ids) or len(ids) == 0 or len(ids) != len(vectors):
            raise ConfigError(
                "ids and vectors belong together",
                where="HotEmbedding",
                received=f"{len(ids)} ids, {len(np.unique(ids))} of them distinct, {len(vectors)} vectors",
                allowed="one vector for each id, no id twice",
            )
        self.padding_idx, self.wide_ids = padding_idx, wide_ids
        self.combiner: Combiner | None = combiner
        order = np.argsort(ids.astype(np.uint64))
        other = np.zeros(vectors.shape[1], np.float32) if other is None else other
        table = np.concatenate([vectors[order], other[None]]).astype(np.float32)
        self.register_buffer("keys", split_ids(ids[order]))
        self.weight = self.create_parameter(table.shape, I.Assign(table))

    @staticmethod
    def of(
        layer: ShardedEmbedding | HostEmbedding, ids: np.ndarray, other: np.ndarray | None = None
    ) -> HotEmbedding:
        """The rows of these ids, such as `layer.store.hot_ids(10_000)`; without `other` the mean of their vectors."""
        ids = np.asarray(ids, np.int64)
        if isinstance(layer, HostEmbedding):
            vectors = layer.store.pull(ids)[:, : layer.features]
        else:
            table = np.asarray(layer._parameters["weight"].value, np.float32)
            vectors = table[layer.row_numbers(ids)].sum(0)
        if other is None:
            other = vectors.mean(0)
        return HotEmbedding(ids, vectors, other, layer.padding_idx, layer.combiner, layer.wide_ids)

    def forward(self, x: ArrayLike, weights: ArrayLike | None = None) -> jax.Array:
        """As of the layer whose rows it has."""
        low, high = id_words(x, self.wide_ids)
        keys, last = self.keys, len(self.keys)
        row, step = jnp.zeros(low.shape, jnp.int32), 1 << (last.bit_length() - 1)
        while (
            step
        ):  # the number of keys up to each id, by bisection: ids are sorted as unsigned 64-bit numbers
            probe = row + step
            key = keys[jnp.minimum(probe, last) - 1]
            below = (key[..., 1] < high) | ((key[..., 1] == high) & (key[..., 0] <= low))
            row = jnp.where((probe <= last) & below, probe, row)
            step >>= 1
        key = keys[jnp.maximum(row, 1) - 1]
        same = (row > 0) & (key[..., 0] == low) & (key[..., 1] == high)
        vectors = self.weight[jnp.where(same, row - 1, last)]
        present = jnp.ones(low.shape, bool)
        if self.padding_idx is not None:
            words = split_ids(np.array(self.padding_idx))
            present = (low != words[0]) | (high != words[1])
            vectors = jnp.where(present[..., None], vectors, 0)
        return vectors if self.combiner is None else combine(self.combiner, vectors, present, weights)


def host_tables(model: Layer) -> Mapping[str, HostEmbedding]:
    """The layers of `model` with tables on the host, by name."""
    return {
        name: layer
        for name, layer in model.named_sublayers(include_self=True)
        if isinstance(layer, HostEmbedding)
    }
