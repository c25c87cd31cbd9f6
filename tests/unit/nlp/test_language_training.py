"""Decoders trained by the Trainer: what goes on from a checkpoint, what devices change, and what is written."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from framework.text.tokenizer import Tokenizer
from framework.workflow.export.export import write_artifact
from framework.workflow.train.run import train
from nlp import llm

TEXT = "".join(f"{number} and {number + 1} make {2 * number + 1}.\n" for number in range(400))
SIZES = (
    "vocab_size: 40, hidden_size: 16, num_layers: 2, num_heads: 2, intermediate_size: 24, max_positions: 64"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    Tokenizer.train("spaced_characters", [TEXT], 40).save(folder / "tokenizer.json")
    chats = [{"prompt": f"{number}+1=", "completion": str(number + 1)} for number in range(40)]
    (folder / "chats.jsonl").write_text("\n".join(map(json.dumps, chats)), encoding="utf-8")
    pairs = [{"prompt": f"{number} ", "chosen": "make", "rejected": "and"} for number in range(40)]
    (folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)), encoding="utf-8")
    return folder


def write_config(folder: Path, name: str, task: str, dataset: str, more: str = "", adapter: str = "") -> Path:
    words = (folder / "tokenizer.json").as_posix()
    path = folder / f"{name}.yml"
    path.write_text(
        f"domain: nlp\nmodel: {{type: Llama, {SIZES}{adapter}}}\ntask: {task}\n"
        f"data: {{train: {{dataset: {dataset.replace('WORDS', words)}, batch_size: 4, num_workers: 0{more}}}}}\n"
        "optim: {type: AdamW, learning_rate: 0.01, accumulate: 2}\n"
        "train: {iters: 8, log_every: 4, save_every: 4, keep: 4}\n",
        encoding="utf-8",
    )
    return path


def rows(folder: Path) -> str:
    return f"{{type: TextRows, paths: ['{(folder / 'text.txt').as_posix()}'], tokenizer: 'WORDS', max_length: 16}}"


def chats(folder: Path) -> str:
    path = (folder / "chats.jsonl").as_posix()
    return f"{{type: Chats, paths: ['{path}'], tokenizer: 'WORDS', max_length: 16, template: plain}}"


def arrays(checkpoint: Path) -> dict[str, bytes]:
    return {name: (checkpoint / name).read_bytes() for name in ("model.safetensors", "train.safetensors")}


@pytest.mark.parametrize("adapter", ["", ", adapter: {rank: 2, targets: all}"])
def test_a_resumed_run_is_the_run(folder: Path, adapter: str, tmp_path: Path) -> None:
    config = write_config(
        folder, f"run{len(adapter)}", "{type: CausalLanguageModel, chunks: 2}", chats(folder), "", adapter
    )
    train(config, (), tmp_path / "whole")
    train(config, ("train.iters=4",), tmp_path / "half")
    half = tmp_path / "half" / "checkpoints"
    train(config, (), tmp_path / "rest", resume=str(half / "step_00000004"))
    last = "checkpoints/step_00000008"
    assert arrays(tmp_path / "whole" / last) == arrays(tmp_path / "rest" / last)


def test_two_devices_give_the_curve_of_one(folder: Path, tmp_path: Path) -> None:
    config = write_config(folder, "mesh", "{type: CausalLanguageModel, chunks: 2}", rows(folder))
    curves = []
    for name, changes in (("one", ("parallel.data=2",)), ("two", ("parallel.fsdp=2", "parallel.smallest=1"))):
        train(config, changes, tmp_path / name)
        lines = (tmp_path / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        curves.append([json.loads(line)["loss"] for line in lines if '"loss"' in line])
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-5)


def test_preferences_are_learned_and_the_exported_folder_is_opened(folder: Path, tmp_path: Path) -> None:
    path = (folder / "pairs.jsonl").as_posix()
    lengths = "max_length: 16, max_prompt_length: 8"
    dataset = f"{{type: Preferences, paths: ['{path}'], tokenizer: 'WORDS', {lengths}, template: plain}}"
    adapter = ", adapter: {rank: 2, targets: all}"
    config = write_config(folder, "dpo", "{type: Preference}", dataset, ", buckets: [16]", adapter)
    train(config, ("train.iters=16", "optim.learning_rate=0.05"), tmp_path / "run")
    lines = [
        json.loads(line)
        for line in (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert lines[-1]["margin"] > 0.01 and lines[-1]["loss"] < np.log(2)
    written = write_artifact(
        config, tmp_path / "exported", (f"weights={(tmp_path / 'run').as_posix()}",), named=False
    )
    model = llm.load(written)
    assert model.tokenizer is not None and model.model.config.adapter is None
    assert model.tokenizer.decode(model.tokenizer.encode("1 and\n2").ids) == "1 and\n2"
    assert not model.tokenizer.encode("1").special.any()  # around a prompt, as around what it was trained on
    assert model.model.size.eos_ids == (model.tokenizer.sep_id,)
    assert np.isfinite(np.asarray(model.model(jnp.asarray([[5, 6, 7]])))).all()
    assert "generation" in (written / "chat_template.jinja").read_text(encoding="utf-8")
