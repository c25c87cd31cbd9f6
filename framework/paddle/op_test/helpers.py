"""What tests of operators use beside OpTest."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar, overload

import numpy as np

from framework.core.errors import OarError
from framework.paddle import disable_static, enable_static, static
from framework.paddle._kernel.arguments import DTypeLike
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.base.scope_operator import Operator
from framework.paddle.static.scope import Scope

T = TypeVar("T")


@contextmanager
def paddle_static_guard() -> Iterator[None]:
    """Within the block operations are recorded."""
    enable_static()
    try:
        yield
    finally:
        disable_static()


def check_out_dtype(
    api_fn: Callable[..., Tensor],
    in_specs: Sequence[tuple[Sequence[int]] | tuple[Sequence[int], DTypeLike]],
    expect_dtypes: Sequence[str],
    target_index: int = 0,
    **configs: object,
) -> None:
    """That the output of `api_fn` has each of `expect_dtypes` where its input `target_index` has it.

    Args:
        in_specs: (shape, dtype) of each input, or (shape,) of one in the type that is tried.

    Raises:
        ValueError: it has another one.
    """
    with paddle_static_guard():
        for expected in expect_dtypes:
            with static.program_guard(static.Program()):
                inputs = []
                for index, spec in enumerate(in_specs):
                    dtype = spec[1] if len(spec) > 1 else expected if index == target_index else "float32"
                    inputs.append(static.data(f"data_{index}", spec[0], dtype))
                dtype = str(api_fn(*inputs, **configs).dtype).rpartition(".")[2]
            if dtype != expected:
                raise ValueError(f"Expected out.dtype is {expected}, but got {dtype} from {api_fn.__name__}.")


def randomize_probability(batch_size: int, class_num: int, dtype: str = "float32") -> np.ndarray:
    """Rows of random probabilities."""
    numbers = np.random.uniform(0.1, 1.0, size=(batch_size, class_num)).astype(dtype)
    return numbers / numbers.sum(axis=1, keepdims=True)


@overload
def skip_check_grad_ci(reason: type[T]) -> type[T]: ...
@overload
def skip_check_grad_ci(reason: str | None = None) -> Callable[[type[T]], type[T]]: ...
def skip_check_grad_ci(reason: object = None) -> object:
    """A decorator that Paddle's checks of its own tests read; it changes nothing."""
    return reason if isinstance(reason, type) else lambda cls: cls


skip_check_inplace_ci = check_grad_ci = skip_check_grad_ci


def is_custom_device() -> bool:
    """False: there are no devices of plug-ins."""
    return False


class OpTestTool:
    """Decorators that skip a test."""

    @classmethod
    def skip_if(cls, condition: object, reason: str) -> Callable[[T], T]:
        """Skip where the condition holds."""
        return unittest.skipIf(bool(condition), reason)  # type: ignore[return-value]

    @classmethod
    def skip_if_not_cpu_bf16(cls) -> Callable[[T], T]:
        """Never skip: operations take bfloat16 on every device."""
        return lambda test: test

    @classmethod
    def skip_if_not_cpu(cls) -> Callable[[T], T]:
        """Never skip: tests run on the CPU."""
        return lambda test: test


def _set_use_system_allocator(value: bool | None = None) -> bool:
    """The allocator is XLA's; the setting that tests give back afterwards."""
    return bool(value)


def get_numeric_gradient(
    place: object,
    scope: Scope,
    op: Operator,
    inputs: object,
    input_to_check: str,
    output_names: Sequence[str],
) -> None:
    """Refused: OpTest.check_grad compares gradients. Raises: OarError."""
    raise OarError(
        "numeric gradients of an Operator in a scope", received=op.type(), fix="use OpTest.check_grad"
    )
