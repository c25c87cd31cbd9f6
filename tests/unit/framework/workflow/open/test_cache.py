"""Artifacts that are kept: the name of a folder holds all that it depends on."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from framework.core.home import home
from framework.export import Artifact, artifact
from framework.workflow.open.cache import _fingerprint, keep_artifact


def test_the_fingerprint_knows_settings_and_files(tmp_path: Path) -> None:
    weights = tmp_path / "own.pdparams"
    weights.write_bytes(b"1")
    first = _fingerprint("a", [weights], ("ocr",))
    assert first == _fingerprint("a", [weights], ("ocr",))
    weights.write_bytes(b"2")
    others = [
        _fingerprint("a", [weights], ("ocr",)),
        _fingerprint("b", [weights], ("ocr",)),
        _fingerprint("a", [], ("ocr",)),
        _fingerprint("a", [], ("zoo",)),
    ]
    assert len({first, *others}) == 5


def test_an_artifact_is_made_once_and_again_when_it_is_damaged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path))
    made = []

    def make() -> Artifact:
        made.append(1)
        return Artifact({"domain": "zoo"})

    for _ in range(2):
        assert keep_artifact("a", "settings", [], (), make).config["domain"] == "zoo"
    assert len(made) == 1
    (folder,) = (home() / "artifacts").iterdir()
    (folder / "infer_cfg.yml").write_text("{", encoding="utf-8")
    keep_artifact("a", "settings", [], (), make)
    assert len(made) == 2 and "is made again" in caplog.text


def test_weights_that_changed_in_the_cache_are_never_run(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path))

    def keep() -> Artifact:
        return keep_artifact(
            "a", "settings", [], (), lambda: Artifact({}, weights={"w": np.ones(64, np.float32)})
        )

    keep()
    (file,) = tmp_path.rglob("program_weights.safetensors")
    data = file.read_bytes()
    file.write_bytes(data[:-256] + bytes(256))
    assert (keep().weights["w"] == 1).all() and "is made again" in caplog.text
    assert file.read_bytes() == data


def test_without_a_place_it_is_made_each_time_with_one_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path))

    def refuse(path: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(artifact, "work_folder", refuse)
    made = keep_artifact("a", "settings", [], (), lambda: Artifact({"domain": "zoo"}))
    assert made.config["domain"] == "zoo"
    (said,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert "the artifact is not kept" in said and "the file system is read-only" in said
    assert "bytes left" in said and not list((tmp_path / "artifacts").iterdir())
