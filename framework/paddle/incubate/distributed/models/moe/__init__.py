"""Mixtures of experts: the clipping of their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.incubate.distributed.models.moe.grad_clip import (
    ClipGradForMOEByGlobalNorm as ClipGradByGlobalNorm,
)
from framework.paddle.incubate.distributed.models.moe.grad_clip import (
    ClipGradForMOEByGlobalNorm as ClipGradForMOEByGlobalNorm,
)

__all__ = ["ClipGradByGlobalNorm", "ClipGradForMOEByGlobalNorm"]
if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
