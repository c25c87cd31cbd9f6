"""Decoders in GGUF files as Hugging Face has them: config.json, and arrays with its names and layouts.

Reference: the classes LlamaModel, Qwen2Model and Qwen3Model of llama.cpp's convert_hf_to_gguf.py
"""

from __future__ import annotations

import functools
import re

import numpy as np

from framework.core.errors import FormatError
from framework.interop.weights.gguf import GGUFFile, Value
from framework.interop.weights.lazy_state import LazyArray, LazyState

_ARCHITECTURES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
"""`general.architecture` -> `model_type`."""
_PERMUTED = frozenset({"llama"})
"""Architectures whose queries and keys stand with the two channels of a rotation side by side."""
_SETTINGS = {
    "context_length": "max_position_embeddings",
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
_REQUIRED = ("block_count", "embedding_length", "feed_forward_length", "attention.head_count")
_SCALINGS = {"linear": "linear", "yarn": "yarn"}
_YARN = {
    "original_context_length": "original_max_position_embeddings",
    "yarn_beta_fast": "beta_fast",
    "yarn_beta_slow": "beta_slow",
}
_TOKENS = {
    "tokenizer.ggml.bos_token_id": "bos_token_id",
    "tokenizer.ggml.eos_token_id": "eos_token_id",
    "tokenizer.ggml.padding_token_id": "pad_token_id",
}
_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_BLOCK = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
_ROPE_FACTORS = "rope_freqs.weight"
_LLAMA_3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""Of Llama 3.1 to 3.3, whose files hold the factors of the frequencies and not what they follow from."""


def gguf_settings(file: GGUFFile) -> dict[str, object]:
    """The config.json of the model in a file.

    Raises:
        FormatError: an architecture that is not read, experts, or no sizes.
    """
    metadata, where = file.metadata, file.source.name
    name = metadata.get("general.architecture")
    if name not in _ARCHITECTURES:
        raise FormatError(
            "a model of this architecture is not read from GGUF",
            where=f"{where}: general.architecture",
            received=repr(name)[:80],
            allowed=", ".join(_ARCHITECTURES),
            fix="take the model's folder with config.json and safetensors",
        )
    if metadata.get(f"{name}.expert_count"):
        raise FormatError(
            "mixtures of experts are not read from GGUF",
            where=f"{where}: {name}.expert_count",
            received=str(metadata[f"{name}.expert_count"])[:80],
            fix="take the model's folder with config.json and safetensors",
        )
    settings: dict[str, object] = {"model_type": _ARCHITECTURES[name]}
    for theirs, ours in _SETTINGS.items():
        value = metadata.get(f"{name}.{theirs}")
        if value is None and theirs in _REQUIRED:
            raise FormatError(
                f"the metadata has no {name}.{theirs}", where=where, fix="convert the model again"
            )
        if value is not None:
            settings[ours] = _number(value, f"{where}: {name}.{theirs}")
    if (
        "rope.dimension_count" in (key.removeprefix(f"{name}.") for key in metadata)
        and "head_dim" not in settings
    ):
        settings["head_dim"] = _number(metadata[f"{name}.rope.dimension_count"], where)
    embedding = file.tensors.get("token_embd.weight")
    if embedding is not None:
        settings["vocab_size"] = embedding.shape[0]
    settings["tie_word_embeddings"] = "output.weight" not in file.tensors
    if name == "qwen2":
        settings["use_sliding_window"] = False
    settings |= {ours: metadata[key] for key, ours in _TOKENS.items() if type(metadata.get(key)) is int}
    scaling = _scaling(file, str(name))
    return settings | ({"rope_scaling": scaling} if scaling else {})


def _number(value: Value, where: str) -> int | float:
    """Raises: FormatError, where a size is none, or differs between layers."""
    if isinstance(value, list) and value and all(one == value[0] for one in value):
        value = value[0]
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise FormatError(
            "a size of the model is no number, or another one in each layer",
            where=where,
            received=repr(value)[:80],
            allowed="one number for all layers",
        )
    return value


def _scaling(file: GGUFFile, name: str) -> dict[str, object]:
    """`rope_scaling`: what the metadata says, linear where it names no kind, as in llama.cpp; of Llama 3, what the
    factors in the file come to."""
    metadata = file.metadata
    scaling = {key: metadata.get(f"{name}.rope.scaling.{key}") for key in ("type", "factor", *_YARN)}
    kind = "linear" if scaling["type"] is None else scaling["type"]
    factor = scaling["factor"] or metadata.get(
        f"{name}.rope.scale_linear"
    )  # as files before August 2023 have it
    if kind in _SCALINGS and isinstance(factor, int | float) and factor:
        read = {
            ours: value
            for key, ours in _YARN.items()
            if isinstance(value := scaling[key], int | float) and value
        }
        return {"rope_type": _SCALINGS[str(kind)], "factor": float(factor), **read}
    if _ROPE_FACTORS in file.tensors:
        factors = file.array(_ROPE_FACTORS)
        return {"rope_type": "llama3", "factor": float(factors.max(initial=1)), **_LLAMA_3}
    return {}


def gguf_state(file: GGUFFile) -> LazyState:
    """The arrays of a decoder with Hugging Face's names, [out, in], in float32; made when they are read.

    Raises:
        FormatError: a tensor that no decoder read here has.
    """
    settings = gguf_settings(file)
    permuted = file.metadata.get("general.architecture") in _PERMUTED
    heads = {"attn_q": settings["num_attention_heads"], "attn_k": settings.get("num_key_value_heads")}
    arrays: dict[str, LazyArray] = {}
    unknown = []
    for name, entry in file.tensors.items():
        make = functools.partial(file.array, name)
        block = _BLOCK.fullmatch(name)
        if block is not None and block[2] in _BLOCK_NAMES:
            count = heads.get(block[2]) if permuted else None
            if block[2] in heads and permuted:
                make = functools.partial(
                    _side_by_side,
                    file,
                    name,
                    _heads(count or heads["attn_q"], entry.shape, f"{file.source.name}: {name}"),
                )
            arrays[f"model.layers.{block[1]}.{_BLOCK_NAMES[block[2]]}.{block[3]}"] = LazyArray(
                entry.shape, make
            )
        elif (stem := name.rpartition(".")[0]) in _NAMES:
            arrays[f"{_NAMES[stem]}.{name.rpartition('.')[2]}"] = LazyArray(entry.shape, make)
        elif name != _ROPE_FACTORS:
            unknown.append(name)
    if unknown:
        raise FormatError(
            f"{len(unknown)} tensors of the file are none of a {settings['model_type']}",
            where=file.source.name,
            received=", ".join(unknown[:5])[:200],
            fix="take the model's folder with config.json and safetensors",
        )
    return LazyState(arrays)


def _heads(count: object, shape: tuple[int, ...], where: str) -> int:
    """Raises: FormatError, where the rows are not those of so many heads."""
    if not isinstance(count, int) or count < 1 or not shape or shape[0] % (2 * count):
        raise FormatError(
            "a matrix of the attention does not fit its number of heads",
            where=where,
            received=f"{list(shape)} of {count!r} heads",
        )
    return count


def _side_by_side(file: GGUFFile, name: str, heads: int) -> np.ndarray:
    """Rows of a head in llama.cpp's order, 0, D/2, 1, D/2 + 1, ..., in Hugging Face's: 0, 1, ..., D - 1."""
    array = file.array(name)
    pairs = array.reshape(heads, len(array) // heads // 2, 2, *array.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(array.shape)
