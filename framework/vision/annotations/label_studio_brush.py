"""The masks of Label Studio's brush: bytes of all four channels of an image, packed by run lengths of their bits.

The packing begins with 32 bits for the number of values, 5 for the bits of a value less one, and four times 4 for the
bits of the length of a block less one. A block is a bit that says whether it is one value, two for which of the four
lengths it has, the length less one, and the value or all values.

Source: https://github.com/HumanSignal/label-studio-sdk (`label_studio_sdk/converter/brush.py`)
"""

from __future__ import annotations

import numpy as np

_CHANNELS = 4
_ALPHA = 3


def decode_brush(packed: object, size_hw: tuple[int, int]) -> np.ndarray:
    """[H, W] bool: where the brush has painted. Raises: ValueError, where that is damaged, or of another size."""
    if not isinstance(packed, list) or not all(isinstance(one, int) and 0 <= one < 256 for one in packed):
        raise ValueError("run lengths that are no list of bytes")
    bits = _Bits(bytes(packed))
    count, height, width = bits.take(32), *size_hw
    if count != height * width * _CHANNELS:
        raise ValueError(f"a mask of {count} values for an image of {width} x {height}")
    value_bits = bits.take(5) + 1
    length_bits = [bits.take(4) + 1 for _ in range(4)]
    values = np.zeros(count, np.uint8)
    at = 0
    while at < count:
        is_run = bits.take(1)
        end = at + bits.take(length_bits[bits.take(2)]) + 1
        if end > count:
            raise ValueError("run lengths that reach beyond the mask")
        if is_run:
            values[at:end] = bits.take(value_bits) & 255
        else:
            values[at:end] = bits.take_many(value_bits, end - at)
        at = end
    mask = values.reshape(height, width, _CHANNELS)[..., _ALPHA] > 0
    if not mask.any():
        raise ValueError("a mask without a pixel")
    return mask


class _Bits:
    """Whole numbers of any number of bits, the highest one first."""

    def __init__(self, data: bytes) -> None:
        self._bits = np.unpackbits(np.frombuffer(data, np.uint8))
        self._at = 0

    def take(self, count: int) -> int:
        """Raises: ValueError, where there are no more bits."""
        return int(self.take_many(count, 1)[0])

    def take_many(self, count: int, repeats: int) -> np.ndarray:
        """[repeats]: numbers of `count` bits each. Raises: ValueError, where there are no more bits."""
        end = self._at + count * repeats
        if end > len(self._bits):
            raise ValueError("run lengths that end too early")
        rows = self._bits[self._at : end].reshape(repeats, count).astype(np.int64)
        self._at = end
        return rows @ (1 << np.arange(count - 1, -1, -1))
