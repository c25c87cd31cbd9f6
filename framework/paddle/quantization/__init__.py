"""`paddle.quantization`: training with simulated integers (QAT), and scales measured after training (PTQ).

Models are prepared layer by layer, trained or fed, and converted to layers that hold integers and their scales. The
older `Imperative…` classes are not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.quantization.base_quanter import BaseObserver, BaseQuanter
from framework.paddle.quantization.config import QuantConfig
from framework.paddle.quantization.factory import quanter
from framework.paddle.quantization.quantize import PTQ, QAT

__all__ = ["PTQ", "QAT", "BaseObserver", "BaseQuanter", "QuantConfig", "quanter"]

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
