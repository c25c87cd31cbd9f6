"""Arguments of PaddleNLP's scripts as configurations: they bind, and every key is used or told."""

import json
from pathlib import Path

import pytest

from framework.core.errors import ConfigError
from framework.workflow.domain.config_file import open_config
from nlp.paddlenlp_arguments import convert_arguments, stage_of
from nlp.tasks.causal_lm import CausalLanguageModel
from nlp.tasks.preference import Preference
from tools.convert_paddlenlp import main

COMMON = {
    "model_name_or_path": "meta-llama/Meta-Llama-3-8B",
    "output_dir": "./checkpoints",
    "per_device_train_batch_size": 2,
    "per_device_eval_batch_size": 1,
    "gradient_accumulation_steps": 4,
    "learning_rate": 3e-05,
    "warmup_steps": 30,
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
    "logging_steps": 1,
    "bf16": True,
    "fp16_opt_level": "O2",
    "recompute": True,
    "do_train": True,
}
PRETRAIN = {
    **COMMON,
    "input_dir": "./data",
    "split": "949,50,1",
    "max_seq_length": 4096,
    "max_steps": 100,
    "min_learning_rate": 3e-06,
    "lr_scheduler_type": "cosine",
    "sharding": "stage2",
    "sharding_parallel_degree": 4,
    "tensor_parallel_degree": 2,
}
LORA = {
    **COMMON,
    "dataset_name_or_path": "./data",
    "src_length": 1024,
    "max_length": 2048,
    "lora": True,
    "lora_rank": 16,
}
LORA |= {"rslora": True, "zero_padding": True, "num_train_epochs": 3}
DPO = {**COMMON, "train_dataset_path": "./data", "max_seq_len": 4096, "max_prompt_len": 2048, "beta": 0.2}
DPO |= {"loss_type": "sigmoid", "label_smoothing": 0.1, "ref_model_update_steps": -1}


def convert(values: dict, folder: Path):
    (folder / "arguments.json").write_text(json.dumps(values), encoding="utf-8")
    assert main([str(folder / "arguments.json"), "--output", str(folder / "run.yml")]) == 0
    return open_config(folder / "run.yml").experiment


def test_pre_training(tmp_path: Path) -> None:
    experiment = convert(PRETRAIN, tmp_path)
    assert isinstance(experiment.task, CausalLanguageModel) and stage_of(PRETRAIN) == "pretrain"
    assert (
        experiment.train.iters == 400 and experiment.train.log_every == 4
    )  # batches, of which 4 are an update
    assert experiment.optim is not None and experiment.optim.accumulate == 4
    assert (experiment.parallel.fsdp, experiment.parallel.tensor, experiment.parallel.stage) == (4, 2, 2)  # pyright: ignore
    train = experiment.data.train
    assert train is not None and train.batch_size == 8 and train.dataset.share == (0.0, 0.949)  # pyright: ignore
    schedule = experiment.optim.schedule.resolve(100, 100)
    assert schedule.at(30) == pytest.approx(3e-5) and schedule.at(100) == pytest.approx(3e-6, rel=0.01)


def test_fine_tuning_by_adapters(tmp_path: Path) -> None:
    experiment = convert(LORA, tmp_path)
    adapter = experiment.model.adapter  # pyright: ignore
    assert adapter.rank == 16 and adapter.rslora and adapter.is_target("model.layers.0.mlp.up_proj")
    assert experiment.train.amp == "bfloat16" and experiment.train.epochs == 3


def test_preferences(tmp_path: Path) -> None:
    experiment = convert(DPO, tmp_path)
    task = experiment.task
    assert isinstance(task, Preference) and task.loss_type == "dpo"
    assert task.options.beta == 0.2 and task.options.smoothing == 0.1
    assert convert_arguments({**DPO, "loss_type": "or"}).config["task"]["loss_type"] == "orpo"


def test_nothing_is_lost_silently() -> None:
    assert convert_arguments(LORA).left_out == {}
    assert convert_arguments({**LORA, "neftune": True, "pissa": False}).left_out == {"neftune": True}
    with pytest.raises(ConfigError, match="family"):
        convert_arguments({**LORA, "model_name_or_path": "THUDM/chatglm-6b"})
    with pytest.raises(ConfigError, match="loss is not known"):
        convert_arguments({**DPO, "loss_type": "rrhf"})


def test_what_the_tool_prints(tmp_path: Path, capsys) -> None:
    (tmp_path / "a.json").write_text(json.dumps({**DPO, "neftune": True}), encoding="utf-8")
    assert main([str(tmp_path / "a.json")]) == 0
    printed = capsys.readouterr().out
    assert "neftune=True" in printed and "epsilon: 1.0e-08" in printed
    assert main([str(tmp_path / "none.json")]) == 2
