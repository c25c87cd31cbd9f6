"""How training sees lookups in large tables: gradients with respect to the rows that were looked up, never the table.

A lookup adds an array of zeros to its rows while `lookups` is open; the gradient with respect to these zeros is that
of the rows. Their shapes come from a first trace of the model, in which nothing is computed.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from framework.core.errors import ConfigError
from framework.nn.functional.tables import Rows
from framework.nn.layer import Layer, Parameter
from framework.nn.recompute import is_recomputed

Taps = dict[str, list[jax.Array]]
"""Zeros [M, features] for each lookup in each table."""


class Table(Parameter):
    """A parameter [rows, features] that is trained by the rows of its lookups: optimizers have it apart."""

    __slots__ = ()


class RowGradients(NamedTuple):
    """Gradients of a table: `values` [M, features] of `rows`, which may repeat; -1 is none."""

    rows: Rows
    values: jax.Array


class Lookups:
    """The lookups of one call of a model."""

    def __init__(self, model: Layer, taps: Taps | None, mesh: Mesh | None) -> None:
        self.names = {id(layer): name for name, layer in table_layers(model).items()}
        self.taps, self.mesh = taps, mesh
        self.rows: dict[str, list[Rows]] = {}

    def attach(self, layer: Layer, rows: Rows, vectors: jax.Array) -> jax.Array:
        """Note a lookup; the vectors, through which its gradient is seen."""
        name = self.names.get(id(layer))
        if name is None:
            return vectors
        if is_recomputed():
            raise ConfigError(
                "a table is looked up in a block that is recomputed",
                where=name,
                received="train.recompute with a pattern found in its name, or nn.recompute around it",
                allowed="lookups outside of such blocks: they cost next to nothing",
            )
        rows_so_far = self.rows.setdefault(name, [])
        rows_so_far.append(rows)
        vectors = jax.lax.stop_gradient(vectors)
        return vectors if self.taps is None else vectors + self.taps[name][len(rows_so_far) - 1]


_lookups: contextvars.ContextVar[Lookups | None] = contextvars.ContextVar("oar_lookups", default=None)


def current_lookups() -> Lookups | None:
    """Those that are noted here."""
    return _lookups.get()


@contextlib.contextmanager
def lookups(model: Layer, taps: Taps | None = None, mesh: Mesh | None = None) -> Iterator[Lookups]:
    """Note the lookups in tables of `model` inside the block.

    Args:
        taps: As `zero_taps` makes them; None in the trace that learns their shapes, and where nothing is
            differentiated.
        mesh: Over which the tables are dealt out.
    """
    noted = Lookups(model, taps, mesh)
    token = _lookups.set(noted)
    try:
        yield noted
    finally:
        _lookups.reset(token)


def table_layers(model: Layer) -> dict[str, Layer]:
    """The layers that have tables, by the dotted names of these."""
    return {
        f"{path}.{name}" if path else name: layer
        for path, layer in model.named_sublayers(include_self=True)
        for name, parameter in layer._parameters.items()
        if isinstance(parameter, Table)
    }


def zero_taps(rows: Callable[[], dict[str, list[Rows]]], params: Mapping[str, jax.Array]) -> Taps:
    """Zeros for all lookups of a call; `rows` traces it and returns what `lookups` noted."""
    shapes = jax.eval_shape(rows)
    return {
        name: [jnp.zeros((one[0].shape[0], params[name].shape[-1]), jnp.float32) for one in calls]
        for name, calls in shapes.items()
    }


def row_gradients(rows: Mapping[str, list[Rows]], taps: Taps) -> dict[str, RowGradients]:
    """The gradients of each table, of all its lookups one after the other."""
    return {
        name: RowGradients(
            tuple(jnp.concatenate(words) for words in zip(*calls)), jnp.concatenate(taps[name])
        )
        for name, calls in rows.items()
    }


def skip_rows(grads: RowGradients, skip: jax.Array) -> RowGradients:
    """No rows at all where `skip`, bool [], is true."""
    first, *others = grads.rows
    return RowGradients((jnp.where(skip, -1, first), *others), grads.values)
