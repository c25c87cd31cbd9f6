"""What transforms may be given. Each check of a field raises ConfigError that names the class and the field."""

from __future__ import annotations

from collections.abc import Sequence

from framework.core.errors import ConfigError, ShapeError
from framework.vision.sample import Sample

Fill = int | tuple[int, int, int] | None
"""Colour of what lies outside the image: one value, one a channel, or None for the nearest edge pixels."""
Range = float | tuple[float, float]
FlipPairs = tuple[tuple[int, int], ...]


def check_number(
    owner: object, name: str, low: float = float("-inf"), high: float = float("inf"), *, above: bool = False
) -> None:
    """The field is a finite number in [low, high]; with `above` in (low, high]."""
    value = getattr(owner, name)
    if not (low < value <= high if above else low <= value <= high) or abs(value) == float("inf"):
        raise ConfigError(
            "the value is out of range",
            where=_where(owner, name),
            received=value,
            allowed=_interval(low, high, above),
        )


def check_range(
    owner: object, name: str, low: float = float("-inf"), high: float = float("inf"), *, above: bool = False
) -> None:
    """The field is a pair (least, most), least <= most, both finite and in [low, high] or with `above` (low, high].

    Of a number, the pair that `around` makes of it.
    """
    least, most = around(getattr(owner, name))
    inside = low < least if above else low <= least
    if not (inside and least <= most <= high) or abs(least) == float("inf") or most == float("inf"):
        raise ConfigError(
            "the range must be two ascending numbers",
            where=_where(owner, name),
            received=getattr(owner, name),
            allowed=f"(least, most) with least <= most, both {_interval(low, high, above)}",
        )


def check_size(owner: object, name: str = "size_hw") -> None:
    """The field is a (height, width) of whole numbers from 1 up."""
    size = getattr(owner, name)
    if len(size) != 2 or any(side != int(side) or side < 1 for side in size):
        raise ConfigError(
            "an image has no such size",
            where=_where(owner, name),
            received=size,
            allowed="(height, width), both whole numbers >= 1",
        )


def check_fill(owner: object, name: str = "fill") -> None:
    """The field is a colour of uint8 pixels, or None."""
    fill = getattr(owner, name)
    values = fill if isinstance(fill, Sequence) else (0 if fill is None else fill,)
    if (isinstance(fill, Sequence) and len(fill) != 3) or any(not 0 <= value <= 255 for value in values):
        raise ConfigError(
            "pixels have no such value",
            where=_where(owner, name),
            received=fill,
            allowed="0 to 255, three of them (red, green, blue), or null for the nearest edge pixels",
        )


def check_flip_pairs(owner: object, name: str = "keypoint_flip_pairs") -> None:
    """The field holds pairs of different keypoints, none of them in two pairs."""
    pairs = getattr(owner, name)
    members = [index for pair in pairs for index in pair]
    if len(set(members)) != 2 * len(pairs) or any(index < 0 for index in members):
        raise ConfigError(
            "these keypoints cannot change places",
            where=_where(owner, name),
            received=pairs,
            allowed="pairs (left, right) of indices >= 0, each index once",
        )


def check_rgb(owner: object, sample: Sample) -> None:
    """The image is 8-bit RGB, which transforms of colour are made for. Raises: ShapeError."""
    if sample.image.dtype != "uint8" or sample.image.shape[2] != 3:
        raise ShapeError(
            "this transform changes the colours of 8-bit RGB images",
            where=type(owner).__name__
            if sample.id is None
            else f"{type(owner).__name__}, sample {sample.id!r}",
            received=f"{sample.image.dtype} {list(sample.image.shape)}",
            allowed="uint8 [H, W, 3]",
            fix="leave it out for images of other channels or types",
        )


def around(value: Range, centre: float = 0.0) -> tuple[float, float]:
    """A range as it is; a number as the range that reaches so far to both sides of `centre`."""
    if isinstance(value, Sequence):
        least, most = value
        return float(least), float(most)
    return centre - value, centre + value


def _interval(low: float, high: float, above: bool) -> str:
    if high == float("inf"):
        return f"> {low}" if above else f">= {low}"
    return f"{'above' if above else 'from'} {low} to {high}"


def _where(owner: object, name: str) -> str:
    return f"{type(owner).__name__}.{name}"
