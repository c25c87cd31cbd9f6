"""A matching model from training to predictor and command line; names whose weights are not shipped."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from framework.core.errors import ConfigError, InputError
from framework.workflow.train import run as workflow
from nlp import predictor
from nlp.domain import TASKS
from nlp.results import Similarity

REPO = Path(__file__).resolve().parents[3]
PAIRS = [
    ("red fox", "red fox", 1),
    ("red fox", "big cat", 0),
    ("big cat", "big cat", 1),
    ("old owl", "red fox", 0),
]
CONFIG = """
domain: nlp
model: {{type: SimNet, vocab_size: 64, compare: difference, embedding_dim: 8, fc_hidden_size: 8}}
task: {{type: TextMatching, scores: [{{type: TextAccuracy}}, {{type: AUC}}, {{type: Spearman}}, {{type: TextF1}}]}}
data:
  train:
    dataset: {{type: TextClassification, path: {data}, pair: 1, label: 2}}
    transforms: [{{type: HashFeatures, buckets: 64, max_length: 8, ngrams: [1]}}]
    batch_size: 4
    buckets: [4, 8]
  eval:
    dataset: {{type: TextClassification, path: {data}, pair: 1, label: 2}}
    transforms: [{{type: HashFeatures, buckets: 64, max_length: 8, ngrams: [1]}}]
    batch_size: 4
    buckets: [4, 8]
weights: {run}
optim: {{type: AdamW, learning_rate: 0.1}}
train: {{iters: 20, eval_every: 20, save_every: 20, log_every: 20}}
export:
  inputs:
    input_ids: {{shape: [n, t, 1], dtype: int32}}
    mask: {{shape: [n, t], dtype: bool}}
    pair_ids: {{shape: [n, t, 1], dtype: int32}}
    pair_mask: {{shape: [n, t], dtype: bool}}
  precisions: [float32]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model with its config, and what its last evaluation said."""
    folder = tmp_path_factory.mktemp("matching")
    rows = "".join(f"{a}\t{b}\t{label}\n" for a, b, label in PAIRS * 4)
    (folder / "pairs.tsv").write_text(rows, encoding="utf-8")
    text = CONFIG.format(data=(folder / "pairs.tsv").as_posix(), run=(folder / "run").as_posix())
    (folder / "net.yml").write_text(text, encoding="utf-8")
    scores = workflow.train(folder / "net.yml", output_dir=folder / "run")
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    return folder


def test_it_learns(folder: Path) -> None:
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    assert {"accuracy", "macro_f1", "auc", "spearman", "f1"} <= set(scores)
    assert scores["accuracy"] == scores["auc"] == scores["f1"] == 1


def test_a_predictor_of_pairs(folder: Path) -> None:
    match = predictor(folder / "net.yml", device="cpu", precision="float32")
    results = match([(a, b) for a, b, _ in PAIRS])
    assert all(isinstance(result, Similarity) for result in results)
    assert [result.score > 0.5 for result in results] == [bool(label) for *_, label in PAIRS]
    assert (results[1].text, results[1].pair) == ("red fox", "big cat")
    alone = match(("red fox", "big cat"))
    assert alone.score == pytest.approx(results[1].score, abs=1e-6)
    assert 0 <= match(("", "")).score <= 1 and 0 <= match(("x " * 50, "red")).score <= 1
    with pytest.raises(InputError, match="there is one text, and matching takes two"):
        match("red fox")


def load_tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tool_{name}", REPO / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pairs_on_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    infer, export = load_tool("infer"), load_tool("export_model")
    assert export.main(["-c", str(folder / "net.yml"), "--output_dir", str(folder)]) == 0
    lines = folder / "lines.txt"
    lines.write_text("red fox\tred fox\n\nred fox\tbig cat\twhat follows is not read\n", encoding="utf-8")
    found = []
    for number, model in enumerate((["-c", str(folder / "net.yml")], ["--model_dir", str(folder / "net")])):
        out = folder / f"out{number}"
        assert infer.main([*model, "--text_file", str(lines), "--output_dir", str(out)]) == 0
        found.append(
            [json.loads(x) for x in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()]
        )
    assert found[0] == found[1]
    assert [(row["text"], row["pair"], row["score"] > 0.5) for row in found[0]] == [
        ("red fox", "red fox", True),
        ("red fox", "big cat", False),
    ]
    model = ["--model_dir", str(folder / "net"), "--output_dir", str(folder / "out")]
    assert infer.main([*model, "--text", "red fox", "--pair", "big cat"]) == 0
    (line,) = (folder / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == found[0][1]
    capsys.readouterr()
    lines.write_text("red fox\tred fox\nred fox\n", encoding="utf-8")
    assert infer.main([*model, "--text_file", str(lines)]) == 1  # the other pair is read
    error = capsys.readouterr().err
    assert "lines.txt, line 2: the model takes two texts" in error and "a tab between them" in error
    assert infer.main([*model, "--text", "red fox"]) == 2
    assert "--text, line 1: the model takes two texts" in capsys.readouterr().err
    assert infer.main([*model, "--text_file", str(lines), "--pair", "red fox"]) == 2
    assert "--pair is the second text of a pair" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["sentiment_analysis", "text_similarity", "ner"])
def test_a_name_whose_weights_are_not_shipped_says_how_to_get_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="there are no weights") as caught:
        predictor(name)
    message = str(caught.value)
    config = TASKS[name].config
    assert f"no training run in output/{config}" in message.replace("\\", "/") and f"{config}.yml" in message
    assert "oar train -c" in message and "-o weights=" in message and "overrides" in message
