"""paddle.amp: computing in 16 bits."""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.amp import debugging as debugging
from framework.paddle.amp.casting import amp_decorate as amp_decorate
from framework.paddle.amp.casting import amp_guard as amp_guard
from framework.paddle.amp.casting import (
    auto_cast,
    decorate,
    is_bfloat16_supported,
    is_float16_supported,
)
from framework.paddle.amp.grad_scaler import AmpScaler as AmpScaler
from framework.paddle.amp.grad_scaler import GradScaler
from framework.paddle.amp.lists import black_list as black_list
from framework.paddle.amp.lists import white_list as white_list

__all__ = [
    "GradScaler",
    "auto_cast",
    "decorate",
    "is_bfloat16_supported",
    "is_float16_supported",
]

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
