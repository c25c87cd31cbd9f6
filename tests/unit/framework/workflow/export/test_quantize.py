"""`oar quantize`: from a configuration with data or files to an artifact, its table, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from framework.commands.eval import main as evaluate
from framework.commands.quantize import main
from framework.core.errors import ConfigError, FormatError, InputError
from framework.core.process_state import state
from framework.export import load_artifact
from framework.inference import Runtime
from framework.interop import write_safetensors
from framework.vision import image
from framework.workflow.export import quantize as quantize_module
from framework.workflow.export.pipeline_score import PipelineScore
from framework.workflow.export.quantize import (
    Quantization,
    QuantizeOptions,
    Row,
    agreement,
    quantize,
)
from framework.workflow.files.predict_files import run_images
from framework.workflow.train.artifact_scores import evaluate_artifact
from framework.workflow.train.run import evaluate_classes
from zoo.classification import predictor
from zoo.vision.lenet import LeNet, LeNetConfig

REPO = Path(__file__).resolve().parents[5]
pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LeNet with drawn weights on dark and bright images."""
    root = tmp_path_factory.mktemp("shades")
    rng = np.random.default_rng(0)
    for name, level in (("bright", 150), ("dark", 0)):
        for number in range(8):
            pixels = rng.integers(level, level + 100, (28, 28, 3)).astype(np.uint8)
            image.write(root / "images" / name / f"{number}.png", pixels)
    weights = {name: np.asarray(value) for name, value in LeNet(LeNetConfig(2)).state_dict().items()}
    write_safetensors(root / "a.safetensors", weights)
    path = root / "shades.yml"
    path.write_text(
        f"""
_base_: {(REPO / "configs/_base_/classification.yml").as_posix()}
model: {{type: LeNet, num_classes: 2}}
weights: {root.as_posix()}/a.safetensors
task: {{type: ImageClassification, topk: [1]}}
data:
  train: &data
    dataset: {{type: ImageFolder, root: {root.as_posix()}/images}}
    transforms: [{{type: Resize, size_hw: [28, 28]}}]
    batch_size: 6
    num_workers: 0
  eval: *data
predict: {{transforms: [{{type: Resize, size_hw: [28, 28]}}]}}
export: {{precisions: [float32], inputs: {{image: {{shape: [n, 28, 28, 3], dtype: uint8}}}}}}
""",
        encoding="utf-8",
    )
    return path


