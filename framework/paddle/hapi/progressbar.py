"""The line of progress that Model prints, laid out as Paddle's so that what reads its logs reads these."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from typing import TextIO

import numpy as np


class ProgressBar:
    """`verbose` 1: a bar that grows in its line; 2 and 3: a line each time.

    Args:
        start: Whether time is counted from here on; else from `start()`.
        file: What `start()` flushes; the bar goes to `sys.stdout`, as Paddle's does.

    Raises:
        TypeError: `num` is not positive.
    """

    def __init__(
        self,
        num: int | None = None,
        width: int = 30,
        verbose: int = 1,
        start: bool = True,
        file: TextIO | None = None,
        name: str = "step",
    ) -> None:
        if isinstance(num, int) and num <= 0:
            raise TypeError(f"ProgressBar: num should be None or an integer above 0, received {num}")
        self.file = file
        columns = shutil.get_terminal_size().columns or 80
        self._num, self._verbose, self.name = num, verbose, name
        self._width = min(width, int(columns * 0.6), columns - 50)
        self._length = 0
        if start:
            self._start = time.time()

    def start(self) -> None:
        """Count time from now on."""
        (self.file or sys.stdout).flush()
        self._start = time.time()

    def update(self, current_num: float, values: Sequence[tuple[str, object]] = ()) -> None:
        seconds = (time.time() - self._start) / current_num if current_num else 0.0
        info = "".join(f" - {name}:{_shown(value)}" for name, value in values)
        if self._verbose == 1:
            self._draw(current_num, info, seconds)
        elif self._verbose in (2, 3):
            sys.stdout.write(self._count(current_num) + info + self._speed(seconds) + "\n")
        sys.stdout.flush()

    def _count(self, current: float) -> str:
        whole = int(current)
        if not self._num:
            return f"{self.name} {whole:3d}"
        return f"{self.name} {whole:{len(str(self._num))}d}/{self._num}"

    def _speed(self, seconds: float) -> str:
        if seconds >= 1 or seconds == 0:
            return f" - {seconds:.0f}s/{self.name}"
        if seconds >= 0.001:
            return f" - {seconds * 1e3:.0f}ms/{self.name}"
        return f" - {seconds * 1e6:.0f}us/{self.name}"

    def _draw(self, current: float, info: str, seconds: float) -> None:
        before = self._length
        sys.stdout.write("\b" * before + "\r" if sys.stdout.isatty() else "\r")
        text = self._count(current)
        if self._num is not None:
            done = int(self._width * current / self._num)
            head = "=" * (done - 1) + (">" if current < self._num else "=") if done else ""
            text += f" [{head}{'.' * (self._width - done)}]"
            if current < self._num:
                info += f" - ETA: {_duration(seconds * (self._num - current))}"
        text += info + self._speed(seconds)
        self._length = len(text)
        ends = self._num is None or current >= self._num
        sys.stdout.write(text + " " * (before - len(text)) + ("\n" if ends else ""))


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if seconds > 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}" if seconds > 60 else f"{whole}s"


def _shown(value: object) -> str:
    text = ""
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, np.ndarray) and part.size == 1 and part.dtype.kind == "f":
            part = part.item()
        if isinstance(part, float | np.floating):
            text += f" {part:.4f}" if abs(part) > 0.001 else f" {part:.4e}"
        else:
            text += f" {part}"
    return text
