"""Text detectors and recognisers, trained on small pages: scores, artifacts, results, and the reader of both."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from framework.config import load
from framework.core.errors import ConfigError, InputError
from framework.engine.experiment import bind_experiment
from framework.io.checkpoint import find_checkpoint, load_checkpoint
from framework.vision import image
from framework.workflow.domain.domain import find_config
from framework.workflow.export.export import write_artifact
from framework.workflow.train.artifact_scores import evaluate_artifact
from framework.workflow.train.run import evaluate_classes, train
from ocr import predictor
from ocr.results.pages import Document

REPO = Path(__file__).resolve().parents[2]
RECOGNIZER = """
_base_: {base}/text_recognition.yml
model:
  {{type: TextRecognizer, variant: PP-OCRv6_tiny_rec, num_classes: null, guided: true, gtc: {{dims: 32, depth: 1}}}}
task: {{characters: {{symbols: "0123456789."}}, max_text_length: 8}}
data:
  train: &data
    dataset: {{type: TextLineImages, root: {root}, labels: [lines.txt]}}
    transforms: [{{type: ResizeLine, height: 48, max_width: 128}}]
    buckets: [64, 128]
    batch_size: 4
    num_workers: 0
  eval: *data
optim: {{type: Adam, learning_rate: 0.001}}
train: {{epochs: null, iters: 6, log_every: 1}}
export:
  inputs: {{image: {{shape: [n, 48, w, 3], dtype: uint8}}, width: {{shape: [n], dtype: int32}}}}
  constraints: [w >= 16]
  precisions: [float32]
"""
DETECTOR = """
_base_: {base}/text_detection.yml
model: {{type: DBNet, variant: PP-OCRv6_tiny_det}}
data:
  train: &data
    dataset: {{type: TextPages, root: {root}, labels: [pages.txt]}}
    transforms: [{{type: Resize, size_hw: [96, 96], mode: fit}}, {{type: PadToSize, size_hw: [96, 96]}}]
    batch_size: 2
    num_workers: 0
  eval: *data
