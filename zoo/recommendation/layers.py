"""Layers that models of clicks share: tables of vectors, rows of Linear layers, and the second order of FM."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.core.errors import ConfigError
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.recommendation.contracts import Features
from zoo.recommendation.tables import TableConfig


@dataclass(frozen=True)
class ClickConfig(TableConfig):
    """What the models of clicks have in common; the names are those of PaddleRec's config.yaml.

    Attributes:
        sparse_feature_number: Rows of the one table of all fields.
        sparse_feature_dim: Width of its vectors.
        dense_input_dim: Numbers a row.
        num_field: Sparse fields a row (`sparse_inputs_slots` less the label).
        init_std: Deviation of the table's first values; None is .1 / sqrt(width), as PaddleRec has it.
        paddlerec: The network of PaddleRec's code where it differs from the paper, so that its rec.pdparams loads.
    """

    sparse_feature_number: int = 1_000_001
    sparse_feature_dim: int = 9
    dense_input_dim: int = 13
    num_field: int = 26
    init_std: float | None = None
    paddlerec: bool = False

    def __post_init__(self) -> None:
        sizes = (self.sparse_feature_number, self.sparse_feature_dim, self.num_field)
        if min(sizes) < 1 or self.dense_input_dim < 0 or (self.init_std is not None and self.init_std <= 0):
            raise ConfigError(
                "a size of the network is out of range",
                where=type(self).__name__.removesuffix("Config"),
                received=f"sparse_feature_number, sparse_feature_dim, num_field {sizes}, "
                f"dense_input_dim {self.dense_input_dim}, init_std {self.init_std}",
                allowed="sizes from 1, dense_input_dim from 0, init_std above 0",
            )

    @property
    def fields(self) -> int:
        """Sparse fields and numbers."""
        return self.num_field + self.dense_input_dim

    @property
    def table_std(self) -> float:
        return self.init_std or 0.1 / math.sqrt(self.sparse_feature_dim)


def table(config: ClickConfig, width: int | None = None, padded: bool = True) -> nn.Layer:
    """The table of all fields; row 0 is zeros and stays so, unless PaddleRec's code trains it."""
    padding = 0 if padded or not config.paddlerec else None
    init = I.TruncatedNormal(std=config.table_std)
    return config.make_table(config.sparse_feature_number, width or config.sparse_feature_dim, init, padding)


def lookup(embedding: nn.Layer, features: Features) -> jax.Array:
    """The vectors of a batch, [N, F, D]; those of a field with several values are added, weights multiplied."""
    vectors = embedding(features.sparse)
    vectors = vectors.sum(axis=2) if vectors.ndim == 4 else vectors
    return vectors if features.weight is None else vectors * features.weight[..., None]


def add_linears(
    layer: nn.Layer, sizes: Sequence[int], name: str = "linear", first: int = 0, gain: float = 1.0
) -> None:
    """Sublayers <name>_<first>, … of these widths; weights are N(0, gain / sqrt(fan_in))."""
    for number, (width_in, width_out) in enumerate(itertools.pairwise(sizes), start=first):
        init = I.Normal(std=gain / math.sqrt(width_in))
        setattr(layer, f"{name}_{number}", nn.Linear(width_in, width_out, weight_attr=init))


def run_linears(
    layer: nn.Layer,
    x: jax.Array,
    count: int,
    name: str = "linear",
    first: int = 0,
    activate_last: bool = False,
) -> jax.Array:
    """`count` sublayers of `add_linears` with ReLU between them."""
    for number in range(count):
        x = getattr(layer, f"{name}_{first + number}")(x)
        x = F.relu(x) if activate_last or number < count - 1 else x
    return x


class DNN(nn.Layer):
    """linear_0, …: `sizes` wide with ReLU between them, the last one without."""

    def __init__(self, sizes: Sequence[int], gain: float = 1.0) -> None:
        super().__init__()
        self.count = len(sizes) - 1
        add_linears(self, sizes, gain=gain)

    def forward(self, x: jax.Array) -> jax.Array:
        return run_linears(self, x, self.count)


class FirstOrder(nn.Layer):
    """The weight of each id and number, and their vectors: what FM, DeepFM and xDeepFM begin with.

    Args:
        width: Of the vectors.
        padded: Whether PaddleRec's code keeps row 0 at zeros.
        dense_value: First value of the weights and vectors of numbers; None draws them as the table.
    """

    def __init__(self, config: ClickConfig, width: int, padded: bool, dense_value: float | None) -> None:
        super().__init__()
        self.embedding_one = table(config, 1, padded)
        self.embedding = table(config, width, padded)
        self.has_dense = config.dense_input_dim > 0
        if self.has_dense:
            init = I.TruncatedNormal(std=config.table_std) if dense_value is None else I.Constant(dense_value)
            self.dense_w_one = self.create_parameter((config.dense_input_dim,), init)
            self.dense_w = self.create_parameter((1, config.dense_input_dim, width), init)

    def forward(self, features: Features) -> tuple[jax.Array, jax.Array]:
        """(first order [N], vectors [N, F + D, width])."""
        first = lookup(self.embedding_one, features).sum(axis=(1, 2))
        vectors = lookup(self.embedding, features)
        if self.has_dense:
            first = first + (features.dense * self.dense_w_one).sum(axis=1)
            vectors = jnp.concatenate([vectors, features.dense[..., None] * self.dense_w], axis=1)
        return first, vectors


def second_order(vectors: jax.Array) -> jax.Array:
    """The sum of the products of all pairs of vectors [N, F, D] -> [N]. Source: Rendle 2010, lemma 3.1."""
    return 0.5 * (jnp.square(vectors.sum(axis=1)) - jnp.square(vectors).sum(axis=1)).sum(axis=1)
