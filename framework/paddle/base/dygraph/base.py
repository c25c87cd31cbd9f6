"""`guard` and `to_variable`, from before eager mode was the default."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tape import no_grad as no_grad
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static import disable_static, enable_static, in_dynamic_mode
from framework.paddle.utils import unique_name

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


@contextmanager
def guard(place: object = None) -> Iterator[None]:
    """Eager mode for a block, in which names of parameters are counted anew."""
    was_static = not in_dynamic_mode()
    disable_static()
    try:
        with unique_name.guard():
            yield
    finally:
        if was_static:
            enable_static()


def switch_to_static_graph(function: Callable[P, ResultT]) -> Callable[P, ResultT]:
    """A function that runs in static mode."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        was_dynamic = in_dynamic_mode()
        enable_static()
        try:
            return function(*args, **kwargs)
        finally:
            if was_dynamic:
                disable_static()

    return call


_switch_to_static_graph_ = switch_to_static_graph


def to_variable(
    value: object, name: str | None = None, zero_copy: bool | None = None, dtype: object = None
) -> Tensor:
    """A Tensor of an array, numbers or another Tensor; `zero_copy` changes nothing."""
    if zero_copy:
        warnings.warn("Currently, zero_copy is not supported, and it will be discarded.", stacklevel=2)
    tensor = Tensor(value, dtype)
    if name is not None:
        tensor.name = name
    return tensor


def in_to_static_mode() -> bool:
    """Whether a function under `paddle.jit.to_static` is being compiled."""
    return mode.keys is not None


in_declarative_mode = in_to_static_mode


class _ModeSettings:
    """What programs read and set back of Paddle's modes."""

    @property
    def _in_to_static_mode_(self) -> bool:
        return in_to_static_mode()

    @_in_to_static_mode_.setter
    def _in_to_static_mode_(self, value: bool) -> None:
        """Accepted: a conversion that fails leaves the mode as it was."""


global_var = _ModeSettings()


@contextmanager
def _to_static_mode_guard_(is_to_static: bool = True) -> Iterator[None]:
    """Accepted: whether a function is being compiled is what `to_static` does."""
    yield


@contextmanager
def param_guard(parameters: Mapping[str, object]) -> Iterator[None]:
    """Accepted: layers read the same parameters while they are compiled."""
    yield


_complete(__name__)
