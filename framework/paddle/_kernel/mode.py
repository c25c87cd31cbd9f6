"""What the operations of this thread do besides computing: record gradients, cast (AMP), be traced or be recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jax

    from framework.paddle._kernel.dispatch import Compiled
    from framework.paddle._kernel.tensor import Parameter
    from framework.paddle._kernel.watch import Watcher

Route = Callable[["Compiled", Sequence[object]], object]
Check = Callable[[Callable[..., object], Sequence[object], Mapping[str, object]], None]


class Mode(threading.local):
    """The switches of a thread. `routed` is true where an operation does not simply run: then `amp` may change its
    inputs (`amp_level` and `amp_dtype` say how), and `recorder` takes it instead of running it. `keys` gives the random
    keys of a traced function, and `watcher` is told of every Tensor whose value is read or set
    (framework/paddle/_kernel/watch.py). `check` refuses calls of public functions in static mode
    (framework/paddle/static/argument_kinds.py), and `keep_parameter` notes that a new parameter, which an initializer
    began, belongs to the program that is recorded, in which `find_parameter` looks a name up."""

    grad_enabled: bool = True
    routed: bool = False
    amp: Callable[[Compiled, Sequence[object]], Sequence[object]] | None = None
    amp_level: str = "O0"
    amp_dtype: str = "float32"
    recorder: Route | None = None
    keys: Callable[[], jax.Array] | None = None
    watcher: Watcher | None = None
    check: Check | None = None
    keep_parameter: Callable[[Parameter, object], None] | None = None
    find_parameter: Callable[[str], Parameter | None] | None = None
    default_dtype: str = "float32"


mode = Mode()


def _route() -> None:
    mode.routed = mode.amp is not None or mode.recorder is not None


@contextmanager
def amp_scope(
    cast: Callable[[Compiled, Sequence[object]], Sequence[object]] | None,
    level: str = "O0",
    dtype: str = "float32",
) -> Iterator[None]:
    """Within the block `cast(operation, inputs)` gives the inputs that operations see; None: as they are."""
    before = mode.amp, mode.amp_level, mode.amp_dtype
    mode.amp, mode.amp_level, mode.amp_dtype = cast, level, dtype
    _route()
    try:
        yield
    finally:
        mode.amp, mode.amp_level, mode.amp_dtype = before
        _route()


def set_recorder(recorder: Route | None) -> Route | None:
    """Send operations to `recorder(operation, inputs)` instead of running them; returns the one before."""
    before, mode.recorder = mode.recorder, recorder
    _route()
    return before


@contextmanager
def recorder_scope(recorder: Route | None) -> Iterator[None]:
    """`set_recorder` for a block."""
    before = set_recorder(recorder)
    try:
        yield
    finally:
        set_recorder(before)
