"""Channels-first data over the core's channels-last functions, and Paddle's ways to write windows and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from framework.paddle._kernel.errors import ShapeError

_FIRST = ("NCL", "NCW", "NCHW", "NCDHW", "NC")
_LAST = ("NLC", "NWC", "NHWC", "NDHWC")

Size = int | Sequence[int]


def is_last(data_format: str, where: str = "data_format", axes: int | None = None) -> bool:
    """Whether channels are the last axis, in a format of `axes` spatial axes; None: of any number.

    Raises:
        ShapeError: there is no such format.
    """
    formats = [name for name in _FIRST + _LAST if axes is None or len(name) == axes + 2]
    if data_format not in formats:
        raise ShapeError(
            "unknown data format", where=where, received=repr(data_format), allowed=", ".join(formats)
        )
    return data_format in _LAST


def to_last(x: jax.Array, data_format: str) -> jax.Array:
    """Data of this format with channels last."""
    return x if is_last(data_format) or x.ndim < 3 else jnp.moveaxis(x, 1, -1)


def from_last(x: jax.Array, data_format: str) -> jax.Array:
    """Channels-last data in this format."""
    return x if is_last(data_format) or x.ndim < 3 else jnp.moveaxis(x, -1, 1)


def edges(padding: Any, axes: int, data_format: str) -> str | tuple[int, ...]:
    """Padding as SAME, VALID, or two numbers for each spatial axis in a row, from any form that Paddle takes: a number,
    one or two for each axis, pairs for each spatial axis or for all axes of the data.

    Raises:
        ShapeError: padding or format is of another number of axes, or padding is one of the batch or the channels.
    """
    last = is_last(data_format, axes=axes)
    if isinstance(padding, str):
        return padding.upper()
    if isinstance(padding, int):
        return (padding,) * (2 * axes)
    numbers = list(padding)
    if numbers and isinstance(numbers[0], Sequence):
        if len(numbers) == axes + 2:
            if any(any(pair) for pair in (numbers[0], numbers[-1 if last else 1])):
                raise ShapeError(
                    "padding is of spatial axes alone, batch and channels have none",
                    received=padding,
                    allowed=f"[0, 0] for the batch and the channels of {data_format}",
                )
            numbers = numbers[1:-1] if last else numbers[2:]
        # Anything but pairs fits nothing.
        numbers = [number for pair in numbers for number in pair] if all(len(p) == 2 for p in numbers) else []
    if len(numbers) == 1:
        numbers *= 2 * axes
    elif len(numbers) == axes:
        numbers = [number for number in numbers for _ in range(2)]
    if len(numbers) != 2 * axes:
        raise ShapeError(
            "padding does not fit the spatial axes",
            received=padding,
            allowed=f"p, {axes} or {2 * axes} numbers, {axes} or {axes + 2} pairs, 'SAME', 'VALID'",
        )
    return tuple(int(number) for number in numbers)
