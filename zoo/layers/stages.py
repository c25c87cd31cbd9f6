"""How the maps of a chain of blocks are taken, and how a chain keeps its resolution for segmentation."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import jax

from framework import nn
from framework.core.errors import ConfigError

_FINEST = 4


def collect_maps(
    x: jax.Array, layers: Iterable[nn.Layer], ends: Container[int] | None = None
) -> tuple[jax.Array, ...]:
    """What the layers give one after the other; with `ends` what those of these numbers give, from 0."""
    maps = []
    for number, layer in enumerate(layers):
        x = layer(x)
        if ends is None or number in ends:
            maps.append(x)
    return tuple(maps)


def stage_ends(strides: Sequence[int], stem_stride: int = 2) -> dict[int, int]:
    """{number of the block: stride of its map} for the last block of each stride, from stride 4 on."""
    ends, stride = {}, stem_stride
    for number, own in enumerate(strides):
        stride *= own
        if stride >= _FINEST and (number + 1 == len(strides) or strides[number + 1] != 1):
            ends[number] = stride
    return ends


def dilate_strides(strides: Sequence[int], output_stride: int, stem_stride: int = 2) -> list[tuple[int, int]]:
    """(stride, dilation) of each block, so that no map has a stride above `output_stride`.

    A block that loses its stride keeps the dilation of those before it, and those behind it have twice that.

    Raises:
        ConfigError: `output_stride` is not 8, 16 or 32.
    """
    if output_stride not in (8, 16, 32):
        raise ConfigError("unknown output_stride", received=output_stride, allowed="8, 16, 32")
    pairs, stride, dilation = [], stem_stride, 1
    for own in strides:
        if stride * own <= output_stride:
            stride *= own
            pairs.append((own, dilation))
        else:
            pairs.append((1, dilation))
            dilation *= own
    return pairs
