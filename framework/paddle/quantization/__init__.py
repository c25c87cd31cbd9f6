"""`paddle.quantization`: training with simulated integers (QAT), and scales measured after training (PTQ).

Models are prepared layer by layer, trained or fed, and converted to layers that hold integers and their scales. The
older `Imperative…` classes and their quantizers are imported, not made: calling one says what to use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.refused import refused as _refused
from framework.paddle.quantization.base_quanter import BaseObserver, BaseQuanter
from framework.paddle.quantization.config import QuantConfig
from framework.paddle.quantization.factory import quanter
from framework.paddle.quantization.quantize import PTQ, QAT

__all__ = ["PTQ", "QAT", "BaseObserver", "BaseQuanter", "QuantConfig", "quanter"]

# Which quantizers the older interface takes; packages import these lists, and no quantizer of it can be made here.
SUPPORT_ACT_QUANTIZERS = [
    _refused(f"paddle.quantization.{name}") for name in ("AbsmaxQuantizer", "HistQuantizer", "KLQuantizer")
]
SUPPORT_WT_QUANTIZERS = [
    _refused(f"paddle.quantization.{name}") for name in ("AbsmaxQuantizer", "PerChannelAbsmaxQuantizer")
]

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
