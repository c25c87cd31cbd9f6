"""The range of a tensor that its 256 values cover: that of the least squared error over what was seen of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

BINS = 2048
MOST_VALUES = 1 << 16
"""Of a tensor that `sample` leaves."""
LEVELS = 255  # steps of uint8
_SHARES = np.linspace(0.2, 1.0, 81)  # of the whole range that are tried


@dataclass(frozen=True)
class Range:
    """Scale and zero point of uint8: value = scale * (q - zero_point)."""

    scale: float
    zero_point: int

    @classmethod
    def of(cls, low: float, high: float) -> Range:
        """The range of values from `low` to `high`, and of 0, which is exact in every range."""
        low, high = min(low, 0.0), max(high, 0.0)
        scale = max((high - low) / LEVELS, float(np.finfo(np.float32).tiny) * 2**20)
        return cls(scale, int(np.clip(round(-low / scale), 0, LEVELS)))


def sample(array: np.ndarray) -> np.ndarray:
    """At most `MOST_VALUES` of the values, spread over all places and all channels, which are the last axis: they tell
    as well how often values are seen."""
    step = max(1, -(-array.size // MOST_VALUES))
    while step > 1 and math.gcd(step, array.shape[-1]) > 1:
        step += 1  # else it would meet some channels alone
    return array.ravel()[::step]


@dataclass
class Histogram:
    """How often values were seen: `see_extent` with every array first, `count` with every array then.

    Attributes:
        low, high: The least and the largest value so far.
        counts: [BINS] of the values between them.
    """

    low: float = np.inf
    high: float = -np.inf
    counts: np.ndarray = field(default_factory=lambda: np.zeros(BINS))

    def see_extent(self, array: np.ndarray) -> None:
        if array.size:
            self.low, self.high = min(self.low, float(array.min())), max(self.high, float(array.max()))

    def count(self, array: np.ndarray) -> None:
        if array.size and self.high > self.low:
            steps = (array.ravel() - np.float32(self.low)) * np.float32(BINS / (self.high - self.low))
            self.counts += np.bincount(np.clip(steps, 0, BINS - 1).astype(np.int32), minlength=BINS)

    @property
    def is_finite(self) -> bool:
        """Whether anything was seen, and nothing infinite."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    def best_range(self) -> Range:
        """That of the least squared error, of rounding inside and of cutting off outside."""
        if self.high <= self.low:
            return Range.of(self.low, self.high)
        step = (self.high - self.low) / BINS
        values = self.low + (np.arange(BINS) + 0.5) * step
        best, least = Range.of(self.low, self.high), np.inf
        for share in _SHARES:
            tried = Range.of(min(self.low, 0.0) * share, max(self.high, 0.0) * share)
            low = -tried.zero_point * tried.scale
            outside = values - np.clip(values, low, low + LEVELS * tried.scale)
            inside = outside == 0
            error = float(self.counts @ (outside**2 + inside * (tried.scale**2 / 12)))
            if error < least:
                best, least = tried, error
        return best


def quantize_weight(
    weight: np.ndarray, axis: int, bits: int, least: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(int8 of the shape of `weight`, float32 scales [channels]): symmetric, a scale for each channel.

    Args:
        weight: float32.
        axis: That of the channels.
        bits: 8, or 7 for engines whose sums of two products have 16 bits.
        least: [channels] that scales are not less than.
    """
    limit = (1 << (bits - 1)) - 1
    others = tuple(n for n in range(weight.ndim) if n != axis % weight.ndim)
    largest = np.abs(weight).max(axis=others, initial=0.0).astype(np.float64)
    scales = np.maximum(largest / limit, float(np.finfo(np.float32).tiny) * 2**20)
    if least is not None:
        scales = np.maximum(scales, least)
    shape = [1] * weight.ndim
    shape[axis] = -1
    scales = scales.astype(np.float32)
    return np.clip(np.rint(weight / scales.reshape(shape)), -limit, limit).astype(np.int8), scales
