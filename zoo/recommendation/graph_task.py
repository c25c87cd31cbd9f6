"""What users take who are rows of a table: Bayesian personalised ranking of pairs, and full ranking of all items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError, InputError
from framework.core.model_config import setting_of
from framework.core.rng import next_key
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Metric, Task
from zoo.recommendation.data.interactions import Interactions
from zoo.recommendation.sample import RowSample
from zoo.recommendation.sequence_tasks import RankingScores, check_items, pack_target

_DRAWS = 8  # items that are drawn for one that the user did not take


@register("task")
@dataclass(frozen=True)
class CollaborativeFiltering(Task[RowSample, nn.Layer]):
    """Items of users by a GraphRecommender, trained on InteractionPairs.

    Attributes:
        num_items: Items without padding, as of the model.
        neg_num: Items a pair that the user did not take, drawn in each step.
        reg_weight: Of half the mean square norm of the vectors that a batch takes from the tables, added to the loss.
        topk: Numbers of items that scores are of; the first NDCG chooses the best checkpoint.
        exclude_seen: Whether items of the history are left out of the ranking.
    """

    num_items: int
    neg_num: int = 1
    reg_weight: float = 1e-4
    topk: tuple[int, ...] = (10, 20)
    exclude_seen: bool = True

    def __post_init__(self) -> None:
        if min((self.num_items, self.neg_num, *self.topk)) < 1 or not self.topk or self.reg_weight < 0:
            raise ConfigError(
                "a setting of the task is out of range",
                where="CollaborativeFiltering",
                received=f"num_items {self.num_items}, neg_num {self.neg_num}, reg_weight {self.reg_weight}, "
                f"topk {list(self.topk)}",
                allowed="numbers from 1, one or more of topk, reg_weight from 0",
            )

    def prepare_model(self, model: nn.Layer, dataset: object) -> None:
        users = self.user_names(dataset)
        count = setting_of(model, "num_users", int)
        if count is not None and count != len(users):
            raise ConfigError(
                "the model and the data have different numbers of users",
                where="model.num_users",
                received=count,
                allowed=len(users),
                fix=f"-o model.num_users={len(users)}",
            )
        assert isinstance(dataset, Interactions)
        model.set_edges(dataset.edges)

    def user_names(self, dataset: object) -> tuple[str, ...]:
        """The users of the training data, in the order of the table. Raises: ConfigError."""
        if not isinstance(dataset, Interactions):
            raise ConfigError(
                "the data set does not say who took what",
                where="data.train.dataset",
                received=type(dataset).__name__,
                allowed="InteractionPairs",
            )
        return dataset.user_names

    def pack(self, sample: RowSample) -> dict[str, np.ndarray]:
        if not {"user", "target"} <= set(sample.arrays):
            raise InputError(
                "the sample is no pair of a user and an item",
                where=sample.id,
                received=", ".join(sample.arrays) or "no array",
                allowed="data.train.dataset: {type: InteractionPairs, …}",
            )
        return {name: np.asarray(sample.arrays[name], np.int32) for name in ("user", "target")}

    def pack_evaluated(self, sample: RowSample) -> dict[str, np.ndarray]:
        return {**self.pack(sample), **pack_target(sample, self.num_items, self.exclude_seen)}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        users, items = batch["user"], batch["target"]
        negatives = self._draw_negatives(model, users)
        user_table, item_table = model()
        vectors = user_table[users]
        good = (vectors * item_table[items]).sum(axis=-1)
        bad = jnp.einsum("nd,nkd->nk", vectors, item_table[negatives])
        ranking = jax.nn.softplus(bad - good[:, None]).mean()
        rows = jnp.concatenate([items[:, None], negatives], axis=1)
        squares = sum(jnp.square(one).sum() for one in model.initial_vectors(users, rows))
        decay = squares / (2 * len(users))
        return Losses(ranking + self.reg_weight * decay, {"bpr": ranking})

    def _draw_negatives(self, model: nn.Layer, users: jax.Array) -> jax.Array:
        """Rows [N, neg_num] of items that a user did not take, each the first such one of `_DRAWS`."""
        shape = (users.shape[0], self.neg_num, _DRAWS)
        drawn = jax.random.randint(next_key(), shape, 1, self.num_items + 1)
        is_taken = model.is_edge(jnp.broadcast_to(users[:, None, None], shape), drawn)
        first = jnp.argmin(is_taken, axis=-1, keepdims=True)
        return jnp.take_along_axis(drawn, first, axis=-1)[..., 0]

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"scores": [N, V + 1], where row 0 is padding; "seen": bool [N, V + 1], what the training data have of the
        user; "vector": [N, D] of the user}.

        A user of whom the training data have nothing, or who is no row of the table (-1), has the mean vector of those
        of whom they have something: what is drawn before the training would recommend by chance.
        """
        user_table, item_table = model()
        users = jnp.maximum(inputs["user"], 0)
        history = model.seen_items(users) & (inputs["user"] >= 0)[:, None]
        weights = model.has_items().astype(user_table.dtype)
        mean = weights @ user_table / jnp.maximum(weights.sum(), 1)
        vector = jnp.where(history.any(axis=1, keepdims=True), user_table[users], mean).astype(jnp.float32)
        return {"scores": vector @ item_table.T, "seen": history, "vector": vector}

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "scores": {"meaning": "score of each item; row 0 is padding, row i + 1 label i"},
            "seen": {"meaning": "whether the user took the item in the training data"},
        }

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"ranking": RankingScores(self.topk)}

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        check_items(model, labels)
