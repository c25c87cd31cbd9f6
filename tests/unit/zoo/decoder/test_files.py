"""Files of decoders that are not as transformers writes them today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from framework.config import build
from framework.core.errors import ConfigError, WeightError
from framework.interop import write_safetensors
from framework.interop.named_weights import named_weights
from zoo.decoder.deepseek import DeepseekV3Config
from zoo.decoder.gpt2 import GPT2Config
from zoo.decoder.llama import LlamaConfig
from zoo.decoder.mixtral import MixtralConfig
from zoo.decoder.qwen import Qwen2Config
from zoo.layers.decoder_weights import load_decoder, save_decoder, state_for_files
from zoo.layers.rope import RopeOptions

SMALL: dict[str, Any] = {
    "vocab_size": 31, "hidden_size": 16, "num_layers": 2, "num_heads": 4, "intermediate_size": 24, "max_positions": 32,
}  # fmt: skip
IDS = jnp.asarray(np.random.default_rng(0).integers(0, 31, (2, 7)), jnp.int32)


def made(config: Any) -> Any:
    model = build(config).eval()
    model.set_state_dict(named_weights(model.state_shapes()))
    return model


def write(folder: Path, model: Any, arrays: dict[str, np.ndarray], paddle: bool = False) -> Path:
    (folder / "config.json").write_text(json.dumps(model.config.to_pretrained_config()), encoding="utf-8")
    write_safetensors(folder / "model.safetensors", arrays, {"format": "np" if paddle else "pt"})
    return folder


def check(folder: Path, model: Any) -> None:
    np.testing.assert_array_equal(load_decoder(folder)(IDS), model(IDS))


def in_out(model: Any) -> dict[str, np.ndarray]:
    """As PaddleNLP has them."""
    sources = model.weight_sources()
    turned = {name for source in sources.values() if source.transposed for name in source.names}
    return {
        name: np.ascontiguousarray(array.T) if name in turned else array
        for name, array in state_for_files(model).items()
    }


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module._orig_mod."])
def test_names_of_compiled_models(prefix: str, tmp_path: Path) -> None:
    """nanoGPT#325: torch.compile and DataParallel put a component before all names."""
    model = made(LlamaConfig(**SMALL))
    check(
        write(tmp_path, model, {prefix + name: array for name, array in state_for_files(model).items()}),
        model,
    )


@pytest.mark.parametrize(("config", "prefix"), [(LlamaConfig, "llama."), (Qwen2Config, "qwen2.")])
def test_paddlenlp(config: Any, prefix: str, tmp_path: Path) -> None:
    model = made(config(**SMALL, num_kv_heads=2))
    arrays = {name.replace("model.", prefix, 1): array for name, array in in_out(model).items()}
    assert any(name.startswith(prefix) for name in arrays)
    check(write(tmp_path, model, arrays, True), model)


@pytest.mark.parametrize(("config", "kv_heads"), [(LlamaConfig, 4), (LlamaConfig, 1), (Qwen2Config, 2)])
def test_paddlenlp_with_joined_matrices(config: Any, kv_heads: int, tmp_path: Path) -> None:
    """Heads of queries in groups, each before the head of keys and of values that it shares."""
    model = made(config(**SMALL, num_kv_heads=kv_heads))
    arrays = in_out(model)
    for layer in range(2):
        path = f"model.layers.{layer}"
        for leaf in ("weight", "bias"):
            names = [f"{path}.self_attn.{label}_proj.{leaf}" for label in "qkv"]
            if names[0] not in arrays:
                continue
            q, k, v = (arrays.pop(name) for name in names)
            size = 4 // kv_heads * 4
            parts = []
            for group in range(kv_heads):
                parts += [q[..., group * size : (group + 1) * size]]
                parts += [one[..., group * 4 : (group + 1) * 4] for one in (k, v)]
            arrays[f"{path}.self_attn.qkv_proj.{leaf}"] = np.concatenate(parts, -1)
        halves = [arrays.pop(f"{path}.mlp.{label}_proj.weight") for label in ("gate", "up")]
        arrays[f"{path}.mlp.gate_up_fused_proj.weight"] = np.concatenate(halves, -1)
    check(write(tmp_path, model, arrays, True), model)


def test_gpt2_of_the_first_years(tmp_path: Path) -> None:
    """Names without a prefix, and the masks of the attention."""
    model = made(GPT2Config(**SMALL))
    arrays = {name.removeprefix("transformer."): array for name, array in state_for_files(model).items()}
    for layer in range(2):
        arrays[f"h.{layer}.attn.bias"] = np.ones((1, 1, 32, 32), np.float32)
        arrays[f"h.{layer}.attn.masked_bias"] = np.full(1, -1e4, np.float32)
    check(write(tmp_path, model, arrays), model)


def test_a_stack_without_its_head(tmp_path: Path) -> None:
    """As `AutoModel.save_pretrained` writes it: tied embeddings score the vocabulary."""
    model = made(LlamaConfig(**SMALL, tie_embeddings=True))
    arrays = {name.removeprefix("model."): array for name, array in state_for_files(model).items()}
    check(write(tmp_path, model, arrays), model)


