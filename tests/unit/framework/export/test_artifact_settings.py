"""The config of an artifact from outside: every damage is an error with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from framework import jit
from framework.core.errors import ConfigError, FormatError, OarError
from framework.export import CONFIG, Artifact, TensorSpec, load_artifact, lower_program
from framework.inference import Config, create_predictor
from framework.workflow import open_predictor


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of two classes by the mean of the image."""

    def fn(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        mean = inputs["image"].astype("float32").mean(axis=(1, 2, 3)) / 255 + weights["zero"]
        return {"scores": np.array([1, -1], np.float32) * mean[:, None] + np.array([0, 1], np.float32)}

    weights = {"zero": np.float32(0)}
    inputs = {"image": TensorSpec(("n", "h", "w", 3), "uint8")}
    program = lower_program(fn, weights, inputs, platforms=("cpu",))
    config = {
        "domain": "classification",
        "name": "bright",
        "batch_size": 2,
        "labels": ["light", "dark"],
        "transforms": [{"type": "Resize", "size_hw": [4, 4]}],
    }
    return Artifact(config, {"float32": program}, {"zero": np.zeros((), np.float32)}).save(
        tmp_path_factory.mktemp("artifact") / "bright"
    )


def change(folder: Path, to: Path, drop: str = "", **changes: Any) -> Path:
    """A copy of the artifact with another config."""
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    config = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8")) | changes
    config.pop(drop, None)
    (to / CONFIG).write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return to


def line_of(folder: Path, key: str) -> int:
    lines = (folder / CONFIG).read_text(encoding="utf-8").split("\n")
    return 1 + next(number for number, line in enumerate(lines) if line.startswith(f"{key}:"))


def test_the_artifact_works(folder: Path) -> None:
    assert open_predictor(str(folder))(np.full((8, 8, 3), 250, np.uint8)).label == "light"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("labels", "light", "labels: wrong type"),
        ("labels", ["light", 1], r"labels\.1: wrong type"),
        ("batch_size", "eight", "batch_size: wrong type"),
        ("batch_size", 0, "a batch needs a sample"),
        ("buckets", [0], "buckets are lengths"),
        ("stages", [".."], "leads out of the folder"),
        ("sha256", {"../x": "0"}, "leads out of the folder"),
        ("sha256", ["model.jaxexp"], "sha256: wrong type"),
        ("versions", None, "versions: wrong type"),
        ("bf16_verified", "yes", "bf16_verified: wrong type"),
        ("engines", {"cpu": ["tensorflow"]}, "engines.cpu"),
        ("transforms", "Resize", "transforms: wrong type"),
        ("transforms", [{"type": "Resise"}], r"transforms\.0\.type: unknown transform"),
        ("transforms", [{"type": "Resize", "size_hw": "big"}], r"transforms\.0\.size_hw: wrong type"),
        ("imports", "os", "imports: wrong type"),
    ],
)
def test_values_of_another_kind(folder: Path, tmp_path: Path, key: str, value: Any, message: str) -> None:
    copy = change(folder, tmp_path / "copy", **{key: value})
    with pytest.raises((ConfigError, FormatError), match=message) as caught:
        open_predictor(str(copy))
    assert f"{copy / CONFIG}:" in str(caught.value) and "<dict>" not in str(caught.value)
    if "leads" not in message and "batch needs" not in message and "buckets" not in message:
        line = line_of(copy, key)
        assert any(f"{CONFIG}:{n}:" in str(caught.value) for n in range(line, line + 4))


@pytest.mark.parametrize("key", ["format", "stages", "sha256", "versions", "transforms", "batch_size"])
def test_missing_keys(folder: Path, tmp_path: Path, key: str) -> None:
    copy = change(folder, tmp_path / "copy", drop=key)
    with pytest.raises(OarError, match=rf"(?s){CONFIG}.*{key}"):
        open_predictor(str(copy))


def test_labels_of_another_model(folder: Path, tmp_path: Path) -> None:
    copy = change(folder, tmp_path / "copy", labels=["light"])
    with pytest.raises(
        FormatError, match=rf"(?s){CONFIG}: the labels are not those of the program.*1 labels"
    ):
        open_predictor(str(copy))


def test_inputs_of_another_program(folder: Path, tmp_path: Path) -> None:
    for number, inputs in enumerate((3, ["x"], {"x": 1}, "image")):
        copy = change(folder, tmp_path / f"copy{number}", inputs=inputs)
        if inputs == "image":
            assert jit.load(copy).input_names == ["image"]
            continue
        for load in (jit.load, lambda path: create_predictor(Config(path))):
            with pytest.raises(FormatError, match=rf"{CONFIG}: .*names other inputs than its program"):
                load(copy)


def test_what_is_no_config(folder: Path, tmp_path: Path) -> None:
    copy = change(folder, tmp_path / "copy")
    for text in (b"", b"[1]", b"a: [", b"\xff", b"format: 2", b"[" * 5000, b"format: &a [*a]\n"):
        (copy / CONFIG).write_bytes(text)
        with pytest.raises(FormatError, match=CONFIG):
            load_artifact(copy)


def test_settings_given_later_count(folder: Path) -> None:
    artifact = load_artifact(folder)
    artifact.config["batch_size"] = 7
    assert artifact.setting("batch_size", int) == 7
    artifact.config["batch_size"] = "x"
    with pytest.raises(ConfigError, match=r"bright.*batch_size: wrong type"):
        artifact.setting("batch_size", int)
    assert artifact.setting("nothing", int, 3) == 3
    with pytest.raises(FormatError, match=r"(?s)has no 'nothing'.*nothing: int"):
        artifact.setting("nothing", int)
