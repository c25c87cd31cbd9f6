"""Watching Tensors: while a program is traced or recorded, every reading and setting of a Tensor's value and gradient
goes to a watcher. Nothing of this costs anything outside: the attributes become properties only while somebody watches.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import jax

from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Tensor


class Watcher(Protocol):
    """What is told of the Tensors that a thread touches."""

    def read_value(self, tensor: Tensor, value: Any) -> Any:
        """`tensor._value` is asked for; the result is what the asker gets."""
        ...

    def set_value(self, tensor: Tensor, value: Any, new: bool) -> bool:
        """`tensor._value = value`; `new` where it had none. False: the value is not set."""
        ...

    def touch_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """`tensor._grad`, which is `grad`, is read, or about to be set."""
        ...

    def touch_zero(self, tensor: Tensor, reads: bool) -> None:
        """`tensor._zero_grad` is read, or about to be set."""
        ...


def _get_value(self: Tensor) -> jax.Array:
    try:
        value = self.__dict__["_value"]
    except KeyError:
        raise AttributeError("_value") from None
    watcher = mode.watcher
    return value if watcher is None else watcher.read_value(self, value)


def _set_value(self: Tensor, value: jax.Array) -> None:
    watcher, state = mode.watcher, self.__dict__
    if watcher is None or watcher.set_value(self, value, "_value" not in state):
        state["_value"] = value


def _get_grad(self: Tensor) -> Tensor | None:
    grad = self.__dict__.get("_grad")
    if mode.watcher is not None:
        mode.watcher.touch_grad(self, grad)
    return grad


def _set_grad(self: Tensor, grad: Tensor | None) -> None:
    state = self.__dict__
    if mode.watcher is not None:
        mode.watcher.touch_grad(self, state.get("_grad"))
    state["_grad"] = grad


def _get_zero(self: Tensor) -> bool:
    if mode.watcher is not None:
        mode.watcher.touch_zero(self, True)
    return self.__dict__.get("_zero_grad", False)


def _set_zero(self: Tensor, zero: bool) -> None:
    if mode.watcher is not None:
        mode.watcher.touch_zero(self, False)
    self.__dict__["_zero_grad"] = zero


_lock = threading.Lock()
_watching = 0


def install() -> None:
    """Make the attributes properties; to be undone by `uninstall`."""
    global _watching
    with _lock:
        _watching += 1
        if _watching == 1:
            Tensor._value = property(_get_value, _set_value)  # type: ignore[assignment]
            Tensor._grad = property(_get_grad, _set_grad)  # type: ignore[assignment]
            Tensor._zero_grad = property(_get_zero, _set_zero)  # type: ignore[assignment]


def uninstall() -> None:
    """Make the attributes plain ones again when nobody watches any more."""
    global _watching
    with _lock:
        _watching -= 1
        if _watching == 0:
            del Tensor._value
            Tensor._grad = None
            Tensor._zero_grad = False


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Within the block this thread's Tensors are watched by `watcher`; None: by nobody."""
    install()
    before, mode.watcher = mode.watcher, watcher
    try:
        yield
    finally:
        mode.watcher = before
        uninstall()


@contextmanager
def unwatched() -> Iterator[None]:
    """Within the block everything runs at once, also under a trace or while a program is recorded."""
    from framework.paddle._kernel.mode import recorder_scope

    before, keys = mode.watcher, mode.keys
    mode.watcher = mode.keys = None
    try:
        with recorder_scope(None), jax.ensure_compile_time_eval():
            yield
    finally:
        mode.watcher, mode.keys = before, keys
