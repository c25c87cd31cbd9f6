"""Shapes of the results of an operation on variables, which have no values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np

from framework.paddle._kernel.dispatch import KEY, Compiled, explained
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor
from framework.paddle._kernel.x64 import x64

_KEY_DATA = jax.ShapeDtypeStruct((2,), np.uint32)


def result_shapes(
    compiled: Compiled, inputs: Sequence[object], shape: Callable[[Symbol], tuple[int, ...]]
) -> tuple[list[jax.ShapeDtypeStruct], bool]:
    """The shapes of all results where variables have those that `shape` gives; and whether there are several.

    Raises: what the operation raises, in the user's terms.
    """

    def of(value: object) -> object:
        if value is KEY:
            return _KEY_DATA
        if not isinstance(value, Tensor):
            return value
        held = value._value
        return jax.ShapeDtypeStruct(shape(held) if isinstance(held, Symbol) else held.shape, held.dtype)

    try:
        with x64():
            out = jax.eval_shape(compiled.function, *[of(a) for a in inputs])
    except (TypeError, ValueError) as error:
        raise explained(compiled, inputs, error) from error
    multiple = isinstance(out, tuple | list)
    return (list(out) if multiple else [out]), multiple


def fitting_shapes(
    compiled: Compiled, inputs: Sequence[object]
) -> tuple[list[jax.ShapeDtypeStruct], list[jax.ShapeDtypeStruct], bool]:
    """As `result_shapes`, for both stand-ins of sizes that are not known. Where these do not go with the other inputs,
    a size that is not known is 1, or what the other inputs of as many axes have there.

    Raises: what the operation raises, in the user's terms.
    """
    symbols = [value._value for value in inputs if isinstance(value, Tensor)]
    unknown = any(isinstance(one, Symbol) and one.shape != one.other for one in symbols)
    try:
        shapes, multiple = result_shapes(compiled, inputs, lambda one: one.shape)
        others = result_shapes(compiled, inputs, lambda one: one.other)[0] if unknown else shapes
        return shapes, others, multiple
    except ShapeError:
        if not unknown:
            raise

    def shared(symbol: Symbol) -> tuple[int, ...]:
        sizes = [
            one.known if isinstance(one, Symbol) else one.shape for one in symbols if one.ndim == symbol.ndim
        ]
        return tuple(
            max(column) if size < 0 else size for size, *column in zip(symbol.known, *sizes, strict=True)
        )

    try:
        shapes, multiple = result_shapes(
            compiled, inputs, lambda one: tuple(max(size, 1) for size in one.known)
        )
    except ShapeError:
        shapes, multiple = result_shapes(compiled, inputs, shared)
    return shapes, shapes, multiple
