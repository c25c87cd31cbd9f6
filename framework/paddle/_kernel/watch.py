"""Watching Tensors: while a program is traced or recorded, every reading and setting of a Tensor's value and gradient
goes to a watcher: the properties `_value`, `_grad` and `_zero_grad` of Tensor ask for the one of their thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import jax

from framework.paddle._kernel.mode import mode, recorder_scope
from framework.paddle._kernel.tensor import Tensor

if TYPE_CHECKING:
    pass


class Watcher(Protocol):
    """What is told of the Tensors that a thread touches."""

    def read_value(self, tensor: Tensor, value: jax.Array) -> jax.Array:
        """`tensor._value` is asked for; the result is what the asker gets."""
        ...

    def set_value(self, tensor: Tensor, value: jax.Array, new: bool) -> bool:
        """`tensor._value = value`; `new` where it had none. False: the value is not set."""
        ...

    def touch_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """`tensor._grad`, which is `grad`, is read, or about to be set."""
        ...

    def touch_zero(self, tensor: Tensor, reads: bool) -> None:
        """`tensor._zero_grad` is read, or about to be set."""
        ...


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Within the block this thread's Tensors are watched by `watcher`; None: by nobody."""
    before, mode.watcher = mode.watcher, watcher
    try:
        yield
    finally:
        mode.watcher = before


@contextmanager
def unwatched() -> Iterator[None]:
    """Within the block everything runs at once, also under a trace or while a program is recorded."""
    before, keys = mode.watcher, mode.keys
    mode.watcher = mode.keys = None
    try:
        with recorder_scope(None), jax.ensure_compile_time_eval():
            yield
    finally:
        mode.watcher, mode.keys = before, keys
