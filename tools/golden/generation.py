"""tests/golden/data/generation: what transformers makes of scores and of tiny decoders, for nlp/generation.

Case `processors`: the scores after the processors of its generation config, each alone and several together, at rows of
several lengths. Case `texts`: greedy texts, and beams with their scores, of decoders with weights that follow from
their names; `write_folder` writes the same ones for `llm.load`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools.golden.cases import derived

DATA = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "generation"

VOCAB_SIZE = 320
LENGTHS = (1, 3, 9, 17, 24)  # tokens of each row
PROMPTS = (1, 3, 4, 10, 12)  # of which so many are the prompt's
LIMIT = 25
ENDS = [2, 7]
PROCESSORS: dict[str, dict[str, Any]] = {
    "none": {},
    "repetition": {"repetition_penalty": 1.7},
    "repetition_below_one": {"repetition_penalty": 0.6},
    "ngram_1": {"no_repeat_ngram_size": 1},
    "ngram_2": {"no_repeat_ngram_size": 2},
    "ngram_3": {"no_repeat_ngram_size": 3},
    "ngram_long": {"no_repeat_ngram_size": 30},
    "bad_words": {"bad_words_ids": [[5], [2], [1, 2], [3, 4, 5], [0, 6], [9, 9, 9, 1]]},
    "sequence_bias": {
        "sequence_bias": [[[4], 2.5], [[3], -1.5], [[1, 3], 4.0], [[0, 1], -3.0], [[2, 1], 1.0]]
    },
    "min_length": {"min_length": 10},
    "min_new_tokens": {"min_new_tokens": 6},
    "forced_bos": {"forced_bos_token_id": 11},
    "forced_eos": {"forced_eos_token_id": 2},
    "decay": {"exponential_decay_length_penalty": [3, 1.3]},
    "suppress": {"suppress_tokens": [0, 4, 300], "begin_suppress_tokens": [8, 9]},
    "temperature": {"do_sample": True, "top_k": 0, "temperature": 0.3},
    "top_k": {"do_sample": True, "top_k": 7},
    "top_k_large": {"do_sample": True, "top_k": 300},
    "top_p": {"do_sample": True, "top_k": 0, "top_p": 0.6},
    "top_p_flat": {"do_sample": True, "top_k": 0, "top_p": 0.999, "temperature": 5.0},
    "top_p_none": {"do_sample": True, "top_k": 0, "top_p": 0.0},
    "min_p": {"do_sample": True, "top_k": 0, "min_p": 0.05},
    "typical": {"do_sample": True, "top_k": 0, "typical_p": 0.7},
    "epsilon": {"do_sample": True, "top_k": 0, "epsilon_cutoff": 0.004},
    "eta": {"do_sample": True, "top_k": 0, "eta_cutoff": 0.02},
    "top_k_and_p": {"do_sample": True, "top_k": 40, "top_p": 0.8, "temperature": 1.4},
    "filters": {
        **{
            "do_sample": True,
            "top_k": 100,
            "top_p": 0.95,
            "min_p": 0.01,
            "typical_p": 0.9,
            "temperature": 1.8,
        },
        **{"epsilon_cutoff": 0.001, "eta_cutoff": 0.002},
    },
    "penalties": {
        **{"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "bad_words_ids": [[5], [1, 2]]},
        **{"min_new_tokens": 3, "suppress_tokens": [4], "sequence_bias": [[[6], 3.0]]},
    },
    "all": {
        **{"repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "bad_words_ids": [[1, 2]], "min_length": 5},
        **{"exponential_decay_length_penalty": [2, 1.1], "suppress_tokens": [9], "do_sample": True},
        **{"temperature": 0.7, "top_k": 60, "top_p": 0.9, "min_p": 0.002},
    },
    "beam_sample": {
        "do_sample": True,
        "num_beams": 3,
        "top_k": 2,
        "top_p": 0.1,
        "min_p": 0.9,
        "typical_p": 0.2,
    },
}


def rows() -> tuple[np.ndarray, np.ndarray]:
    """(tokens [rows, LIMIT] int64, scores [rows, VOCAB_SIZE] float32); few tokens, so that n-grams come again."""
    rng = np.random.default_rng(17)
    ids = rng.integers(0, 6, (len(LENGTHS), LIMIT))
    ids[4, 20:24] = ids[4, 5:9]
    ids[3, 15:17], ids[2, 7:9], ids[1, 2] = (3, 4), (2, 1), 0
    return ids, derived("generation", "scores", (len(LENGTHS), VOCAB_SIZE), 3.0)


_SIZES = {
    **{"vocab_size": 160, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256},
    **{"tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
}
MODELS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "rms_norm_eps": 1e-5, **_SIZES},
    "qwen2": {
        **{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "rms_norm_eps": 1e-6},
        **{**_SIZES, "tie_word_embeddings": True},
    },
    "qwen3": {
        **{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "rms_norm_eps": 1e-6},
        **{**_SIZES, "head_dim": 32},
    },
    "t5": {
        **{"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True},
        **{
            "vocab_size": 160,
            "d_model": 64,
            "d_kv": 16,
            "d_ff": 96,
            "num_layers": 2,
            "num_decoder_layers": 2,
        },
        **{"num_heads": 4, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 16},
        **{"decoder_start_token_id": 0, "eos_token_id": 2, "pad_token_id": 0, "tie_word_embeddings": True},
    },
    "bart": {
        **{
            "model_type": "bart",
            "architectures": ["BartForConditionalGeneration"],
            "is_encoder_decoder": True,
        },
        **{"vocab_size": 160, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 96},
        **{"decoder_ffn_dim": 80, "encoder_attention_heads": 4, "decoder_attention_heads": 2},
        **{"max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
        **{"decoder_start_token_id": 2, "forced_eos_token_id": 2, "tie_word_embeddings": True},
    },
}
TEXT_PROMPTS = {"short": 3, "middle": 17, "long": 70}
BEAMS: dict[str, dict[str, Any]] = {
    "plain": {"num_beams": 4, "max_new_tokens": 20},
    "early": {"num_beams": 4, "max_new_tokens": 20, "early_stopping": True, "eos_token_id": [2, 5, 9, 11]},
    "never": {"num_beams": 4, "max_new_tokens": 20, "early_stopping": "never", "eos_token_id": [2, 5, 9, 11]},
    "short": {"num_beams": 4, "max_new_tokens": 20, "length_penalty": -1.0, "eos_token_id": [2, 5, 9, 11]},
    "long": {"num_beams": 4, "max_new_tokens": 20, "length_penalty": 2.0, "eos_token_id": [2, 5, 9, 11]},
    "several": {"num_beams": 4, "max_new_tokens": 12, "num_return_sequences": 4, "eos_token_id": [5, 9]},
    "processors": {
        **{"num_beams": 3, "max_new_tokens": 16, "no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
        **{"min_new_tokens": 4, "eos_token_id": [2, 5, 9, 11, 30, 31, 32], "bad_words_ids": [[3], [4, 8]]},
    },
}
GREEDY: dict[str, dict[str, Any]] = {
    "plain": {"max_new_tokens": 64},
    "processors": {
        "max_new_tokens": 40,
        "repetition_penalty": 1.5,
        "no_repeat_ngram_size": 2,
        "min_new_tokens": 8,
    },
}


def prompt(name: str) -> list[int]:
    rng = np.random.default_rng(TEXT_PROMPTS[name])
    return rng.integers(3, _SIZES["vocab_size"], TEXT_PROMPTS[name]).tolist()


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The arrays of a file, [out, in]."""
    if config["model_type"] == "t5":
        return _t5_shapes(config)
    if config["model_type"] == "bart":
        return _bart_shapes(config)
    width, inner = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim", width // config["num_attention_heads"])
    query, key = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    result: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config["vocab_size"], width)}
    for layer in range(config["num_hidden_layers"]):
        start = f"model.layers.{layer}."
        for name, out in (("q", query), ("k", key), ("v", key)):
            result[f"{start}self_attn.{name}_proj.weight"] = (out, width)
            if config["model_type"] == "qwen2":
                result[f"{start}self_attn.{name}_proj.bias"] = (out,)
        if config["model_type"] == "qwen3":
            result |= {f"{start}self_attn.{name}_norm.weight": (head,) for name in ("q", "k")}
        result[f"{start}self_attn.o_proj.weight"] = (width, query)
        result |= {f"{start}mlp.{name}_proj.weight": (inner, width) for name in ("gate", "up")}
        result[f"{start}mlp.down_proj.weight"] = (width, inner)
        result |= {f"{start}{name}_layernorm.weight": (width,) for name in ("input", "post_attention")}
    result["model.norm.weight"] = (width,)
    if not config["tie_word_embeddings"]:
        result["lm_head.weight"] = (config["vocab_size"], width)
    return result


