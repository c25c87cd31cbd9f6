"""ShardedEmbedding: tables of rows for ids, divided among devices and trained by the rows that are met alone."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike, DTypeLike

from framework.core.dtypes import autocast
from framework.core.errors import ConfigError, InputError, ShapeError
from framework.nn.functional.tables import (
    BUCKETS,
    LARGE,
    Rows,
    exact_rows,
    hashed_rows,
    lookup_rows,
    split_ids,
)
from framework.nn.layer import AttrLike, Layer
from framework.nn.lookups import Table, current_lookups
from framework.nn.table_options import Entry, TableOptimizer, TableOptions

Combiner = Literal["sum", "mean", "sqrtn"]


class ShardedEmbedding(Layer):
    """Rows of weight [rows, features] for integer ids, as `nn.Embedding`, for tables that are large.

    Training never makes a gradient of the whole table. In a Trainer, and by `nn.value_and_grad` with
    `optimizer.step(layer, grads)`, gradients are those of the rows that a batch looked up, and `optimizer=` below
    updates these rows alone, in place. Over the devices of a Trainer's mesh rows are dealt out cyclically and exchanged
    (see framework/nn/functional/tables.py); checkpoints hold the table whole, in the order of its rows, as one of
    `nn.Embedding` of the same name. Everywhere else (jax.grad, export) it is a plain lookup.

    Only lookups are trained: a model that reads `layer.weight` itself (tied weights) gives it no gradient that way.

    Args:
        rows, features: The size of the table.
        ids: `exact`: an id is its row; one outside of [0, rows) gives zeros, and raises where the ids have values.
            `hashed`: any id, of 64 bits too and negative ones, to one of the rows by MurmurHash3.
        padding_idx: This id gives zeros and is not trained.
        combiner: Reduce the last axis of the ids, bags of ids that `padding_idx` fills up: `sum`, `mean`, or `sqrtn`,
            the sum over the root of their number (with weights: of the sum of their squares).
        hashes: Rows that are added for one id, by so many hashes: ids that share one row hardly share both.
        wide_ids: Ids come as two words, uint32 [..., 2], of `nn.split_ids`: jax has no 64-bit integers by default.
            NumPy arrays of 64 bits are taken as they are where the layer is called outside of a program.
        entry, optimizer, learning_rate, epsilon, weight_decay, initial_accumulator, betas, count_ids: See TableOptions.
        weight_attr: As of `nn.Embedding`.
        dtype: Of the table; bfloat16 halves it, but on CPUs, whose compiler copies the whole table in float32 at every
            update. Updates are computed in float32, and vectors come in float32.

    Raises:
        ConfigError: settings that do not go together.
        InputError: an exact id has no row.
    """

    def __init__(
        self,
        rows: int,
        features: int,
        ids: Literal["exact", "hashed"] = "exact",
        *,
        padding_idx: int | None = None,
        combiner: Combiner | None = None,
        hashes: int = 1,
        wide_ids: bool = False,
        entry: Entry | None = None,
        optimizer: TableOptimizer = "rowwise_adagrad",
        learning_rate: float | None = None,
        epsilon: float | None = None,
        weight_decay: float = 0.0,
        initial_accumulator: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        count_ids: bool = False,
        weight_attr: AttrLike = None,
        dtype: DTypeLike = "float32",
    ) -> None:
        super().__init__()
        self.rows, self.features, self.ids, self.padding_idx = rows, features, ids, padding_idx
        self.combiner: Combiner | None = combiner
        self.hashes, self.wide_ids = hashes, wide_ids
        self.table_options = TableOptions(
            optimizer,
            learning_rate,
            epsilon,
            weight_decay,
            initial_accumulator,
            betas,
            entry,
            count_ids,
        )
        self._check_settings()
        plain = self.create_parameter((rows, features), weight_attr, dtype)
        self.weight = Table(plain.shape, plain.dtype, plain.attr, plain.initializer)

    def _check_settings(self) -> None:
        def wrong(name: str, allowed: str, fix: str | None = None) -> ConfigError:
            return ConfigError(
                "wrong setting of a table",
                where=f"ShardedEmbedding({name}=…)",
                received=repr(getattr(self, name)),
                allowed=allowed,
                fix=fix,
            )

        if self.rows < 1:
            raise wrong("rows", "1 or more")
        if self.rows >= LARGE and self.rows % BUCKETS:
            raise wrong("rows", f"of 2**31 rows or more a multiple of {BUCKETS}")
        if self.rows >= LARGE and not self.wide_ids and self.ids == "exact":
            raise wrong("wide_ids", "True, for ids that 32 bits do not hold", "ids by nn.split_ids")
        if self.ids not in ("exact", "hashed"):
            raise wrong("ids", "'exact' or 'hashed'")
        if self.hashes < 1 or (self.hashes > 1 and self.ids == "exact"):
            raise wrong("hashes", "1, or more where ids='hashed'")
        if self.combiner not in (None, "sum", "mean", "sqrtn"):
            raise wrong("combiner", "None, 'sum', 'mean' or 'sqrtn'")
        if self.padding_idx is not None and self.ids == "exact" and not 0 <= self.padding_idx < self.rows:
            raise wrong("padding_idx", f"0 to {self.rows - 1}")

    def forward(self, x: ArrayLike, weights: ArrayLike | None = None) -> jax.Array:
        """The vectors of ids x [...], [..., features]; with a combiner [..., n] gives [..., features].

        Args:
            weights: Of each id, for a combiner; of the shape of the ids.
        """
        low, high = id_words(x, self.wide_ids)
        shape = low.shape
        rows = self._row_numbers(low.reshape(-1), high.reshape(-1))
        vectors = self._look_up(rows)
        if self.hashes > 1:
            vectors = vectors.reshape(self.hashes, -1, self.features).sum(0)
        vectors = vectors.reshape(*shape, self.features)
        if self.combiner is None:
            return vectors
        return combine(self.combiner, vectors, (rows[0][: low.size] >= 0).reshape(shape), weights)

    def _row_numbers(self, low: jax.Array, high: jax.Array) -> Rows:
        """The rows of ids, those of each hash one after the other; -1 where there is none."""
        if self.ids == "exact":
            rows = exact_rows(low, high, self.rows)
            if not isinstance(rows[0], Tracer):
                self._check_ids(low, high, rows[0])
        else:
            each = [hashed_rows(low, high, self.rows, seed) for seed in range(self.hashes)]
            rows = tuple(jnp.concatenate(words) for words in zip(*each))
        if self.padding_idx is not None:
            word, above = self.padding_idx & 0xFFFFFFFF, self.padding_idx >> 32 & 0xFFFFFFFF
            padding = (low == jnp.uint32(word)) & (high == jnp.uint32(above))
            rows = (jnp.where(jnp.tile(padding, self.hashes), -1, rows[0]), *rows[1:])
        return rows

    def _check_ids(self, low: jax.Array, high: jax.Array, row: jax.Array) -> None:
        outside = np.flatnonzero(np.asarray(row) < 0)
        if len(outside):
            words = np.asarray(low, np.uint64), np.asarray(high, np.uint64)
            ids = (words[0] | (words[1] << np.uint64(32))).astype(np.int64)
            raise InputError(
                "an id has no row in the table",
                where="ShardedEmbedding",
                received=", ".join(map(str, ids[outside[:5]].tolist())),
                allowed=f"0 to {self.rows - 1}",
                fix="ids='hashed' takes any id; else map what is unknown to an id of its own",
            )

    def _look_up(self, rows: Rows) -> jax.Array:
        # Not `self.weight`, of which low precision would make a copy.
        parameter, here = self._parameters["weight"], current_lookups()
        vectors = lookup_rows(parameter.value, rows, None if here is None else here.mesh)
        vectors = vectors.astype(jnp.float32) if vectors.dtype.itemsize < 4 else vectors
        if here is not None:
            vectors = here.attach(self, rows, vectors)
        policy = autocast()
        return vectors if policy is None else policy.parameter(vectors)

    def row_numbers(self, ids: np.ndarray) -> np.ndarray:
        """The rows of ids [M] in this table, int64 [hashes, M]; -1 where there is none."""
        rows = self._row_numbers(*id_words(np.asarray(ids, np.int64).reshape(-1), self.wide_ids))
        numbers = np.asarray(rows[0], np.int64)
        if len(rows) > 1:
            numbers = np.where(numbers < 0, -1, numbers * BUCKETS + np.asarray(rows[1], np.int64))
        return numbers.reshape(self.hashes, -1)

    def extra_repr(self) -> str:
        return f"{self.rows}, {self.features}, ids={self.ids!r}, {self.table_options.optimizer}"


def id_words(x: ArrayLike, wide: bool) -> tuple[jax.Array, jax.Array]:
    """The low and the high word of ids, uint32; `wide`: they come as two words but in NumPy arrays of 64 bits.

    Raises:
        ShapeError: they are no integers, or not two words.
    """
    if not isinstance(x, (jax.Array, np.ndarray)):
        x = np.asarray(x)
    kind = np.dtype(x.dtype)
    if not jnp.issubdtype(kind, jnp.integer):
        raise ShapeError("a table takes integers", received=str(kind), allowed="ids of an integer type")
    if wide and not (kind.itemsize == 8 and isinstance(x, np.ndarray)):
        if kind != np.uint32 or np.shape(x)[-1:] != (2,):
            raise ShapeError(
                "a table of wide ids takes two words for each",
                received=f"{kind} {list(np.shape(x))}",
                allowed="uint32 [..., 2], as nn.split_ids makes them",
            )
        words = jnp.asarray(x)
    elif isinstance(x, np.ndarray) and kind.itemsize == 8:
        words = jnp.asarray(split_ids(x))
    else:
        low = jnp.asarray(x)
        if kind.itemsize == 8:  # with 64-bit types enabled
            return low.astype(jnp.uint32), (low >> 32).astype(jnp.uint32)
        negative = low < 0
        return low.astype(jnp.uint32), jnp.where(negative, jnp.uint32(0xFFFFFFFF), jnp.uint32(0))
    return words[..., 0], words[..., 1]


def combine(
    combiner: Combiner, vectors: jax.Array, present: jax.Array, weights: ArrayLike | None
) -> jax.Array:
    """Reduce bags of vectors [..., n, features], of which `present` [..., n] count."""
    factor = present.astype(vectors.dtype)
    if weights is not None:
        factor = factor * jnp.asarray(weights, vectors.dtype)
        vectors = vectors * factor[..., None]
    total = vectors.sum(-2)
    if combiner == "sum":
        return total
    count = factor.sum(-1) if combiner == "mean" else jnp.sqrt(jnp.square(factor).sum(-1))
    return total / jnp.where(count == 0, 1, count)[..., None]
