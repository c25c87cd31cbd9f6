"""From a config to an artifact: labels, weights and inputs, and what is said where one of them is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework.config import load
from framework.core.errors import ConfigError
from framework.engine.experiment import bind_experiment
from framework.io.interop import write_safetensors
from framework.workflow.export import export_config, labels_of, trained_model
from zoo.classification import predictor
from zoo.classification.results import Classification
from zoo.vision.lenet import LeNet, LeNetConfig

REPO = Path(__file__).resolve().parents[4]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    weights = {name: np.asarray(value) for name, value in LeNet(LeNetConfig(3)).state_dict().items()}
    write_safetensors(tmp_path / "a.safetensors", weights)
    path = tmp_path / "digits.yml"
    path.write_text(
        f"_base_: {(REPO / 'configs/_base_/classification.yml').as_posix()}\n"
        "model: {type: LeNet, num_classes: 3}\nweights: a.safetensors\n"
        "data: {eval: {dataset: {type: ImageFolder, root: nowhere}}}\n"
        "predict: {transforms: [{type: Resize, size_hw: [28, 28]}]}\n"
        "export: {precisions: [float32], inputs: {image: {shape: [n, 28, 28, 3], dtype: uint8}}}\n",
        encoding="utf-8",
    )
    return path


def test_an_artifact_without_the_data(config: Path) -> None:
    artifact = export_config(config)
    assert artifact.config["labels"] == [] and artifact.config["model"]["type"] == "LeNet"
    assert artifact.config["transforms"] == [
        {"type": "Resize", "size_hw": [28, 28], "mode": "exact", "interpolation": "linear"}
    ]
    assert len(artifact.config["provenance"]["sha256"]) == 64
    folder = artifact.save(config.parent / "out")
    for model in (folder, config):
        found = predictor(model)(np.zeros((40, 30, 3), np.uint8))
        assert isinstance(found, Classification) and found.size_hw == (40, 30)
        assert {c.label for c in found.classes} == {"0", "1", "2"}
        assert sum(c.score for c in found.classes) == pytest.approx(1, abs=1e-5)


def test_labels_come_with_the_weights_or_the_data(config: Path, tmp_path: Path) -> None:
    for name in ("cat", "dog", "elk"):
        (tmp_path / "images" / name).mkdir(parents=True)
        (tmp_path / "images" / name / "a.png").write_bytes(b"")
    experiment = bind_experiment(load(config, ["data.eval.dataset.root=images"]))
    assert labels_of(experiment, ()) == ("cat", "dog", "elk")
    assert labels_of(experiment, ("a", "b", "c")) == ("a", "b", "c")


def test_what_is_missing_is_said(config: Path) -> None:
    with pytest.raises(ConfigError, match="there are no weights") as caught:
        trained_model(bind_experiment(load(config, ["weights=null"])), config)
    assert "no training run in output" in str(caught.value) and "oar train -c" in str(caught.value)
    with pytest.raises(ConfigError, match="nothing says what the exported program takes"):
        export_config(config, ("export={_inherited_: false}",))


def test_another_number_of_classes_than_labels(config: Path, tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        (tmp_path / "images" / name / "a.png").write_bytes(b"")
    with pytest.raises(ConfigError, match="different numbers of classes") as caught:
        export_config(config, ("data.eval.dataset.root=images",))
    assert "3 for the 2 classes cat, dog" in str(caught.value)
