"""paddle.distributed.sharding: with one process there is nothing to divide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from framework import paddle
from framework.paddle._kernel.errors import ShapeError
from framework.paddle.distributed.collective import Group
from framework.paddle.distributed.env import alone

if TYPE_CHECKING:
    from framework.paddle.amp.grad_scaler import GradScaler
    from framework.paddle.nn.layer import Layer
    from framework.paddle.optimizer.base import Optimizer


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
) -> tuple[Layer, Optimizer, GradScaler | None]:
    """(model, optimizer, scaler) as they are.

    Raises:
        ShapeError: there is no such level.
    """
    alone("sharding.group_sharded_parallel")
    if level not in ("os", "os_g", "p_g_os"):
        raise ShapeError(
            "there is no such level",
            where="paddle.distributed.sharding.group_sharded_parallel",
            received=repr(level),
            allowed="os, os_g, p_g_os",
        )
    return model, optimizer, scaler


def save_group_sharded_model(model: Layer, output: str, optimizer: Optimizer | None = None) -> None:
    """Write model.pdmodel and model.pdopt into a folder."""
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    paddle.save(model.state_dict(), str(folder / "model.pdmodel"))
    if optimizer is not None:
        paddle.save(optimizer.state_dict(), str(folder / "model.pdopt"))
