"""The case of tools/golden/lac.py and tests/golden/test_lac.py: PaddleNLP's tagger of Chinese texts, full size."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from framework.interop.named_weights import named_weights

VOCABULARY, TAGS, EMBEDDING, HIDDEN = 58224, 57, 128, 128
TOKENS, LENGTHS = 40, (40, 23, 7, 1)
KEPT = 512


def inputs() -> tuple[np.ndarray, np.ndarray]:
    """ids [N, T] and lengths [N]."""
    lengths = np.array(LENGTHS)
    ids = np.random.RandomState(7).randint(1, VOCABULARY, (len(lengths), TOKENS))
    return np.where(np.arange(TOKENS) < lengths[:, None], ids, 0), lengths


def source(name: str) -> str:
    """The first name of an array that the state dict holds several times."""
    name = re.sub(r"^(?:crf_loss\.crf|viterbi_decoder)\.", "crf.", name)
    found = re.fullmatch(r"gru\.(\d)\.cell_(fw|bw)\.(\w+)", name)
    if found is None:
        return name
    return f"gru.{found[3]}_l{found[1]}" + ("_reverse" if found[2] == "bw" else "")


def drawn(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Values from the names. The two tags that only begin and end a text are unlikely, as in a trained model."""
    values = named_weights({source(name): shape for name, shape in shapes.items()})
    values["word_embedding.weight"] *= np.sqrt(VOCABULARY / 2, dtype=np.float32)
    values["fc.bias"][-2:] -= 20
    return {name: values[source(name)] for name in shapes}
