"""Readers of the files that other frameworks write, and the writers of weights: safetensors, and Paddle's .pdparams.

`load_weights(path)` gives named arrays whatever the format; `load_program(path)` gives the operations as well;
`weighted_ops(program)` lists the operations that carry weights, the same for every format.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from framework.core.torch_state import TorchState
from framework.interop.detect import detect, read_member
from framework.interop.programs.onnx import read_onnx
from framework.interop.programs.pdmodel import read_pdmodel
from framework.interop.programs.pir import read_pir
from framework.interop.programs.program import Node, Program, TensorSpec
from framework.interop.source import Source, read_source
from framework.interop.weights.model_folder import read_shards
from framework.interop.weights.pdparams import read_pdiparams, read_pdparams
from framework.interop.weights.pdparams_writer import write_pdparams
from framework.interop.weights.safetensors_io import (
    read_safetensors,
    read_safetensors_metadata,
    write_safetensors,
)
from framework.interop.weights.torch_checkpoint import read_torch
from framework.interop.weights.weighted import WeightedOp, weighted_ops

__all__ = [
    "Node",
    "Program",
    "TensorSpec",
    "WeightedOp",
    "load_program",
    "load_weights",
    "read_onnx",
    "read_pdiparams",
    "read_pdmodel",
    "read_pdparams",
    "read_pir",
    "read_safetensors",
    "read_safetensors_metadata",
    "read_torch",
    "weighted_ops",
    "write_pdparams",
    "write_safetensors",
]

_AVERAGE_KEYS = ("state_dict_ema", "model_ema", "ema", "params_ema", "teacher")
_STATE_KEYS = ("state_dict", "model_state_dict", "model", "params", "net", "network", "student", "module")
_PARAMETER_NAMES = {"__model__": "__params__"}


def load_weights(path: str | Path | Source) -> dict[str, np.ndarray]:
    """Named arrays (read-only) of any file of weights; its format is recognised from its content, not from its suffix.

    A pickle or torch checkpoint that wraps its state dict (`{"epoch": …, "state_dict": {…}}`) is unwrapped; entries
    that are no arrays are left out. `.pdmodel`, PIR `.json` and `.pdiparams` need the other file of the pair beside
    them. The index of weights in several files (`model.safetensors.index.json` and the like) gives the arrays of all of
    them, and an archive (.tar, .tar.gz, .zip) those of the one file of weights in it. Names and layouts stay those of
    the file; what torch wrote comes as a `TorchState`: `from_torch` makes ours of it.
    Raises FormatError when the file is of no known format, damaged or hostile.
    """
    source = read_source(path)
    kind = detect(source)
    if kind == "archive":
        source = read_member(source)
        kind = detect(source)
        if kind not in ("safetensors", "pickle", "torch"):
            raise source.error(
                "an archive must be unpacked to read its weights", received=kind, fix="unpack the archive"
            )
    if kind == "safetensors":
        arrays = read_safetensors(source)
        return TorchState(arrays) if read_safetensors_metadata(source).get("format") == "pt" else arrays
    if kind == "pickle":
        return _state_dict(source, read_pdparams(source)[0])
    if kind == "torch":
        return TorchState(_state_dict(source, read_torch(source)))
    if kind == "index":
        return read_shards(source, load_weights)
    program = _beside(source) if kind == "pdiparams" else load_program(source)
    arrays = {name: value for name, value in program.parameters.items() if isinstance(value, np.ndarray)}
    if len(arrays) < len(program.parameters):
        raise source.error(
            "a program without its parameters",
            allowed=f"the parameter file beside it, called {_parameter_path(source).name}",
            fix="copy both files of the export into one folder",
        )
    return arrays


def load_program(path: str | Path | Source, params: str | Path | Source | None = None) -> Program:
    """An ONNX model, a Paddle `.pdmodel` or a PIR `.json` as a `Program`.

    `params` is the parameter file of a Paddle program; without it the file of the same stem beside the program is
    taken, and when there is none the parameters are TensorSpecs.
    Raises FormatError when the file is no program, damaged, or does not fit its parameters.
    """
    source = read_source(path)
    kind = detect(source)
    if kind == "onnx":
        if params is not None:
            raise source.error(
                "an ONNX model holds its own parameters", received=params, fix="leave params out"
            )
        return read_onnx(source)
    if kind not in ("pdmodel", "pir"):
        raise source.error(
            "this file holds weights but no program",
            received=kind,
            allowed=".onnx, .pdmodel or inference.json",
            fix="read it with load_weights",
        )
    program = read_pdmodel(source) if kind == "pdmodel" else read_pir(source)
    if params is None and _parameter_path(source).is_file():
        params = _parameter_path(source)
    if params is None:
        return program
    specs = {name: spec for name, spec in program.parameters.items() if isinstance(spec, TensorSpec)}
    return replace(program, parameters=dict(read_pdiparams(read_source(params), specs)))


def _parameter_path(source: Source) -> Path:
    path = Path(source.name)
    return path.with_name(_PARAMETER_NAMES.get(path.name, f"{path.stem}.pdiparams"))


def _beside(source: Source) -> Program:
    """The program beside a parameter file, filled with it."""
    path = Path(source.name)
    for name in (f"{path.stem}.pdmodel", f"{path.stem}.json", "__model__"):
        if (candidate := path.with_name(name)).is_file():
            return load_program(candidate, path)
    raise source.error(
        "a Paddle parameter file holds no names; they are in the program that was exported with it",
        allowed=f"{path.stem}.pdmodel or {path.stem}.json beside it",
        fix="copy both files of the export into one folder, or use load_program(program, params)",
    )


def _state_dict(source: Source, value: object) -> dict[str, np.ndarray]:
    """The largest of the tables where frameworks put a state dict: the top may hold a lone array (a score) too. Of
    equal ones the average counts, as in the programs that keep one."""
    keys = (*_AVERAGE_KEYS, *_STATE_KEYS)
    tables: list[object] = [value]
    for table in [value.get(key) for key in keys] if isinstance(value, dict) else ():
        tables += [table, *(table.get(key) for key in keys)] if isinstance(table, dict) else []
    states = [
        {str(name): item for name, item in table.items() if isinstance(item, np.ndarray)}
        for table in tables
        if isinstance(table, dict)
    ]
    best = max(states, key=lambda state: sum(array.size for array in state.values()), default={})
    if not best:
        keys = [str(key)[:40] for key in value][:10] if isinstance(value, dict) else []
        raise source.error(
            "no state dict was found in the file",
            received=f"the keys {keys}" if keys else f"a {type(value).__name__}",
            allowed=f"arrays at the top, or under one of {', '.join(_STATE_KEYS)}",
            fix="save only the state dict of the model",
        )
    return best
