"""Exchanges of gradients between processes, where programs call them themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from framework.paddle._kernel.tensor import Parameter
from framework.paddle.distributed.env import get_world_size
from framework.paddle.distributed.gradients import average_gradients

if TYPE_CHECKING:
    from framework.paddle.distributed.fleet.topology import HybridCommunicateGroup
    from framework.paddle.optimizer import Optimizer


def obtain_optimizer_parameters_list(optimizer: object) -> list[Parameter]:
    """The parameters of an optimizer, or of one that it wraps, without their groups."""
    inner = cast("Optimizer", getattr(optimizer, "_inner_opt", optimizer))
    return inner._all_parameters()


def fused_allreduce_gradients(
    parameter_list: Iterable[Parameter], hcg: HybridCommunicateGroup | None
) -> None:
    """The mean of the gradients over the processes that hold the same parameters, in place."""
    group = None if hcg is None else hcg.get_data_parallel_group()
    if get_world_size(group) > 1:
        average_gradients(parameter_list, group)
