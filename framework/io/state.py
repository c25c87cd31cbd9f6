"""Saving and loading the arrays of a layer: `framework.save`, `framework.load`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np
from jax.typing import ArrayLike

from framework.core.errors import FormatError, WeightError
from framework.interop import load_weights, write_pdparams, write_safetensors

_WRITERS = {".safetensors": write_safetensors, ".pdparams": write_pdparams}


def save(state: Mapping[str, ArrayLike], path: str | Path) -> None:
    """Write named arrays, such as `layer.state_dict()`; the file appears whole or not at all.

    A name that ends in .safetensors says our format, .pdparams that of `paddle.save(state_dict, path)`: Paddle's
    `paddle.load` and `set_state_dict` take it where the model has the names of Paddle's. bfloat16 is kept in both.

    Raises:
        FormatError: the file's name ends in neither.
        WeightError: `state` is no mapping of names to arrays, or an array is of a type that the format does not have.
        DiskError: the disk is full, or the folder cannot be written.
    """
    path = Path(path)
    if path.suffix not in _WRITERS:
        raise FormatError(
            "weights are written as safetensors, or for Paddle as pdparams",
            where=path,
            received=path.suffix or "no suffix",
            allowed=", ".join(_WRITERS),
            fix=f"call the file {path.stem}.safetensors; framework.load reads torch's and others too",
        )
    entries = dict(state) if isinstance(state, Mapping) else {}
    wrong = [name for name, value in entries.items() if not isinstance(value, (jax.Array, np.ndarray))]
    if not entries or wrong:
        raise WeightError(
            "a state dict must map names to arrays",
            where=path,
            received=f"no array under {', '.join(map(repr, wrong[:5]))}" if wrong else type(state).__name__,
            allowed="a mapping of names to arrays that is not empty",
            fix="pass layer.state_dict()",
        )
    _WRITERS[path.suffix](path, {str(name): np.asarray(value) for name, value in entries.items()})


def load(path: str | Path) -> dict[str, np.ndarray]:
    """Named arrays of a file of weights: safetensors, .pdparams, .pdiparams beside its program, ONNX, torch.

    The format is recognised from the content. Names and layouts stay those of the file: torch's linear layers are the
    other way round, and `framework.workflow.domain.weights.load_pretrained(layer, path)` turns them.

    Raises:
        FormatError: the file is of no known format, damaged or hostile.
    """
    return load_weights(path)
