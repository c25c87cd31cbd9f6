"""paddle.distributed.sharding: the state of the optimizer is divided among processes (ZeRO, arXiv 1910.02054)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework import paddle
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Parameter
from framework.paddle.distributed.collective import Group, broadcast, get_group
from framework.paddle.distributed.env import get_rank, get_world_size
from framework.paddle.distributed.parallel import DataParallel

if TYPE_CHECKING:
    from framework.paddle.amp.grad_scaler import GradScaler
    from framework.paddle.nn.layer import Layer
    from framework.paddle.optimizer.base import Optimizer


class ShardedOptimizer:
    """An optimizer of which each process updates its share of the parameters, so that each keeps the state of a share;
    the others get the new values. All else is the optimizer's."""

    def __init__(self, optimizer: Optimizer, group: Group | None = None) -> None:
        self._inner_opt, self._group = optimizer, group
        self._parameters: list[Parameter] = optimizer._all_parameters()
        self._owner = _owners(self._parameters, (group or get_group(0)).ranks)  # type: ignore[union-attr]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner_opt, name)

    def step(self) -> None:
        """Update the share of this process and exchange the values; gradients are those of all processes already."""
        rank, shares = get_rank(), []
        for group in self._inner_opt._groups():
            pairs = [(one, one.grad) for one in group["params"] if one.grad is not None]
            if group["grad_clip"] is not None:  # by the norm of all gradients, not of the share
                pairs = group["grad_clip"](pairs)
            local = [(one, gradient) for one, gradient in pairs if self._owner[id(one)] == rank]
            shares.append(({**group, "grad_clip": None}, local))
        self._inner_opt._apply(shares)
        for parameter in self._parameters:
            broadcast(parameter, self._owner[id(parameter)], self._group)

    def minimize(self, loss: paddle.Tensor, *args: object, **kwargs: object) -> tuple[list, list]:
        """`backward`, `step`."""
        loss.backward()
        self.step()
        return [], []


def _owners(parameters: Sequence[Parameter], ranks: Sequence[int]) -> dict[int, int]:
    """Which process updates a parameter, by its id: the largest first, each to whom has the least."""
    load = dict.fromkeys(ranks, 0)
    owners = {}
    for parameter in sorted(parameters, key=lambda one: -one.size):
        owner = min(load, key=lambda rank: load[rank])
        owners[id(parameter)] = owner
        load[owner] += parameter.size
    return owners


def group_sharded_parallel(
    model: Layer,
    optimizer: Optimizer,
    level: str,
    scaler: GradScaler | None = None,
    group: Group | None = None,
    offload: bool = False,
    sync_buffers: bool = False,
    buffer_max_size: int = 8388608,
    segment_size: int = 1048576,
    sync_comm: bool = False,
    dp_group: Group | None = None,
    exclude_layer: object = None,
) -> tuple[Layer, Any, GradScaler | None]:
    """(model, optimizer, scaler) that train on all processes of the group.

    Each keeps the optimizer's state of its share of the parameters; gradients and parameters are whole on each,
    whatever the level: a Trainer with `parallel: {fsdp: ...}` divides these too. The results are those of every level.

    Raises:
        ShapeError: there is no such level.
    """
    if level not in ("os", "os_g", "p_g_os"):
        raise ShapeError(
            "there is no such level",
            where="paddle.distributed.sharding.group_sharded_parallel",
            received=repr(level),
            allowed="os, os_g, p_g_os",
        )
    if get_world_size(group) == 1:
        return model, optimizer, scaler
    return DataParallel(model, group=group), ShardedOptimizer(optimizer, group), scaler


def save_group_sharded_model(model: Layer, output: str, optimizer: Optimizer | None = None) -> None:
    """Write model.pdmodel and model.pdopt into a folder."""
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    paddle.save(model.state_dict(), str(folder / "model.pdmodel"))
    if optimizer is not None:
        paddle.save(optimizer.state_dict(), str(folder / "model.pdopt"))


_complete(__name__)
