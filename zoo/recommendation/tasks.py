"""Probabilities of a row: of a click, or of several things at once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.errors import ConfigError, InputError
from framework.core.types import JSON
from framework.engine.task import Arrays, Batch, Losses, Metric, Task
from framework.metric.clicks import (
    BinnedAuc,
    calibration,
    grouped_auc,
    log_loss,
    normalized_entropy,
    roc_auc,
)
from framework.nn import functional as F
from zoo.recommendation.contracts import Features
from zoo.recommendation.sample import RowSample

log = logging.getLogger("oar")
LossName = Literal["bce", "log_loss"]


def features_of(batch: Batch) -> Features:
    """The arrays of a batch as models take them."""
    return Features(batch["sparse"], batch["dense"], batch.get("weight"))


def click_loss(logits: jax.Array, label: jax.Array, kind: LossName) -> jax.Array:
    """The mean cross-entropy; `log_loss` is PaddleRec's, with 1e-4 inside both logarithms."""
    if kind == "bce":
        return F.binary_cross_entropy_with_logits(logits, label)
    return F.log_loss(F.sigmoid(logits), label).mean()


def pack_row(sample: RowSample, labels: int) -> dict[str, np.ndarray]:
    """The arrays of an encoded row. Raises: InputError, where it is not encoded or has not these probabilities."""
    if "sparse" not in sample.arrays:
        raise InputError(
            "the row is not encoded", where=sample.id, fix="transforms: [{type: EncodeFeatures, …}]"
        )
    label = sample.arrays.get("label")
    if label is None or len(label) != labels:
        raise InputError(
            "the row has not the labels of the task",
            where=sample.id,
            received=f"none; its columns are {', '.join(list(sample.values)[:40])}"
            if label is None
            else f"{len(label)}",
            allowed=f"{labels}, each a number in the columns `labels` of EncodeFeatures",
        )
    if not ((label >= 0) & (label <= 1)).all():
        raise InputError(
            "a label is no probability",
            where=sample.id,
            received=", ".join(f"{value:g}" for value in label),
            allowed="0 to 1, most often 0 and 1",
        )
    return {**sample.arrays, "label": label[0] if labels == 1 else label}


