"""64-bit types for the operations of this room alone: the core keeps its 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import jax


def x64() -> AbstractContextManager[None]:
    """Within the block jax keeps int64 and float64."""
    return jax.enable_x64(True)


def _swap_by_state() -> tuple[Callable[[bool | None], bool | None], Callable[[bool | None], None]]:
    """The two functions behind `jax.enable_x64`: 0.3 instead of 2 microseconds a call, of the 8 that an operation on
    small Tensors takes. They are not public, so `ImportError` and `AttributeError` mean: do without."""
    from jax._src import config

    state = config.enable_x64
    return state.swap_local, state.set_local


def _swap_by_context() -> tuple[Callable[[bool | None], object], Callable[[object], None]]:
    def enter(value: bool | None) -> object:
        scope = jax.enable_x64(bool(value))
        scope.__enter__()
        return scope

    def leave(scope: object) -> None:
        scope.__exit__(None, None, None)  # type: ignore[attr-defined]

    return enter, leave


try:
    enter_x64, leave_x64 = _swap_by_state()
except (ImportError, AttributeError):
    enter_x64, leave_x64 = _swap_by_context()
