"""The grid of processes that `fleet.init` has made, where Paddle keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.distributed.fleet.topology import CommunicateTopology as CommunicateTopology
from framework.paddle.distributed.fleet.topology import HybridCommunicateGroup as HybridCommunicateGroup
from framework.paddle.distributed.fleet.topology import current_groups

if not TYPE_CHECKING:
    _resolve = _resolver(__name__)

    def __getattr__(name: str) -> object:
        return current_groups() if name == "_HYBRID_PARALLEL_GROUP" else _resolve(name)
