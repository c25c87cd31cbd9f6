"""Blocks of GGUF whose numbers stand in tables or are floats of 4 bits, against ggml's own functions."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from framework.interop.weights.gguf_blocks import BLOCKS, dequantize_blocks


def _bytes(kind: str, count: int) -> np.ndarray:
    """[count, size] of bytes of all values."""
    block = BLOCKS[kind]
    numbers = np.arange(count * block.size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    raw = (numbers >> np.uint64(40)).astype(np.uint8).reshape(count, block.size)
    if kind == "NVFP4":
        raw[:, :4] &= 127  # a scale has no sign
    return raw


@pytest.mark.filterwarnings("ignore:invalid value encountered", "ignore:overflow encountered")
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("IQ1_S", 523489616),
        ("IQ1_M", 455156897),
        ("IQ2_XXS", 3604199547),
        ("IQ2_XS", 3225125721),
        ("IQ2_S", 658169865),
        ("IQ3_XXS", 3472134836),
        ("IQ3_S", 2680673795),
        ("TQ1_0", 3564330845),
        ("TQ2_0", 1775379982),
        ("MXFP4", 32532852),
        ("NVFP4", 886144644),
        ("Q1_0", 2994040165),
    ],
)
def test_numbers_are_those_of_ggml(kind: str, expected: int) -> None:
    """The expectations are of ggml 0.25.3's dequantize_row_*; scales that are no numbers are taken out."""
    raw = _bytes(kind, 2048)
    numbers = dequantize_blocks(memoryview(raw.tobytes()), kind, (2048, BLOCKS[kind].length))
    finite = np.where(np.isfinite(numbers), numbers, 0).astype("<f4") + np.float32(0)
    assert zlib.crc32(finite.tobytes()) == expected


def test_floats_of_four_bits_by_hand() -> None:
    """1.5 * 2^(129 - 127) and 0.5 of -6; 2 of E4M3 is 0x40."""
    one = dequantize_blocks(memoryview(bytes([129, 0xF3]) + bytes(15)), "MXFP4", (32,))
    assert (one[0], one[16], np.count_nonzero(one)) == (6, -24, 2)
    four = dequantize_blocks(
        memoryview(bytes([0x40, 0, 0, 0x38, 0xF3]) + bytes(30) + b"\x10"), "NVFP4", (64,)
    )
    assert (four[0], four[8], four[63], np.count_nonzero(four)) == (3, -12, 0.5, 3)


def test_bits_and_thirds_by_hand() -> None:
    half = np.array([0.5], "<f2").tobytes()
    bits = dequantize_blocks(memoryview(half + bytes([0b101]) + bytes(15)), "Q1_0", (128,))
    np.testing.assert_array_equal(bits[:4], [0.5, -0.5, 0.5, -0.5])
    two = dequantize_blocks(memoryview(bytes([0b100100]) + bytes(63) + half), "TQ2_0", (256,))
    np.testing.assert_array_equal(two[[0, 32, 64, 96]], [-0.5, 0, 0.5, -0.5])
