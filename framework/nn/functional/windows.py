"""The windows of pooling over any number of axes: how many there are, and how far they reach beyond the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from framework.core.axes import per_axis
from framework.core.errors import ShapeError

Axes = tuple[int, ...]  # one number for each spatial axis
Edges = tuple[tuple[int, int], ...]  # what is before and behind each axis


def pool_padding(padding: Any, kernel: Axes, stride: Axes, size: tuple[Any, ...]) -> Edges:
    """The padding of each axis from Paddle's forms: p, one for each axis, two for each axis, pairs, SAME or VALID."""
    axes = len(kernel)
    if isinstance(padding, str):
        kind = padding.upper()
        if kind not in ("SAME", "VALID"):
            raise ShapeError("unknown padding", received=repr(padding), allowed="SAME, VALID or numbers")
        if kind == "VALID":
            return ((0, 0),) * axes
        totals = [max((-(-n // s) - 1) * s + k - n, 0) for n, s, k in zip(size, stride, kernel)]
        return tuple((total // 2, total - total // 2) for total in totals)
    if isinstance(padding, int):
        return ((padding, padding),) * axes
    given = list(padding)
    if len(given) == axes + 2 and all(isinstance(pair, Sequence) for pair in given):
        given = given[1:-1]  # Paddle's form with the batch and the channels, which are not padded
    if len(given) == 2 * axes and all(isinstance(p, int) for p in given):
        return tuple((given[2 * i], given[2 * i + 1]) for i in range(axes))
    if len(given) == axes:
        return tuple((p, p) if isinstance(p, int) else (int(p[0]), int(p[1])) for p in given)
    raise ShapeError(
        "padding of pooling",
        received=padding,
        allowed=f"p, {axes} numbers, {2 * axes} numbers, {axes} pairs, 'SAME' or 'VALID'",
    )


def pool_windows(
    size: tuple[Any, ...], kernel: Axes, stride: Axes, pads: Edges, ceil_mode: bool
) -> tuple[Any, Any]:
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