def test_the_score_is_held_and_the_artifact_says_how(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "int8"
    assert main(["-c", str(config), "--output_dir", str(folder), "--examples", "8"]) == 0
    told = capsys.readouterr().out
    assert "5 of 5 layers in int8" in told and "onnxruntime  int8" in told and str(folder) in told
    artifact = load_artifact(folder)
    table = artifact.config["quantization"]
    assert table["layers"] == 5 and table["metric"] == next(iter(evaluate_classes(config).scores))
    assert artifact.setting("engines")["cpu"]
    assert (
        artifact.onnx_file is not None and artifact.onnx_file.stat().st_size < 130_000
    )  # 4 bytes each: 247,000
    before = next(iter(evaluate_classes(config).scores.values()))
    for engine in ("xla", "onnxruntime"):
        command = ["-c", str(config), "--model_dir", str(folder), "--engine", engine]
        assert evaluate(command) == 0
        score = next(iter(evaluate_artifact(folder, config).scores.values()))
        assert score >= before - 0.01
    artifact.config["quantization"]["not_faster"] = {"onnxruntime": "int8 is slower, by this test"}
    Runtime(engine="onnxruntime").open(artifact)
    assert state.engines[-1].endswith(
        "onnxruntime, in int8 and float32; where it was measured, int8 is slower, by this test"
    )
    photo = config.parent / "images" / "bright" / "0.png"
    results = tmp_path / "results"
    settings = yaml.safe_load((folder / "infer_cfg.yml").read_text("utf-8"))
    settings["quantization"]["not_faster"] = {"onnxruntime": "int8 is slower, by this test"}
    (folder / "infer_cfg.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    run_images(predictor(folder, engine="onnxruntime"), [photo], results, draw=False)
    assert json.loads((results / "0.json").read_text("utf-8"))["warnings"] == ["int8 is slower, by this test"]
    found = predictor(folder)(config.parent / "images" / "bright" / "0.png")
    assert found.classes[0].label in ("bright", "dark")


def test_images_of_a_folder_are_the_examples(config: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.yml"
    bare.write_text(f"_base_: {config.as_posix()}\ndata: {{train: null, eval: null}}\n", encoding="utf-8")
    with pytest.raises(InputError, match="--data FOLDER"):
        quantize(bare, tmp_path / "int8")
    (made,) = quantize(bare, tmp_path / "int8", data=config.parent / "images")
    assert made.metric == "agreement" and made.rows[0].score == pytest.approx(1)
    assert all(row.score > 0.95 for row in made.rows)


def test_stages_of_a_pipeline_share_what_it_may_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later stage is scored with the earlier one in int8, and may lose what that one left."""
    stages = {name: SimpleNamespace(config={}) for name in ("cut", "read")}
    artifact = SimpleNamespace(config={}, stages=stages, save=lambda folder: None)
    scored, asked = [], []

    def score(engines: Mapping[str, str]) -> float:
        scored.append(dict(engines))
        return 1.0

    def quantize_stage(one: object, name: str, *args: Any) -> tuple[Quantization, dict[str, str]]:
        (_, engines, measure, before, least, _) = args
        measure("onnxruntime", f"{name} int8")
        asked.append((dict(engines), before["onnxruntime"], round(least, 4)))
        rows = (Row("onnxruntime", "float32", 1.0, 1.0), Row("onnxruntime", "int8", 0.997, 1.0))
        return Quantization(name, "words", 1, (), (4, 1), rows), {"onnxruntime": f"{name} int8"}

    pipeline: Any = score
    monkeypatch.setattr(score, "content", SimpleNamespace(counts="words"), raising=False)
    monkeypatch.setattr(PipelineScore, "open", lambda *_: pipeline)
    for function, stub in {
        "export_config": lambda *_, **__: SimpleNamespace(save=lambda folder: folder),
        "load_artifact": lambda *_, **__: artifact,
        "record_inputs": lambda *_: {name: [{}] for name in stages},
        "_installed": lambda: ["onnxruntime"],
        "_open": lambda engine, one: next(name for name in stages if stages[name] is one),
        "_quantize_program": quantize_stage,
    }.items():
        monkeypatch.setattr(quantize_module, function, stub)
    image.write(tmp_path / "images" / "a.png", np.zeros((8, 8, 3), np.uint8))
    quantize(REPO / "configs/ocr/pp_ocrv6_small.yml", tmp_path / "out", data=tmp_path / "images")
    assert asked == [
        ({"onnxruntime": "cut"}, ("words", 1.0), 0.995),
        ({"onnxruntime": "read"}, ("words", 0.997), 0.99),
    ]
    assert scored[-1] == {"cut": "cut int8", "read": "read int8"}


def test_what_is_refused(config: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        quantize(config, tmp_path / "out", data=tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no image, no line"):
        quantize(config, tmp_path / "out", data=tmp_path / "empty")
    with pytest.raises(ConfigError, match="--data FOLDER"):
        quantize(REPO / "configs/ocr/pp_ocrv6_small.yml", tmp_path / "out")
    with pytest.raises(InputError, match="0 up to 1"):
        QuantizeOptions(max_loss=1.5)
    with pytest.raises(InputError, match="1 or more"):
        QuantizeOptions(examples=0)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("kept", encoding="utf-8")
    with pytest.raises(FormatError, match=r"mine\.txt"):
        quantize(config, tmp_path / "full")
    assert not (tmp_path / "out").exists()


def test_an_engine_that_int8_does_not_make_faster_is_named() -> None:
    times = {"xla": (2.0, None), "onnxruntime": (1.0, 2.5), "openvino": (4.0, 3.9), "other": (4.0, 2.0)}
    rows = [
        Row(engine, precision, 0.5, milliseconds)
        for engine, both in times.items()
        for precision, milliseconds in zip(("float32", "int8"), both, strict=True)
        if milliseconds is not None
    ]
    quantization = Quantization("m", "top1", 3, (), (400, 100), tuple(rows))
    told = quantization.describe()
    assert quantization.to_dict()["not_faster"].keys() == {"onnxruntime", "openvino"}
    assert "int8 is slower than float32 in onnxruntime here (1.00 -> 2.50 ms)" in told
    assert "int8 is not faster than float32 in openvino here (4.00 -> 3.90 ms)" in told
    assert told.count("int8 is") == 2


def test_agreement_is_of_the_worst_output() -> None:
    wanted = [{"a": np.float32([3, 4]), "b": np.array([1, 2, 3, 4])}]
    assert agreement(wanted, wanted) == 1
    got = [{"a": np.float32([3, 4.5]), "b": np.array([1, 2, 3, 0])}]
    assert agreement(wanted, got) == pytest.approx(0.75)
    assert agreement(wanted, [{**got[0], "b": wanted[0]["b"]}]) == pytest.approx(0.9)
