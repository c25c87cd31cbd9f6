"""The model of the level "os_g"."""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.distributed.collective import Group
from framework.paddle.distributed.parallel import DataParallel
from framework.paddle.distributed.sharding import ShardedOptimizer
from framework.paddle.nn.layer import Layer


class GroupShardedStage2(DataParallel):
    """A model whose gradients are averaged over a group, for a GroupShardedOptimizerStage2.

    Gradients are whole on each process. `sync_buffers`, `buffer_max_size`, `auto_refresh_trainable` and `device` steer
    where Paddle keeps them and change nothing here.
    """

    def __init__(
        self,
        layer: Layer,
        sharding_optimizer: ShardedOptimizer | Sequence[ShardedOptimizer],
        group: Group | None = None,
        sync_buffers: bool = False,
        buffer_max_size: int = 2**23,
        auto_refresh_trainable: bool = True,
        device: str = "gpu",
        dp_group: Group | None = None,
    ) -> None:
        super().__init__(layer, group=group)
        listed = sharding_optimizer if isinstance(sharding_optimizer, list) else [sharding_optimizer]
        self._sharding_optimizers = listed


_complete(__name__)
