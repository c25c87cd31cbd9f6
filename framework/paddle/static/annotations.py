"""What operations are recorded with beside their settings: the scope of names and the device that programs ask for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from framework.paddle.static.program import in_dynamic_mode
from framework.paddle.static.state import state

_DEVICES = ("cpu", "gpu", "xpu", "", None)
_scopes: dict[str, int] = {}  # how often a scope was opened, by its full name


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Groups operations of a program by their attribute `op_namescope` ("/block/", and "/block_1/" the second time).

    Raises:
        AssertionError: in static mode, the name is empty.
    """
    if in_dynamic_mode():
        yield
        return
    assert prefix, "namescope prefix can not be empty."
    before = state.notes["op_namescope"]
    full = f"{before}{prefix}"
    number = _scopes.get(full, 0)
    _scopes[full] = number + 1
    state.notes["op_namescope"] = f"{full}_{number}/" if number else f"{full}/"
    try:
        yield
    finally:
        state.notes["op_namescope"] = before


@contextlib.contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Gives operations the attribute `op_device`, which changes nothing: XLA places a program as a whole.

    Raises:
        ValueError: it is no device, or a number is given for the CPU.
    """
    kind, _, number = (device or "").partition(":")
    if kind == "cpu" and number:
        raise ValueError("Should not set device id for cpu.")
    if kind not in _DEVICES:
        raise ValueError(
            "The Attr(device) should be 'cpu', 'xpu', 'gpu' or custom device, and it can also be empty string or None "
            f"when there is no need to specify device. But received {kind}"
        )
    before, state.notes["op_device"] = state.notes["op_device"], device or ""
    try:
        yield
    finally:
        state.notes["op_device"] = before
