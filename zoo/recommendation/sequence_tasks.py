"""The item that a user takes next: cross-entropy over all items, or BPR, and full ranking with seen items masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError, InputError
from framework.core.model_config import setting_of
from framework.core.rng import next_key
from framework.core.types import JSON
from framework.engine.task import Arrays, Batch, Losses, Metric, Task
from framework.metric.ranking import RANKING_SCORES, ranks_of
from zoo.recommendation.sample import RowSample


def check_items(model: nn.Layer, labels: tuple[str, ...]) -> None:
    """Raises: ConfigError, where the model has another number of items than the data."""
    count = setting_of(model, "num_items", int)
    if labels and count is not None and count != len(labels):
        raise ConfigError(
            "the model and the data have different numbers of items",
            where="model.num_items",
            received=count,
            allowed=len(labels),
            fix=f"-o model.num_items={len(labels)}",
        )


def pack_target(sample: RowSample, num_items: int, exclude_seen: bool) -> dict[str, np.ndarray]:
    """`target` and, as `seen` bool [V + 1], what is left out of the ranking. Raises: InputError."""
    if "target" not in sample.arrays:
        raise InputError(
            "the sample has no item to be ranked",
            where=sample.id,
            fix="data.eval.dataset.split: valid, or test",
        )
    target = np.asarray(sample.arrays["target"], np.int32)
    seen_rows = np.zeros(num_items + 1, bool)
    seen_rows[0] = True
    if exclude_seen:
        seen_rows[sample.arrays["history"]] = True
    seen_rows[target] = False  # an item that is taken again can be found again
    return {"target": target, "seen": seen_rows}


@register("task")
@dataclass(frozen=True)
class NextItem(Task[RowSample, nn.Layer]):
    """What follows each item of a sequence, by a SequenceModel.

    Attributes:
        num_items: Items without padding, as of the model.
        loss_name: softmax over all items; bce with one drawn negative a position (SASRec's paper); bpr, with it too;
            in_batch, a softmax over the item and one of each sequence of the batch, each less the logarithm of its
            `chance` (Yi et al. 2019, https://doi.org/10.1145/3298689.3346996), for more items than a softmax holds.
        masked: Share of items that are hidden and guessed in both directions (BERT4Rec) instead of the next one.
        topk: Numbers of items that scores are of; the first NDCG chooses the best checkpoint.
        exclude_seen: Whether items of the history are left out of the ranking.
    """

    num_items: int
    loss_name: Literal["softmax", "bce", "bpr", "in_batch"] = "softmax"
    masked: float = 0.0
    topk: tuple[int, ...] = (10, 20)
    exclude_seen: bool = True

    def __post_init__(self) -> None:
        if self.num_items < 1 or not self.topk or min(self.topk) < 1 or not 0 <= self.masked < 1:
            raise ConfigError(
                "a setting of the task is out of range",
                where="NextItem",
                received=f"num_items {self.num_items}, topk {list(self.topk)}, masked {self.masked}",
                allowed="numbers from 1, 0 <= masked < 1",
            )
        if self.masked and self.loss_name != "softmax":
            raise ConfigError(
                "masked items are guessed among all", received=self.loss_name, allowed="softmax"
            )

    def pack(self, sample: RowSample) -> dict[str, np.ndarray]:
        if "items" not in sample.arrays:
            raise InputError(
                "the history is not encoded", where=sample.id, fix="transforms: [{type: EncodeHistory}]"
            )
        if self.loss_name != "in_batch" or "target" in sample.arrays:
            return {"items": sample.arrays["items"]}
        if "chance" not in sample.arrays:
            raise InputError(
                "the sample does not say how frequent its items are",
                where=sample.id,
                fix="data.train.dataset: {type: Interactions, split: train}, or another loss_name",
            )
        return {name: sample.arrays[name] for name in ("items", "chance")}

    def pack_evaluated(self, sample: RowSample) -> dict[str, np.ndarray]:
        return {**self.pack(sample), **pack_target(sample, self.num_items, self.exclude_seen)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        items = batch["items"]
        if self.masked:
            return self._masked_loss(model, items)
        before, after = items[:, :-1], items[:, 1:]
        valid = ((before > 0) & (after > 0)).astype(jnp.float32)
        vectors, table = model(before), model.item_vectors()
        if self.loss_name == "softmax":
            losses = self._entropy(vectors, table, after)
        elif self.loss_name == "in_batch":
            losses = _in_batch_entropy(vectors, table, after, valid, batch["chance"][:, 1:])
        else:
            negative = jax.random.randint(next_key(), after.shape, 1, self.num_items + 1)
            good, bad = ((vectors * table[rows]).sum(axis=-1) for rows in (after, negative))
            losses = (
                jax.nn.softplus(bad - good)
                if self.loss_name == "bpr"
                else jax.nn.softplus(-good) + jax.nn.softplus(bad)
            )
        return _mean_of(losses, valid)

    def _entropy(self, vectors: jax.Array, table: jax.Array, rows: jax.Array) -> jax.Array:
        """Of each position, over all items but padding."""
        logits = vectors @ table[: self.num_items + 1].T
        logits = logits.at[..., 0].set(-1e9).astype(jnp.float32)
        right = jnp.take_along_axis(logits, rows[..., None], axis=-1)[..., 0]
        return jax.nn.logsumexp(logits, axis=-1) - right

    def _masked_loss(self, model: nn.Layer, items: jax.Array) -> Losses:
        """Hidden items, and the last one always: it stands where the next one is asked for."""
        hidden = jax.random.bernoulli(next_key(), self.masked, items.shape) & (items > 0)
        hidden = hidden.at[:, -1].set(items[:, -1] > 0)
        vectors = model(jnp.where(hidden, self.num_items + 1, items))
        losses = self._entropy(vectors, model.item_vectors(), items)
        return _mean_of(losses, hidden.astype(jnp.float32))

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"scores": logits [N, V + 1] of what comes next, where row 0 is padding; "vector": [N, D] of the user}."""
        items = inputs["items"]
        if self.masked:  # the mask's row behind the items asks for the next one
            mask = jnp.full((items.shape[0], 1), self.num_items + 1, items.dtype)
            items = jnp.concatenate([items[:, 1:], mask], axis=1)
        vector = model(items)[:, -1].astype(jnp.float32)
        return {"scores": vector @ model.item_vectors()[: self.num_items + 1].T, "vector": vector}

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {"scores": {"meaning": "score of each item; row 0 is padding, row i + 1 label i"}}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"ranking": RankingScores(self.topk)}

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        check_items(model, labels)
        if labels and self.num_items != len(labels):
            raise ConfigError(
                "the task and the data have different numbers of items",
                where="task.num_items",
                received=self.num_items,
                allowed=len(labels),
                fix=f"-o task.num_items={len(labels)}",
            )


def _mean_of(losses: jax.Array, valid: jax.Array) -> Losses:
    """The mean of the losses [N, T] where `valid` [N, T] is 1."""
    count = valid.sum()
    return Losses((losses * valid).sum() / jnp.maximum(count, 1), weight=count)


def _in_batch_entropy(
    vectors: jax.Array, table: jax.Array, rows: jax.Array, valid: jax.Array, chance: jax.Array
) -> jax.Array:
    """Of each position [N, T], over its item and an item of a position of each sequence of the batch that is drawn.

    Candidates that are the position's own item are left out: they would be wrong negatives.
    """
    column = jax.random.categorical(next_key(), jnp.where(valid > 0, 0.0, -1e9))[:, None]
    drawn, has_item = (jnp.take_along_axis(one, column, axis=1)[:, 0] for one in (rows, valid))
    penalty = jnp.log(jnp.maximum(chance, 1e-12))
    logits = vectors @ table[drawn].T - jnp.take_along_axis(penalty, column, axis=1)[:, 0]
    positive = (vectors * table[rows]).sum(axis=-1) - penalty
    left_out = (rows[..., None] == drawn) | (has_item == 0)
    logits = jnp.concatenate([positive[..., None], jnp.where(left_out, -1e9, logits)], axis=-1)
    return jax.nn.logsumexp(logits.astype(jnp.float32), axis=-1) - positive


class RankingScores:
    """NDCG, hit rate and reciprocal rank of one target among all items; ties are averaged."""

    higher_is_better = True

    def __init__(self, topk: tuple[int, ...]) -> None:
        self.topk = topk
        self.ranks: list[float] = []

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        scores = np.where(batch["seen"], -np.inf, outputs["scores"])
        for row, target in zip(scores, batch["target"].tolist()):
            self.ranks.append(float(ranks_of(row, np.array([target]))[0]))

    def result(self) -> dict[str, float]:
        ranks = [np.array([rank]) for rank in self.ranks]
        names = ("ndcg", "hr", "mrr")
        return {
            f"{name}@{k}": float(np.mean([RANKING_SCORES[name](one, k) for one in ranks]))
            for k in self.topk
            for name in names
        }
