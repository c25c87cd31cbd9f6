"""Layers of experts: a token is computed by the few of many feed-forward networks that a router chooses for it.

Papers: Shazeer et al. 2017, https://arxiv.org/abs/1701.06538; GShard, https://arxiv.org/abs/2006.16668; Switch
    Transformer, https://arxiv.org/abs/2101.03961 (the loss that balances the load, equation 4); Mixtral,
    https://arxiv.org/abs/2401.04088 (weights of the selected experts that sum to one)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn import initializer as I
from framework.nn.common import Linear
from framework.nn.layer import AttrLike, Layer
from framework.nn.mesh_scope import current_mesh

_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "tanh": F.tanh}


@dataclass(frozen=True)
class _EachExpert(I.Initializer):
    """`inner` for every expert of [experts, in, out]."""

    inner: I.Initializer

    def __call__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return np.stack([self.inner(rng, shape[1:]) for _ in range(shape[0])])

    def blocks(self, rng: np.random.Generator, shape: tuple[int, ...], numbers: int) -> Iterator[np.ndarray]:
        for _ in range(shape[0]):
            yield self.inner(rng, shape[1:])[None]


class Dispatch(NamedTuple):
    """Where the tokens of a group lie among those of the experts."""

    slot: jax.Array
    """[tokens, top_k] int32 in [0, experts * capacity); beyond the end where an expert has no place left"""
    capacity: int
    dropped: jax.Array
    """The share of choices without a place, float32 []"""


def dispatch(selected: jax.Array, num_experts: int, capacity: int) -> Dispatch:
    """Places for the selected experts [tokens, top_k]: first choices before second ones, then in the order of tokens. A
    choice of no expert, which is `num_experts`, takes none."""
    tokens, top_k = selected.shape
    choices = selected.T.reshape(-1)
    members = jax.nn.one_hot(choices, num_experts, dtype=jnp.int32)
    position = ((jnp.cumsum(members, 0) - 1) * members).sum(-1)
    full = position >= capacity
    slot = jnp.where(full, num_experts * capacity, choices * capacity + position)
    return Dispatch(slot.reshape(top_k, tokens).T, capacity, full.mean(dtype=jnp.float32))


def gather_tokens(x: jax.Array, to: Dispatch, num_experts: int) -> jax.Array:
    """[tokens, width] -> [experts, capacity, width], zeros where no token is."""
    rows = jnp.zeros((num_experts * to.capacity, x.shape[-1]), x.dtype)
    for choice in range(to.slot.shape[1]):
        rows = rows.at[to.slot[:, choice]].add(x, mode="drop")  # no place is taken twice
    return rows.reshape(num_experts, to.capacity, -1)


def scatter_tokens(y: jax.Array, to: Dispatch, weights: jax.Array) -> jax.Array:
    """[experts, capacity, width] -> [tokens, width], weighted; a token without a place gets zeros."""
    rows = jnp.take(y.reshape(-1, y.shape[-1]), to.slot, axis=0, mode="fill", fill_value=0)
    return (rows * weights[..., None].astype(rows.dtype)).sum(1)


class Experts(Layer):
    """`num_experts` feed-forward networks of one shape, with their weights [experts, in, out] stacked.

    down(activation(up(x))), or with `gated` down(activation(gate(x)) * up(x)).
    """

    def __init__(
        self,
        num_experts: int,
        width: int,
        hidden: int,
        activation: str = "gelu",
        gated: bool = False,
        capacity_factor: float | None = None,
        weight_attr: AttrLike = None,
    ) -> None:
        super().__init__()
        if activation not in _ACTIVATIONS:
            raise ShapeError(
                "unknown activation",
                where="Experts",
                received=repr(activation),
                allowed=", ".join(_ACTIVATIONS),
            )
        self.num_experts, self.capacity_factor = num_experts, capacity_factor
        self.activation: Callable[[jax.Array], jax.Array] = _ACTIVATIONS[activation]
        start = _EachExpert(I.XavierUniform())
        shapes = {"up_proj": (width, hidden), "down_proj": (hidden, width)}
        if gated:
            shapes = {"gate_proj": (width, hidden), **shapes}
        for name, shape in shapes.items():
            parameter = self.create_parameter((num_experts, *shape), weight_attr, default_initializer=start)
            setattr(self, name, parameter)
        self.gated = gated

    def weights(self) -> dict[str, jax.Array]:
        """By name, [experts, in, out] each."""
        names = ("gate_proj", "up_proj", "down_proj") if self.gated else ("up_proj", "down_proj")
        return {name: getattr(self, name) for name in names}

    def compute(self, weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        """[experts, tokens, width], by these weights of as many experts."""
        hidden = F.matmul(x, weights["up_proj"])
        if self.gated:
            hidden = self.activation(F.matmul(x, weights["gate_proj"])) * hidden
        else:
            hidden = self.activation(hidden)
        return F.matmul(hidden, weights["down_proj"])

    def _compute_few(self, x: jax.Array, selected: jax.Array, weights: jax.Array) -> jax.Array:
        """x [tokens, width] by `selected` [tokens, top_k] with `weights`: only the matrices of these experts are read,
        which pays where there are fewer choices than experts, as for one token at a time."""
        flat = selected.reshape(-1)
        matrices = {name: jnp.take(value, flat, 0, mode="clip") for name, value in self.weights().items()}
        y = self.compute(matrices, jnp.repeat(x, selected.shape[1], 0)[:, None])
        y = y.reshape(*selected.shape, -1) * weights[..., None].astype(y.dtype)
        return jnp.where((selected < self.num_experts)[..., None], y, 0).sum(
            1
        )  # num_experts: none was chosen

    def capacity(self, tokens: int, top_k: int) -> int:
        """How many of a group of tokens one expert takes: all that may come, where no `capacity_factor` is given."""
        if self.capacity_factor is None:
            return tokens
        return max(1, min(tokens, math.ceil(self.capacity_factor * tokens * top_k / self.num_experts)))

    def forward(self, x: jax.Array, selected: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
        """[N, T, width] from the experts `selected` [N, T, top_k] by their `weights`, and the share of choices that
        found no place, float32 []."""
        mesh = current_mesh()
        if mesh is not None and mesh.experts is not None:
            return mesh.experts(self, x, selected, weights)
        top_k = selected.shape[-1]
        flat = x.reshape(-1, x.shape[-1])
        if not self.training and len(flat) * top_k < self.num_experts:
            out = self._compute_few(flat, selected.reshape(-1, top_k), weights.reshape(-1, top_k))
            return out.reshape(x.shape), jnp.zeros((), jnp.float32)
        to = dispatch(selected.reshape(-1, top_k), self.num_experts, self.capacity(len(flat), top_k))
        y = self.compute(self.weights(), gather_tokens(flat, to, self.num_experts))
        out = scatter_tokens(y, to, weights.reshape(-1, top_k))
        return out.reshape(x.shape), to.dropped


class MoE(Layer):
    """A feed-forward layer of `num_experts`, of which a router chooses `top_k` for each token of [..., width].

    Args:
        hidden: The width inside an expert.
        gated: down(activation(gate(x)) * up(x)) in place of down(activation(up(x))).
        capacity_factor: An expert takes at most `capacity_factor * tokens * top_k / num_experts` of the tokens that a
            device has, and those beyond get zeros; None: it takes all, and each computes as many places as there are
            tokens.
        normalize: The weights of the selected experts sum to one.
        balance_weight: Of the loss that balances the load. In training it is in `auxiliary_loss` after each call; the
            Trainer adds it to the task's.

    `dropped` is the share of choices of the last call in training that found no place.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        num_experts: int,
        top_k: int = 2,
        activation: str = "gelu",
        gated: bool = False,
        capacity_factor: float | None = None,
        normalize: bool = True,
        balance_weight: float = 0.01,
        weight_attr: AttrLike = None,
    ) -> None:
        super().__init__()
        if not 1 <= top_k <= num_experts:
            raise ShapeError(
                "a token takes some of the experts",
                where="MoE",
                received=f"top_k {top_k} of {num_experts}",
                allowed=f"1 to {num_experts}",
            )
        if capacity_factor is not None and capacity_factor <= 0:
            raise ShapeError(
                "an expert takes tokens",
                where="MoE",
                received=f"capacity_factor {capacity_factor}",
                allowed="above 0; None for all",
            )
        self.num_experts, self.top_k = num_experts, top_k
        self.normalize, self.balance_weight = normalize, balance_weight
        self.gate = Linear(width, num_experts, bias_attr=False)
        self.experts = Experts(num_experts, width, hidden, activation, gated, capacity_factor, weight_attr)
        self.register_buffer("auxiliary_loss", jnp.zeros((), jnp.float32), persistable=False)
        self.register_buffer("dropped", jnp.zeros((), jnp.float32), persistable=False)

    def forward(self, x: jax.Array, mask: jax.Array | None = None) -> jax.Array:
        """`mask` [...] bool is False at tokens that only pad: they get zeros, take no
        places and do not count in `auxiliary_loss`."""
        # The router decides in float32: in 16 bits near experts change places.
        logits = x.astype(jnp.float32) @ self.gate.weight.astype(jnp.float32)
        probability = jax.nn.softmax(logits, -1)
        weights, selected = jax.lax.top_k(probability, self.top_k)
        if self.normalize:
            weights = weights / weights.sum(-1, keepdims=True)
        if mask is not None:
            selected = jnp.where(mask[..., None], selected, self.num_experts)
        tokens = x if x.ndim == 3 else x.reshape(x.shape[0], -1, x.shape[-1])
        grouped = (*tokens.shape[:2], self.top_k)
        out, dropped = self.experts(tokens, selected.reshape(grouped), weights.reshape(grouped))
        if self.training:
            self.auxiliary_loss = self.balance_weight * self._imbalance(probability, selected, mask)
            self.dropped = dropped
        return out.reshape(x.shape).astype(x.dtype)

    def _imbalance(self, probability: jax.Array, selected: jax.Array, mask: jax.Array | None) -> jax.Array:
        """experts * sum over experts of (share of choices) * (mean probability): 1 where the load is balanced.

        All choices count, also those that find no place.
        """
        choices = jax.nn.one_hot(selected, self.num_experts, dtype=jnp.float32).sum(-2) / self.top_k
        valid = jnp.ones(choices.shape[:-1]) if mask is None else mask.astype(jnp.float32)
        axes = tuple(range(valid.ndim))
        count = jnp.maximum(valid.sum(), 1.0)
        share, mean = ((a * valid[..., None]).sum(axes) / count for a in (choices, probability))
        return self.num_experts * (share * mean).sum()
