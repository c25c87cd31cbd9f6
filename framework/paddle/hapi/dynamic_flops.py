"""Counters of `paddle.flops`: functions (layer, inputs, output) that add to `layer.total_ops`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import as_array, wrap
from framework.paddle.hapi.summary import Count, _counts

if TYPE_CHECKING:
    from framework.paddle._kernel.tensor import Tensor
    from framework.paddle.nn.layer import Layer

Counter = Callable[["Layer", "Sequence[Tensor]", "Tensor"], None]


def _counter(count: Count) -> Counter:
    def add(m: Layer, x: Sequence[Tensor], y: Tensor) -> None:
        m.total_ops += abs(int(count(m, x[0], y)))

    return add


register_hooks: dict[type, Counter] = {kind: _counter(count) for kind, count in _counts().items()}


def count_parameters(m: Layer, x: Sequence[Tensor], y: Tensor) -> None:
    """Put the number of a layer's parameters into `m.total_params` [1]."""
    m.total_params[0] = sum(int(parameter.size) for parameter in m.parameters())


def count_io_info(m: Layer, x: Sequence[Tensor], y: Tensor) -> None:
    """Put the shapes of the first input and output into the buffers `input_shape` and `output_shape`."""
    first = y[0] if isinstance(y, list | tuple) else y
    for name, tensor in (("input_shape", x[0]), ("output_shape", first)):
        m.register_buffer(name, wrap(as_array(np.asarray(tensor.shape, np.int64))))


_complete(__name__)
