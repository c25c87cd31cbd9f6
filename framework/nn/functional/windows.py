"""The windows of convolutions and pooling over any number of axes: how many there are, how far they reach beyond the
input, and what is reduced in them. Arrays are channels-last."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.axes import per_axis
from framework.core.errors import ShapeError

Size = int | Sequence[int]
Padding = int | str | Sequence[int] | Sequence[Sequence[int]]  # the forms that spatial_padding lists
Axes = tuple[int, ...]  # one number for each spatial axis
Edges = tuple[tuple[int, int], ...]  # what is before and behind each axis


def spatial_padding(
    padding: Padding, kernel: Axes, stride: Axes, size: Sequence[int] | None = None, dilation: Axes = ()
) -> Edges:
    """The padding of each axis from Paddle's forms: p, one for each axis, two for each axis, pairs, SAME or VALID.

    SAME pads so that the output has ceil(size / stride) rows, the extra one behind; with a stride of one, or
    a size that is a multiple of the stride, it is the same for each, so it exports with symbolic shapes.

    Raises:
        ShapeError: it is none of these, or a stride is not above 0.
    """
    axes = len(kernel)
    if any(s < 1 for s in stride):
        raise ShapeError("strides must be above 0", received=tuple(stride), allowed="whole numbers from 1")
    if isinstance(padding, int):
        return ((padding, padding),) * axes
    if isinstance(padding, str):
        kind = padding.upper()
        if kind == "VALID":
            return ((0, 0),) * axes
        if kind != "SAME":
            raise ShapeError("unknown padding", received=repr(padding), allowed="SAME, VALID or numbers")
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation or (1,) * axes)]
        totals: list[int] = []
        if all(s == 1 for s in stride):
            totals = [r - 1 for r in reach]
        elif size is not None:  # a symbolic one cancels out where it is a multiple of the stride
            totals = [(-(-n // s) - 1) * s + r - n for n, s, r in zip(size, stride, reach)]
        if not totals or not all(isinstance(total, int) for total in totals):
            raise ShapeError(
                "SAME padding with a stride depends on the size of the input, which is symbolic here",
                received=size,
                allowed="explicit padding such as kernel // 2, or a size that is a multiple of the stride",
            )
        totals = [max(total, 0) for total in totals]
        return tuple((total // 2, total - total // 2) for total in totals)
    given: list[int | Sequence[int]] = list(padding)
    if len(given) == axes + 2 and all(isinstance(pair, Sequence) for pair in given):
        given = given[1:-1]  # Paddle's form with the batch and the channels, which are not padded
    numbers = [p for p in given if isinstance(p, int)]
    if len(numbers) == len(given) == 2 * axes:
        return tuple((numbers[2 * i], numbers[2 * i + 1]) for i in range(axes))
    if len(given) == axes:
        return tuple((p, p) if isinstance(p, int) else (int(p[0]), int(p[1])) for p in given)
    raise ShapeError(
        "padding does not fit the spatial axes",
        received=padding,
        allowed=f"p, {axes} numbers, {2 * axes} numbers, {axes} pairs, 'SAME' or 'VALID'",
    )


def check_rank(where: str, x: jax.Array, axes: int) -> None:
    """Refuse an x that is not [N, ..., C] with so many axes between. Raises: ShapeError."""
    if x.ndim != axes + 2:
        names = {1: "T", 2: "H, W", 3: "D, H, W"}[axes]
        raise ShapeError(
            f"{where} takes [N, {names}, C]", received=x.shape, allowed=f"{axes + 2} axes, channels last"
        )


def pool_geometry(
    where: str, x: jax.Array, kernel_size: Size, stride: Size | None, padding: Padding, axes: int
) -> tuple[Axes, Axes, Edges]:
    """(kernel, stride, padding) of each spatial axis of [N, ..., C]."""
    check_rank(where, x, axes)
    kernel = per_axis(kernel_size, axes, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, axes, "stride")
    return kernel, strides, spatial_padding(padding, kernel, strides, x.shape[1:-1])


def bin_size(
    where: str, output_size: int | Sequence[int | None] | None, x: jax.Array, axes: int
) -> tuple[int, ...]:
    """How many bins each spatial axis of [N, ..., C] has; None keeps an axis.

    Raises:
        ShapeError: they are not whole numbers from 1, or too many or few.
    """
    check_rank(where, x, axes)
    if isinstance(output_size, int) and output_size > 0:
        return (output_size,) * axes
    given = [output_size] * axes if output_size is None or isinstance(output_size, int) else list(output_size)
    numbers = [n for n in given if isinstance(n, int | float | np.number)]
    if len(given) != axes or any(isinstance(n, float | np.floating) or n < 1 for n in numbers):
        raise ShapeError(
            f"{where}: output_size has one positive number, or one or None for each axis",
            received=output_size,
            allowed=f"{axes} of them",
        )
    return tuple(size if n is None else n for size, n in zip(x.shape[1:-1], given))


def bins(size: int, count: int) -> jax.Array:
    """[count, size] whether bin b, floor(b * size / count) to ceil((b + 1) * size / count), holds a position."""
    b, position = jnp.arange(count)[:, None], jnp.arange(size)[None]
    return (position >= b * size // count) & (position < -((-(b + 1) * size) // count))


def reduce_windows(
    x: jax.Array,
    init: float,
    op: Callable[[jax.Array, jax.Array], jax.Array],
    kernel: Axes,
    stride: Axes,
    pads: Edges,
) -> jax.Array:
    """`op` over the windows of [N, ..., C]. 16-bit values are added in float32: a GPU adds in the type of the values,
    where 0.5 is lost beside 256 (the mean of 2,048 such bfloat16 numbers came out as 0.125)."""
    if op is lax.add and jnp.issubdtype(x.dtype, jnp.floating) and x.dtype.itemsize < 4:
        wide = x.astype(jnp.float32)
        return reduce_windows(wide, init, op, kernel, stride, pads).astype(x.dtype)
    # The initial value is a numpy constant: with a traced one jax sees no maximum or sum and has no gradient.
    start, edges = np.asarray(init, x.dtype), ((0, 0), *pads, (0, 0))
    return lax.reduce_window(x, start, op, (1, *kernel, 1), (1, *stride, 1), edges)


def pool_windows(
    size: Sequence[int], kernel: Axes, stride: Axes, pads: Edges, ceil_mode: bool
) -> tuple[Axes, Edges]:
    """Output size, and the pads with the rows that ceil mode adds behind each axis. Sizes may be symbolic.

    Raises:
        ShapeError: a window is larger than the padded input.
    """
    outs, edges = [], []
    for n, k, s, (low, high) in zip(size, kernel, stride, pads):
        span = n + low + high - k
        out = (-(-span // s) if ceil_mode else span // s) + 1
        if ceil_mode and isinstance(out, int) and (out - 1) * s >= n + low:
            out -= 1  # a window beyond the input and its left pad is dropped; Paddle fills it with -3.4e38 or NaN
        if isinstance(out, int) and out < 1:
            raise ShapeError(
                "the pooling window is larger than the padded input",
                received=f"size {n}, padding {(low, high)}, window {k}",
                allowed=f"a window of up to {n + low + high}",
            )
        extra = (out - 1) * s + k - (n + low + high) if ceil_mode else 0
        outs.append(out)
        edges.append((low, high + (max(extra, 0) if isinstance(extra, int) else extra)))
    return tuple(outs), tuple(edges)


def transposed_padding(
    where: str,
    size: tuple[int, ...],
    kernel: Axes,
    stride: Axes,
    pads: Edges,
    dilation: Axes,
    output_padding: Axes,
    output_size: int | Sequence[int] | None,
) -> Axes:
    """The output_padding with which a transposed convolution of an input of `size` gives `output_size`.

    Raises:
        ShapeError: it gives no such size, or both are asked for.
    """
    if output_size is None:
        return output_padding
    wanted = per_axis(output_size, len(size), "output_size")
    least = tuple(
        (n - 1) * s - sum(p) + d * (k - 1) + 1 for n, k, s, p, d in zip(size, kernel, stride, pads, dilation)
    )
    if any(output_padding) or any(not 0 <= w - n < s for w, n, s in zip(wanted, least, stride)):
        raise ShapeError(
            f"{where}: output_size is not one that this convolution has",
            received=f"output_size {wanted}, output_padding {output_padding}",
            allowed=f"{least}, each up to stride - 1 more (stride {stride}), and no output_padding",
        )
    return tuple(w - n for w, n in zip(wanted, least))
