"""The wrapper of a model whose layers hold parts of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distributed.collective import Group, broadcast
from framework.paddle.distributed.gradients import average_gradients, watch_backward
from framework.paddle.distributed.parallel import WrappedLayer
from framework.paddle.nn.layer import Layer

if TYPE_CHECKING:
    from framework.paddle.distributed.fleet.topology import HybridCommunicateGroup


def synchronize_whole_parameters(layer: Layer, groups: HybridCommunicateGroup) -> None:
    """Give processes that hold the same values those of the first of them: what is divided among the data-parallel and
    sharding groups, all else among the tensor-parallel group too."""
    alike = (groups.get_data_parallel_group(), groups.get_sharding_parallel_group())
    for tensor in (*layer.parameters(), *layer.buffers()):
        holders = alike
        if not getattr(tensor, "is_distributed", False):
            holders = (groups.get_model_parallel_group(), *alike)
        for group in holders:
            if group.nranks > 1:
                broadcast(tensor, group.ranks[0], group)


def data_groups(groups: HybridCommunicateGroup) -> list[Group]:
    """The groups over which gradients are averaged."""
    alike = (groups.get_data_parallel_group(), groups.get_sharding_parallel_group())
    return [group for group in alike if group.nranks > 1]


class TensorParallel(WrappedLayer):
    """A model with ColumnParallelLinear and its kin: starts with the same values where they are not divided, and
    averages gradients over the data-parallel group after each backward. All processes of a tensor-parallel group are
    given the same batch."""

    def __init__(self, layers: Layer, hcg: HybridCommunicateGroup, **kwargs: object) -> None:
        super().__init__(f"{layers.full_name()}_tensor_parallel")
        self._layers, self._hcg = layers, hcg
        synchronize_whole_parameters(layers, hcg)
        if data_groups(hcg):
            watch_backward(self)

    def after_backward(self, leaves: Sequence[Tensor]) -> None:
        """Average gradients, where a backward has reached parameters of this model."""
        reached = {id(leaf) for leaf in leaves}
        if any(id(parameter) in reached for parameter in self._layers.parameters()):
            for group in data_groups(self._hcg):
                average_gradients(self._layers.parameters(), group)
