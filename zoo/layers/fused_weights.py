"""Matrices that PaddleNLP keeps in one: `self_attn.qkv_proj` and `mlp.gate_up_fused_proj`.

Reference: PaddleNLP paddlenlp/transformers/llama/modeling.py, `fuse_attention_qkv` and `fuse_attention_ffn`
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from zoo.layers.decoder_config import DecoderSize

_QKV, _GATE_UP = ".self_attn.qkv_proj.", ".mlp.gate_up_fused_proj."


def split_fused(arrays: Mapping[str, np.ndarray], size: DecoderSize) -> Mapping[str, np.ndarray]:
    """The arrays of a file of PaddleNLP, [in, out], with the matrices that are joined there taken apart.

    Of queries, keys and values the heads stand by groups: those of the queries that share a head of keys, it, and that
    of the values. A matrix whose width does not fit stays as it is.
    """
    if not any(_QKV in name or _GATE_UP in name for name in arrays):
        return arrays
    result: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if _QKV in name and array.shape[-1] == (size.num_heads + 2 * size.kv_heads) * size.head_width:
            groups = array.reshape(*array.shape[:-1], size.kv_heads, -1, size.head_width)
            for label, part in zip(
                "qkv", np.split(groups, (-2 % groups.shape[-2], -1), axis=-2), strict=True
            ):
                result[name.replace(_QKV, f".self_attn.{label}_proj.")] = part.reshape(*array.shape[:-1], -1)
        elif _GATE_UP in name:
            for label, part in zip(("gate", "up"), np.split(array, 2, axis=-1), strict=True):
                result[name.replace(_GATE_UP, f".mlp.{label}_proj.")] = part
        else:
            result[name] = array
    return result
