"""Weights in several files with an index."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop import load_program, load_weights, write_safetensors

STATE = {name: np.full((2, 3), number, np.float32) for number, name in enumerate("abcd")}


def sharded(folder: Path, kind: str = "safetensors", index: Any = None) -> Path:
    """Two files with two arrays each, and their index."""
    stem, ending = {"safetensors": ("model", "safetensors"), "paddle": ("model_state", "pdparams")}[kind]
    names = [f"{stem}-0000{number}-of-00002.{ending}" for number in (1, 2)]
    for name, keys in zip(names, ("ac", "bd")):
        part = {key: STATE[key] for key in keys}
        if kind == "paddle":
            (folder / name).write_bytes(pickle.dumps({**part, "StructuredToParameterName@@": {}}, protocol=2))
        else:
            write_safetensors(folder / name, part)
    path = folder / f"{stem}.{ending}.index.json"
    files = {"a": names[0], "b": names[1], "c": names[0], "d": names[1]}
    content = {"metadata": {"total_size": 96}, "weight_map": files} if index is None else index(files)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["safetensors", "paddle"])
def test_the_arrays_of_all_files(tmp_path: Path, kind: str) -> None:
    found = load_weights(sharded(tmp_path, kind))
    assert list(found) == list(STATE)
    assert all(np.array_equal(found[name], STATE[name]) for name in STATE)


def test_files_of_torch(tmp_path: Path, data: Path) -> None:
    whole = load_weights(data / "state.pt")
    shutil.copy(data / "state.pt", tmp_path / "pytorch_model-00001-of-00001.bin")
    names = list(whole)[:2]  # what the index does not name is left out
    index = tmp_path / "pytorch_model.bin.index.json"
    files = dict.fromkeys(names, "pytorch_model-00001-of-00001.bin")
    index.write_text(json.dumps({"weight_map": files}), encoding="utf-8")
    found = load_weights(index)
    assert list(found) == names and all(np.array_equal(found[name], whole[name]) for name in names)


def test_an_index_is_told_from_its_content(tmp_path: Path) -> None:
    path = sharded(tmp_path)
    renamed = path.rename(tmp_path / "renamed.json")
    assert load_weights(renamed).keys() == STATE.keys()
    with pytest.raises(FormatError, match="weights but no program"):
        load_program(renamed)


def test_missing_files(tmp_path: Path) -> None:
    path = sharded(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(
        FormatError, match=r"1 of 2 files(.|\n)*no model-00002-of-00002(.|\n)*copy or download"
    ):
        load_weights(path)


def test_an_array_in_no_file(tmp_path: Path) -> None:
    path = sharded(tmp_path)
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", {"a": STATE["a"]})
    with pytest.raises(
        FormatError, match=r"00001-of-00002.*1 of 2 arrays(.|\n)*without c(.|\n)*different saves"
    ):
        load_weights(path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = sharded(tmp_path)
    part = tmp_path / "model-00002-of-00002.safetensors"
    part.write_bytes(part.read_bytes()[:-8])
    with pytest.raises(FormatError, match=r"model-00002-of-00002\.safetensors"):
        load_weights(path)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (lambda files: json.dumps({"weight_map": files})[:30], "the index of the weights is not JSON"),
        (lambda files: {"metadata": {}}, "names no weights(.|\n)*the keys metadata"),
        (lambda files: {}, "names no weights(.|\n)*the keys none"),
        (lambda files: {"weight_map": {}}, "names no weights(.|\n)*weight_map {}"),
        (lambda files: {"weight_map": [1]}, r"names no weights(.|\n)*weight_map \[1\]"),
        (lambda files: {"weight_map": {**files, "e": 3}}, "gives 'e' no file beside it(.|\n)*received: 3"),
        (lambda files: {"weight_map": {"e": "../x.safetensors"}}, "gives 'e' no file(.|\n)*x.safetensors"),
        (lambda files: {"weight_map": {"e": "model.safetensors.index.json"}}, "gives 'e' no file"),
    ],
)
def test_damaged_indices(tmp_path: Path, index: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load_weights(sharded(tmp_path, index=index))