@register("task")
@dataclass(frozen=True)
class ClickPrediction(Task[RowSample, nn.Layer]):
    """One probability a row, by a Ranker.

    Attributes:
        loss: bce, or log_loss as PaddleRec computes it.
        auc: exact keeps all scores of an evaluation in memory; probability and logit count them in `bins`.
        sampling_rate: Share of the negatives that the training data hold; probabilities are brought back to the rate
            before the sampling: p / (p + (1 - p) / rate). Source: He et al. 2014, section 6.3.
    """

    loss_name: LossName = "bce"
    auc: Literal["exact", "probability", "logit"] = "exact"
    bins: int = 4095
    sampling_rate: float = 1.0

    def __post_init__(self) -> None:
        if self.bins < 1 or not 0 < self.sampling_rate <= 1:
            raise ConfigError(
                "a setting of the task is out of range",
                where="ClickPrediction",
                received=f"bins {self.bins}, sampling_rate {self.sampling_rate}",
                allowed="bins from 1, 0 < sampling_rate <= 1",
            )

    def pack(self, sample: RowSample) -> dict[str, np.ndarray]:
        return pack_row(sample, 1)

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        return Losses(click_loss(model(features_of(batch)), batch["label"], self.loss_name))

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"score": probabilities [N]}."""
        logits = model(features_of(inputs)).astype(jnp.float32)
        return {"score": F.sigmoid(logits + float(np.log(self.sampling_rate)))}

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {"score": {"meaning": "probability of a click", "range": [0, 1]}}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"clicks": ClickScores(self.auc, self.bins)}

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        return


class ClickScores:
    """AUC, log loss, NE and calibration of `score` and `label`, and GAUC where rows have a group."""

    higher_is_better = True

    def __init__(
        self, auc: str = "exact", bins: int = 4095, prefix: str = "", column: int | None = None
    ) -> None:
        self.prefix, self.column = prefix, column
        self.binned = None if auc == "exact" else BinnedAuc(bins, auc == "logit")
        self.scores: list[np.ndarray] = []
        self.labels: list[np.ndarray] = []
        self.groups: list[np.ndarray] = []

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        score, label = outputs["score"], batch["label"]
        if self.column is not None:
            score, label = score[:, self.column], label[:, self.column]
        self.scores.append(score)
        self.labels.append(label > 0.5)
        if self.binned is not None:
            self.binned.update(score, label)
        if "group" in batch:
            self.groups.append(batch["group"])

    def result(self) -> dict[str, float]:
        scores, labels = np.concatenate(self.scores), np.concatenate(self.labels)
        if labels.all() or not labels.any():
            log.warning(
                f"{self.prefix}auc: all {labels.size} rows have the label {int(labels.all())}: it has no value, "
                "nor have ne and calibration of negatives alone"
            )
        scored = {
            "auc": roc_auc(scores, labels) if self.binned is None else self.binned.result(),
            "log_loss": log_loss(scores, labels),
            "ne": normalized_entropy(scores, labels),
            "calibration": calibration(scores, labels),
        }
        if self.groups:
            scored["gauc"] = grouped_auc(scores, labels, np.concatenate(self.groups))
        return {f"{self.prefix}{name}": value for name, value in scored.items()}


@register("task")
@dataclass(frozen=True)
class MultiTaskPrediction(Task[RowSample, nn.Layer]):
    """Several probabilities a row, by a MultiTaskRanker.

    Attributes:
        names: Of the tasks, as the columns `labels` of EncodeFeatures.
        chain: The second task is a step behind the first, as a purchase behind a click: its model's logit is of
            p(second | first), and the loss is that of p(first) and of p(first) p(second | first) on all rows, as
            ESMM's.
        weights: Of the losses; None stands for ones.
    """

    names: tuple[str, ...] = ("click", "buy")
    chain: bool = False
    weights: tuple[float, ...] | None = None
    loss_name: LossName = "bce"

    def __post_init__(self) -> None:
        if len(self.names) < 2 or (self.chain and len(self.names) != 2):
            raise ConfigError(
                "these are not the names of several tasks",
                where="MultiTaskPrediction.names",
                received=list(self.names),
                allowed="two names of a chain, else two or more",
            )
        if self.weights is not None and len(self.weights) != len(self.names):
            raise ConfigError(
                "there is not one weight a task", received=list(self.weights), allowed=len(self.names)
            )

    def pack(self, sample: RowSample) -> dict[str, np.ndarray]:
        return pack_row(sample, len(self.names))

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        logits, label = model(features_of(batch)), batch["label"]
        if self.chain:
            joint = F.sigmoid(logits[0]) * F.sigmoid(logits[1])
            joint = F.binary_cross_entropy(joint, label[:, 0] * label[:, 1])
            losses = [click_loss(logits[0], label[:, 0], self.loss_name), joint]
        else:
            losses = [click_loss(one, label[:, k], self.loss_name) for k, one in enumerate(logits)]
        weights = self.weights or (1.0,) * len(losses)
        total = sum((weight * loss for weight, loss in zip(weights, losses)), jnp.zeros((), jnp.float32))
        return Losses(total, {f"loss_{name}": loss for name, loss in zip(self.names, losses)})

    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        """{"score": probabilities [N, tasks]}; of a chain the second is that of both."""
        score = F.sigmoid(jnp.stack(model(features_of(inputs)), axis=1).astype(jnp.float32))
        return {"score": jnp.cumprod(score, axis=1) if self.chain else score}

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {"score": {"meaning": "probability of " + ", ".join(self.names), "range": [0, 1]}}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {name: ClickScores(prefix=f"{name}_", column=k) for k, name in enumerate(self.names)}

    def check(self, model: nn.Layer, labels: tuple[str, ...]) -> None:
        return
