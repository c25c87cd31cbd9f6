"""Channel counts of scaled networks."""

from __future__ import annotations

from typing import NamedTuple


class ScaledSize(NamedTuple):
    """The multiplier of all widths, and the published number of parameters with 1000 classes."""

    scale: float
    params: int


def scaled_width(channels: int, scale: float, multiple: int = 8) -> int:
    """`channels * scale` rounded to a multiple, half up, at least one multiple and never below nine tenths of the wish.

    Source: `_make_divisible` of MobileNet, which Paddle's mobile networks took over.
    """
    wish = channels * scale
    rounded = max(multiple, int(wish + multiple / 2) // multiple * multiple)
    return rounded + multiple if rounded < 0.9 * wish else rounded
