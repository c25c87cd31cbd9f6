"""MMoE, PLE and ESMM: several probabilities of a row from shared layers.

Paper: Ma et al. 2018 (MMoE), https://doi.org/10.1145/3219819.3220007; Tang et al. 2020 (PLE),
    https://doi.org/10.1145/3383313.3412236; Ma et al. 2018 (ESMM), https://arxiv.org/abs/1804.07931
Reference: PaddleRec models/multitask/{mmoe,ple,esmm}/net.py
Differs: PaddleRec begins with constant weights, so that the units of an expert never differ; here they are Xavier's.
    Its PLE takes expert i * task_num + j for expert j of task i, so that some serve two tasks and others none; that
    is so with `paddlerec` alone. A logit is the second of upstream's two less the first, which has the probability of
    its softmax. ESMM's table begins as the other models', not with U(-1, 1), unless `paddlerec` is set.
Weights: `state_dict()` has the names of PaddleRec's rec.pdparams.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from zoo.recommendation.layers import ClickConfig, add_linears, lookup, run_linears, table

_CONTRACT = Contract(tested_in=("tests/golden/test_recommendation.py",))


def _check_sizes(name: str, sizes: Sequence[int]) -> None:
    if min(sizes) < 1:
        raise ConfigError(
            "a size of the network is out of range", where=name, received=list(sizes), allowed="1 or more"
        )


def _logit(pair: jax.Array) -> jax.Array:
    """Of the second class of logits [N, 2]."""
    return pair[:, 1] - pair[:, 0]


@dataclass(frozen=True)
class MMoEConfig:
    """`feature_size` numbers a row, `expert_num` experts of `expert_size`, a gate and a tower for each task."""

    feature_size: int = 499
    expert_num: int = 8
    gate_num: int = 2
    expert_size: int = 16
    tower_size: int = 8

    def __post_init__(self) -> None:
        sizes = (self.feature_size, self.expert_num, self.gate_num, self.expert_size, self.tower_size)
        _check_sizes("MMoE", sizes)


@register("model", config=MMoEConfig)
class MMoE(nn.Model[MMoEConfig]):
    """A MultiTaskRanker."""

    contract = _CONTRACT

    def __init__(self, config: MMoEConfig) -> None:
        super().__init__(config)
        for number in range(config.expert_num):
            setattr(self, f"expert_{number}", nn.Linear(config.feature_size, config.expert_size))
        for number in range(config.gate_num):
            setattr(self, f"gate_{number}", nn.Linear(config.feature_size, config.expert_num))
            setattr(self, f"tower_{number}", nn.Linear(config.expert_size, config.tower_size))
            setattr(self, f"tower_out_{number}", nn.Linear(config.tower_size, 2))

    def forward(self, features: Features) -> tuple[jax.Array, ...]:
        x, config = features.dense, self.config
        experts = [F.relu(getattr(self, f"expert_{number}")(x)) for number in range(config.expert_num)]
        values = jnp.stack(experts, axis=1)  # [N, K, D]
        logits = []
        for number in range(config.gate_num):
            share = F.softmax(getattr(self, f"gate_{number}")(x))
            mixed = (values * share[..., None]).sum(axis=1)
            tower = F.relu(getattr(self, f"tower_{number}")(mixed))
            logits.append(_logit(getattr(self, f"tower_out_{number}")(tower)))
        return tuple(logits)


@dataclass(frozen=True)
class PLEConfig:
    """`exp_per_task` experts of each of `task_num` tasks and `shared_num` of all, in each of `level_number` levels."""

    feature_size: int = 499
    task_num: int = 2
    exp_per_task: int = 3
    shared_num: int = 2
    level_number: int = 1
    expert_size: int = 16
    tower_size: int = 8
    paddlerec: bool = False

    def __post_init__(self) -> None:
        sizes = (self.feature_size, self.task_num, self.exp_per_task, self.shared_num)
        _check_sizes("PLE", (*sizes, self.level_number, self.expert_size, self.tower_size))


class ExtractionLevel(nn.Layer):
    """Experts of each task and of all, and the gates that mix them; the last level has no gate for all."""

    def __init__(self, config: PLEConfig, width: int, name: str, is_last: bool) -> None:
        super().__init__()
        self.config, self.prefix, self.is_last = config, name, is_last
        for task in range(config.task_num):
            for number in range(config.exp_per_task):
                setattr(self, f"{name}_exp_{task}_{number}", nn.Linear(width, config.expert_size))
        for number in range(config.shared_num):
            setattr(self, f"{name}_exp_shared_{number}", nn.Linear(width, config.expert_size))
        near = config.exp_per_task + config.shared_num
        for task in range(config.task_num):
            setattr(self, f"{name}_gate_{task}", nn.Linear(width, near))
        if not is_last:
            total = config.task_num * config.exp_per_task + config.shared_num
            setattr(self, f"{name}_gate_shared_", nn.Linear(width, total))

    def state_aliases(self) -> dict[str, str]:
        return {
            f"_param_gate_shared.{name}": f"{self.prefix}_gate_shared_.{name}" for name in ("weight", "bias")
        }

    def _expert(self, task: int, number: int) -> nn.Layer:
        config = self.config
        if config.paddlerec:  # whose list is counted with the number of tasks in the place of the experts
            task, number = divmod(task * config.task_num + number, config.exp_per_task)
        return getattr(self, f"{self.prefix}_exp_{task}_{number}")

    def forward(self, inputs: Sequence[jax.Array]) -> list[jax.Array]:
        """Of the inputs [N, D] of each task and, last, of all."""
        config = self.config
        private = [
            [F.relu(self._expert(task, number)(inputs[task])) for number in range(config.exp_per_task)]
            for task in range(config.task_num)
        ]
        names = [f"{self.prefix}_exp_shared_{number}" for number in range(config.shared_num)]
        shared = [F.relu(getattr(self, name)(inputs[-1])) for name in names]

        def mix(gate: str, x: jax.Array, experts: list[jax.Array]) -> jax.Array:
            share = F.softmax(getattr(self, f"{self.prefix}_{gate}")(x))
            return (jnp.stack(experts, axis=1) * share[..., None]).sum(axis=1)

        outputs = [
            mix(f"gate_{task}", inputs[task], private[task] + shared) for task in range(config.task_num)
        ]
        if not self.is_last:
            outputs.append(
                mix("gate_shared_", inputs[-1], [one for group in private for one in group] + shared)
            )
        return outputs


@register("model", config=PLEConfig)
class PLE(nn.Model[PLEConfig]):
    """A MultiTaskRanker: progressive layered extraction."""

    contract = _CONTRACT

    def __init__(self, config: PLEConfig) -> None:
        super().__init__(config)
        for level in range(config.level_number):
            width = config.expert_size if level else config.feature_size
            is_last = level == config.level_number - 1
            setattr(self, f"lev_{level}", ExtractionLevel(config, width, f"lev_{level}", is_last))
        for task in range(config.task_num):
            setattr(self, f"tower_{task}", nn.Linear(config.expert_size, config.tower_size))
            setattr(self, f"tower_out_{task}", nn.Linear(config.tower_size, 2))

    def forward(self, features: Features) -> tuple[jax.Array, ...]:
        values = [features.dense] * (self.config.task_num + 1)
        for level in range(self.config.level_number):
            values = getattr(self, f"lev_{level}")(values)
        towers = [F.relu(getattr(self, f"tower_{k}")(values[k])) for k in range(self.config.task_num)]
        return tuple(_logit(getattr(self, f"tower_out_{k}")(tower)) for k, tower in enumerate(towers))


@dataclass(frozen=True)
class ESMMConfig(ClickConfig):
    """`ctr_fc_sizes` and `cvr_fc_sizes` of the two perceptrons; a field may have several values, which are added."""

    sparse_feature_number: int = 737_946
    sparse_feature_dim: int = 12
    num_field: int = 23
    dense_input_dim: int = 0
    ctr_fc_sizes: tuple[int, ...] = (256, 64)
    cvr_fc_sizes: tuple[int, ...] = (256, 64)


@register("model", config=ESMMConfig)
class ESMM(nn.Model[ESMMConfig]):
    """A MultiTaskRanker: the logits of a click and of a purchase behind a click (`chain` of MultiTaskPrediction)."""

    contract = _CONTRACT

    def __init__(self, config: ESMMConfig) -> None:
        super().__init__(config)
        if config.paddlerec:
            rows, width = config.sparse_feature_number, config.sparse_feature_dim
            self.embedding = config.make_table(rows, width, I.Uniform(), 0)
        else:
            self.embedding = table(config)
        width = config.num_field * config.sparse_feature_dim
        self.count = len(config.ctr_fc_sizes) + 1
        add_linears(self, (width, *config.ctr_fc_sizes, 2))
        add_linears(self, (width, *config.cvr_fc_sizes, 2), first=self.count)

    def forward(self, features: Features) -> tuple[jax.Array, ...]:
        vectors = lookup(self.embedding, features)
        x = vectors.reshape(vectors.shape[0], -1)
        click = run_linears(self, x, self.count)
        purchase = run_linears(self, x, len(self.config.cvr_fc_sizes) + 1, first=self.count)
        return _logit(click), _logit(purchase)
