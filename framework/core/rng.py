"""Randomness is a scope: layers ask `next_key()`, and whoever runs them says where keys come from.

Outside a trace, keys come from one process-wide stream that `seed` resets. Under a trace (jit, grad, export) there must
be a scope, because a key taken from the process-wide stream would be baked into the program: every later call would
drop the same units. Without a scope `next_key` raises instead.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from framework.core.errors import TraceError
from framework.core.host_rng import seed_host_rng
from framework.core.process_state import state


class _Stream:
    """Keys `fold_in(root, 0)`, `fold_in(root, 1)`, …; the root key is made on first use."""

    def __init__(self, root: jax.Array | int) -> None:
        self._root, self._count = root, 0
        self._lock = threading.Lock()

    def next(self) -> jax.Array:
        with self._lock:
            if isinstance(self._root, int):
                self._root = jax.random.key(self._root)
            count, self._count = self._count, self._count + 1
        return jax.random.fold_in(self._root, count)


_scope: contextvars.ContextVar[_Stream | None] = contextvars.ContextVar("oar_rng_scope", default=None)
_lock = threading.Lock()
_unread = np.random.default_rng(0)
_counted: contextvars.ContextVar[bool] = contextvars.ContextVar("oar_counted_initializers", default=True)


def seed(value: int) -> None:
    """Reset the process-wide stream of keys, the stream that initialises parameters, and the host's generator."""
    seed_host_rng(int(value))
    with _lock:
        state.key_stream, state.initializer_seed = _Stream(int(value)), (int(value), 0)


@contextlib.contextmanager
def rng_scope(key: jax.Array) -> Iterator[None]:
    """Within the block, `next_key()` returns keys derived from `key`, the same ones at every run of the block."""
    token = _scope.set(_Stream(key))
    try:
        yield
    finally:
        _scope.reset(token)


def next_key() -> jax.Array:
    """A fresh key from the innermost `rng_scope`, or from the process-wide stream outside of any trace.

    Raises:
        TraceError: under jit, grad or export without a scope.
    """
    stream = _scope.get()
    if stream is None:
        if is_tracing():
            raise TraceError(
                "a layer asked for randomness under a trace without a random key",
                received="a trace (jit, grad or export) outside of any rng_scope",
                allowed="`nn.apply(graphdef, params, buffers, key, …)` with a key, or `with framework.rng_scope(key):`",
                fix="pass a key, or call `layer.eval()` if this is inference: dropout and its kin then need none",
            )
        stream = _process_stream()
    return stream.next()


def _process_stream() -> _Stream:
    with _lock:
        if state.key_stream is None:
            state.key_stream = _Stream(0)
        return state.key_stream


def is_tracing() -> bool:
    """Whether the code runs inside a jax trace, where arrays are placeholders without values."""
    return isinstance(jnp.zeros(()), Tracer)


def array_of(values: np.ndarray) -> jax.Array:
    """A jax array of values that nobody writes into afterwards: on a CPU it may lie in their memory.

    jnp.asarray compiles an identity for each shape (12 ms, jax 0.10), which the first step of a network would pay for
    each of its parameters and each entry of the optimizer's state.
    """
    return jnp.asarray(values) if is_tracing() else jax.device_put(values)


@contextlib.contextmanager
def uncounted_initializers() -> Iterator[None]:
    """Parameters made within the block are never read: those made afterwards start as if there had been none."""
    token = _counted.set(False)
    try:
        yield
    finally:
        _counted.reset(token)


@contextlib.contextmanager
def seeded_initializers(seed: int) -> Iterator[None]:
    """Every parameter made within the block starts from this seed, which is not 0, whatever was drawn before."""
    before, state.program_seed = state.program_seed, seed
    try:
        yield
    finally:
        state.program_seed = before


def next_initializer_rng() -> np.random.Generator:
    """A numpy generator for one parameter: the n-th parameter made after `seed(s)` always gets the same one."""
    if not _counted.get():
        return _unread
    if state.program_seed:
        return np.random.default_rng((state.program_seed, 0))
    with _lock:
        value, count = state.initializer_seed
        state.initializer_seed = (value, count + 1)
    return np.random.default_rng((value, count))
