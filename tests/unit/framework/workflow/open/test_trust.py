"""An artifact is data: code that its config names runs with the user's consent alone, and the log says what."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from framework.commands.main import main
from framework.core.errors import FormatError
from framework.export import CONFIG, Artifact, TensorSpec, load_artifact, lower_program
from framework.workflow import predictor
from framework.workflow.domain.config_file import open_config
from framework.workflow.runners.image_runner import load_transforms
from zoo.classification import predictor as classifier

RED = np.full((8, 8, 3), 200, np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier by the mean of the image."""

    def fn(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        mean = inputs["image"].astype("float32").mean(axis=(1, 2, 3)) / 255 + weights["zero"]
        return {"scores": np.array([1, -1], np.float32) * mean[:, None] + np.array([0, 1], np.float32)}

    weights = {"zero": np.zeros((), np.float32)}
    program = lower_program(fn, weights, {"image": TensorSpec(("n", 4, 4, 3), "uint8")}, platforms=("cpu",))
    config = {
        "domain": "classification",
        "name": "bright",
        "batch_size": 2,
        "labels": ["light", "dark"],
        "transforms": [{"type": "Resize", "size_hw": [4, 4]}],
    }
    artifact = Artifact(config, {"float32": program}, weights)
    return artifact.save(tmp_path_factory.mktemp("artifact") / "bright")


@pytest.fixture
def hostile(folder: Path, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """The artifact with a file that it names, and the file that this writes when it runs."""
    copy, ran = tmp_path / "net", tmp_path / "RAN"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    payload = copy / f"payload_{abs(hash(request.node.name))}.py"
    payload.write_text(f"import pathlib\npathlib.Path({str(ran)!r}).write_text('ran')\n", encoding="utf-8")
    config = yaml.safe_load((copy / CONFIG).read_text(encoding="utf-8")) | {"imports": [str(payload)]}
    (copy / CONFIG).write_text(yaml.safe_dump(config), encoding="utf-8")
    return copy, ran


@pytest.mark.parametrize("make", [predictor, classifier])
def test_an_artifact_runs_no_code_that_it_names(hostile: tuple[Path, Path], make: Any) -> None:
    folder, ran = hostile
    with pytest.raises(FormatError, match=r"(?s)names code to run.*payload_.*--trust, or trust=True"):
        make(folder)
    assert not ran.exists()


def test_a_module_by_name_waits_for_consent_too(folder: Path, tmp_path: Path) -> None:
    text = (folder / CONFIG).read_text(encoding="utf-8") + "imports: [antigravity]\n"
    copy = tmp_path / "net"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / CONFIG).write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match="imports: antigravity"):
        predictor(copy)


def test_transforms_of_an_untrusted_artifact_import_nothing(hostile: tuple[Path, Path]) -> None:
    folder, ran = hostile
    load_transforms(load_artifact(folder), ("framework",))
    assert not ran.exists()


def test_trust_runs_it_and_says_what(hostile: tuple[Path, Path], caplog: pytest.LogCaptureFixture) -> None:
    folder, ran = hostile
    with caplog.at_level(logging.WARNING, "oar"):
        assert predictor(folder, trust=True)(RED).label == "light"
    assert ran.read_text(encoding="utf-8") == "ran"
    lines = [record.getMessage() for record in caplog.records if "imports" in record.getMessage()]
    assert len(lines) == 1
    assert "infer_cfg.yml runs code" in lines[0]
    assert str(next(folder.glob("payload_*.py")).resolve()) in lines[0]


def test_the_command_asks_for_trust(
    hostile: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    folder, ran = hostile
    Image.fromarray(RED).save(tmp_path / "x.png")
    arguments = ["infer", "--model_dir", str(folder), str(tmp_path / "x.png")]
    arguments += ["--output_dir", str(tmp_path / "out")]
    assert main(arguments) == 2
    assert "--trust" in capsys.readouterr().err
    assert not ran.exists()
    assert main([*arguments, "--trust"]) == 0
    assert ran.exists()


def test_an_artifact_in_a_pipeline_is_asked_for_too(hostile: tuple[Path, Path], tmp_path: Path) -> None:
    folder, ran = hostile
    whole = Artifact({"domain": "classification", "name": "two"}, stages={"net": load_artifact(folder)})
    saved = whole.save(tmp_path / "two")
    with pytest.raises(FormatError, match="names code to run"):
        predictor(saved)
    assert not ran.exists()


@pytest.mark.parametrize("inside", [True, False])
def test_a_configuration_from_elsewhere_says_what_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, inside: bool
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir(), other.mkdir()
    name = f"parts_of_a_stranger_{inside}"
    (other / f"{name}.py").write_text("", encoding="utf-8")
    path = other / "net.yml"
    path.write_text(
        f"domain: classification\nimports: [{name}.py]\nmodel: {{type: LeNet, num_classes: 2}}\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(other if inside else home)
    with caplog.at_level(logging.WARNING, "oar"):
        _ = open_config(path).experiment
        _ = open_config(path).experiment
    lines = [record.getMessage() for record in caplog.records if "runs code" in record.getMessage()]
    assert len(lines) == (0 if inside else 1)
    assert inside or (str(path) in lines[0] and str(other / f"{name}.py") in lines[0])