def test_a_head_that_is_the_embedding_may_stand_in_the_file_alone_or_twice(tmp_path: Path) -> None:
    model = made(LlamaConfig(**SMALL, tie_embeddings=True))
    arrays = state_for_files(model)
    both = {**arrays, "lm_head.weight": arrays["model.embed_tokens.weight"]}
    check(write(tmp_path, model, both), model)
    del both["model.embed_tokens.weight"]
    check(write(tmp_path, model, both), model)


def test_a_head_that_differs_from_the_embedding_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Though config.json ties them. Source: vllm-project/vllm#51063"""
    model = made(LlamaConfig(**SMALL))
    arrays = state_for_files(model)
    tied = {**model.config.to_pretrained_config(), "tie_word_embeddings": True}
    folder = write(tmp_path, model, arrays)
    (folder / "config.json").write_text(json.dumps(tied), encoding="utf-8")
    check(folder, model)
    assert "lm_head.weight is another" in caplog.text


def test_config_json_as_models_of_all_years_have_it() -> None:
    """`rope_scaling` with `type` or `rope_type`, several ends of a text, heads wider than their share."""
    llama31 = {
        **{"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "rope_theta": 5e5},
        "rope_scaling": {
            **{"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "rope_type": "llama3"},
            "original_max_position_embeddings": 8192,
        },
        "eos_token_id": [128001, 128008, 128009],
    }
    size = LlamaConfig.from_pretrained_config(llama31).size()
    assert (size.rope.kind, size.rope.factor, size.rope.original_positions) == ("llama3", 8.0, 8192)
    assert size.eos_ids == (128001, 128008, 128009) and size.head_width == 16
    linear = {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2.0}}
    assert LlamaConfig.from_pretrained_config(linear).size().rope == RopeOptions(kind="linear", factor=2.0)
    nemo = {
        "model_type": "mistral",
        "hidden_size": 5120,
        "num_attention_heads": 32,
        "head_dim": 128,
        "sliding_window": None,
    }
    assert LlamaConfig.from_pretrained_config(nemo).size().head_width == 128
    assert LlamaConfig.from_pretrained_config(nemo).size().window is None
    with pytest.raises(ConfigError, match="unknown kind of rotary embedding"):
        LlamaConfig.from_pretrained_config({"rope_scaling": {"rope_type": "spiral", "factor": 2.0}})


def test_a_head_that_is_missing_is_no_embedding_in_silence(tmp_path: Path) -> None:
    model = made(LlamaConfig(**SMALL))
    arrays = state_for_files(model)
    del arrays["lm_head.weight"]
    with pytest.raises(WeightError, match=r"1 missing: lm_head\.weight(.|\n)*tie_word_embeddings"):
        load_decoder(write(tmp_path, model, arrays))


def test_a_classifier_is_no_model_that_writes(tmp_path: Path) -> None:
    """It has the layers of one and no scores of words."""
    settings = {"model_type": "qwen3", "architectures": ["Qwen3ForSequenceClassification"], "hidden_size": 8}
    (tmp_path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"architectures: the folder holds a classifier(.|\n)*Qwen3ForSequence"
    ):
        load_decoder(tmp_path)


def test_experts_of_few_tokens_are_those_of_many() -> None:
    """One token reads only the matrices of its experts; more are laid out for all."""
    model = made(MixtralConfig(**SMALL, num_experts=8, top_k=2))
    whole = model(IDS)
    cache = model.new_cache(1, 8)
    for place in range(IDS.shape[1]):
        hidden, cache = model.decode(IDS[:1, place : place + 1], jnp.full((1, 1), place), cache)
        np.testing.assert_allclose(model.logits(hidden)[0, 0], whole[0, place], rtol=0, atol=2e-5)


def test_layers_that_predict_further_tokens_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = made(DeepseekV3Config(**SMALL))
    arrays = state_for_files(model) | {"model.layers.2.eh_proj.weight": np.zeros((16, 32), np.float32)}
    check(write(tmp_path, model, arrays), model)
    assert "1 arrays are not used by DeepseekV3, such as model.layers.2.eh_proj.weight" in caplog.text


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory of a process is read from /proc")
def test_weights_are_in_memory_once(tmp_path: Path) -> None:
    """A folder takes 1.2 times its file at most, beside the file's own pages, which are mapped."""
    config = LlamaConfig(
        vocab_size=4000,
        hidden_size=512,
        num_layers=4,
        num_heads=8,
        intermediate_size=2048,
        tie_embeddings=True,
    )
    model = build(config).eval()
    for parameter in model.parameters():
        parameter.dtype = "bfloat16"
        parameter.set_value(jnp.ones(parameter.shape, jnp.bfloat16))
    save_decoder(model, tmp_path)
    size = (tmp_path / "model.safetensors").stat().st_size
    models = [load_decoder(tmp_path)]  # what is imported and compiled once does not count
    before = own_memory()
    models.append(load_decoder(tmp_path))
    assert own_memory() - before < 1.2 * size
    assert all(parameter.value.dtype == jnp.bfloat16 for parameter in models[1].parameters())


def own_memory() -> int:
    """Bytes of this process that are no file's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))
