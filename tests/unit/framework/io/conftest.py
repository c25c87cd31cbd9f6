"""What the tests of loading share."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest


@pytest.fixture
def threads() -> Callable[[], list[str]]:
    """The names of this project's threads that the test started and that still run (other tests keep some too)."""
    before = set(threading.enumerate())

    def running() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("oar-") and t not in before]

    return running
