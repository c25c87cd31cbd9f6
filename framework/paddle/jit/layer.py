"""paddle.jit.layer: a saved model as an object whose methods are its functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.jit.save import load

Function = Callable[..., list[Tensor]]


class Layer:
    """What `paddle.jit.save` wrote: `load(path, place)`, then `forward(*inputs)`, which returns a list."""

    def __init__(self) -> None:
        self.cpp_layer: object = None
        self.functions: dict[str, Function] = {}

    def load(self, load_path: str, place: object) -> None:
        """Read a model; XLA decides where it runs."""
        self.cpp_layer = layer = load(load_path)

        def forward(*inputs: object) -> list[Tensor]:
            result = layer(*inputs)
            return list(result) if isinstance(result, Sequence) else [result]

        self.functions["forward"] = self.forward = forward


_complete(__name__)
