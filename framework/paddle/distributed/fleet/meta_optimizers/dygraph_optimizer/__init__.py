"""Optimizers of eager training in several processes: with a clipping norm of all parts, and with divided state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Parameter
from framework.paddle.distributed.env import get_rank
from framework.paddle.distributed.fleet.hybrid_optimizer import (
    HybridParallelOptimizer as HybridParallelOptimizer,
)
from framework.paddle.distributed.gradients import average_gradients
from framework.paddle.distributed.sharding import ShardedOptimizer

if TYPE_CHECKING:
    from framework.paddle.distributed.fleet.topology import HybridCommunicateGroup
    from framework.paddle.optimizer.base import Optimizer


class DygraphShardingOptimizer(ShardedOptimizer):
    """An optimizer whose state is divided among the sharding group of `fleet.init`, parameter by parameter."""

    def __init__(self, optimizer: Optimizer, hcg: HybridCommunicateGroup) -> None:
        super().__init__(optimizer, hcg.get_sharding_parallel_group())

    def filter_parameters(
        self, parameter_list: Iterable[Parameter], hcg: HybridCommunicateGroup
    ) -> list[Parameter]:
        """Those that this process updates."""
        return [one for one in parameter_list if self._owner.get(id(one)) == get_rank()]

    def reduce_gradients(self, parameter_list: Iterable[Parameter], hcg: HybridCommunicateGroup) -> None:
        """The mean of the gradients over the sharding group, in place."""
        group = hcg.get_sharding_parallel_group()
        if group.nranks > 1:
            average_gradients(parameter_list, group)


class DygraphShardingOptimizerV2(DygraphShardingOptimizer):
    """As `DygraphShardingOptimizer`. Paddle divides each parameter here, not their list: values are the same, and what
    a process keeps is no more."""


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
