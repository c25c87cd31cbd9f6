"""Decoders rounded by examples, and the folders that `oar quantize` writes."""

from __future__ import annotations

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from framework.compress.rounding import InputMoments, awq_scale, output_error, round_gptq, round_nearest
from framework.config import build
from framework.core.errors import ConfigError, InputError
from framework.nn.quantized import Int4Linear, Int8Embedding, Int8Linear, WeightScheme
from framework.workflow.domain.capabilities import FolderQuantization
from nlp import llm
from nlp.quantization import METHODS, Method, quantize_decoder
from nlp.quantize_folder import accepts_folder, write_folder
from tests.e2e.tools import run_tool
from zoo.decoder.llama import LlamaConfig
from zoo.layers.decoder import Decoder
from zoo.layers.decoder_weights import save_decoder

FOUR = WeightScheme(4, 32)
RNG = np.random.default_rng(0)


def model(tied: bool = False) -> Decoder:
    """With inputs of which some are much larger than others, as those of trained models are."""
    config = LlamaConfig(
        vocab_size=50, hidden_size=64, num_layers=2, num_heads=4, num_kv_heads=2, intermediate_size=96,
        max_positions=64, tie_embeddings=tied,
    )  # fmt: skip
    made = build(config).eval()
    for number, (name, parameter) in enumerate(made.named_parameters()):
        values = np.random.default_rng(number).standard_normal(parameter.shape, dtype=np.float32) * 0.15
        if "norm" in name:
            values = 1 + 3 * np.abs(values) ** 2
            values[::9] *= 6
        parameter.set_value(jnp.asarray(values))
    return made


def examples(count: int = 12) -> list[np.ndarray]:
    return [RNG.integers(0, 50, 32) for _ in range(count)]


def moments(x: np.ndarray) -> InputMoments:
    wide = x.astype(np.float64)
    return InputMoments(wide.T @ wide, np.abs(wide).sum(0), len(x))


@pytest.mark.parametrize("bits", [4, 8])
def test_gptq_loses_less_than_the_nearest_step(bits: int) -> None:
    x = RNG.standard_normal((200, 12)) @ RNG.standard_normal((12, 160)) + 0.1 * RNG.standard_normal(
        (200, 160)
    )
    weight, sums = RNG.standard_normal((24, 160)).astype(np.float32), moments(x)
    scheme = WeightScheme(bits, 32)  # type: ignore[arg-type]
    nearest = output_error(weight, round_nearest(weight, scheme).dequantize(), sums)
    rounded = round_gptq(weight, sums, scheme)
    assert output_error(weight, rounded.dequantize(), sums) < 0.5 * nearest
    assert rounded.levels.dtype == (np.uint8 if bits == 4 else np.int8)


def test_gptq_of_inputs_that_are_always_0_and_of_one_example() -> None:
    weight, x = RNG.standard_normal((8, 32)).astype(np.float32), RNG.standard_normal((1, 32))
    x[:, 5] = 0
    assert np.isfinite(round_gptq(weight, moments(x), FOUR).dequantize()).all()
    assert np.isfinite(round_gptq(weight, moments(0 * x), FOUR).dequantize()).all()


def test_awq_protects_large_inputs() -> None:
    x = RNG.standard_normal((100, 64))
    x[:, :4] *= 30
    weight, sums = RNG.standard_normal((24, 64)).astype(np.float32), moments(x)
    scale = awq_scale([weight], sums, FOUR)
    assert scale[:4].min() > scale[4:].max()
    scaled = round_nearest(weight * scale, FOUR).dequantize() / scale
    assert output_error(weight, scaled, sums) < output_error(
        weight, round_nearest(weight, FOUR).dequantize(), sums
    )
    np.testing.assert_array_equal(awq_scale([weight], moments(np.ones((1, 64))), FOUR), np.ones(64))


