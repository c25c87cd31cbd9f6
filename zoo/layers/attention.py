"""Multi-head attention. What differs between upstream's classes is names, initial values and dropout; what computes
something else besides, such as a bias of positions, has its own class.

Source: Vaswani et al. 2017, section 3.2.2
"""

from __future__ import annotations

import jax

from framework import nn
from framework.nn import functional as F
from framework.nn.functional.attention import KeysValues
from zoo.layers.mlp import LinearMaker, narrow_linear


class AttentionBase(nn.Layer):
    """The linear layers of attention, and attention after them; `Attention` computes just that.

    `names` are those of the linear layers, the output's last. Before it stands one of queries, keys and values
    together, two of queries and of keys with values, or three. `dropout` leaves out weights in training.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        names: tuple[str, ...] = ("qkv", "proj"),
        linear: LinearMaker = narrow_linear,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads, self.names, self.dropout_p = heads, names, dropout
        self.shares = {2: (3, 1), 3: (1, 2, 1), 4: (1, 1, 1, 1)}[len(names)]
        for name, share in zip(names, self.shares):
            self.add_sublayer(name, linear(width, share * width))

    def project(self, x: jax.Array) -> list[jax.Array]:
        """Queries, keys and values of [N, T, width], each [N, T, heads, D]."""
        return self._split(x, slice(0, -1))

    def keys_values(self, x: jax.Array) -> KeysValues:
        """Keys and values of [N, T, width], where queries have a layer of their own."""
        keys, values = self._split(x, slice(1, -1))
        return keys, values

    def attend(
        self, x: jax.Array, memory: KeysValues | None, visible: jax.Array | None, causal: bool = False
    ) -> jax.Array:
        """[N, Q, width] after attention to keys and values, or to itself.

        `visible` broadcasts to [N, heads, Q, T]; with `causal` nothing is seen that stands behind a query.
        """
        if memory is None:
            query, key, value = self.project(x)
        else:
            (query,), (key, value) = self._split(x, slice(0, 1)), memory
        mixed = F.scaled_dot_product_attention(
            query, key, value, visible, self.dropout_p, causal, training=self.training
        )
        return getattr(self, self.names[-1])(mixed.reshape(x.shape))

    def _split(self, x: jax.Array, layers: slice) -> list[jax.Array]:
        n, t, width = x.shape
        heads = (self.heads, width // self.heads)
        split: list[jax.Array] = []
        for name, share in zip(self.names[layers], self.shares[layers]):
            y = getattr(self, name)(x)
            if share == 1:
                split.append(y.reshape(n, t, *heads))
            else:
                y = y.reshape(n, t, share, *heads)
                split += [y[:, :, i] for i in range(share)]
        return split


class Attention(AttentionBase):
    """Attention of [N, Q, width] over itself, or over keys and values that are computed apart: a memory's once for
    many queries. See `AttentionBase.attend`."""

    def forward(
        self,
        x: jax.Array,
        memory: KeysValues | None = None,
        visible: jax.Array | None = None,
        causal: bool = False,
    ) -> jax.Array:
        return self.attend(x, memory, visible, causal)
