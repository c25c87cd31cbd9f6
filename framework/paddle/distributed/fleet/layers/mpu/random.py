"""Random states by name: what of a tensor-parallel model draws the same on all processes, and what does not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from framework import paddle
from framework.paddle._kernel.errors import ShapeError
from framework.paddle.distributed.fleet.topology import current_groups

MODEL_PARALLEL_RNG = "model_parallel_rng"


class RNGStatesTracker:
    """States of the random generator by name; `rng_state(name)` draws from one of them within a block."""

    def __init__(self) -> None:
        self.states_: dict[str, Any] = {}
        self.seeds_: set[int] = set()

    def reset(self) -> None:
        """Forget all states."""
        self.states_, self.seeds_ = {}, set()

    def add(self, name: str, seed: int) -> None:
        """A new state that starts from a seed. Raises: ShapeError, where the name or the seed is taken."""
        if seed in self.seeds_ or name in self.states_:
            raise ShapeError(
                "a random state has a name and a seed of its own",
                where="RNGStatesTracker.add",
                received=f"{name!r}, seed {seed}",
                allowed=f"other names than {sorted(self.states_)}, other seeds than {sorted(self.seeds_)}",
            )
        self.seeds_.add(seed)
        before = paddle.get_rng_state()
        paddle.seed(seed)
        self.states_[name] = paddle.get_rng_state()
        paddle.set_rng_state(before)

    def get_states_tracker(self) -> dict[str, Any]:
        return dict(self.states_)

    def set_states_tracker(self, states: dict[str, Any]) -> None:
        self.states_ = states

    @contextlib.contextmanager
    def rng_state(self, name: str = MODEL_PARALLEL_RNG) -> Iterator[None]:
        """Draw from this state within the block. Raises: ShapeError, where there is none of the name."""
        if name not in self.states_:
            raise ShapeError(
                "there is no such random state",
                where="RNGStatesTracker.rng_state",
                received=repr(name),
                allowed=", ".join(sorted(self.states_)) or "what `add` has added",
            )
        before = paddle.get_rng_state()
        paddle.set_rng_state(self.states_[name])
        try:
            yield
        finally:
            self.states_[name] = paddle.get_rng_state()
            paddle.set_rng_state(before)


_tracker = RNGStatesTracker()


def get_rng_state_tracker() -> RNGStatesTracker:
    """That of the process."""
    return _tracker


def model_parallel_random_seed(seed: int | None = None) -> None:
    """One seed for what all processes of a group draw alike, another for what each draws by itself."""
    base = 100 if seed is None else seed
    groups = current_groups()
    rank = 0 if groups is None else groups.get_model_parallel_rank()
    _tracker.reset()
    paddle.seed(base)
    _tracker.add(MODEL_PARALLEL_RNG, base + 1024 + rank)
