"""What is minimised when a model learns which of two answers is preferred: functions of log-probabilities.

Papers: DPO: Rafailov et al. 2023, https://arxiv.org/abs/2305.18290 (smoothing: section A.3; robust: Chowdhury et al.
    2024, https://arxiv.org/abs/2403.00409); hinge: SLiC, https://arxiv.org/abs/2305.10425; IPO:
    https://arxiv.org/abs/2310.12036; NCA: https://arxiv.org/abs/2402.05369; SPPO: https://arxiv.org/abs/2405.00675;
    SimPO: https://arxiv.org/abs/2405.14734; ORPO: https://arxiv.org/abs/2403.07691; KTO:
    https://arxiv.org/abs/2402.01306; DPOP: https://arxiv.org/abs/2402.13228; GRPO: https://arxiv.org/abs/2402.03300
Reference: trl 1.16 and PaddleNLP 3.0 llm/alignment, for the names of losses and where they differ
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class PreferenceOptions:
    """Numbers of the losses.

    Attributes:
        beta: How strongly a model is held to its reference; of SimPO the scale of the rewards.
        smoothing: The share of labels that are taken to be wrong, of "sigmoid" and "robust".
        gamma: The margin of SimPO between the two rewards.
        odds_weight: Of the odds ratio of ORPO, its lambda.
        penalty: Of DPOP, for a chosen answer that becomes less probable than by the reference.
        desirable_weight, undesirable_weight: Of KTO's two kinds of answers.
    """

    beta: float = 0.1
    smoothing: float = 0.0
    gamma: float = 0.5
    odds_weight: float = 0.1
    penalty: float = 50.0
    desirable_weight: float = 1.0
    undesirable_weight: float = 1.0


class PairLogs(NamedTuple):
    """Log-probabilities of the answers of N pairs, summed over their tokens; [N] float32 each."""

    preferred: jax.Array
    rejected: jax.Array
    reference_chosen: jax.Array
    reference_rejected: jax.Array
    chosen_tokens: jax.Array
    rejected_tokens: jax.Array

    @property
    def chosen_ratio(self) -> jax.Array:
        """log of policy / reference"""
        return self.preferred - self.reference_chosen

    @property
    def rejected_ratio(self) -> jax.Array:
        return self.rejected - self.reference_rejected

    @property
    def margin(self) -> jax.Array:
        return self.chosen_ratio - self.rejected_ratio

    @property
    def chosen_mean(self) -> jax.Array:
        """A token"""
        return self.preferred / jnp.maximum(self.chosen_tokens, 1)

    @property
    def rejected_mean(self) -> jax.Array:
        return self.rejected / jnp.maximum(self.rejected_tokens, 1)


def _ls(x: jax.Array) -> jax.Array:
    return jax.nn.log_sigmoid(x)


def sigmoid(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """DPO, and with `smoothing` its conservative form."""
    x, smoothing = options.beta * logs.margin, options.smoothing
    return -(1 - smoothing) * _ls(x) - smoothing * _ls(-x)


def robust(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """DPO whose mean over wrong labels is that over right ones."""
    x, smoothing = options.beta * logs.margin, options.smoothing
    return (-(1 - smoothing) * _ls(x) + smoothing * _ls(-x)) / (1 - 2 * smoothing)


def hinge(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """SLiC."""
    return jnp.maximum(0.0, 1 - options.beta * logs.margin)


def ipo(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """Of sums, as the paper has it."""
    return jnp.square(logs.margin - 1 / (2 * options.beta))


def ipo_mean(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """Of means a token, as trl from 1.0 on has it."""
    preferred = logs.chosen_ratio / jnp.maximum(logs.chosen_tokens, 1)
    rejected = logs.rejected_ratio / jnp.maximum(logs.rejected_tokens, 1)
    return jnp.square(preferred - rejected - 1 / (2 * options.beta))


def nca(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """Of each answer's own reward."""
    c, r = options.beta * logs.chosen_ratio, options.beta * logs.rejected_ratio
    return -_ls(c) - 0.5 * _ls(-c) - 0.5 * _ls(-r)


