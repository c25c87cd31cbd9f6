"""The task of preferring: DPO and its relatives on pairs of answers, and KTO on single ones."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import register
from framework.core.disk import disk_errors, whole_file
from framework.core.errors import ConfigError
from framework.core.home import home
from framework.core.types import JSON
from framework.engine.task import Batch, Losses, Metric, Pack
from framework.nn.adapters import without_adapters
from nlp.data.packing import IGNORED, TokenText
from nlp.data.preferences import AnswerPair, JudgedAnswer
from nlp.preference_losses import PAIR_LOSSES, WITHOUT_REFERENCE, PairLogs, PreferenceOptions, kto
from nlp.tasks.decoder_task import DecoderTask
from nlp.token_scores import token_scores
from zoo.layers.decoder import Decoder

_log = logging.getLogger("oar")
_SMALLEST = 32  # tokens of the shortest program that computes references


def stack_answers(texts: Sequence[TokenText]) -> dict[str, np.ndarray]:
    """Answers to one prompt as "input_ids" and "targets" [A, T] int32, as long as the longest; only answers have
    targets."""
    length = max(len(text.ids) for text in texts)
    ids, targets = np.zeros((len(texts), length), np.int32), np.full((len(texts), length), IGNORED, np.int32)
    for row, text in enumerate(texts):
        count = len(text.ids)
        ids[row, :count] = text.ids
        targets[row, : count - 1] = np.where(text.learned[1:], text.ids[1:], IGNORED)
    return {"input_ids": ids, "targets": targets}


def answer_logs(
    model: Decoder, ids: jax.Array, targets: jax.Array, chunks: int = 1
) -> tuple[jax.Array, jax.Array]:
    """log p of answers [N, A, T], summed over their tokens, and how many these are: [N, A] float32 each."""
    rows, answers, length = ids.shape
    hidden = model.hidden(ids.reshape(rows * answers, length))
    scores = token_scores(hidden, targets.reshape(rows * answers, length), model.logits, chunks)
    counts = (targets >= 0).sum(-1, dtype=jnp.float32)
    return scores.log_likelihood.sum(-1).reshape(rows, answers), counts


@register("task")
@dataclass(frozen=True)
class Preference(DecoderTask[AnswerPair | JudgedAnswer]):
    """Which of two answers is better, or whether one is right: a decoder learns to write such.

    What the model says before the training is the reference: it is computed once and kept in OAR_HOME/references. Of a
    model with adapters that is the model without them.

    Attributes:
        loss_type: A key of nlp.preference_losses.PAIR_LOSSES ("dpo", "robust", "hinge", "ipo", "ipo_mean", "nca",
            "sppo", "dpop", "kto_pair", "simpo", "orpo") for pairs (Preferences), or "kto" for LabelledAnswers.
        options: Numbers of the losses.
        sft_weight: Of the cross-entropy a token of the chosen answer, which is added. RPO has 1.
        chunks: As in CausalLanguageModel.
    """

    loss_type: str = "dpo"
    options: PreferenceOptions = field(default_factory=PreferenceOptions)
    sft_weight: float = 0.0
    chunks: int = 1

    padding: ClassVar[Mapping[str, int]] = {"input_ids": 0, "targets": IGNORED}  # pyright: ignore[reportIncompatibleVariableOverride]
    padding_axes: ClassVar[Mapping[str, int]] = {"input_ids": 1, "targets": 1}

    def __post_init__(self) -> None:
        names = (*PAIR_LOSSES, "kto")
        options = self.options
        for name, is_right, received, allowed in (
            ("loss_type", self.loss_type in names, self.loss_type, ", ".join(names)),
            ("options.beta", options.beta > 0, options.beta, "above 0"),
            ("options.smoothing", 0 <= options.smoothing < 0.5, options.smoothing, "from 0, below 0.5"),
            ("sft_weight", self.sft_weight >= 0, self.sft_weight, "0 or more"),
            ("chunks", self.chunks >= 1, self.chunks, "1 or more"),
        ):
            if not is_right:
                raise ConfigError(
                    "a setting is out of range", where=f"task.{name}", received=received, allowed=allowed
                )

    @property
    def needs_reference(self) -> bool:
        return self.loss_type not in WITHOUT_REFERENCE

    def pack(self, sample: AnswerPair | JudgedAnswer) -> dict[str, np.ndarray]:
        """ "input_ids" and "targets" [2, T]: the chosen answer and the rejected one, or the answer and the mismatched
        one; of the latter also "desirable" []."""
        if isinstance(sample, AnswerPair):
            self._check(self.loss_type != "kto", "Preferences", "LabelledAnswers for kto")
            return stack_answers([sample.chosen, sample.rejected])
        self._check(self.loss_type == "kto", "LabelledAnswers", f"Preferences for {self.loss_type}")
        arrays = stack_answers([sample.answer, sample.mismatched])
        return {**arrays, "desirable": np.asarray(sample.desirable)}

    def _check(self, is_right: bool, received: str, allowed: str) -> None:
        if not is_right:
            raise ConfigError(
                "the loss is of other data", where="task.loss_type", received=received, allowed=allowed
            )

    def length(self, sample: AnswerPair | JudgedAnswer) -> int:
        return self.pack(sample)["input_ids"].shape[1]

    def prepare_pack(
        self, model: Decoder, dataset: object, train: bool
    ) -> Pack[AnswerPair | JudgedAnswer] | None:
        """`pack` with "reference" [2] float32: what the model says of the answers before it is trained."""
        if not self.needs_reference:
            return None
        samples = cast("Sequence[AnswerPair | JudgedAnswer]", dataset)
        table = reference_logs(model, [self.pack(samples[index]) for index in range(len(samples))])
        names = {str(samples[index].id): row for index, row in enumerate(table)}
        return _PackWithReference(self, names)

    def loss(self, model: Decoder, batch: Batch) -> Losses:
        logs, counts = answer_logs(model, batch["input_ids"], batch["targets"], self.chunks)
        reference = self._reference(batch, logs)
        if self.loss_type == "kto":
            ratios = logs - reference
            kl = jnp.maximum(jax.lax.stop_gradient(ratios[:, 1].mean()), 0.0)
            losses = kto(ratios[:, 0], batch["desirable"], kl, self.options)
            good = batch["desirable"].astype(jnp.float32)
            rewards = self.options.beta * ratios[:, 0]
            parts = {
                "kl": kl,
                "reward_desirable": (rewards * good).sum() / jnp.maximum(good.sum(), 1),
                "reward_undesirable": (rewards * (1 - good)).sum() / jnp.maximum((1 - good).sum(), 1),
            }
            return Losses(losses.mean(), parts)
        pair = PairLogs(logs[:, 0], logs[:, 1], reference[:, 0], reference[:, 1], counts[:, 0], counts[:, 1])
        losses = PAIR_LOSSES[self.loss_type](pair, self.options)
        if self.sft_weight:
            losses = losses - self.sft_weight * pair.chosen_mean
        rewards = self._rewards(logs, reference, counts)
        parts = {
            "accuracy": (rewards[:, 0] > rewards[:, 1]).mean(dtype=jnp.float32),
            "margin": (rewards[:, 0] - rewards[:, 1]).mean(),
            "chosen_reward": rewards[:, 0].mean(),
        }
        return Losses(losses.mean(), parts)

    def _reference(self, batch: Batch, logs: jax.Array) -> jax.Array:
        if not self.needs_reference:
            return jnp.zeros_like(logs)
        if "reference" not in batch:
            raise ConfigError(
                "the batch does not say what the reference says",
                where="task.loss_type",
                received=self.loss_type,
                allowed="a loader whose samples are packed by Preference.prepare_pack, as `oar train` makes it",
            )
        return batch["reference"]

    def _rewards(self, logs: jax.Array, reference: jax.Array, counts: jax.Array) -> jax.Array:
        beta = self.options.beta
        return beta * (logs - reference) if self.needs_reference else beta * logs / jnp.maximum(counts, 1)

    def infer(self, model: Decoder, inputs: Batch) -> dict[str, jax.Array]:
        """{"log_likelihood" and "rewards" [N, 2] float32}; without a reference in the batch a reward is beta log p."""
        logs, counts = answer_logs(model, inputs["input_ids"], inputs["targets"], self.chunks)
        reference = inputs.get("reference", jnp.zeros_like(logs))
        return {"log_likelihood": logs, "rewards": self._rewards(logs, reference, counts)}

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "log_likelihood": {"meaning": "of the tokens of each answer, added up", "unit": "nats"},
            "rewards": {"meaning": "of each answer, by the policy and its reference"},
        }

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"rewards": _Rewards()}


class _Rewards:
    """{"accuracy", "margin"}: of pairs how often the chosen answer has the larger reward, and by how much; of single
    answers how often the sign of the reward is right, and how far the two kinds are apart."""

    higher_is_better = True

    def __init__(self) -> None:
        self.rewards: list[np.ndarray] = []
        self.desirable: list[np.ndarray] = []

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        self.rewards.append(outputs["rewards"])
        if "desirable" in batch:
            self.desirable.append(batch["desirable"])

    def result(self) -> dict[str, float]:
        rewards = np.concatenate(self.rewards) if self.rewards else np.zeros((0, 2), np.float32)
        if not len(rewards):
            return {"accuracy": 0.0, "margin": 0.0}
        if not self.desirable:
            margins = rewards[:, 0] - rewards[:, 1]
            return {"accuracy": float((margins > 0).mean()), "margin": float(margins.mean())}
        good, of_answer = np.concatenate(self.desirable).astype(bool), rewards[:, 0]
        both = good.any() and not good.all()
        margin = of_answer[good].mean() - of_answer[~good].mean() if both else np.float32(0)
        return {"accuracy": float(((of_answer > 0) == good).mean()), "margin": float(margin)}


@dataclass(frozen=True)
class _PackWithReference:
    """Adds the row of a table to what a task packs; goes to the processes of a loader."""

    task: Preference
    table: Mapping[str, np.ndarray]

    def __call__(self, sample: AnswerPair | JudgedAnswer) -> dict[str, np.ndarray]:
        return {**self.task.pack(sample), "reference": self.table[str(sample.id)]}


def reference_logs(
    model: Decoder, packed: Sequence[Mapping[str, np.ndarray]], batch_size: int = 8
) -> np.ndarray:
    """[N, A] float32: log p of the answers by `model` without its adapters, from OAR_HOME/references where these very
    weights have said it of these very answers."""
    graphdef, params, buffers = nn.split(model.eval())
    path = home() / "references" / f"{_digest(params, packed)}.npy"
    if path.is_file():
        _log.info(f"log-probabilities of the reference: {path}")
        return np.load(path, allow_pickle=False)
    _log.info(f"computing log-probabilities of the reference for {len(packed)} samples, once: {path}")

    @jax.jit
    def logs_of(params: dict, buffers: dict, ids: jax.Array, targets: jax.Array) -> jax.Array:
        with without_adapters():
            return answer_logs(cast("Decoder", graphdef.bind(params, buffers)), ids, targets)[0]

    lengths = np.array([arrays["input_ids"].shape[1] for arrays in packed])
    order = np.argsort(lengths, kind="stable")
    table = np.zeros((len(packed), packed[0]["input_ids"].shape[0]), np.float32)
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        length = max(_SMALLEST, 1 << int(lengths[chosen].max() - 1).bit_length())
        rows = {
            name: np.stack([_fill(packed[one][name], length, pad) for one in chosen]) for name, pad in _PADS
        }
        full = {name: np.resize(value, (batch_size, *value.shape[1:])) for name, value in rows.items()}
        table[chosen] = np.asarray(logs_of(params, buffers, full["input_ids"], full["targets"]))[
            : len(chosen)
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(path), whole_file(path) as work:
        np.save(work, table, allow_pickle=False)
    return table


_PADS = (("input_ids", 0), ("targets", IGNORED))


def _fill(array: np.ndarray, length: int, value: int) -> np.ndarray:
    return np.pad(array, ((0, 0), (0, length - array.shape[1])), constant_values=value)


def _digest(params: Mapping[str, jax.Array], packed: Sequence[Mapping[str, np.ndarray]]) -> str:
    """A name for what these weights say of these answers."""
    found = hashlib.sha256()
    for name, value in sorted(params.items()):
        if not name.rpartition(".")[2].startswith("lora_"):
            found.update(name.encode())
            found.update(np.ascontiguousarray(np.asarray(value)).view(np.uint8).data)
    for arrays in packed:
        for name, _ in _PADS:
            found.update(str(arrays[name].shape).encode())
            found.update(np.ascontiguousarray(arrays[name]).data)
    return found.hexdigest()[:32]
