"""Batches whose gradients are averaged (`optim.accumulate`) count as one large batch: tasks say of how much their loss
is the mean."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.engine.task import Losses
from nlp.contracts import Tokens
from nlp.models.token_classification import TokenClassifier
from nlp.tasks import SequenceClassification, TokenClassification
from nlp.tasks.translation import Translation
from zoo.classification.tasks import ImageClassification

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((9, 5)).astype(np.float32)
IDS = RNG.integers(0, 9, (6, 4)).astype(np.int32)
TAGS = np.array(
    [[0, 1, 2, 3], *5 * [[4, -1, -1, -1]]], np.int32
)  # five batches have one token, the first four


class Lookup(nn.Layer):
    """The logits of a token, or of the first one of a text, are a row of `TABLE`."""

    mean_over = TokenClassifier.mean_over

    def __init__(self, by_token: bool = False) -> None:
        super().__init__()
        self.by_token = by_token

    def forward(self, tokens: Tokens, target: Tokens | None = None) -> jax.Array:
        logits = jnp.asarray(TABLE)[tokens.ids if target is None else target.ids]
        return logits if self.by_token else logits[:, 0]

    def loss(self, tokens: Tokens, tags: jax.Array) -> jax.Array:
        return TokenClassifier.loss(self, tokens, tags)  # type: ignore[arg-type]


def texts(**arrays: np.ndarray) -> dict[str, np.ndarray]:
    return {"input_ids": IDS, "mask": np.ones_like(IDS, bool), "type_ids": np.zeros_like(IDS), **arrays}


LABELS = np.array([0, 1, 1, 4, 4, 4], np.int32)
WEIGHTS = (9.0, 1.0, 1.0, 1.0, 0.5)
CASES = [
    (SequenceClassification(weight=WEIGHTS, label_smoothing=0.1), texts(label=LABELS), False),
    (TokenClassification(), texts(tags=TAGS), True),
    (Translation(), texts(target_ids=IDS, next_ids=TAGS), True),
]


@pytest.mark.parametrize(("task", "batch", "by_token"), CASES, ids=lambda one: type(one).__name__)
def test_the_mean_by_weight_is_the_loss_of_all(
    task: Any, batch: dict[str, np.ndarray], by_token: bool
) -> None:
    model = Lookup(by_token)
    losses: list[Losses] = [
        task.loss(model, {name: jnp.asarray(one[start : start + 1]) for name, one in batch.items()})
        for start in range(6)
    ]
    weights = np.array([losses[n].weight for n in range(6)], np.float64)
    assert len(set(weights.tolist())) > 1
    mean = np.average([float(one.total) for one in losses], weights=weights)
    whole = float(task.loss(model, {name: jnp.asarray(one) for name, one in batch.items()}).total)
    assert mean == pytest.approx(whole, rel=1e-6)


def test_images_with_weights_of_classes_and_none_without() -> None:
    framework.seed(0)
    images = {"image": jnp.zeros((6, 2, 2, 3), jnp.uint8), "label": jnp.asarray(LABELS)}
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 5))
    assert float(ImageClassification(weight=WEIGHTS).loss(model, images).weight or 0) == 12.5
    assert ImageClassification().loss(model, images).weight is None
    assert SequenceClassification().loss(Lookup(), texts(label=LABELS)).weight is None  # type: ignore[arg-type]