def _t5_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    width, inner = config["d_model"], config["num_heads"] * config["d_kv"]
    result: dict[str, tuple[int, ...]] = {"shared.weight": (config["vocab_size"], width)}
    for side, layers in (("encoder", config["num_layers"]), ("decoder", config["num_decoder_layers"])):
        attentions = ("SelfAttention",) if side == "encoder" else ("SelfAttention", "EncDecAttention")
        for block in range(layers):
            start = f"{side}.block.{block}.layer."
            for number, attention in enumerate(attentions):
                result |= {f"{start}{number}.{attention}.{one}.weight": (inner, width) for one in "qkv"}
                result[f"{start}{number}.{attention}.o.weight"] = (width, inner)
                result[f"{start}{number}.layer_norm.weight"] = (width,)
            last = f"{start}{len(attentions)}."
            result[f"{last}DenseReluDense.wi.weight"] = (config["d_ff"], width)
            result[f"{last}DenseReluDense.wo.weight"] = (width, config["d_ff"])
            result[f"{last}layer_norm.weight"] = (width,)
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        result[bias] = (config["relative_attention_num_buckets"], config["num_heads"])
        result[f"{side}.final_layer_norm.weight"] = (width,)
    return result


def _bart_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    width = config["d_model"]
    result: dict[str, tuple[int, ...]] = {"model.shared.weight": (config["vocab_size"], width)}
    result["final_logits_bias"] = (1, config["vocab_size"])
    for side in ("encoder", "decoder"):
        start, inner = f"model.{side}.", config[f"{side}_ffn_dim"]
        result[f"{start}embed_positions.weight"] = (config["max_position_embeddings"] + 2, width)
        result |= {f"{start}layernorm_embedding.{one}": (width,) for one in ("weight", "bias")}
        attentions = ("self_attn",) if side == "encoder" else ("self_attn", "encoder_attn")
        for layer in range(config[f"{side}_layers"]):
            block = f"{start}layers.{layer}."
            linear = {
                f"{block}{one}.{p}_proj": (width, width) for one in attentions for p in ("q", "k", "v", "out")
            }
            linear |= {f"{block}fc1": (inner, width), f"{block}fc2": (width, inner)}
            for name, shape in linear.items():
                result |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
            for name in (*(f"{one}_layer_norm" for one in attentions), "final_layer_norm"):
                result |= {f"{block}{name}.{one}": (width,) for one in ("weight", "bias")}
    return result


