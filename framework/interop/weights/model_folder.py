"""Folders as `save_pretrained` of transformers and PaddleNLP writes them: config.json, and weights in one or several
files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from framework.core.bounded import SETTINGS, check_mapping, parse_json, read_json
from framework.core.errors import FormatError
from framework.core.torch_state import TorchState
from framework.interop.source import FETCH_AGAIN, Source
from framework.interop.weights.safetensors_io import read_safetensors_metadata

CONFIG = "config.json"
INDEX = ".index.json"
"""What the name of an index of several files ends in: `model.safetensors.index.json` and the like have one form, a
`weight_map` from the name of each array to the file, in the same folder, that holds it."""
_MAX_NAMES = 5
_PADDLE = "model_state.pdparams"
_SINGLE = ("model.safetensors", "pytorch_model.bin", _PADDLE)
WEIGHTS = tuple(name + ending for name in _SINGLE for ending in ("", INDEX))
_VARIANT = re.compile(
    r"(?:model|pytorch_model)\.(\w+)\.(?:safetensors|bin)"
    r"|(?:model\.safetensors|pytorch_model\.bin)\.(?:index\.(\w+)|(\w+)\.index)\.json",
    re.ASCII,
)
"""What `save_pretrained(variant="fp16")` of transformers writes: model.fp16.safetensors, or the index of several as
model.safetensors.index.fp16.json (before 4.50 model.safetensors.fp16.index.json)."""
_ENDS_INDEX = re.compile(r"\.index(\.\w+)?\.json$", re.ASCII)
_OURS = ("state.json", "infer_cfg.yml")
"""Files that say that a folder is a checkpoint or an artifact of this framework."""


def is_model_folder(path: Path) -> bool:
    """Whether this is a folder of another toolkit's model, and no checkpoint or artifact of this one."""
    return (path / CONFIG).is_file() and not any((path / name).is_file() for name in _OURS)


def read_settings(folder: Path) -> dict[str, Any]:
    """What config.json says. Raises: FormatError, where it is missing or is no JSON object."""
    path = folder / CONFIG
    if not path.is_file():
        names = sorted(item.name for item in folder.iterdir())[:10] if folder.is_dir() else []
        raise FormatError(
            f"the folder has no {CONFIG}",
            where=str(folder),
            received=", ".join(names) or ("an empty folder" if folder.is_dir() else "no such folder"),
            allowed="a folder as save_pretrained of transformers or PaddleNLP writes it",
            fix="copy config.json from where the weights came from; a model_config.json of PaddleNLP before 2.5 "
            "becomes one when a newer PaddleNLP loads and saves the model",
        )
    return check_mapping(read_json(path, SETTINGS, "config"), path, "config")


def is_index(name: str) -> bool:
    """Whether a file of this name is an index of several files of weights, of a variant or not."""
    return _ENDS_INDEX.search(name) is not None


def stored_weights(folder: Path) -> Path | None:
    """The file of weights, or the index of several; that of a variant where the folder holds one variant alone."""
    path = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if path is not None:
        return path
    variants = _variants(folder)
    return min(next(iter(variants.values())), key=_rank) if len(variants) == 1 else None


def find_weights(folder: Path) -> Path:
    """`stored_weights`. Raises: FormatError, where there are none, or several variants."""
    path = stored_weights(folder)
    if path is None:
        variants = _variants(folder)
        raise FormatError(
            "the folder has weights of several variants"
            if variants
            else "there are no weights in the folder",
            where=str(folder),
            received=", ".join(sorted(item.name for item in folder.iterdir())[:10]),
            allowed="one of "
            + ", ".join(WEIGHTS)
            + "; or the files of one variant, such as model.fp16.safetensors",
            fix=f"take the files of one of {', '.join(variants)} alone" if variants else None,
        )
    return path


def _variants(folder: Path) -> dict[str, list[Path]]:
    """Files of weights and indexes, by the variant in their names."""
    variants: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = _VARIANT.fullmatch(path.name)
        if match is not None and path.is_file():
            variants.setdefault(next(filter(None, match.groups())), []).append(path)
    return variants


def _rank(path: Path) -> tuple[bool, bool]:
    """safetensors first, one file before an index, as in WEIGHTS."""
    return ".safetensors" not in path.name, is_index(path.name)


def is_paddles(weights: Path) -> bool:
    """Whether PaddleNLP wrote the weights, as far as their file says."""
    if weights.name.startswith(_PADDLE):
        return True
    if weights.suffix != ".safetensors":
        return False
    return read_safetensors_metadata(weights).get("format") in ("np", "pd")


def read_shards(source: Source, read: Callable[[Path], Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays that an index names, each from the file that it names; what it does not name is left out.

    Args:
        read: Reads one file of weights.

    Raises:
        FormatError: the index is damaged, a file of it is missing or damaged, or an array is not in its file.
    """
    files = read_weight_map(source)
    folder = Path(source.name).parent
    names_of: dict[str, list[str]] = {}
    for name, file in files.items():
        names_of.setdefault(file, []).append(name)
    missing = sorted(file for file in names_of if not (folder / file).is_file())
    if missing:
        raise source.error(
            f"{len(missing)} of {len(names_of)} files of these weights are missing",
            received=f"no {_some(missing)} in {folder}",
            allowed=f"all of {_some(sorted(names_of))}",
            fix="copy or download all files that the index names into its folder",
        )
    tensors: dict[str, np.ndarray] = {}
    by_torch = False
    for file, names in names_of.items():
        arrays = read(folder / file)
        absent = [name for name in names if name not in arrays]
        if absent:
            raise FormatError(
                f"{len(absent)} of {len(names)} arrays that the index looks for in this file are not there",
                where=folder / file,
                received=f"{len(arrays)} arrays without {_some(absent)}",
                allowed=f"what {source.name} says of this file",
                fix="the files are of different saves, or one was cut: " + FETCH_AGAIN,
            )
        by_torch = isinstance(arrays, TorchState)
        tensors |= {name: arrays[name] for name in names}
    ordered = {name: tensors[name] for name in files}
    return TorchState(ordered) if by_torch else ordered


def read_weight_map(source: Source) -> dict[str, str]:
    """The file of each array that an index names. Raises: FormatError, where it is damaged or names files elsewhere."""
    data = parse_json(bytes(source.data), source.name, "index of the weights")
    files = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(files, dict) or not files:
        keys = ", ".join(list(data)[:_MAX_NAMES]) if isinstance(data, dict) else type(data).__name__
        raise source.error(
            "the index names no weights",
            received=f"weight_map {files!r}"[:80] if files is not None else f"the keys {keys or 'none'}",
            allowed='{"weight_map": {"name of an array": "file", …}}',
        )
    for name, file in files.items():
        named = isinstance(file, str) and 0 < len(file) < 256 and "\0" not in file
        if not named or file != Path(file).name or is_index(file):
            raise source.error(
                f"the index gives {name!r} no file beside it",
                received=repr(file)[:120],
                allowed="the name of a file of weights in the folder of the index",
            )
    return files


def _some(names: list[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
