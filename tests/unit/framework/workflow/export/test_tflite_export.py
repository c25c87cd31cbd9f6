"""`oar export --format tflite` and `ort`: from a configuration to files that run, and what is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from framework import nn
from framework.commands.export import main
from framework.core.errors import FormatError
from framework.core.types import JSON
from framework.export import TensorSpec, load_artifact
from framework.export.artifact import LABELS_FILE, ORT, ORT_OPERATORS, TFLITE
from framework.export.formats.onnx.ranked import ranked_outputs
from framework.export.formats.tflite import packages
from framework.export.formats.tflite.convert import Signature
from framework.inference import Runtime
from framework.interop import write_safetensors
from framework.vision import image
from framework.workflow.export import mobile, tflite
from framework.workflow.export.examples import spread
from framework.workflow.export.tflite import TfliteOptions, calibration_feeds
from zoo.classification import predictor
from zoo.vision.lenet import LeNet, LeNetConfig

REPO = Path(__file__).resolve().parents[5]
needs_mobile = pytest.mark.skipif(
    not packages.can_write_tflite(), reason="the extra `mobile` is not installed"
)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LeNet with drawn weights on dark and bright images."""
    root = tmp_path_factory.mktemp("shades")
    rng = np.random.default_rng(0)
    for name, level in (("bright", 150), ("dark", 0)):
        for number in range(6):
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


def export(config: Path, folder: Path, *flags: str) -> int:
    return main(["-c", str(config), "--save_dir", str(folder), *flags])


@needs_mobile
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_config_becomes_a_tflite_that_the_engine_runs(config: Path, tmp_path: Path, dtype: str) -> None:
    folder = tmp_path / dtype
    assert export(config, folder, "--format", "tflite", "--tflite_type", dtype, "--examples", "6") == 0
    artifact = load_artifact(folder)
    assert {TFLITE, LABELS_FILE} <= set(artifact.config["sha256"])
    assert (folder / LABELS_FILE).read_text(encoding="utf-8") == "bright\ndark\n"
    with zipfile.ZipFile(folder / TFLITE) as archive:
        assert archive.read(LABELS_FILE) == b"bright\ndark\n"
    files = sorted((config.parent / "images").rglob("*.png"))
    want, out = (predictor(folder, engine=engine)([*files]) for engine in ("xla", "litert"))
    for one, other in zip(want, out):
        assert one.label == other.label
        assert abs(one.score - other.score) < {"float32": 1e-5, "float16": 0.01, "int8": 0.1}[dtype]


def test_ranges_come_of_so_many_examples_however_many_a_stage_has() -> None:
    """A recogniser has each line of each page; all of them, twice for each of its widths, took more than 900 s."""
    examples = [{"image": np.full((1, 4, width, 3), width, np.uint8)} for width in range(1, 101)]
    signature = Signature("w8", {"image": TensorSpec((1, 4, 8, 3), "uint8")})
    (fitting,) = calibration_feeds(examples, signature, 5)  # of its size there is one
    assert fitting["image"].shape == (1, 4, 8, 3) and fitting["image"].max() == 8
    other = Signature("w120", {"image": TensorSpec((1, 4, 120, 3), "uint8")})
    feeds = calibration_feeds(examples, other, 5)
    assert [int(feed["image"].max()) for feed in feeds] == [1, 26, 51, 75, 100]
    assert {feed["image"].shape for feed in feeds} == {(1, 4, 120, 3)}
    assert spread([], 5) == [] and len(spread(examples, 1000)) == 100


