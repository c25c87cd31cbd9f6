"""Pooling as layers."""

from __future__ import annotations

import functools

from framework.paddle.nn import functional as F
from framework.paddle.nn.functional_layer import functional_layer

_layer = functools.partial(functional_layer, module=__name__, prefix="")
_WINDOWS = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
_SIZE = "output_size={output_size}"
_KSIZE = {"kernel_size": "ksize", "divisor_override": "divisor"}
_HIDDEN = {"output_size": "_output_size", "data_format": "_data_format", "return_mask": "_return_mask"}

MaxPool1D = _layer("MaxPool1D", F.max_pool1d, inputs="input", shown=_WINDOWS)
MaxPool2D = _layer("MaxPool2D", F.max_pool2d, attributes=_KSIZE, shown=_WINDOWS)
MaxPool3D = _layer("MaxPool3D", F.max_pool3d, attributes=_KSIZE, shown=_WINDOWS)
AvgPool1D = _layer("AvgPool1D", F.avg_pool1d, shown=_WINDOWS)
AvgPool2D = _layer("AvgPool2D", F.avg_pool2d, attributes=_KSIZE, shown=_WINDOWS)
AvgPool3D = _layer("AvgPool3D", F.avg_pool3d, attributes=_KSIZE, shown=_WINDOWS)
AdaptiveAvgPool1D = _layer("AdaptiveAvgPool1D", F.adaptive_avg_pool1d, inputs="input", shown=_SIZE)
AdaptiveAvgPool2D = _layer("AdaptiveAvgPool2D", F.adaptive_avg_pool2d, attributes=_HIDDEN, shown=_SIZE)
AdaptiveAvgPool3D = _layer("AdaptiveAvgPool3D", F.adaptive_avg_pool3d, attributes=_HIDDEN, shown=_SIZE)
_MASK = _SIZE + ", return_mask={return_mask}"
AdaptiveMaxPool1D = _layer("AdaptiveMaxPool1D", F.adaptive_max_pool1d, inputs="input", shown=_MASK)
AdaptiveMaxPool2D = _layer("AdaptiveMaxPool2D", F.adaptive_max_pool2d, attributes=_HIDDEN, shown=_MASK)
AdaptiveMaxPool3D = _layer("AdaptiveMaxPool3D", F.adaptive_max_pool3d, attributes=_HIDDEN, shown=_MASK)
_UNPOOL = {"inputs": "x indices", "attributes": _KSIZE, "shown": _SIZE}
MaxUnPool1D = _layer("MaxUnPool1D", F.max_unpool1d, **_UNPOOL)
MaxUnPool2D = _layer("MaxUnPool2D", F.max_unpool2d, **_UNPOOL)
MaxUnPool3D = _layer("MaxUnPool3D", F.max_unpool3d, **_UNPOOL)
