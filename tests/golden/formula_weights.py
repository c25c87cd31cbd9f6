"""What the parity test of PP-FormulaNet and the environment of its reference share; it needs numpy alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def sharpen(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights, with which what a decoder says depends on the image, differs from token to token, and ends."""
    found = {name: np.array(value) for name, value in weights.items()}
    for name in found:
        if "_attn.q_proj.weight" in name or "_attn.k_proj.weight" in name:
            found[name] *= 1.5
        if "encoder_attn.out_proj.weight" in name:
            found[name] *= 3.0
    return found