@pytest.mark.parametrize("tied", [False, True])
def test_methods_of_a_model(tied: bool) -> None:
    ids = jnp.asarray(np.stack(examples(2)), jnp.int32)
    floats, errors = np.asarray(model(tied)(ids)), {}
    for method in METHODS:
        rounded = model(tied)
        reports = quantize_decoder(rounded, FOUR, method, examples())
        errors[method] = float(np.linalg.norm(np.asarray(rounded(ids)) - floats) / np.linalg.norm(floats))
        kinds = {name.rpartition(".")[2]: type(layer) for name, layer in rounded.named_sublayers()}
        assert kinds["q_proj"] is kinds["down_proj"] is Int4Linear
        assert kinds["embed_tokens"] is Int8Embedding if tied else kinds["lm_head"] is Int8Linear
        assert len(reports) == 14 + tied or method == "rtn"
    assert errors["gptq"] < errors["rtn"] and errors["awq"] < errors["rtn"]


def test_scales_of_awq_change_nothing_before_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 8 bits the scales have little to round away: what the norms take, the matrices give."""
    ids = jnp.asarray(np.stack(examples(2)), jnp.int32)
    rounded, floats = model(), np.asarray(model()(ids))
    quantize_decoder(rounded, WeightScheme(8), "awq", examples())
    assert np.linalg.norm(np.asarray(rounded(ids)) - floats) < 0.1 * np.linalg.norm(floats)
    assert not np.allclose(rounded.model.norm.weight, rounded.model.layers[0].input_layernorm.weight)


def test_examples_are_needed() -> None:
    with pytest.raises(InputError, match="this method rounds weights by examples"):
        quantize_decoder(model(), FOUR, "gptq")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decoder")
    save_decoder(model(), path)
    vocabulary = {f"w{n}": n for n in range(50)}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "w0"},
    }
    (path / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (path / "texts.txt").write_text(" ".join(f"w{n}" for n in RNG.integers(0, 50, 900)), encoding="utf-8")
    return path


@pytest.mark.parametrize(("bits", "method"), [(4, "gptq"), (4, "awq"), (4, "rtn"), (8, "rtn")])
def test_a_folder_is_written_and_read(folder: Path, tmp_path: Path, bits: int, method: Method) -> None:
    ids = jnp.asarray(np.stack(examples(2)), jnp.int32)
    data = folder / "texts.txt" if method != "rtn" else None
    options = FolderQuantization(bits, method, 32, data, 8, 32)
    assert accepts_folder(str(folder)) and not accepts_folder(str(tmp_path))
    lines = write_folder(str(folder), tmp_path / "out", options)
    assert "MB of weights before" in lines[0] and (method == "rtn" or "error of their outputs" in lines[1])
    said = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))["quantization_config"]
    assert said["quant_method"] == ("gptq" if bits == 4 else "compressed-tensors")
    exact = llm.load(tmp_path / "out", weights=f"int{bits}")
    again = llm.load(exact.save(tmp_path / "again"), weights=f"int{bits}")
    np.testing.assert_allclose(again.model(ids), exact.model(ids), rtol=1e-3, atol=1e-2)
    layers = [one.model.model.layers[0].mlp.up_proj.dequantize() for one in (exact, again)]
    np.testing.assert_array_equal(*layers)
    floats = llm.load(tmp_path / "out", dtype="float32").model
    if bits == 4:
        np.testing.assert_allclose(
            np.asarray(floats.model.layers[0].mlp.up_proj.weight).T, layers[0], rtol=1e-6
        )


def test_the_command(folder: Path, tmp_path: Path) -> None:
    done = run_tool(
        "quantize", "-c", folder, "--weight_bits", 4, "--group", 32, "--output_dir", tmp_path / "q"
    )
    assert "MB of weights before" in done.stdout and (tmp_path / "q" / "tokenizer.json").is_file()


def test_what_the_command_refuses(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this method rounds weights by examples"):
        write_folder(str(folder), tmp_path / "q", FolderQuantization(4, "gptq", 32))
    with pytest.raises(ConfigError, match="not rounded to so many bits"):
        write_folder(str(folder), tmp_path / "q", FolderQuantization(7))
    with pytest.raises(InputError, match="would overwrite itself"):
        write_folder(str(folder), folder, FolderQuantization(8))
    assert not (tmp_path / "q").exists()
