"""`guard` and `to_variable`, from before eager mode was the default."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tape import no_grad as no_grad
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static import disable_static, enable_static, in_dynamic_mode


@contextmanager
def guard(place: object = None) -> Iterator[None]:
    """Eager mode for a block."""
    was_static = not in_dynamic_mode()
    disable_static()
    try:
        yield
    finally:
        if was_static:
            enable_static()


def to_variable(
    value: object, name: str | None = None, zero_copy: bool | None = None, dtype: object = None
) -> Tensor:
    """A Tensor of an array, numbers or another Tensor."""
    tensor = Tensor(value, dtype)
    if name is not None:
        tensor.name = name
    return tensor


def in_to_static_mode() -> bool:
    """Whether a function under `paddle.jit.to_static` is being compiled."""
    return mode.keys is not None


in_declarative_mode = in_to_static_mode


_complete(__name__)
