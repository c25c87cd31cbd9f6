"""Randomness of the host: transforms in Paddle's spelling take no generator, they ask `host_rng()`. Imports no jax.

A loader opens a scope around each sample, so what is drawn depends on (seed, epoch, index) and on no worker. Outside of
a scope there is one generator for the process, which `framework.seed` resets (seed 0 where it was never called).
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Sequence

import numpy as np

from framework.core.process_state import state


class _Scope:
    """A generator that is made when it is first asked for: most samples never ask."""

    def __init__(self, entropy: Sequence[int]) -> None:
        self._entropy = entropy
        self._rng: np.random.Generator | None = None

    def rng(self) -> np.random.Generator:
        if self._rng is None:  # the spawn key sets it apart from the generator of the loader's transforms
            self._rng = np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=(2,)))
        return self._rng


_scope: contextvars.ContextVar[_Scope | None] = contextvars.ContextVar("oar_host_rng", default=None)


def host_rng() -> np.random.Generator:
    """The generator of the innermost `host_rng_scope`, else that of the process."""
    scope = _scope.get()
    if scope is None:
        if state.host_rng is None:
            state.host_rng = _Scope((0,))
        scope = state.host_rng
    return scope.rng()


@contextlib.contextmanager
def host_rng_scope(entropy: Sequence[int]) -> Iterator[None]:
    """Within the block `host_rng()` is one generator that these whole numbers decide, all >= 0."""
    token = _scope.set(_Scope(entropy))
    try:
        yield
    finally:
        _scope.reset(token)


def seed_host_rng(value: int) -> None:
    """Start the generator of the process anew; `framework.seed` calls it."""
    state.host_rng = _Scope((abs(value), int(value < 0)))