optim: {{type: Adam, learning_rate: 0.001}}
train: {{epochs: null, iters: 6, log_every: 1}}
export: {{precisions: [float32]}}
"""


# Configs of label files, by their networks; the others draw their data.
CONFIGS = sorted(
    f"{path.parent.name}/{path.name}"
    for kind in ("det", "rec")
    for path in (REPO / "configs" / "ocr" / kind).glob("*.yml")
    if not path.name.startswith("oar_")
)


# Those of recognisers whose lines all have one width
OF_ONE_SIZE = [
    config for config in CONFIGS if "width" in load(REPO / "configs" / "ocr" / config).plain().get("task", {})
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of two numbers each, and the numbers as lines."""
    folder = tmp_path_factory.mktemp("numbers")
    rng, font = np.random.default_rng(0), ImageFont.load_default(16)
    lines, pages = [], []
    for number in range(8):
        page = Image.new("RGB", (120, 80), "white")
        draw, regions = ImageDraw.Draw(page), []
        for place in range(2):
            text = f"{rng.integers(10 ** rng.integers(1, 7))}.{number}"
            at = (8, 8 + 36 * place)
            draw.text(at, text, fill="black", font=font)
            x0, y0, x1, y1 = (round(side) for side in draw.textbbox(at, text, font=font))
            regions.append(
                {
                    "transcription": text,
                    "points": [[x0 - 2, y0 - 2], [x1 + 2, y0 - 2], [x1 + 2, y1 + 2], [x0 - 2, y1 + 2]],
                }
            )
            image.write(folder / f"{number}_{place}.png", np.asarray(page)[y0 - 2 : y1 + 2, x0 - 2 : x1 + 2])
            lines.append(f"{number}_{place}.png\t{text}\n")
        image.write(folder / f"{number}.png", np.asarray(page))
        pages.append(f"{number}.png\t{json.dumps(regions)}\n")
    (folder / "lines.txt").write_text("".join(lines), encoding="utf-8")
    (folder / "pages.txt").write_text("".join(pages), encoding="utf-8")
    for name, text in (("recognizer", RECOGNIZER), ("detector", DETECTOR)):
        base = (REPO / "configs/_base_").as_posix()
        (folder / f"{name}.yml").write_text(text.format(base=base, root=folder.as_posix()), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs(root: Path) -> dict[str, Path]:
    folders = {name: root / f"{name}_run" for name in ("recognizer", "detector")}
    for name, folder in folders.items():
        train(root / f"{name}.yml", (), folder)
    return folders


def losses(run: Path) -> list[float]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [row["loss"] for row in map(json.loads, lines) if "loss" in row]


@pytest.mark.parametrize("name", ["recognizer", "detector"])
def test_a_trained_model_scores_and_reads_alike_from_its_artifact(
    name: str, root: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    found = losses(runs[name])
    assert len(found) == 6 and found[-1] < found[0]
    config = runs[name] / "config.yml"
    scores = evaluate_classes(config).scores
    assert next(iter(scores)) == {"recognizer": "acc", "detector": "hmean"}[name]
    artifact = write_artifact(config, tmp_path)
    for key, value in evaluate_artifact(artifact, config).scores.items():
        assert value == pytest.approx(scores[key], abs=1e-6), key
    source = root / {"recognizer": "0_0.png", "detector": "0.png"}[name]
    from_weights, from_artifact = (predictor(model)(source) for model in (config, artifact))
    assert isinstance(from_weights, Document)
    assert [page.lines for page in from_weights.pages] == [page.lines for page in from_artifact.pages]


def test_a_trained_pair_is_a_reader(root: Path, runs: dict[str, Path]) -> None:
    pair = [f"pipeline.{name}={folder.as_posix()}" for name, folder in runs.items()]
    read = predictor("pp_ocrv6_small", overrides=[*pair, "pipeline.orientation=null"])
    assert isinstance(read(root / "0.png"), Document)
    with pytest.raises(ConfigError, match="trained no detector"):
        predictor("pp_ocrv6_small", overrides=[f"pipeline.detector={runs['recognizer'].as_posix()}"])
    with pytest.raises(ConfigError, match="no training run"):
        predictor("pp_ocrv6_small", overrides=[f"pipeline.detector={root.as_posix()}"])


def test_the_weights_of_a_run_bring_their_dictionary(root: Path, runs: dict[str, Path]) -> None:
    run = runs["recognizer"].as_posix()
    small = "pipeline.recognizer.model={type: TextRecognizer, variant: PP-OCRv6_tiny_rec, deploy: true}"
    for weights in (run, next((runs["recognizer"] / "checkpoints").glob("step_*")).as_posix()):
        settings = (small, f"pipeline.recognizer.weights={weights}", "pipeline.orientation=null")
        stages = bind_experiment(load(find_config("pp_ocrv6_small", "ocr"), settings)).pipeline.stages()
        assert stages["recognizer"].config["characters"] == list("0123456789.")
        assert stages["recognizer"].model.num_classes == 13
    read = predictor("pp_ocrv6_small", overrides=list(settings))
    assert isinstance(read(root / "0.png"), Document)
    wrong = f"pipeline.recognizer.weights={runs['detector'].as_posix()}"
    with pytest.raises(ConfigError, match=r"this run trained no recogniser\n(.*\n)*.*TextDetection"):
        predictor("pp_ocrv6_small", overrides=[small, wrong])


@pytest.mark.parametrize("name", ["recognizer", "detector"])
def test_a_student_learns_from_an_artifact(
    name: str, root: Path, runs: dict[str, Path], tmp_path: Path
) -> None:
    """The teacher is in the step and in no checkpoint; only the student's parameters change."""
    artifact = write_artifact(runs[name] / "config.yml", tmp_path / "teacher")
    kind = {"recognizer": "LineTeacher", "detector": "MapTeacher"}[name]
    distill = f"task.distill={{type: {kind}, model: {artifact.as_posix()}}}"
    train(root / f"{name}.yml", (distill, "data.eval=null"), tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    taught = [row["teacher"] for row in map(json.loads, lines) if "teacher" in row]
    assert len(taught) == 6 and all(value > 0 for value in taught)
    saved = [set(load_checkpoint(find_checkpoint(run)).model) for run in (tmp_path / "run", runs[name])]
    assert saved[0] == saved[1]


def small_settings(config: Path, root: Path) -> list[str]:
    """What makes a training of a config short, and independent of official weights; the network keeps its size."""
    plain = load(config).plain()
    data, lines = plain["data"], config.parent.name == "rec"
    settings = ["pretrained=null", "train.epochs=null", "train.iters=4", "train.log_every=1"]
    for part in ("train", "eval"):
        dataset = f"data.{part}.dataset"
        settings += [
            f"{dataset}.root={root.as_posix()}",
            f"data.{part}.batch_size=2",
            f"data.{part}.num_workers=0",
        ]
        settings.append(f"{dataset}.labels=[{'lines' if lines else 'pages'}.txt]")
        for number, transform in enumerate(data[part]["transforms"]):
            if not lines and "size_hw" in transform:
                settings.append(f"data.{part}.transforms.{number}.size_hw=[96, 96]")
    rate = plain["optim"]["learning_rate"]
    if isinstance(rate, dict) and "warmup_steps" in rate:
        settings += ["optim.learning_rate.by_epoch=false", "optim.learning_rate.warmup_steps=1"]
    if lines and "weights" in plain["task"]["characters"]:
        settings.append("task.characters={_inherited_: false, symbols: '0123456789.'}")
    return settings


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
def test_every_config_trains(config: str, root: Path, tmp_path: Path) -> None:
    path = REPO / "configs" / "ocr" / config
    train(path, (*small_settings(path, root), "data.eval=null"), tmp_path / "run")
    found = losses(tmp_path / "run")
    assert len(found) == 4 and all(np.isfinite(found)) and found[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("config", OF_ONE_SIZE)
def test_words_of_one_size_are_read_alike_from_an_artifact(config: str, root: Path, tmp_path: Path) -> None:
    """A reader brings lines to the size that the task says: scores of the artifact are those of the training."""
    path = REPO / "configs" / "ocr" / config
    train(path, (*small_settings(path, root), "export.precisions=[float32]"), tmp_path / "run")
    run = tmp_path / "run" / "config.yml"
    scores = evaluate_classes(run).scores
    artifact = write_artifact(run, tmp_path / "artifact")
    for key, value in evaluate_artifact(artifact, run).scores.items():
        assert value == pytest.approx(scores[key], abs=1e-6), key
    from_weights, from_artifact = (predictor(model)(root / "0_0.png") for model in (run, artifact))
    assert [page.lines for page in from_weights.pages] == [page.lines for page in from_artifact.pages]


@pytest.mark.slow
def test_two_students_train_and_one_is_exported(root: Path, tmp_path: Path) -> None:
    student = "{type: TextRecognizer, variant: PP-OCRv6_tiny_rec}"
    settings = (
        f"model={{_inherited_: false, type: Distillation, student: {student}}}",
        "task.distill={type: MutualLines}",
    )
    train(root / "recognizer.yml", settings, tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(row["mutual"] > 0 for row in map(json.loads, lines) if "mutual" in row)
    artifact = write_artifact(tmp_path / "run" / "config.yml", tmp_path / "artifact")
    config = tmp_path / "run" / "config.yml"
    from_weights, from_artifact = (predictor(model)(root / "0_0.png") for model in (config, artifact))
    assert [page.lines for page in from_weights.pages] == [page.lines for page in from_artifact.pages]


def test_characters_outside_of_the_dictionary_are_told_before_training(root: Path, tmp_path: Path) -> None:
    few = "task.characters={symbols: '012345678.'}"
    with pytest.raises(InputError, match=r"(?s)lines\.txt:\d+: \d+ of 16 texts.*'9'.*task\.unknown"):
        train(root / "recognizer.yml", (few, "task.unknown=error"), tmp_path / "run")


def test_a_new_dictionary_keeps_the_known_rows(root: Path, runs: dict[str, Path], tmp_path: Path) -> None:
    from framework.workflow.train.run import make_trainer

    more = (
        "task.characters={symbols: 'a9876543210.'}",
        "task.pretrained_characters={symbols: '0123456789.'}",
        f"pretrained={{weights: {runs['recognizer'].as_posix()}}}",
    )
    old = make_trainer(bind_experiment(load(root / "recognizer.yml", more[2:])), None)
    new = make_trainer(bind_experiment(load(root / "recognizer.yml", more)), None)
    before, after = (
        {name: np.asarray(value) for name, value in one.model.state_dict().items()} for one in (old, new)
    )
    head = "head.ctc_head.fc2.weight"
    assert after[head].shape[1] == before[head].shape[1] + 1
    order = [0, None, *range(10, 0, -1), 11, 12]
    for row, known in enumerate(order):
        if known is not None:
            np.testing.assert_array_equal(after[head][:, row], before[head][:, known])
    guide = "head.gtc_head.tgt_word_prj.weight"
    np.testing.assert_array_equal(after[guide][:, 4 + 1], before[guide][:, 4 + 9])  # the class of "9"
    assert all(np.array_equal(before[name], after[name]) for name in before if "head" not in name)
