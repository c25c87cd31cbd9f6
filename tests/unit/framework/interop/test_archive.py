"""Weights that come packed, as PaddleSeg's servers give them."""

from __future__ import annotations

import io
import pickle
import tarfile
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop import load_weights, write_safetensors

STATE = {"conv.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "bn.bias": np.ones(3, np.float32)}
PADDLE = pickle.dumps({**STATE, "StructuredToParameterName@@": {}}, protocol=2)


def packed(path: Path, files: Mapping[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            for name, data in files.items():
                made.writestr(name, data)
        return path
    mode = {".gz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}.get(path.suffix, "w")
    with tarfile.open(path, mode) as made:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            made.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.zip", "renamed.pdparams"])
def test_one_file_of_weights(name: str, tmp_path: Path) -> None:
    files = {"STDCNet1/model.pdparams": PADDLE, "STDCNet1/._model.pdparams": b"?", "STDCNet1/README.md": b"#"}
    found = load_weights(packed(tmp_path / name, files))
    assert found.keys() == STATE.keys() and all((found[key] == STATE[key]).all() for key in STATE)


def test_safetensors_in_a_zip_archive(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", STATE)
    path = packed(tmp_path / "a.zip", {"model.safetensors": (tmp_path / "model.safetensors").read_bytes()})
    assert (load_weights(path)["conv.weight"] == STATE["conv.weight"]).all()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no file of weights(.|\n)*an empty archive"),
        ({"x/inference.pdmodel": b"1", "x/inference.pdiparams": b"2"}, "inference.pdiparams(.|\n)*unpack it"),
        (
            {"a.pdparams": PADDLE, "b.pdparams": PADDLE},
            "several files of weights(.|\n)*a.pdparams, b.pdparams",
        ),
        (
            {"a.pdparams": b"\x1f\x8b\x08"},
            r"a.pdparams: an archive must be unpacked to read its weights(.|\n)*archive",
        ),
        ({"a.pdparams": b"<html>"}, "a.pdparams: this is a web page"),
        ({"a.pdparams": b""}, "a.pdparams: the file is empty"),
    ],
)
@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_archives_of_other_things(files: dict[str, bytes], message: str, ending: str, tmp_path: Path) -> None:
    path = packed(tmp_path / f"a{ending}", files)
    if ending == ".zip" and not files:
        message = "unknown kind of file"  # nothing but the end of an archive
    with pytest.raises(FormatError, match=message):
        load_weights(path)


@pytest.mark.parametrize("ending", [".tar.gz", ".tar", ".zip"])
def test_damage(ending: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0).bytes(40_000)
    path = packed(tmp_path / f"a{ending}", {"a.pdparams": random})
    whole = path.read_bytes()
    path.write_bytes(whole[:20_000])
    with pytest.raises(FormatError):
        load_weights(path)
    if ending == ".zip":
        path.write_bytes(whole[:5000] + bytes(100) + whole[5100:])
        with pytest.raises(FormatError, match=r"a\.pdparams cannot be unpacked"):
            load_weights(path)


def test_more_than_an_archive_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("framework.interop.detect"), "_LARGE", 1000)
    for name in ("a.zip", "a.tar.gz"):
        path = packed(tmp_path / name, {"a.pdparams": bytes(1_000_000)})
        with pytest.raises(FormatError, match=r"far more than it can|unpacks to more than 1"):
            load_weights(path)
    monkeypatch.setattr(import_module("framework.interop.detect"), "_MAX_MEMBERS", 3)
    with pytest.raises(FormatError, match=r"a\.tar: .*[\s\S]*more than 3 files"):
        load_weights(packed(tmp_path / "a.tar", {f"{n}.txt": b"" for n in range(4)}))
