"""Cases of tools/golden/layoutxlm.py and tests/golden/test_layoutxlm.py: sizes, inputs, weights from names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from framework.interop.named_weights import named_weights

KEPT, TOKENS, LENGTHS, CLASSES = 96, 30, (30, 17), 7
_SMALL = {
    "vocab_size": 120,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 96,
}
_CUT = {"vocab_size": 2000}  # else two thirds of the time go into rows of words


class Case(NamedTuple):
    """`settings` are upstream's names; `visual` the depth of its ResNet and the width of its stem, None without."""

    settings: Mapping[str, Any]
    visual: tuple[int, int] | None


CASES = {
    "vi_small": Case(_SMALL, None),
    "xlm_small": Case(_SMALL, (50, 32)),
    "vi_base": Case(_CUT, None),
    "xlm_base": Case(_CUT, (101, 64)),
}
DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}  # blocks a stage
# Upstream's models by what stands behind their names: SER and RE.
HEADS = ("ForTokenClassification", "ForRelationExtraction")


class Inputs(NamedTuple):
    """ids, boxes and mask of two pages, their images NHWC as the network takes them, and their entities: first tokens
    and kinds [2, 6], -1 where a page has fewer."""

    ids: np.ndarray
    boxes: np.ndarray
    mask: np.ndarray
    image: np.ndarray
    starts: np.ndarray
    kinds: np.ndarray


def inputs(case: Case) -> Inputs:
    rng = np.random.RandomState(3)
    count = len(LENGTHS)
    ids = rng.randint(4, case.settings["vocab_size"], (count, TOKENS))
    corners = rng.randint(0, 900, (count, TOKENS, 2))
    boxes = np.concatenate([corners, corners + rng.randint(1, 100, (count, TOKENS, 2))], axis=-1)
    mask = np.arange(TOKENS)[None] < np.array(LENGTHS)[:, None]
    ids[~mask], boxes[~mask] = 1, 0
    ids[0, 0] = 0  # the row of words that is zero
    side = 224 if case.visual is not None and case.visual[0] > 50 else 64
    image = rng.uniform(0, 255, (count, side, side, 3)) * np.array([0.3, 1.0]).reshape(2, 1, 1, 1)
    starts = np.array([[0, 4, 9, 15, 20, 26], [2, 6, 11, -1, -1, -1]])
    kinds = np.array([[1, 2, 0, 1, 2, 2], [2, 1, 1, -1, -1, -1]])
    return Inputs(ids, boxes, mask, image.astype(np.float32), starts, kinds)


def drawn(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The weights of a state dict; kernels smaller, so that the many blocks of the visual branch do not grow."""
    found = {}
    for name, value in named_weights(shapes).items():
        if "embedding" in name and value.ndim == 2:
            value = value * 0.5 * np.sqrt(value.shape[0])
        found[name] = (0.6 * value if value.ndim == 4 else value).astype(np.float32)
    return found


def thin(array: np.ndarray) -> np.ndarray:
    """At most KEPT values, evenly spaced."""
    flat = np.asarray(array, np.float32).reshape(-1)
    return flat[:: -(-flat.size // KEPT)]
