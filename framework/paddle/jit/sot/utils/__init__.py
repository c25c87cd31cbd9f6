"""paddle.jit.sot.utils: errors and settings of the compiler of byte code that programs name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.utils.environments import (
    BooleanEnvironmentVariable,
    EnvironmentVariableGuard,
    IntegerEnvironmentVariable,
)

ENV_COST_MODEL = BooleanEnvironmentVariable("COST_MODEL", False)
ENV_MIN_GRAPH_SIZE = IntegerEnvironmentVariable("MIN_GRAPH_SIZE", 10)
ENV_STRICT_MODE = BooleanEnvironmentVariable("STRICT_MODE", False)


class SotErrorBase(Exception):
    """What the compiler raises."""


class InnerError(SotErrorBase):
    """An error of the compiler itself."""


class FallbackError(SotErrorBase):
    """A function that Python has to run."""


class BreakGraphError(SotErrorBase):
    """A line that ends the graph."""


@contextmanager
def strict_mode_guard(value: bool) -> Iterator[None]:
    """Within the block the setting STRICT_MODE has this value."""
    with EnvironmentVariableGuard(ENV_STRICT_MODE, value):
        yield


@contextmanager
def cost_model_guard(value: bool) -> Iterator[None]:
    """Within the block the setting COST_MODEL has this value."""
    with EnvironmentVariableGuard(ENV_COST_MODEL, value):
        yield


@contextmanager
def min_graph_size_guard(value: int) -> Iterator[None]:
    """Within the block the setting MIN_GRAPH_SIZE has this value."""
    with EnvironmentVariableGuard(ENV_MIN_GRAPH_SIZE, value):
        yield


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
