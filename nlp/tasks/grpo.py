"""The task of GRPO: a decoder answers prompts itself and learns from the rewards of its answers.

Papers: GRPO: Shao et al. 2024, https://arxiv.org/abs/2402.03300; without the deviation and by a fixed length: Dr. GRPO,
    https://arxiv.org/abs/2503.20783; by the tokens of the batch, and two bounds: DAPO, https://arxiv.org/abs/2503.14476
Reference: trl 1.16 GRPOTrainer, for names of settings
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np

from framework.config import Kind, register
from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.engine.task import Arrays, Batch, Experience, Losses, Metric
from framework.nn.adapters import without_adapters
from framework.nn.functional_core import GraphDef, State
from framework.text.transforms import load_tokenizer
from nlp.data.corpora import end_token
from nlp.data.packing import IGNORED
from nlp.data.prompts import PromptSample
from nlp.preference_losses import group_advantages, k3, policy_loss
from nlp.rewards import Reward, add_rewards
from nlp.rollouts import Answers, draw_answers
from nlp.tasks.decoder_task import DecoderTask
from nlp.token_scores import token_scores
from zoo.layers.decoder import Decoder


@register("task")
@dataclass(frozen=True)
class GRPO(DecoderTask[PromptSample]):
    """Answers with larger rewards than the others to the same prompt become more probable.

    A step draws `group` answers to each prompt of its batch from the model as it is, judges them, and learns from them
    once. Draws depend on the seed and the step alone, so that a resumed run draws the same.

    Attributes:
        tokenizer: That of the prompts.
        rewards: Whose sum an answer gets.
        group: Answers to a prompt.
        max_new_tokens: Of an answer; one that has no end by then is cut.
        max_prompt_length: As in Prompts: all prompts are padded to it.
        temperature: Of the draws; 0 is for evaluation, which takes it always.
        beta: How strongly the model is held to its reference, the model without its adapters; 0: it is not.
        low, high: How far the probability of a token may move, down and up.
        scaled: Advantages are divided by the deviation of the rewards in the group.
        normalize: What the sum over tokens is divided by: the tokens of each answer, "length" max_new_tokens, or those
            of the batch ("tokens").
        end: The token that ends an answer; None: what the tokenizer calls its end.
        chunks: As in CausalLanguageModel.
    """

    tokenizer: str
    rewards: tuple[Annotated[Reward, Kind("reward")], ...]
    group: int = 8
    max_new_tokens: int = 64
    max_prompt_length: int = 256
    temperature: float = 1.0
    beta: float = 0.0
    low: float = 0.2
    high: float = 0.2
    scaled: bool = True
    normalize: Literal["answer", "length", "tokens"] = "tokens"
    end: str | None = None
    chunks: int = 1

    padding: ClassVar[Mapping[str, int] | None] = None

    def __post_init__(self) -> None:
        for name, is_right, received, allowed in (
            ("rewards", bool(self.rewards), "none", "one or more, such as {type: SameNumber}"),
            ("group", self.group >= 2, self.group, "2 or more: an answer is judged beside others"),
            ("max_new_tokens", self.max_new_tokens >= 1, self.max_new_tokens, "1 or more"),
            ("temperature", self.temperature > 0, self.temperature, "above 0"),
            ("beta", self.beta >= 0, self.beta, "0 or more"),
            ("low", 0 < self.low < 1, self.low, "above 0, below 1"),
            ("high", self.high > 0, self.high, "above 0"),
        ):
            if not is_right:
                raise ConfigError(
                    "a setting is out of range", where=f"task.{name}", received=received, allowed=allowed
                )

    def check(self, model: Decoder, labels: tuple[str, ...]) -> None:
        super().check(model, labels)
        if self.beta and model.config.adapter is None:
            raise ConfigError(
                "there is no reference to hold the model to",
                where="task.beta",
                received=f"{self.beta}, for a model without adapters",
                allowed="beta 0, or a model with `adapter`, whose reference is the model without it",
            )

    def pack(self, sample: PromptSample) -> dict[str, np.ndarray]:
        """ "input_ids" [max_prompt_length] int32, "lengths" [] int32; "prompt" and "expected" are texts."""
        if len(sample.ids) > self.max_prompt_length:
            raise ConfigError(
                "a prompt is longer than those of the task",
                where=f"task.max_prompt_length, {sample.id}",
                received=f"{len(sample.ids)} tokens",
                allowed=f"at most {self.max_prompt_length}",
            )
        ids = np.zeros(self.max_prompt_length, np.int32)
        ids[: len(sample.ids)] = sample.ids
        return {
            "input_ids": ids,
            "lengths": np.asarray(len(sample.ids), np.int32),
            "prompt": np.asarray(sample.text),
            "expected": np.asarray(sample.expected),
        }

    def _ends(self, model: Decoder) -> tuple[int, ...]:
        return tuple({end_token(load_tokenizer(self.tokenizer), self.end), *model.size.eos_ids})

    def draw(self, model: Decoder, batch: Batch, key: jax.Array, group: int, temperature: float) -> Answers:
        return draw_answers(
            model,
            batch["input_ids"],
            batch["lengths"],
            key,
            group=group,
            max_new_tokens=self.max_new_tokens,
            end_ids=self._ends(model),
            temperature=temperature,
        )

    def judge(
        self, ids: np.ndarray, lengths: np.ndarray, prompt: np.ndarray, expected: np.ndarray
    ) -> np.ndarray:
        """[N] float32: the rewards of answers [N, S]."""
        tokenizer = load_tokenizer(self.tokenizer)
        end = end_token(tokenizer, self.end)
        totals = []
        for row, count, prompt_text, right in zip(ids, lengths, prompt, expected):
            tokens = row[:count]
            text = tokenizer.decode(tokens[:-1] if count and tokens[-1] == end else tokens)
            totals.append(add_rewards(self.rewards, str(prompt_text), text, str(right)))
        return np.asarray(totals, np.float32)

    def experience(self, graphdef: GraphDef, dataset: object, seed: int) -> Experience:
        ends = (end_token(load_tokenizer(self.tokenizer), self.end), *graphdef.static["size"].eos_ids)

        @jax.jit
        def draw(params: State, buffers: State, batch: Batch, step: jax.Array) -> Answers:
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 7), step)
            model = cast("Decoder", graphdef.bind(params, buffers).eval())
            return self.draw(model, batch, key, self.group, self.temperature)

        def act(params: State, buffers: State, batch: Arrays, step: int) -> dict[str, np.ndarray]:
            numbers = {name: batch[name] for name in ("input_ids", "lengths")}
            drawn = {
                name: np.asarray(value)
                for name, value in draw(params, buffers, numbers, jnp.int32(step))._asdict().items()
            }
            each = {name: np.repeat(np.asarray(value), self.group, axis=0) for name, value in batch.items()}
            rewards = self.judge(drawn["ids"], drawn["lengths"], each["prompt"], each["expected"])
            groups = jnp.asarray(rewards.reshape(-1, self.group))
            advantages = np.asarray(group_advantages(groups, self.scaled)).reshape(-1)
            rows = join_answers(each["input_ids"], each["lengths"], drawn)
            is_complete = np.isin(
                np.take_along_axis(drawn["ids"], drawn["lengths"][:, None] - 1, axis=1)[:, 0], ends
            )
            cut = (~is_complete).astype(np.float32)
            return {**rows, "advantages": advantages, "rewards": rewards, "cut": cut}

        return act

    def loss(self, model: Decoder, batch: Batch) -> Losses:
        targets = batch["targets"]
        logs = self._logs(model, batch)
        drawn = (targets >= 0).astype(jnp.float32)
        losses = policy_loss(logs, batch["old"], batch["advantages"][:, None], self.low, self.high)
        logged = {
            "reward": batch["rewards"].mean(),
            "answer_tokens": drawn.sum(-1).mean(),
            "cut_answers": batch["cut"].mean(),  # near 1 nothing can be learned: max_new_tokens is too small
        }
        if self.beta:
            with without_adapters():
                reference = jax.lax.stop_gradient(self._logs(model, batch))
            distance = k3(logs, reference)
            losses = losses + self.beta * distance
            logged["kl"] = (distance * drawn).sum() / jnp.maximum(drawn.sum(), 1)
        losses = losses * drawn
        if self.normalize == "answer":
            total = (losses.sum(-1) / jnp.maximum(drawn.sum(-1), 1)).mean()
        elif self.normalize == "length":
            total = losses.sum() / (len(targets) * self.max_new_tokens)
        else:
            total = losses.sum() / jnp.maximum(drawn.sum(), 1)
        return Losses(total, logged, drawn.sum() if self.normalize == "tokens" else None)

    def _logs(self, model: Decoder, batch: Batch) -> jax.Array:
        """log p [N, T] of the drawn tokens at the temperature."""
        hidden = model.hidden(batch["input_ids"])
        scores = token_scores(
            hidden, batch["targets"], lambda x: model.logits(x) / self.temperature, self.chunks
        )
        return scores.log_likelihood

    def infer(self, model: Decoder, inputs: Batch) -> dict[str, jax.Array]:
        """{"answers" [N, max_new_tokens] int32, "lengths" [N] int32}: the most probable tokens."""
        answers = self.draw(model, inputs, jax.random.key(0), 1, 0.0)
        return {"answers": answers.ids, "lengths": answers.lengths}

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        return {
            "answers": {"meaning": "tokens of the answer, up to the end token"},
            "lengths": {"meaning": "how many tokens the answer has"},
        }

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        return {"reward": _MeanReward(self)}


class _MeanReward:
    """{"reward", "answer_tokens"}: of the most probable answers."""

    higher_is_better = True

    def __init__(self, task: GRPO) -> None:
        self.task = task
        self.rewards: list[np.ndarray] = []
        self.lengths: list[np.ndarray] = []

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        texts = batch["prompt"], batch["expected"]
        self.rewards.append(self.task.judge(outputs["answers"], outputs["lengths"], *texts))
        self.lengths.append(outputs["lengths"])

    def result(self) -> dict[str, float]:
        if not self.rewards:
            return {"reward": 0.0, "answer_tokens": 0.0}
        return {
            "reward": float(np.concatenate(self.rewards).mean()),
            "answer_tokens": float(np.concatenate(self.lengths).mean()),
        }


def join_answers(
    ids: np.ndarray, lengths: np.ndarray, answers: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Prompts [N, P] and their answers (the fields of Answers, [N, S]) in rows [N, P + S]: "input_ids", "targets" of
    the answers' tokens alone, and "old", their log p as they were drawn, at the places of the targets."""
    drawn, logs = answers["ids"], answers["log_likelihood"]
    width = ids.shape[1] + drawn.shape[1]
    rows = {
        "input_ids": np.zeros((len(ids), width), np.int32),
        "targets": np.full((len(ids), width), IGNORED, np.int32),
        "old": np.zeros((len(ids), width), np.float32),
    }
    for row, (start, count) in enumerate(zip(lengths.tolist(), answers["lengths"].tolist())):
        rows["input_ids"][row, :start] = ids[row, :start]
        rows["input_ids"][row, start : start + count] = drawn[row, :count]
        rows["targets"][row, start - 1 : start + count - 1] = drawn[row, :count]
        rows["old"][row, start - 1 : start + count - 1] = logs[row, :count]
    return rows
