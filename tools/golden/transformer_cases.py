"""Cases of tools/golden/transformer.py and tests/golden/test_transformer.py: sizes, inputs, weights from names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from framework.interop.named_weights import named_weights

KEPT = 400  # values of each output
_SMALL = {
    "src_vocab_size": 90,
    "trg_vocab_size": 90,
    "max_length": 40,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "n_head": 4,
    "d_model": 48,
    "d_inner_hid": 96,
}
_BASE = {
    "src_vocab_size": 37000,
    "trg_vocab_size": 37000,
    "max_length": 256,
    "num_encoder_layers": 6,
    "num_decoder_layers": 6,
    "n_head": 8,
    "d_model": 512,
    "d_inner_hid": 2048,
}
# Arguments of PaddleNLP's TransformerModel. Its padding is token 0, which also begins a target.
CASES: dict[str, dict[str, Any]] = {
    "small": {**_SMALL, "weight_sharing": True, "normalize_before": True},
    "small_two_vocabularies": {
        **_SMALL,
        "trg_vocab_size": 70,
        "weight_sharing": False,
        "normalize_before": True,
    },
    "small_norm_behind": {**_SMALL, "weight_sharing": True, "normalize_before": False},
    "base": {**_BASE, "weight_sharing": True, "normalize_before": True},
}
SOURCES, TARGETS = (24, 15, 3), (20, 20, 20)


class Inputs(NamedTuple):
    source: np.ndarray
    """[N, T] int64, padded with 0"""
    target: np.ndarray
    """[N, S] int64, begins with 0"""


def inputs(case: Mapping[str, Any]) -> Inputs:
    rng = np.random.RandomState(6)
    source = rng.randint(2, case["src_vocab_size"], (len(SOURCES), max(SOURCES)))
    target = rng.randint(2, case["trg_vocab_size"], (len(TARGETS), max(TARGETS)))
    target[:, 0] = 0
    return Inputs(np.where(np.arange(max(SOURCES)) < np.array(SOURCES)[:, None], source, 0), target)


def drawn(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Values for a state dict of the library but for the positions; shared tables have one value under both names."""

    def source(name: str) -> str:
        sharing = "linear.weight" not in shapes
        return name.replace("trg_", "src_") if sharing else name

    values = named_weights(
        {source(name): shape for name, shape in shapes.items() if "pos_encoder" not in name}
    )
    for name, value in values.items():
        if name.endswith("word_embedding.weight"):
            value *= np.sqrt(len(value) / 2 / value.shape[1], dtype=np.float32)
            value[0] = 0
    return {name: values[source(name)] for name in shapes if "pos_encoder" not in name}


def thin(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // KEPT)].astype(np.float32)
