"""What is large and not always needed: made when it is first asked for, once, whatever the number of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value that `make` gives at the first `get`. After an error it is made again. It is pickled as it is unmade."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: tuple[T, ...] = ()
        self._lock = threading.Lock()

    def get(self) -> T:
        """The value. Raises: what `make` does."""
        with self._lock:
            if not self._made:
                self._made = (self._make(),)
            return self._made[0]

    def __reduce__(self) -> tuple[type[Lazy[T]], tuple[Callable[[], T]]]:
        return type(self), (self._make,)
