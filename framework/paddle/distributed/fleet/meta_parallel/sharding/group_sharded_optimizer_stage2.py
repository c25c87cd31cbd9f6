"""The optimizer of the levels "os" and "os_g"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Parameter
from framework.paddle.distributed.collective import Group, broadcast, get_group
from framework.paddle.distributed.sharding import ShardedOptimizer

if TYPE_CHECKING:
    from framework.paddle.optimizer.base import Optimizer


class GroupShardedOptimizerStage2(ShardedOptimizer):
    """An optimizer of which each process of the group keeps the state of a share of the parameters.

    `offload` and `device` steer where Paddle keeps the state and change nothing here. `params` are those of the
    optimizer; with `pertrain_sync_models` all processes start from the values of the first.
    """

    def __init__(
        self,
        params: Sequence[Parameter],
        optim: Optimizer,
        group: Group | None = None,
        offload: bool = False,
        device: str = "gpu",
        pertrain_sync_models: bool = True,
        dp_group: Group | None = None,
        **kw: object,
    ) -> None:
        super().__init__(optim, group)
        self._optim, self.offload = optim, offload
        if pertrain_sync_models:
            first = (group or get_group(0)).ranks[0]  # type: ignore[union-attr]
            for parameter in params:
                broadcast(parameter, first, group)


_complete(__name__)
