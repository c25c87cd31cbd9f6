"""Quantised arrays that the test packs itself: GPTQ, AWQ, FP8 and what of them is refused."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop.weights.lazy_state import LazyState
from framework.interop.weights.packed_integers import pack_bits, unpack_bits
from framework.interop.weights.quantized_state import (
    QuantizedFile,
    dequantized_state,
    parse_quantization,
    read_quantization,
)

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 16, "sym": False}
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
RNG = np.random.default_rng(0)


def words(levels: np.ndarray, order: tuple[int, ...] = tuple(range(8))) -> np.ndarray:
    """[n, m] of 4 bits -> [n, m / 8] int32, a shift at a time."""
    packed = np.zeros((len(levels), levels.shape[1] // 8), np.uint32)
    for nibble, column in enumerate(order):
        packed |= levels[:, column::8].astype(np.uint32) << np.uint32(4 * nibble)
    return packed.view(np.int32)


def gptq(
    levels: np.ndarray, zero: np.ndarray, scale: np.ndarray, **more: np.ndarray
) -> dict[str, np.ndarray]:
    """Of levels [in, out], zero and scale [groups, out]."""
    arrays = {"qweight": words(levels.T).T, "qzeros": words(zero), "scales": scale.astype(np.float16), **more}
    return {f"a.{name}": array for name, array in arrays.items()} | {"a.bias": np.ones(16, np.float32)}


def example() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    levels, zero = RNG.integers(0, 16, (32, 16)), RNG.integers(1, 15, (2, 16))
    return levels, zero, RNG.random((2, 16)).astype(np.float16).astype(np.float32)


def state(arrays: dict[str, np.ndarray], settings: dict[str, object]) -> LazyState:
    return dequantized_state(arrays, parse_quantization(settings))


@pytest.mark.parametrize("version", ["gptq", "gptq_v2"])
def test_gptq(version: str) -> None:
    levels, zero, scale = example()
    arrays = gptq(levels, zero - (version == "gptq"), scale)
    found = state(arrays, {**GPTQ, "checkpoint_format": version})
    expected = (levels - np.repeat(zero, 16, 0)) * np.repeat(scale, 16, 0)
    np.testing.assert_allclose(found["a.weight"], expected.T, rtol=1e-6)
    assert found["a.bias"] is arrays["a.bias"] and "a.qweight" not in found


def test_gptq_with_groups_in_any_order() -> None:
    levels, zero, scale = example()
    groups = RNG.permutation(np.arange(32) % 2).astype(np.int32)
    found = state(gptq(levels, zero - 1, scale, g_idx=groups), GPTQ)
    np.testing.assert_allclose(found["a.weight"], ((levels - zero[groups]) * scale[groups]).T, rtol=1e-6)


def test_gptq_whose_version_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    levels, _, scale = example()
    found = state(gptq(levels, np.full((2, 16), 8), scale), {**GPTQ, "sym": True})
    np.testing.assert_allclose(found["a.weight"], ((levels - 8.0) * np.repeat(scale, 16, 0)).T, rtol=1e-6)
    assert "taken for version 2" in caplog.text


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_bits_across_words(bits: int) -> None:
    levels = RNG.integers(0, 1 << bits, (3, 64)).astype(np.uint8)
    packed = pack_bits(levels, bits)
    np.testing.assert_array_equal(unpack_bits(packed, bits), levels)
    stream = sum(int(level) << bits * n for n, level in enumerate(levels[0]))
    assert [int(word) & 0xFFFFFFFF for word in packed[0]] == [
        stream >> 32 * n & 0xFFFFFFFF for n in range(2 * bits)
    ]


def test_awq() -> None:
    levels, zero, scale = example()
    arrays = {"a.qweight": words(levels, AWQ_ORDER), "a.qzeros": words(zero, AWQ_ORDER), "a.scales": scale}
    found = state(arrays, {"quant_method": "awq", "w_bit": 4, "q_group_size": 16, "version": "GEMM"})
    expected = (levels - np.repeat(zero, 16, 0)) * np.repeat(scale, 16, 0)
    np.testing.assert_allclose(found["a.weight"], expected.T, rtol=1e-6)


@pytest.mark.parametrize("name", ["weight_scale_inv", "weight_scale"])
def test_8_bit_floats_in_blocks_that_are_cut_off(name: str) -> None:
    weight = RNG.standard_normal((200, 300)).astype(ml_dtypes.float8_e4m3fn)
    scale = RNG.random((2, 3), dtype=np.float32)
    said = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    found = state({"a.weight": weight, f"a.{name}": scale}, said)["a.weight"]
    for row, column in ((0, 0), (127, 128), (199, 299), (128, 127)):
        expected = float(weight[row, column]) * scale[row // 128, column // 128]
        np.testing.assert_allclose(found[row, column], expected, rtol=1e-6)


@pytest.mark.parametrize("scale", [np.float32(2), np.full(3, 2, np.float32), np.full((3, 1), 2, np.float32)])
def test_8_bit_floats_with_a_scale_or_one_a_row(scale: np.ndarray) -> None:
    weight = np.arange(6).reshape(3, 2).astype(ml_dtypes.float8_e4m3fn)
    arrays = {
        "a.weight": weight,
        "a.weight_scale": np.asarray(scale),
        "a.input_scale": np.ones(1, np.float32),
    }
    found = state(arrays, {"quant_method": "fp8"})
    assert list(found) == ["a.weight"]
    np.testing.assert_array_equal(found["a.weight"], 2 * np.arange(6).reshape(3, 2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a.qzeros": None}, "an array of a quantised matrix is missing"),
        ({"a.scales": np.ones((3, 16), np.float16)}, "do not belong together"),
        ({"a.scales": np.ones((2, 8), np.float16)}, "do not belong together"),
        ({"a.qzeros": np.ones((2, 3), np.int32)}, "do not belong together"),
        ({"a.qweight": np.ones((4, 16), np.int64)}, "do not belong together"),
        ({"a.g_idx": np.full(32, 2, np.int32)}, "do not belong together"),
        ({"a.g_idx": np.full(32, -1, np.int32)}, "do not belong together"),
        ({"a.g_idx": np.zeros(31, np.int32)}, "do not belong together"),
    ],
)
def test_arrays_that_do_not_fit(changes: dict[str, np.ndarray | None], message: str) -> None:
    levels, zero, scale = example()
    arrays = {**gptq(levels, zero - 1, scale), **changes}
    with pytest.raises(FormatError, match=message):
        state({name: array for name, array in arrays.items() if array is not None}, GPTQ)["a.weight"]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"quant_method": "hqq"},
        {**GPTQ, "bits": 5},
        {**GPTQ, "bits": "4"},
        {**GPTQ, "checkpoint_format": "marlin"},
        {"quant_method": "awq", "bits": 8},
        {"quant_method": "awq", "version": "gemv"},
        {"quant_method": "fp8", "weight_block_size": [128]},
        {"quant_method": "fp8", "weight_block_size": [0, 128]},
        {"quant_method": "compressed-tensors", "config_groups": {}},
        {"quant_method": "compressed-tensors", "config_groups": []},
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"a": {"weights": {"num_bits": 4, "type": "float"}}},
        },
    ],
)
def test_settings_that_no_reader_fits(settings: dict[str, object]) -> None:
    with pytest.raises(FormatError):
        parse_quantization(settings)


def test_8_bit_floats_without_scales_or_with_others() -> None:
    weight = np.ones((4, 4), ml_dtypes.float8_e4m3fn)
    with pytest.raises(FormatError, match="has no scale"):
        state({"a.weight": weight}, {"quant_method": "fp8"})
    with pytest.raises(FormatError, match="are not those of the matrix"):
        state({"a.weight": weight, "a.weight_scale": np.ones((3, 3), np.float32)}, {"quant_method": "fp8"})[
            "a.weight"
        ]


def test_settings_in_a_file_of_their_own(tmp_path: Path) -> None:
    assert read_quantization(tmp_path, {}) is None
    (tmp_path / "quantize_config.json").write_text('{"bits": 4, "group_size": 128}', encoding="utf-8")
    assert parse_quantization(read_quantization(tmp_path, {}) or {}) == QuantizedFile("gptq", 4)
    (tmp_path / "quantize_config.json").unlink()
    (tmp_path / "quant_config.json").write_text('{"w_bit": 4, "q_group_size": 128}', encoding="utf-8")
    assert parse_quantization(read_quantization(tmp_path, {}) or {}).method == "awq"
