"""What a process shares, and that `reset` makes it as it was at the start."""

from __future__ import annotations

import numpy as np
import pytest

from framework.core import process_state
from framework.core.host_rng import host_rng
from framework.core.process_state import ProcessState, reset, state
from framework.core.rng import next_initializer_rng, next_key, seed
from framework.paddle.utils import unique_name


@pytest.fixture(autouse=True)
def untouched_state(monkeypatch: pytest.MonkeyPatch):
    """The state of the tests' own process is put back."""
    before = dict(vars(state))
    yield
    vars(state).update(before)


def test_reset_starts_all_streams_anew() -> None:
    reset()
    first = (next_key(), next_initializer_rng().random(), host_rng().random(), unique_name.generate("linear"))
    seed(7)
    other = (next_key(), next_initializer_rng().random(), host_rng().random(), unique_name.generate("linear"))
    assert (
        other[3] == "linear_1" and not np.isclose(first[1], other[1]) and not np.isclose(first[2], other[2])
    )
    reset()
    again = (next_key(), next_initializer_rng().random(), host_rng().random(), unique_name.generate("linear"))
    assert (again[0] == first[0]).all() and again[1:] == first[1:]


def test_reset_knows_every_field() -> None:
    for name in vars(state):
        setattr(state, name, object())
    reset()
    assert state == ProcessState() and process_state.state is state
