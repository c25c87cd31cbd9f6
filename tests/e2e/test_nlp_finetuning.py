"""A folder with a pretrained encoder is fine-tuned with the tools: train, evaluate, export, infer; what goes wrong."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import framework
from framework.config import build
from zoo.text.bert import BertConfig

REPO = Path(__file__).resolve().parents[2]
CONFIG = REPO / "configs" / "nlp" / "classification" / "bert_base_sst2.yml"
SETTINGS = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
}
WORDS = ["the", "film", "was", "good", "bad", "fine", "poor", "very", "and", "story", "music"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT as PaddleNLP saves one: config.json, vocab.txt and weights in two files with an index."""
    path = tmp_path_factory.mktemp("nlp") / "tiny_bert"
    path.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "."]
    (path / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    settings = {**SETTINGS, "vocab_size": len(vocabulary)}
    (path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    framework.seed(5)
    sizes = {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "intermediate_size": 64, "max_positions": 40}
    encoder = build(BertConfig(vocab_size=len(vocabulary), **sizes))
    state = {f"bert.{name}": np.asarray(value) for name, value in encoder.state_dict().items()}
    names, index = list(state), {}
    for part in range(2):
        file = f"model_state-0000{part + 1}-of-00002.pdparams"
        own = {name: state[name] for name in names[part::2]}
        (path / file).write_bytes(pickle.dumps({**own, "StructuredToParameterName@@": {}}, protocol=2))
        index |= dict.fromkeys(own, file)
    text = json.dumps({"metadata": {}, "weight_map": index})
    (path / "model_state.pdparams.index.json").write_text(text, encoding="utf-8")
    rng = np.random.default_rng(0)
    for split, count in (("train", 50), ("dev", 20)):
        lines = ["sentence\tlabel"]
        for number in range(count):
            word = (("bad", "poor"), ("good", "fine"))[number % 2][rng.integers(2)]
            noun = ("film", "story", "music")[rng.integers(3)]
            lines.append(f"the {noun} was {'very ' * int(rng.integers(3))}{word} .\t{number % 2}")
        (path.parent / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def overrides(folder: Path) -> list[str]:
    values = {
        "model.encoder.variant": folder,
        "model.encoder.dropout": 0.0,
        "pretrained.weights": folder,
        "data.train.transforms.0.tokenizer": folder,
        "data.eval.transforms.0.tokenizer": folder,
        "data.train.transforms.0.max_length": 32,
        "data.eval.transforms.0.max_length": 32,
        "data.train.buckets": "[16,32]",
        "data.eval.buckets": "[16,32]",
        "data.train.dataset.path": folder.parent / "train.tsv",
        "data.eval.dataset.path": folder.parent / "dev.tsv",
        "data.train.batch_size": 10,
        "train.epochs": 12,
        "optim.learning_rate.warmup_steps": 5,
        "optim.learning_rate.end_lr": 0.003,
        "optim.learning_rate.learning_rate.learning_rate": 0.003,
    }
    return ["-o", *(f"{key}={value}" for key, value in values.items())]


def run(work: Path, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONUTF8": "1", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(REPO)}
    command = [sys.executable, str(REPO / "tools" / tool), *arguments]
    return subprocess.run(
        command, cwd=work, env=env, capture_output=True, text=True, encoding="utf-8", timeout=600, check=False
    )


@pytest.mark.slow
def test_a_folder_is_fine_tuned(folder: Path, tmp_path: Path) -> None:
    config, settings = ("-c", str(CONFIG)), overrides(folder)
    output = tmp_path / "output" / CONFIG.stem
    done = run(tmp_path, "train.py", *config, *settings)
    assert done.returncode == 0, done.stderr
    assert "starting from" in done.stderr + done.stdout and "model_state.pdparams.index.json" in (
        done.stderr + done.stdout
    )
    done = run(tmp_path, "eval.py", *config, *settings)
    assert done.returncode == 0, done.stderr
    lines = (output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    best = max(value for line in map(json.loads, lines) for key, value in line.items() if "accuracy" in key)
    assert best == 1.0, lines
    done = run(tmp_path, "export_model.py", *config, *settings)
    assert done.returncode == 0, done.stderr
    artifact = tmp_path / "inference_model" / CONFIG.stem
    assert {"tokenizer.json", "program_weights.safetensors", "infer_cfg.yml"} <= {
        file.name for file in artifact.iterdir()
    }
    found = []
    for chosen in (("--model_dir", str(artifact)), (*config, *settings)):
        done = run(
            tmp_path,
            "infer.py",
            *chosen,
            "--text",
            "the story was very good .",
            "--output_dir",
            str(tmp_path / "out"),
        )
        assert done.returncode == 0, done.stderr
        (line,) = (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
        found.append(json.loads(line))
    # The best checkpoint is the first without an error, which need not be sure of itself.
    assert found[0] == found[1] and found[0]["classes"][0]["label"] == "1"


def test_a_vocabulary_of_another_model(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "vocab.txt"
    other.write_text((folder / "vocab.txt").read_text(encoding="utf-8") + "more\nwords\n", encoding="utf-8")
    done = run(
        tmp_path,
        "train.py",
        "-c",
        str(CONFIG),
        *overrides(folder),
        f"data.train.transforms.0.tokenizer={other}",
    )
    assert done.returncode == 2
    assert "different vocabularies" in done.stderr and "19 tokens, a model with 17" in done.stderr