def weights(name: str) -> dict[str, np.ndarray]:
    """Of a row of MODELS; large enough that texts are no repetition of one token."""
    result = {}
    for key, shape in shapes(MODELS[name]).items():
        array = derived(name, key, shape, 0.2)
        result[key] = array + 1 if "norm" in key and key.endswith("weight") else array
    return result


def write_folder(folder: Path, name: str) -> Path:
    """The model as save_pretrained writes it."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(MODELS[name]), encoding="utf-8")
    save_file(weights(name), folder / "model.safetensors", {"format": "pt"})
    return folder


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, dict[str, np.ndarray]]]:
    for case in cases or ("processors", *MODELS):
        yield DATA / f"{case}.npz", _processors() if case == "processors" else _texts(case)


def _processors() -> dict[str, np.ndarray]:
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB_SIZE, **sizes))
    ids, scores = rows()
    result = {}
    for case, options in PROCESSORS.items():
        settings = {"eos_token_id": ENDS, "pad_token_id": 0, "max_length": LIMIT, **options}
        out = []
        for row, (length, prompt_length) in enumerate(zip(LENGTHS, PROMPTS, strict=True)):
            config = GenerationConfig(**settings)
            model._prepare_special_tokens(config, False, device="cpu")
            processors = model._get_logits_processor(config, prompt_length, device="cpu")
            tokens = torch.as_tensor(ids[row : row + 1, :length])
            out.append(processors(tokens, torch.as_tensor(scores[row : row + 1])).numpy()[0])
        result[case] = np.stack(out)
    return result


def _texts(name: str) -> dict[str, np.ndarray]:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    settings = dict(MODELS[name])
    encodes = settings.get("is_encoder_decoder", False)
    kind = AutoModelForSeq2SeqLM if encodes else AutoModelForCausalLM
    model = kind.from_config(AutoConfig.for_model(settings.pop("model_type"), **settings)).eval()
    state = {key: torch.as_tensor(array) for key, array in weights(name).items()}
    missing = model.load_state_dict(state, strict=False)
    tied = all(key == "lm_head.weight" or key.endswith("embed_tokens.weight") for key in missing.missing_keys)
    assert not missing.unexpected_keys and tied, missing
    model.tie_weights()
    result = {}
    for length in TEXT_PROMPTS:
        ids = torch.as_tensor([prompt(length)])
        start = 1 if encodes else ids.shape[1]  # the decoder begins with a token of its own
        for case, options in GREEDY.items():
            out = model.generate(ids, do_sample=False, **options)
            result[f"greedy/{case}/{length}"] = out[0, start:].numpy().astype(np.int32)
        for case, options in BEAMS.items():
            out = model.generate(
                ids, do_sample=False, return_dict_in_generate=True, output_scores=True, **options
            )
            result[f"beam/{case}/{length}"] = out.sequences[:, start:].numpy().astype(np.int32)
            result[f"beam_scores/{case}/{length}"] = out.sequences_scores.numpy()
    return result
