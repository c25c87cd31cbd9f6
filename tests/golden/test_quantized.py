"""Quantised files of llama.cpp, GPTQModel, AutoAWQ, compressed-tensors and bitsandbytes: what they stand for is what
their own tools say, bit for bit in the type that the tool computes in (tools/golden/quantized.py)."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from framework.interop.weights.gguf_blocks import dequantize_blocks
from framework.interop.weights.packed_integers import GroupedMatrix
from framework.interop.weights.quantized_state import (
    dequantized_state,
    grouped_matrices,
    parse_quantization,
)

DATA = Path(__file__).parent / "data" / "quantized"
IDS = np.arange(12)[None] * 7 % 64


@functools.cache
def stored(case: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{case}.npz") as data:
        return {key: data[key] for key in data.files}


def form_state(case: str, form: str) -> tuple[dict[str, np.ndarray], dict, np.ndarray]:
    """(the arrays of a file, with a layer called "x"; its quantization_config; the matrix of the tool)."""
    arrays = {}
    for key, value in stored(case).items():
        if key.startswith(f"file.{form}."):
            leaf, _, kind = key.removeprefix(f"file.{form}.").partition(":")
            arrays[f"x.{leaf}"] = value.view(ml_dtypes.float8_e4m3fn) if kind == "f8" else value
    said = json.loads(str(stored(case)[f"config.{form}"]))
    return arrays, said, stored(case)[f"weight.{form}"]


def in_type(matrix: GroupedMatrix, dtype: np.dtype) -> np.ndarray:
    """The matrix as a tool that computes in this type has it."""
    inputs = matrix.levels.shape[1]
    groups = matrix.groups
    if groups is None:
        groups = np.arange(inputs) // (inputs // matrix.scale.shape[1])
    difference = (matrix.levels.astype(np.float32) - matrix.zero[:, groups]).astype(dtype)
    scale = matrix.scale[:, groups].astype(dtype)
    return (difference.astype(np.float32) * scale.astype(np.float32)).astype(dtype).astype(np.float32)


@pytest.mark.parametrize("kind", [key[5:] for key in stored("blocks") if key.startswith("file.")])
def test_blocks_of_gguf(kind: str) -> None:
    packed, expected = stored("blocks")[f"file.{kind}"], stored("blocks")[f"weight.{kind}"]
    found = dequantize_blocks(memoryview(np.ascontiguousarray(packed)).cast("B"), kind, expected.shape)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("case", "form", "dtype"),
    [
        ("gptq", "v1", "bfloat16"),
        ("gptq", "act", "bfloat16"),
        ("gptq", "v2", "bfloat16"),
        ("gptq", "eight", "bfloat16"),
        ("gptq", "three", "bfloat16"),
        ("awq", "gemm", "float16"),
        ("compressed", "group", "float32"),
        ("compressed", "channel", "float32"),
    ],
)
def test_whole_numbers(case: str, form: str, dtype: str) -> None:
    arrays, said, expected = form_state(case, form)
    quantized = parse_quantization(said)
    matrix = grouped_matrices(arrays, quantized)["x"]()
    np.testing.assert_array_equal(in_type(matrix, jnp.dtype(dtype)), expected)
    state = dequantized_state(arrays, quantized)
    assert list(state) == ["x.weight"] and state.shape("x.weight") == expected.shape
    np.testing.assert_array_equal(state["x.weight"], in_type(matrix, np.dtype("f4")))


@pytest.mark.parametrize(
    ("case", "form"),
    [("compressed", "float"), ("bitsandbytes", "nf4"), ("bitsandbytes", "nested"), ("bitsandbytes", "fp4")],
)
def test_floats(case: str, form: str) -> None:
    arrays, said, expected = form_state(case, form)
    state = dequantized_state(arrays, parse_quantization(said))
    assert list(state) == ["x.weight"] and state.shape("x.weight") == expected.shape
    np.testing.assert_allclose(state["x.weight"], expected, rtol=1e-6, atol=1e-7)


def test_a_model_of_llama_cpp(tmp_path: Path) -> None:
    """Its scores are of activations that it rounds, too: 3 % from the same weights in floats, and rounding the weights
    costs ten times as much, so another order of rows or of heads would show."""
    from nlp import llm

    path = tmp_path / "model.gguf"
    path.write_bytes(stored("model")["model"].tobytes())
    language = llm.load(path)
    scores = np.asarray(language.model(jnp.asarray(IDS, jnp.int32)))[0]
    expected, floats = stored("model")["scores.q4"], stored("model")["scores.f32"]
    error, rounding = (np.linalg.norm(one - expected) / np.linalg.norm(expected) for one in (scores, floats))
    assert error < 0.04 < 4 * error + 0.04 < rounding + 0.1
    assert language.tokenizer is None
