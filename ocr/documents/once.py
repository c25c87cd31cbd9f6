"""Functions that open something large, called once whatever the number of threads that ask."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Once(Generic[P, T]):
    """A function that is called once for each choice of its arguments, which are hashable.

    functools.cache would open a model twice where two threads ask at once. After an error it is called again.
    """

    def __init__(self, open_it: Callable[P, T]) -> None:
        functools.update_wrapper(self, open_it)
        self._open_it = open_it
        self._opened: dict[Hashable, T] = {}
        self._lock = threading.Lock()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (args, tuple(sorted(kwargs.items())))
        with self._lock:
            if key not in self._opened:
                self._opened[key] = self._open_it(*args, **kwargs)
            return self._opened[key]

    def cache_clear(self) -> None:
        """Forget what was opened."""
        with self._lock:
            self._opened.clear()
