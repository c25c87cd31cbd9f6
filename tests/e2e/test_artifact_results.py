"""`oar infer -c X` and `oar infer --model_dir` of what `oar export -c X` wrote: the same JSON, for every configuration.

Weights are those that come with the package, else drawn ones where nothing else has to be fetched.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from framework.config import build, load
from framework.core.errors import HubError
from framework.engine.experiment import bind_experiment
from framework.export import load_artifact
from framework.interop import write_safetensors
from framework.interop.named_weights import named_weights
from framework.vision import image
from tests.e2e.tools import REPO, run_tool
from zoo.recommendation.data.features import EncodeFeatures

CONFIGS = sorted(path for path in (REPO / "configs").rglob("*.yml") if "_base_" not in path.parts)
SECONDS = re.compile(r'"seconds": (\{[^{}]*\}|[0-9.e-]+)')
TEXT = "Play the last song of the concert in Vienna"


def outputs(folder: Path) -> dict[str, str]:
    """The files of a run, JSON of images, JSON lines of texts, without the times that reading took."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.name: SECONDS.sub("", file.read_text("utf-8")) for file in files}


def drawn_weights(config: Path, folder: Path) -> list[str]:
    """The settings with which a configuration has weights without a network."""
    experiment = bind_experiment(load(config))
    if experiment.pipeline is not None:
        return []
    weights = experiment.weights
    if any(REPO.rglob(f"weights/{weights}.safetensors")):
        return []
    model_config, task = experiment.model_and_task()
    model = build(task.adapt_model(model_config))
    write_safetensors(folder / "drawn.safetensors", named_weights(model.state_shapes()))
    return ["-o", f"weights={(folder / 'drawn.safetensors').as_posix()}"]


def source(config: Path, folder: Path) -> list[str]:
    """What is read: a text, rows of the columns that are encoded, or an image of blocks of colours."""
    if "nlp" in config.parts:
        return ["--text", TEXT]
    if "recommendation" in config.parts:
        loader = bind_experiment(load(config)).data.eval
        encoders = [] if loader is None else loader.transforms
        columns = [
            name
            for one in encoders
            if isinstance(one, EncodeFeatures)
            for name in (*one.sparse_names, *one.dense_names)
        ]
        # A column of several numbers (slot format) is as wide as the input that the configuration exports.
        width = 13 if "dense_feature" in columns else 1
        rows = [
            {name: [number] * width if name == "dense_feature" else number for name in columns}
            for number in (1, 2)
        ]
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / "rows.jsonl").write_text(text, encoding="utf-8")
        return [str(folder / "rows.jsonl")]
    rng = np.random.default_rng(0)
    blocks = rng.integers(20, 236, (12, 10, 3)).repeat(16, 0).repeat(16, 1)
    image.write(folder / "blocks.png", blocks.astype(np.uint8))
    return [str(folder / "blocks.png")]


def compare(config: Path, folder: Path, *changes: str) -> Path:
    """Runs the configuration twice, made and found again, and its artifact; returns the artifact's folder."""
    changes = (*drawn_weights(config, folder), *changes)
    read = (*source(config, folder), "--no_draw", "--output_dir")
    results: list[dict[str, str]] = []
    for number in range(2):
        done = run_tool("infer", *read, folder / f"c{number}", "-c", config, *changes)
        assert done.returncode == 0, done.stderr
        results.append(outputs(folder / f"c{number}"))
    done = run_tool("export", "-c", config, *changes, "--save_dir", folder / "artifact")
    assert done.returncode == 0, done.stderr
    done = run_tool("infer", *read, folder / "m", "--model_dir", folder / "artifact")
    assert done.returncode == 0, done.stderr
    assert results[0] and results[0] == results[1] == outputs(folder / "m")
    return folder / "artifact"


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ("classification/clothing/pp_lcnet_x0_25_clothing", ()),
        (
            "classification/clothing/pp_lcnet_x0_25_clothing",
            ("-o", "export.engines={cpu: [onnxruntime, xla]}"),
        ),
        ("nlp/intent/text_cnn_snips", ()),
        ("detection/picodet/picodet_xs_320_raccoon", ("-o", "export.engines={cpu: [onnxruntime, xla]}")),
    ],
)
def test_results_of_a_configuration_are_those_of_its_artifact(
    config: str, changes: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    artifact = compare(REPO / "configs" / f"{config}.yml", tmp_path, *changes)
    assert (artifact / "model.onnx").is_file() == bool(changes)
    if changes:
        assert load_artifact(artifact).setting("engines")["cpu"] == ("onnxruntime", "xla")


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.relative_to(REPO / "configs").as_posix())
def test_results_of_every_configuration_are_those_of_its_artifact(config: Path, tmp_path: Path) -> None:
    try:
        compare(config, tmp_path)
    except (HubError, AssertionError) as error:
        missing = ("cannot be fetched", "cannot be reached", "there is no such tokenizer")
        missing += ("does not hold a model of rows", "data/criteo_tiny/vocabulary.json")  # of data
        if any(text in str(error) for text in missing):
            pytest.skip(f"needs what a network or its user has: {str(error)[:200]}")
        raise
