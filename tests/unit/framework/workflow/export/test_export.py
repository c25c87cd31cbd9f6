"""From a config to an artifact: labels, weights and inputs, and what is said where one of them is missing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from framework import hub
from framework.commands.export import main
from framework.config import load
from framework.core.errors import ConfigError, MissingExtraError
from framework.engine.experiment import bind_experiment
from framework.export import load_artifact
from framework.interop import load_weights, write_safetensors
from framework.workflow.export import export
from framework.workflow.export.export import export_config, labels_of, trained_model
from framework.workflow.open import artifacts
from zoo.classification import predictor
from zoo.classification.results import Classification
from zoo.vision.lenet import LeNet, LeNetConfig

REPO = Path(__file__).resolve().parents[5]


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


def test_the_command_writes_onnx_beside_the_program(config: Path, tmp_path: Path) -> None:
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    out = tmp_path / "out"
    command = ["-c", str(config), "--format", "onnx", "--opset", "19", "--save_dir", str(out)]
    assert main(command) == 0
    artifact = load_artifact(out)
    assert artifact.programs.keys() == {"float32"} and artifact.onnx_file == out / "model.onnx"
    model = onnx.load(artifact.onnx_file)
    assert model.opset_import[0].version == 19
    assert {one.name for one in model.graph.initializer} >= set(load_weights(tmp_path / "a.safetensors"))
    image = np.random.default_rng(0).integers(0, 256, (3, 28, 28, 3)).astype(np.uint8)
    session = runtime.InferenceSession(str(artifact.onnx_file), providers=["CPUExecutionProvider"])
    wanted = artifact.programs["float32"].call(artifact.weights, {"image": image})
    for output, got in zip(session.get_outputs(), session.run(None, {"image": image})):
        np.testing.assert_allclose(got, wanted[output.name], atol=1e-5)
    assert main(command) == 0  # which replaces it


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
    assert "none published as digits" in str(caught.value)
    with pytest.raises(ConfigError, match="nothing says what the exported program takes"):
        export_config(config, ("export={_inherited_: false}",))


def test_without_a_run_the_weights_published_under_the_name_are_taken(
    config: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    published = config.parent / "a.safetensors"
    monkeypatch.setattr(hub, "find_name", lambda name, domain: {"digits": "digits_mnist"}.get(name))
    monkeypatch.setattr(
        export, "resolve_weights", lambda spec, domain: published if spec == "digits_mnist" else None
    )
    caplog.set_level("WARNING", "oar")
    model, path, _ = trained_model(bind_experiment(load(config, ["weights=null"])), config)
    assert path == published and isinstance(model, LeNet)
    assert "the published weights digits_mnist are taken" in caplog.text


def test_another_number_of_classes_than_labels(config: Path, tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        (tmp_path / "images" / name / "a.png").write_bytes(b"")
    with pytest.raises(ConfigError, match="different numbers of classes") as caught:
        export_config(config, ("data.eval.dataset.root=images",))
    assert "3 for the 2 classes cat, dog" in str(caught.value)


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_an_engine_of_onnx_files_needs_no_export_before(
    config: Path, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (
        importlib.util.find_spec(engine) is None
    ):  # which imports nothing: OpenVINO would report that it is used
        pytest.skip(f"{engine} is not installed")
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    image = np.random.default_rng(0).integers(0, 256, (28, 28, 3)).astype(np.uint8)
    wanted = predictor(config)(image)
    for _ in range(2):  # made, then found
        found = predictor(config, engine=engine)(image)
        for one, other in zip(found.classes, wanted.classes, strict=True):
            assert one.label == other.label and one.score == pytest.approx(other.score, abs=1e-5)
    kept = sorted(path.name.rpartition("-")[0] for path in (tmp_path / "home" / "artifacts").iterdir())
    assert kept == ["digits", "digits-onnx"]
    by_table = tmp_path / "table.yml"
    by_table.write_text(
        f"_base_: {config.as_posix()}\nexport: {{engines: {{cpu: [{engine}]}}}}\n", encoding="utf-8"
    )
    assert predictor(by_table, device="cpu")(image).classes[0].label == wanted.classes[0].label
    kept = sorted(path.name.rpartition("-")[0] for path in (tmp_path / "home" / "artifacts").iterdir())
    assert kept == ["digits", "digits-onnx", "table-onnx"]
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "bare"))
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnx" else real(name))
    assert predictor(by_table, device="cpu")(image).classes[0].label == wanted.classes[0].label
    kept = [path.name.rpartition("-")[0] for path in (tmp_path / "bare" / "artifacts").iterdir()]
    assert kept == [
        "table-graph"
    ]  # by XLA: nothing here writes the ONNX file, and none comes with the package
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"oar-toolkit\[onnx\]"):
        predictor(config, engine=engine)
    monkeypatch.setattr(artifacts, "has_graphs", lambda: False)
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "bare2"))
    assert predictor(by_table, device="cpu")(image).classes[0].label == wanted.classes[0].label
    kept = [path.name.rpartition("-")[0] for path in (tmp_path / "bare2" / "artifacts").iterdir()]
    assert kept == ["table"]
