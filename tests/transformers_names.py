"""Names of the Hugging Face transformers package for weights of a Bert of ours."""

from __future__ import annotations

_NAMES = {
    "encoder.layers.": "encoder.layer.",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm1": "attention.output.LayerNorm",
    "norm2": "output.LayerNorm",
    "layer_norm": "LayerNorm",
}


def transformers_name(name: str) -> str:
    """The name that transformers gives this weight."""
    for ours, theirs in _NAMES.items():
        name = name.replace(ours, theirs)
    return name
