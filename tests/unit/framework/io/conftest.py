"""What the tests of loading share."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def threads() -> Iterator[Callable[[], list[str]]]:
    """The names of this project's threads that the test started and that still run (other tests keep some too).

    What was there before is frozen meanwhile: collecting garbage then looks through the objects of this test alone.
    """
    gc.freeze()
    before = set(threading.enumerate())

    def running() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("oar-") and t not in before]

    yield running
    gc.unfreeze()
