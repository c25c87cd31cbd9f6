"""Saving and loading the arrays of a layer: `framework.save`, `framework.load`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from framework.core.errors import FormatError, WeightError
from framework.io.interop import load_weights, write_safetensors


def save(state: Mapping[str, Any], path: str | Path) -> None:
    """Write named arrays, such as `layer.state_dict()`, to a safetensors file; it appears whole or not at all.

    Raises:
        FormatError: the file's name does not end in .safetensors.
        WeightError: `state` is no mapping of names to arrays.
    """
    path = Path(path)
    if path.suffix != ".safetensors":
        raise FormatError(
            "weights are written as safetensors only",
            where=path,
            received=path.suffix or "no suffix",
            allowed=".safetensors",
            fix=f"call the file {path.stem}.safetensors; framework.load reads .pdparams and others too",
        )
    entries = dict(state) if isinstance(state, Mapping) else {}
    wrong = [name for name, value in entries.items() if not isinstance(value, (jax.Array, np.ndarray))]
    if not entries or wrong:
        raise WeightError(
            "this is no state dict",
            where=path,
            received=f"no array under {', '.join(map(repr, wrong[:5]))}" if wrong else type(state).__name__,
            allowed="a mapping of names to arrays that is not empty",
            fix="pass layer.state_dict()",
        )
    write_safetensors(path, {str(name): np.asarray(value) for name, value in entries.items()})


def load(path: str | Path) -> dict[str, np.ndarray]:
    """Named arrays of a file of weights: safetensors, .pdparams, .pdiparams beside its program, ONNX, torch.

    The format is recognised from the content. Names and layouts stay those of the file.

    Raises:
        FormatError: the file is of no known format, damaged or hostile.
    """
    return load_weights(path)