def sppo(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """Each log ratio against its half of 1 / beta."""
    half = 1 / (2 * options.beta)
    return jnp.square(logs.chosen_ratio - half) + jnp.square(logs.rejected_ratio + half)


def dpop(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """DPO that costs more where the chosen answer becomes less probable."""
    loss = jnp.maximum(0.0, -logs.chosen_ratio)
    return -_ls(options.beta * (logs.margin - options.penalty * loss))


def kto_pair(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """KTO on pairs, each answer held to the mean log ratio of the other kind."""
    chosen_kl = jnp.maximum(jax.lax.stop_gradient(logs.chosen_ratio.mean()), 0.0)
    rejected_kl = jnp.maximum(jax.lax.stop_gradient(logs.rejected_ratio.mean()), 0.0)
    preferred = 1 - jax.nn.sigmoid(options.beta * (logs.chosen_ratio - rejected_kl))
    return preferred + 1 - jax.nn.sigmoid(options.beta * (chosen_kl - logs.rejected_ratio))


def simpo(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """Means a token, without a reference."""
    x = options.beta * (logs.chosen_mean - logs.rejected_mean) - options.gamma
    return -(1 - options.smoothing) * _ls(x) - options.smoothing * _ls(-x)


def orpo(logs: PairLogs, options: PreferenceOptions) -> jax.Array:
    """Cross-entropy of the chosen answer, and the ratio of the odds; without a reference."""
    return -logs.chosen_mean - options.odds_weight * _ls(log_odds(logs))


def log_odds(logs: PairLogs) -> jax.Array:
    """The logarithm of the ratio of the odds of the two answers, by means a token."""
    p, q = logs.chosen_mean, logs.rejected_mean
    # log(1 - e^p): expm1 keeps its digits near p = 0, and an answer that is certain has finite odds.
    return p - q - _log_complement(p) + _log_complement(q)


def _log_complement(x: jax.Array) -> jax.Array:
    return jnp.log(-jnp.expm1(jnp.minimum(x, -1e-6)))


PairLoss = Callable[[PairLogs, PreferenceOptions], jax.Array]
PAIR_LOSSES: Mapping[str, PairLoss] = {
    "dpo": sigmoid,
    "robust": robust,
    "hinge": hinge,
    "ipo": ipo,
    "ipo_mean": ipo_mean,
    "nca": nca,
    "sppo": sppo,
    "dpop": dpop,
    "kto_pair": kto_pair,
    "simpo": simpo,
    "orpo": orpo,
}
WITHOUT_REFERENCE = ("simpo", "orpo")


def kto(ratio: jax.Array, desirable: jax.Array, kl: jax.Array, options: PreferenceOptions) -> jax.Array:
    """Of single answers: log ratios [N], whether each is desirable [N] bool, and the KL [] that they are held to."""
    good = options.desirable_weight * (1 - jax.nn.sigmoid(options.beta * (ratio - kl)))
    bad = options.undesirable_weight * (1 - jax.nn.sigmoid(options.beta * (kl - ratio)))
    return jnp.where(desirable, good, bad)


def group_advantages(rewards: jax.Array, scaled: bool = True) -> jax.Array:
    """[groups, answers]: how much better an answer is than those to the same prompt, by their deviation (n - 1)."""
    rewards = (
        rewards - rewards[:, :1]
    )  # equal ones have advantages of 0, and not of what rounding leaves of a mean
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    if not scaled or rewards.shape[1] < 2:
        return centred
    return centred / (rewards.std(axis=1, ddof=1, keepdims=True) + 1e-4)


def policy_loss(
    policy: jax.Array, old: jax.Array, advantages: jax.Array, low: float = 0.2, high: float = 0.2
) -> jax.Array:
    """The clipped loss of each token, [N, T]: of its log-probability now and when drawn, and of its advantage."""
    ratio = jnp.exp(policy - old)
    return -jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - low, 1 + high) * advantages)


def k3(policy: jax.Array, reference: jax.Array) -> jax.Array:
    """An estimate of KL(policy | reference) that is never below 0. Source: Schulman 2020."""
    difference = reference - policy
    return jnp.exp(difference) - difference - 1
