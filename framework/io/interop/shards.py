"""Weights in several files with an index beside them, as transformers and PaddleNLP save large models.

`model.safetensors.index.json`, `pytorch_model.bin.index.json` and `model_state.pdparams.index.json` have one form: a
`weight_map` from the name of each array to the file, in the same folder, that holds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from framework.core.errors import FormatError
from framework.io.interop.source import FETCH_AGAIN, Source

INDEX = ".index.json"
_SHOWN = 5


def read_shards(source: Source, read: Callable[[Path], Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays that an index names, each from the file that it names; what it does not name is left out.

    Args:
        read: Reads one file of weights.

    Raises:
        FormatError: the index is damaged, a file of it is missing or damaged, or an array is not in its file.
    """
    files = _weight_map(source)
    folder = Path(source.name).parent
    wanted: dict[str, list[str]] = {}
    for name, file in files.items():
        wanted.setdefault(file, []).append(name)
    missing = sorted(file for file in wanted if not (folder / file).is_file())
    if missing:
        raise source.error(
            f"{len(missing)} of {len(wanted)} files of these weights are missing",
            received=f"no {_some(missing)} in {folder}",
            allowed=f"all of {_some(sorted(wanted))}",
            fix="copy or download all files that the index names into its folder",
        )
    found: dict[str, np.ndarray] = {}
    for file, names in wanted.items():
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
        found |= {name: arrays[name] for name in names}
    return {name: found[name] for name in files}


def _weight_map(source: Source) -> dict[str, str]:
    try:
        data = json.loads(bytes(source.data).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise source.error("the index of the weights is no JSON", received=str(error)[:120]) from None
    files = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(files, dict) or not files:
        keys = ", ".join(list(data)[:_SHOWN]) if isinstance(data, dict) else type(data).__name__
        raise source.error(
            "the index names no weights",
            received=f"weight_map {files!r}"[:80] if files is not None else f"the keys {keys or 'none'}",
            allowed='{"weight_map": {"name of an array": "file", …}}',
        )
    for name, file in files.items():
        if not isinstance(file, str) or not file or file != Path(file).name or file.endswith(INDEX):
            raise source.error(
                f"the index gives {name!r} no file beside it",
                received=repr(file)[:120],
                allowed="the name of a file of weights in the folder of the index",
            )
    return files


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
