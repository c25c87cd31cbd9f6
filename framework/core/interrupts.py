"""Signals that stop a command: SIGTERM is KeyboardInterrupt there, as Ctrl+C is, and nothing is left half-written."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from multiprocessing import resource_tracker
from types import FrameType, ModuleType
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_TERMINATED = "stopped by SIGTERM"
_MOMENT = 0.02  # seconds


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Within the block the first SIGTERM raises KeyboardInterrupt; the second ends the process.

    Handlers that others have set stay, and so do those of programs that call functions of Oar: it is for commands.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with repeat_lost_interrupts():
            yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _interrupt:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def catch_interrupt(stopped: threading.Event) -> Iterator[None]:
    """The first Ctrl+C sets the event instead of ending the program: what is done is kept. A second one ends it.
    SIGTERM does the same where `terminate_as_interrupt` makes it an interrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [signal.SIGINT]
    if signal.getsignal(signal.SIGTERM) is _interrupt:
        numbers.append(signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop(*_: object) -> None:
        stopped.set()
        restore()

    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        restore()


@contextmanager
def hold_signals(*numbers: signal.Signals) -> Iterator[None]:
    """A process that is started here never sees these signals, not even while it imports what it runs, which would end
    it with a traceback; this one sees them afterwards. Windows has no such mask."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # which spawn starts otherwise, and which takes the mask away
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Ctrl+C, and SIGTERM where it has a handler, come a moment after the block has ended, and not out of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if callable(handler)}
    came: list[signal.Signals] = []
    for number in before:
        signal.signal(number, lambda number, _: came.append(signal.Signals(number)))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        threading.Thread(target=_interrupt_later, args=(dict.fromkeys(came),), daemon=True).start()


def _interrupt_later(numbers: Iterable[signal.Signals]) -> None:
    time.sleep(_MOMENT)
    for number in numbers:
        _thread.interrupt_main(number)


@contextmanager
def import_jax_whole() -> Iterator[None]:
    """Within the block jax is imported without interrupts: where an exception, as that of Ctrl+C, leaves the native
    module of jaxlib half imported, the process ends by SIGSEGV."""
    finder = _JaxFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _JaxFinder:
    """Finds jax, as importlib does."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What importlib asks of a finder."""
        spec = PathFinder.find_spec(name, path, target) if name == "jax" else None
        if spec is not None and spec.loader is not None:
            setattr(spec.loader, "exec_module", _uninterrupted(spec.loader.exec_module))  # noqa: B010
        return spec


def _uninterrupted(function: Callable[_P, _R]) -> Callable[_P, _R]:
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with defer_interrupts():
            return function(*args, **kwargs)

    return call


@contextmanager
def repeat_lost_interrupts() -> Iterator[None]:
    """Python drops an exception in a finalizer or a callback of the garbage collector, and jax's takes long enough to
    be met: there an interrupt is raised once more, a moment later."""
    before, finished = sys.unraisablehook, threading.Event()

    def repeat(number: signal.Signals) -> None:
        if not finished.wait(_MOMENT):
            _thread.interrupt_main(number)

    def hook(lost: sys.UnraisableHookArgs) -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            before(lost)
            return
        number = signal.SIGINT
        if str(lost.exc_value) == _TERMINATED:
            number = signal.SIGTERM
            signal.signal(number, _interrupt)
        threading.Thread(target=repeat, args=(number,), daemon=True).start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        finished.set()
        sys.unraisablehook = before


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt(_TERMINATED)
