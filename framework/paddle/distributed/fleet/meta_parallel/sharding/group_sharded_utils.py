"""Types of parameters, and the scaler, of training with divided state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.device import get_device, set_device

if TYPE_CHECKING:
    from framework.paddle.amp.grad_scaler import GradScaler


class Type(Enum):
    """The types of parameters that are trained; `Type.fp16.value` is `paddle.float16`."""

    fp16 = types.float16
    bf16 = types.bfloat16
    fp32 = types.float32


def GroupShardedScaler(scaler: GradScaler) -> GradScaler:
    """The scaler as it is: gradients are averaged before it looks at them, so that all processes see the same."""
    return scaler


@contextlib.contextmanager
def device_guard(dev_id: int = 0, device: str = "cpu") -> Iterator[None]:
    """Make Tensors on this device within the block."""
    before = get_device()
    set_device(device if device == "cpu" else f"{device}:{dev_id}")
    try:
        yield
    finally:
        set_device(before)


_complete(__name__)
