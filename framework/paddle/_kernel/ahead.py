"""Backward programs compiled in a thread while the forward run goes on.

The first step of eager training compiles a program for each operation and each gradient. Where a forward program was
new, its pullback will be new too: a thread compiles it, so that two cores share what one would do after the other.
Which program a gradient needs is a guess (the first output, and those of its shape, get a gradient): a wrong one costs
time of the other core, never a value. `paddle.no_grad` asks for none.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

import jax
import numpy as np
from jax.core import Tracer

from framework.core.process import cpu_count
from framework.paddle._kernel.dtypes import INEXACT
from framework.paddle._kernel.x64 import x64

Key = tuple[object, ...]
Pending = dict[Key, "Future[None]"]
at_backward: list[weakref.WeakMethod[Callable[[], None]]] = []
_SHAPED = (jax.ShapeDtypeStruct, np.ndarray)
_END_WAIT = 30.0  # seconds that the end of the process waits for the program that is being compiled


def key_of(inputs: Sequence[object]) -> Key:
    """What a program is compiled for: shapes and types of its inputs, which may be nested."""
    leaves, tree = jax.tree_util.tree_flatten(tuple(inputs))
    return (tree, *map(_kind, leaves))


def _key_here(inputs: Sequence[object]) -> Key:
    """The key in this process: one that was forked has no thread that would finish what its parent began."""
    return (os.getpid(), *key_of(inputs))


def _kind(leaf: object) -> object:
    if isinstance(leaf, jax.Array):
        return leaf.shape, leaf.dtype, leaf.aval.weak_type
    return (leaf.shape, leaf.dtype, False) if isinstance(leaf, _SHAPED) else leaf.__class__


def _abstract(leaf: object) -> object:
    """An input without its numbers, which would stay in memory; what is no array stays."""
    if not isinstance(leaf, jax.Array):
        return leaf
    sharding = leaf.sharding if leaf.committed else None
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=leaf.aval.weak_type)


def compile_later(
    program: Lowerable, pending: Pending, inputs: Sequence[object], first: bool = False
) -> None:
    """Compile `program` for these inputs in the thread, where `first` before what it has to do besides; `pending` tells
    who wants it before it is done. Nothing happens on one core."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree_util.tree_leaves(tuple(inputs))):
        return  # part of a larger program
    compiler, key = _compiler(), _key_here(inputs)
    if compiler is None or key in pending:
        return
    shapes = jax.tree_util.tree_map(_abstract, tuple(inputs))

    def compile_program() -> None:
        with x64():
            program.lower(*shapes).compile()

    pending[key] = compiler.submit(compile_program, first)


def call_at_backward(method: Callable[[], None]) -> None:
    """Call the method of an object once, when the next backward run begins, if the object is still there."""
    at_backward.append(weakref.WeakMethod(method))


def begin_backward() -> None:
    """Call what waits for a backward run."""
    while at_backward:
        method = at_backward.pop()()
        if method is not None:
            method()


def wait_for(pending: Pending, inputs: Sequence[object]) -> None:
    """Wait for the program of these inputs where the thread compiles it now; where it has not begun, it need not."""
    future = pending.pop(_key_here(inputs), None)
    if future is not None and not future.cancel():
        future.exception()  # an error comes again, and is explained, where the program is called


class Compilable(Protocol):
    """Inputs of a function, to be compiled for."""

    def compile(self) -> object: ...


class Lowerable(Protocol):
    """A function of jax.jit, or of the store of programs."""

    def lower(self, *args: object) -> Compilable: ...


class Compiler:
    """A thread that compiles what it is given, in order."""

    def __init__(self) -> None:
        self._tasks: collections.deque[tuple[Future[None], Callable[[], None]]] = collections.deque()
        self._changed = threading.Condition()
        self._ending, self._process = False, os.getpid()
        self._thread = threading.Thread(target=self._work, name="oar-compile-ahead", daemon=True)
        self._thread.start()
        atexit.register(self.end)  # jax ends its compiler there too, and it was imported before

    def submit(self, task: Callable[[], None], first: bool = False) -> Future[None]:
        future: Future[None] = Future()
        with self._changed:
            (self._tasks.appendleft if first else self._tasks.append)((future, task))
            self._changed.notify()
        return future

    def end(self) -> None:
        """Finish the program that is being compiled, and leave the others. A forked process has not got the thread."""
        if self._process != os.getpid():
            return
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join(_END_WAIT)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._tasks and not self._ending:
                    self._changed.wait()
                if self._ending:
                    return
                future, task = self._tasks.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            with contextlib.suppress(Exception):  # it comes again where the program is called
                task()
            future.set_result(None)


_threads: dict[int, Compiler] = {}  # by process: threads do not live on in one that was forked
_lock = threading.Lock()


@functools.cache
def _several_cores() -> bool:
    return cpu_count() > 1


def _compiler() -> Compiler | None:
    if not _several_cores():
        return None
    with _lock:
        process = os.getpid()
        if process not in _threads:
            _threads[process] = Compiler()
        return _threads[process]


def cotangent_of(out: jax.Array) -> jax.ShapeDtypeStruct:
    """The shape and type of the gradient of an output."""
    return jax.ShapeDtypeStruct(out.shape, out.dtype)


def differentiated(outs: Sequence[jax.Array]) -> tuple[bool, ...]:
    """Which outputs will have a gradient, as far as one can tell: the first, and those of its shape."""
    return tuple([o.dtype in INEXACT and o.shape == outs[0].shape for o in outs])
