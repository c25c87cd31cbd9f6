"""`paddle.nn.quant`: layers of models that are quantised, see `paddle.quantization`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.nn.quant import qat as qat
from framework.paddle.nn.quant import stub as stub
from framework.paddle.nn.quant.functional_layers import FloatFunctionalLayer as FloatFunctionalLayer
from framework.paddle.nn.quant.functional_layers import add as add
from framework.paddle.nn.quant.functional_layers import concat as concat
from framework.paddle.nn.quant.functional_layers import divide as divide
from framework.paddle.nn.quant.functional_layers import flatten as flatten
from framework.paddle.nn.quant.functional_layers import matmul as matmul
from framework.paddle.nn.quant.functional_layers import multiply as multiply
from framework.paddle.nn.quant.functional_layers import reshape as reshape
from framework.paddle.nn.quant.functional_layers import subtract as subtract
from framework.paddle.nn.quant.functional_layers import transpose as transpose
from framework.paddle.nn.quant.stub import Stub

__all__ = ["Stub"]

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
