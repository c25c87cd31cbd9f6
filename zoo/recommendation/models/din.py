"""DIN: what a user took before, weighted by how it fits the item that is shown.

Paper: Zhou et al. 2018, https://arxiv.org/abs/1706.06978
Reference: PaddleRec models/rank/din/net.py
Differs: in the paper, and here, the weights of the history are not normalised, units have PReLU, and history and item
    share tables. With `paddlerec` weights are a softmax of the scores by 1 / sqrt(width), units are sigmoids, and three
    pairs of tables are apart, as in upstream's code. There two perceptrons have the same names, so that the one of the
    attention is neither trained nor saved: here it is `attention`, and a rec.pdparams lacks it
    (`pretrained: {partial: true}`).
Weights: `state_dict()` has the names of PaddleRec's rec.pdparams, and `attention`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError
from framework.nn import functional as F
from framework.nn import initializer as I
from zoo.contracts import Contract
from zoo.recommendation.contracts import Features
from zoo.recommendation.tables import TableConfig

_HIDDEN = (80, 40)


@dataclass(frozen=True)
class DINConfig(TableConfig):
    """Rows and widths of the tables of items and of categories (`tables` of EncodeFeatures)."""

    item_count: int = 63_001
    cat_count: int = 801
    item_emb_size: int = 64
    cat_emb_size: int = 64
    paddlerec: bool = False

    def __post_init__(self) -> None:
        if min(self.item_count, self.cat_count, self.item_emb_size, self.cat_emb_size) < 1:
            raise ConfigError(
                "a size of the network is out of range",
                where="DIN",
                received=f"{self.item_count}, {self.cat_count}, {self.item_emb_size}, {self.cat_emb_size}",
                allowed="1 or more",
            )


def add_units(layer: nn.Layer, width: int, sigmoid: bool) -> None:
    """linear_0 to linear_2 from `width` to one number, and PReLUs between them unless they are sigmoids."""
    sizes = (width, *_HIDDEN, 1)
    for number, (before, after) in enumerate(itertools.pairwise(sizes)):
        setattr(layer, f"linear_{number}", nn.Linear(before, after))
        if not sigmoid and number < len(_HIDDEN):
            setattr(layer, f"act_{number}", nn.PReLU())


def run_units(layer: nn.Layer, x: jax.Array, sigmoid: bool) -> jax.Array:
    """[..., width] -> [...]."""
    for number in range(len(_HIDDEN)):
        x = getattr(layer, f"linear_{number}")(x)
        x = F.sigmoid(x) if sigmoid else getattr(layer, f"act_{number}")(x)
    return getattr(layer, f"linear_{len(_HIDDEN)}")(x)[..., 0]


class Attention(nn.Layer):
    """The score of each item of the history, [N, T, 4 D] -> [N, T]."""

    def __init__(self, width: int, sigmoid: bool) -> None:
        super().__init__()
        self.sigmoid = sigmoid
        add_units(self, width, sigmoid)

    def forward(self, pairs: jax.Array) -> jax.Array:
        return run_units(self, pairs, self.sigmoid)


@register("model", config=DINConfig)
class DIN(nn.Model[DINConfig]):
    """A Ranker. Sparse fields [N, 4, T]: items and categories of the history, then the item and its category, of which
    the first value counts. Padding of the history is row 0."""

    contract = Contract(tested_in=("tests/golden/test_recommendation.py",))

    def __init__(self, config: DINConfig) -> None:
        super().__init__(config)
        names = ("hist", "target", "target_item_seq") if config.paddlerec else ("hist",)
        for name in names:
            stem = "target_{}_seq" if name == "target_item_seq" else name + "_{}"
            item = config.make_table(config.item_count, config.item_emb_size, I.XavierUniform())
            cat = config.make_table(config.cat_count, config.cat_emb_size, I.XavierUniform())
            setattr(self, stem.format("item") + "_emb_attr", item)
            setattr(self, stem.format("cat") + "_emb_attr", cat)
        self.item_b_attr = config.make_table(config.item_count, 1, I.Constant(0.0))
        width = config.item_emb_size + config.cat_emb_size
        self.attention = Attention(4 * width, config.paddlerec)
        self.linearCon = nn.Linear(width, width)
        add_units(self, 2 * width, config.paddlerec)

    def _vectors(self, name: str, items: jax.Array, cats: jax.Array) -> jax.Array:
        name = name if self.config.paddlerec else "hist_{}"
        item, cat = (getattr(self, name.format(kind) + "_emb_attr") for kind in ("item", "cat"))
        return jnp.concatenate([item(items), cat(cats)], axis=-1)

    def forward(self, features: Features) -> jax.Array:
        items, cats = features.sparse[:, 0], features.sparse[:, 1]
        item, cat = features.sparse[:, 2, 0], features.sparse[:, 3, 0]
        history = self._vectors("hist_{}", items, cats)  # [N, T, D]
        target = self._vectors("target_{}", item, cat)
        query = self._vectors("target_{}_seq", item, cat)[:, None] + jnp.zeros_like(history)
        pairs = jnp.concatenate([history, query, history - query, history * query], axis=-1)
        scores, padding = self.attention(pairs), items == 0
        if self.config.paddlerec:
            scale = history.shape[-1] ** -0.5
            weights = F.softmax(jnp.where(padding, scores - 1e9, scores) * scale)
        else:
            weights = jnp.where(padding, 0.0, scores)
        x = self.linearCon((weights[..., None] * history).sum(axis=1))
        logits = run_units(self, jnp.concatenate([x, target], axis=1), self.config.paddlerec)
        return logits + self.item_b_attr(item)[:, 0]
