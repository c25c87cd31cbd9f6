"""The random state: `paddle.seed` and the keys that random operations take."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from framework.core.rng import seed as seed_core
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.mode import mode


class GeneratorState(NamedTuple):
    """Where a stream of keys stands: its seed and how many keys it gave."""

    seed: int
    drawn: int

    def current_seed(self) -> int:
        """What `paddle.seed` was called with."""
        return self.seed


class Generator:
    """A stream of keys: the n-th key after `manual_seed(s)` is always (s, n)."""

    def __init__(self, seed: int = 0) -> None:
        self._lock = threading.Lock()
        self._seed, self._count = seed, 0

    def manual_seed(self, seed: int) -> Generator:
        with self._lock:
            self._seed, self._count = int(seed), 0
        return self

    def initial_seed(self) -> int:
        return self._seed

    def next_key(self) -> np.ndarray:
        """Two words (uint32) that no other call gets; the data of a jax key. Under a trace they come of a key that is
        an input of the compiled program."""
        if mode.keys is not None:
            return mode.keys()  # type: ignore[return-value]
        with self._lock:
            count, self._count = self._count, self._count + 1
        return np.array([(self._seed ^ (self._seed >> 32)) & 0xFFFFFFFF, count & 0xFFFFFFFF], np.uint32)

    def get_state(self) -> GeneratorState:
        with self._lock:
            return GeneratorState(self._seed, self._count)

    def set_state(self, state: tuple[int, int]) -> None:
        try:
            seed, count = (int(part) for part in state)
        except (TypeError, ValueError):
            raise ShapeError(
                "this is no random state",
                where="paddle.set_rng_state",
                received=repr(state)[:80],
                allowed="what get_rng_state returned",
            ) from None
        with self._lock:
            self._seed, self._count = seed, count


class TracedKeys:
    """The keys of a traced function: the n-th is folded from `root`, the key that each call gets."""

    def __init__(self, root: jax.Array) -> None:
        self.root = root
        self.count = 0

    def __call__(self) -> jax.Array:
        count, self.count = self.count, self.count + 1
        return jax.random.key_data(jax.random.fold_in(jax.random.wrap_key_data(self.root), count))


default_generator = Generator(int(np.random.SeedSequence().generate_state(1)[0]))


def seed(seed: int) -> Generator:
    """Make everything random repeat from here: operations, initial parameters and shuffling."""
    seed_core(int(seed))
    return default_generator.manual_seed(seed)


def get_rng_state(device: object = None) -> list[GeneratorState]:
    """The random state, for `set_rng_state`."""
    return [default_generator.get_state()]


def set_rng_state(state_list: Sequence[tuple[int, int]], device: object = None) -> None:
    """Go on from a state that `get_rng_state` returned."""
    default_generator.set_state(state_list[0])


def get_cuda_rng_state() -> list[GeneratorState]:
    """`get_rng_state`: all devices have one stream here."""
    return get_rng_state()


def set_cuda_rng_state(state_list: Sequence[tuple[int, int]]) -> None:
    """`set_rng_state`: all devices have one stream here."""
    set_rng_state(state_list)


Position = tuple[object, tuple[int, int]]


def position() -> Position:
    """Where random numbers stand, for `seek`: of the traced function, or of the default generator."""
    keys = mode.keys
    return (keys, (0, keys.count)) if isinstance(keys, TracedKeys) else (None, default_generator.get_state())


def seek(where: Position) -> None:
    """Go back to a `position` (or on to it)."""
    keys, state = where
    if isinstance(keys, TracedKeys):
        keys.count = state[1]
    else:
        default_generator.set_state(state)