def test_a_name_with_a_line_break_is_one_line_of_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of COCO files may hold breaks, and every class behind such a one had the name of the one before."""
    monkeypatch.setattr(tflite, "tensor_shapes", lambda _: [({"image": (1, 8, 8, 3)}, {"scores": (1, 3)})])
    specs = {"image": TensorSpec((1, 8, 8, 3), "uint8")}
    about: dict[str, JSON] = {"name": "m", "labels": ["cat", "big\r\ndog", ""]}
    file = tflite.TfliteFile(LeNet(LeNetConfig(2)), specs, ({},), about, TfliteOptions())
    metadata, summary = file._metadata(b"")
    assert metadata.files[LABELS_FILE] == b"cat\nbig dog\n\n"
    assert json.loads(summary)["labels"] == about["labels"]


def test_scores_of_pixels_are_no_ranked_rows() -> None:
    """To compare each line of an image with each took 12 GB."""
    pixels = {"scores": np.zeros((1, 384, 480)), "labels": np.zeros((1, 384, 480))}
    assert ranked_outputs(pixels) == []
    assert ranked_outputs({"scores": np.zeros((1, 9)), "boxes": np.zeros((1, 9, 4))}) == ["scores", "boxes"]


@needs_mobile
def test_a_name_opens_in_litert_at_once(config: Path) -> None:
    files = sorted((config.parent / "images").rglob("*.png"))
    assert (
        predictor(config, engine="litert")(files[0]).label == predictor(config, engine="xla")(files[0]).label
    )


@needs_mobile
def test_the_size_of_images_can_be_asked_for(config: Path, tmp_path: Path) -> None:
    """Of a network that takes any size, the file has the one that is asked for, and so have the transforms."""
    free = tmp_path / "free.yml"
    text = config.read_text(encoding="utf-8").replace("type: LeNet,", "type: ResNet, variant: resnet18,")
    free.write_text(text.split("weights:")[0] + "task:" + text.split("task:")[1], encoding="utf-8")
    from framework.workflow.domain.config_file import open_config
    from zoo.vision.resnet import ResNet

    model_config, _ = open_config(free).experiment.model_and_task()
    weights = {name: np.asarray(value) for name, value in ResNet(model_config).state_dict().items()}
    write_safetensors(tmp_path / "b.safetensors", weights)
    folder = tmp_path / "sized"
    flags = (
        "--format",
        "tflite",
        "--input_size",
        "32",
        "48",
        "-o",
        f"weights={(tmp_path / 'b.safetensors').as_posix()}",
    )
    assert export(free, folder, *flags) == 0
    engine = Runtime(engine="litert").open(load_artifact(folder))
    assert engine.inputs["image"].shape == ("n", 32, 48, 3)
    predictor(folder, engine="litert")(np.zeros((70, 50, 3), np.uint8))


@needs_mobile
def test_a_file_that_differs_is_not_written(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from framework.workflow.export import tflite

    real = tflite.convert

    def wrong(fn, weights, signatures):
        return real(fn, {name: array * 1.5 for name, array in weights.items()}, signatures)

    monkeypatch.setattr(tflite, "convert", wrong)
    folder = tmp_path / "wrong"
    assert export(config, folder, "--format", "tflite") == 2
    assert "would not compute what the program computes" in capsys.readouterr().err and not folder.exists()
    assert export(config, folder, "--format", "tflite", "--no-tflite_check") == 0


def test_stages_of_a_pipeline_are_held_by_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `oar quantize` does: a detector's maps may differ where its boxes, and so the words, stay."""
    stages: dict[str, Any] = {}
    for name in ("cut", "read"):
        specs = {"image": TensorSpec((1, 4), "float32")}
        file = tflite.TfliteFile(nn.Linear(4, 2), specs, [{}], {"name": name}, TfliteOptions())
        stages[name] = SimpleNamespace(formats=(file,), config={})
    artifact: Any = SimpleNamespace(stages=stages, config={})
    config: Any = SimpleNamespace(experiment=SimpleNamespace(pipeline=object()))
    words: Any = lambda engines: 0.98 if engines == {"cut": "program of cut", "read": "smaller"} else 1.0  # noqa: E731
    words.content = SimpleNamespace(counts="words")
    for function, stub in {
        "open_config": lambda *_: config,
        "export_config": lambda *_, **__: artifact,
        "_open_program": lambda one: next(f"program of {name}" for name in stages if stages[name] is one),
    }.items():
        monkeypatch.setattr(mobile, function, stub)
    monkeypatch.setattr(mobile.PipelineScore, "open", lambda *_: words)
    image.write(tmp_path / "images" / "a.png", np.zeros((8, 8, 3), np.uint8))
    mobile.export_tflite("pipeline", TfliteOptions("int8", data=tmp_path / "images"))
    cut, read = (one.formats[0] for one in stages.values())
    engine: Any = "smaller"
    assert cut.score(cut.program()) == cut.score(engine) == read.score(read.program()) == ("words", 1.0)
    cut._check_score(engine, [])
    assert (
        read.score(engine) == ("words", 0.98) and read.options.max_loss == 0.005
    )  # each has half of a point
    with pytest.raises(FormatError, match=r"words 0\.9800 in place of 1\.0000"):
        read._check_score(engine, [])
    mobile.export_tflite("pipeline", TfliteOptions("int8"))  # nothing to read
    assert stages["cut"].formats[0].score(engine) is None


@needs_mobile
def test_int8_without_data_says_what_is_missing(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--format", "tflite", "--tflite_type", "int8", "-o", "data.train=null", "data.eval=null")
    assert (
        export(config, tmp_path / "a", *flags, "predict.transforms=[{type: Resize, size_hw: [28, 28]}]") == 2
    )
    assert "--data FOLDER" in capsys.readouterr().err
    assert export(config, tmp_path / "b", *flags, "--data", str(config.parent / "images")) == 0


def test_an_artifact_without_the_file_says_how_to_make_it(config: Path, tmp_path: Path) -> None:
    assert export(config, tmp_path / "plain") == 0
    with pytest.raises(FormatError, match=r"no \.tflite") as error:
        Runtime(engine="litert").open(load_artifact(tmp_path / "plain"))
    assert "--format tflite" in str(error.value)


def test_ort_files_run_and_list_their_operators(config: Path, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    folder = tmp_path / "ort"
    assert export(config, folder, "--format", "ort") == 0
    operators = (folder / ORT_OPERATORS).read_text(encoding="utf-8")
    assert "Conv" in operators and {ORT, ORT_OPERATORS} <= set(load_artifact(folder).config["sha256"])
    session = onnxruntime.InferenceSession(str(folder / ORT), providers=["CPUExecutionProvider"])
    pixels = np.random.default_rng(1).integers(0, 256, (2, 28, 28, 3)).astype(np.uint8)
    want = Runtime(engine="xla").open(load_artifact(folder))({"image": pixels})["scores"]
    np.testing.assert_allclose(session.run(["scores"], {"image": pixels})[0], want, atol=1e-5)


def test_flags_of_tflite_stand_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        raise SystemExit(main(["--help"]))
    text = capsys.readouterr().out
    assert "tflite" in text and "--input_size" in text and "--tflite_type" in text
