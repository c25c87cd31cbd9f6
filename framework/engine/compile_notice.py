"""Tells that a program compiles where that takes long, so that nobody takes a first step for a run that hangs."""

from __future__ import annotations

import contextlib
import itertools
import logging
import time
from collections.abc import Iterator

import jax
import numpy as np

from framework.core.elapsed import report_elapsed
from framework.core.types import PyTree

log = logging.getLogger("oar")

_FIRST, _EVERY = 2.0, 10.0  # seconds until the first line, and between two


class CompileNotice:
    """Around the calls of one jitted function: a line after two seconds of a call with arrays of new shapes, one every
    ten seconds while it goes on, and one when it is done. Calls that take less say nothing.

    Args:
        what: What compiles, as the lines name it.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._compiled: set[tuple[object, ...]] = set()

    @contextlib.contextmanager
    def around(self, arrays: PyTree) -> Iterator[bool]:
        """The call that takes these arrays; whether it is the first one with their shapes."""
        shapes = tuple((np.shape(leaf), str(getattr(leaf, "dtype", ""))) for leaf in jax.tree.leaves(arrays))
        if shapes in self._compiled:
            yield False
            return
        self._compiled.add(shapes)
        began = time.perf_counter()
        with report_elapsed(itertools.count(_FIRST, _EVERY), self._say):
            yield True
        if (took := time.perf_counter() - began) >= _FIRST:
            log.info(f"{self.what} compiled in {took:.0f} s")

    def _say(self, took: float) -> None:
        log.info(f"{self.what} compiles: {took:.0f} s until now")
