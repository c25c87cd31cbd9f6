"""saved_tensors_hooks: what the tape keeps for the backward run goes through two functions of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from framework.paddle._kernel.dispatch import Compiled, OperationNode, execute
from framework.paddle._kernel.mode import Route, mode, set_recorder
from framework.paddle._kernel.tensor import Tensor, wrap

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]

_active: list[tuple[Pack, Unpack]] = []


def active_hooks() -> tuple[Pack, Unpack] | None:
    """The hooks of the innermost block, if any."""
    return _active[-1] if _active else None


class saved_tensors_hooks:
    """Within the block `pack_hook(tensor)` replaces what is kept for the backward run, and `unpack_hook` brings the
    Tensor back when it is needed."""

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._before: Route | None = None

    def __enter__(self) -> saved_tensors_hooks:
        _active.append((self.pack_hook, self.unpack_hook))
        self._before = set_recorder(self._route)
        return self

    def __exit__(self, *error: object) -> None:
        set_recorder(self._before)
        _active.pop()

    def _route(self, compiled: Compiled, args: Sequence[object]) -> object:
        before = self._before
        out = execute(compiled, args) if before is None else before(compiled, args)
        first = out[0] if isinstance(out, tuple) else out
        node = first._node if mode.grad_enabled and isinstance(first, Tensor) else None
        if isinstance(node, OperationNode) and node.values is not None and node.compiled is compiled:
            set_recorder(before)  # the hooks' own operations are not packed
            try:
                node.values = _Packed(node.values, args, self.pack_hook, self.unpack_hook)
                node.residual = None  # computed again from the packed inputs
            finally:
                set_recorder(self._route)
        return out


class _Packed(Sequence[Any]):
    """The inputs of an operation, packed; each reading unpacks them."""

    def __init__(self, values: Sequence[object], args: Sequence[object], pack: Pack, unpack: Unpack) -> None:
        self._unpack = unpack
        self._packed = [isinstance(arg, Tensor) for arg in args]
        self._kept = [
            pack(_copy(value, arg)) if isinstance(arg, Tensor) else value
            for value, arg in zip(values, args, strict=True)
        ]

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: Any) -> Any:
        return self._unpack(self._kept[index])._value if self._packed[index] else self._kept[index]

    def __iter__(self) -> Iterator[jax.Array]:
        for index in range(len(self)):
            yield self[index]


def _copy(value: Any, like: Tensor) -> Tensor:
    tensor = wrap(value)
    tensor.stop_gradient = like.stop_gradient
    return tensor
