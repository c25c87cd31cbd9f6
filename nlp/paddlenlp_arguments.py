"""The JSON of PaddleNLP's run_pretrain.py, run_finetune.py and run_dpo.py as a configuration of this toolkit.

Reference: PaddleNLP 3.0 llm/config/*/{pretrain,sft,lora,dpo,kto}_argument.json, for names and defaults
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from framework.core.bounded import SETTINGS, check_mapping, parse_json, read_text
from framework.core.errors import ConfigError, InputError
from framework.interop.weights.model_folder import CONFIG, is_model_folder, read_settings
from zoo.layers.decoder_config import decoder_families, decoder_family

Stage = Literal["pretrain", "finetune", "dpo", "kto"]

WITHOUT_EFFECT = frozenset(
    {
        "amp_custom_black_list",
        "amp_custom_white_list",
        "amp_master_grad",
        "autotuner_benchmark",
        "continue_training",
        "data_impl",
        "dataloader_num_workers",
        "device",
        "disable_tqdm",
        "distributed_dataloader",
        "do_eval",
        "do_predict",
        "do_train",
        "enable_linear_fused_grad_add",
        "eval_accumulation_steps",
        "eval_with_do_generation",
        "evaluation_strategy",
        "flash_mask",
        "fuse_attention_ffn",
        "fuse_attention_qkv",
        "greedy_zero_padding",
        "lazy",
        "load_best_model_at_end",
        "metric_for_best_model",
        "output_dir",
        "overwrite_output_dir",
        "pad_to_multiple_of",
        "pipeline_parallel_config",
        "report_to",
        "save_strategy",
        "save_to_hdfs",
        "sharding_parallel_config",
        "skip_memory_metrics",
        "skip_profile_timer",
        "tensor_parallel_config",
        "tensor_parallel_output",
        "tokenizer_name_or_path",
        "unified_checkpoint",
        "unified_checkpoint_config",
        "use_flash_attention",
        "use_fused_linear",
        "use_fused_rms_norm",
        "use_fused_rope",
        "virtual_pp_degree",
    }
)
"""Keys that say how Paddle runs, or what `oar train` says otherwise"""
_LOSSES = {
    "sigmoid": "dpo",
    "hinge": "hinge",
    "ipo": "ipo",
    "dpop": "dpop",
    "kto_pair": "kto_pair",
    "sppo_hard": "sppo",
}
_LOSSES |= {"nca_pair": "nca", "or": "orpo", "simpo": "simpo", "kto": "kto", "robust": "robust"}
_TARGETS = "(q|k|v|o|gate|up|down)_proj"  # PaddleNLP's own for LLaMA and Qwen


@dataclass(frozen=True)
class Converted:
    """A configuration, and what of the JSON it does not have."""

    config: dict[str, Any]
    left_out: dict[str, Any] = field(default_factory=dict)
    """Keys that are not known here, with their values"""
    notes: tuple[str, ...] = ()


class _Arguments:
    """The JSON, and which of its keys were asked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values, self.read = values, set()

    def get(self, *names: str, default: Any = None) -> Any:
        """The first of these keys that is there."""
        self.read.update(names)
        return next((self.values[name] for name in names if self.values.get(name) is not None), default)


def read_arguments(path: Path) -> Mapping[str, Any]:
    """Raises: InputError, FormatError, where the file is missing or no JSON object."""
    text = read_text(path, SETTINGS, "arguments of PaddleNLP", InputError)
    return check_mapping(parse_json(text, path, "arguments of PaddleNLP"), path, "arguments of PaddleNLP")


def stage_of(values: Mapping[str, Any]) -> Stage:
    """Of which of their scripts the JSON is, by its keys."""
    if "input_dir" in values:
        return "pretrain"
    if any(
        name in values
        for name in ("max_prompt_len", "loss_type", "beta", "pref_loss_ratio", "ref_model_update_steps")
    ):
        return "kto" if "desirable_weight" in values or values.get("loss_type") == "kto" else "dpo"
    return "finetune"


def convert_arguments(values: Mapping[str, Any], stage: Stage | None = None) -> Converted:
    """The configuration that `oar train -c` takes.

    Their batch size is of one device, and ours of all: it is multiplied by their degrees of data and sharding. Their
    steps are updates, ours are batches: they are multiplied by gradient_accumulation_steps.

    Raises:
        ConfigError: the model's family is not known, or a loss is none of ours.
    """
    arguments, notes = _Arguments(values), []
    stage = stage or stage_of(values)
    name = str(arguments.get("model_name_or_path", default=""))
    config: dict[str, Any] = {
        "domain": "nlp",
        "model": _model(name, arguments, stage, notes),
        "task": _task(arguments, stage),
    }
    if not arguments.get("continue_training", default=True) and stage == "pretrain":
        notes.append("continue_training is false: the weights start anew")
    else:
        config["pretrained"] = {"weights": name}
    accumulate = int(arguments.get("gradient_accumulation_steps", default=1))
    config["data"] = _data(arguments, stage, name, notes)
    config["optim"] = _optimizer(arguments, accumulate)
    config["train"] = _train(arguments, accumulate)
    parallel = _parallel(arguments)
    if parallel:
        config["parallel"] = parallel
    known = arguments.read | WITHOUT_EFFECT
    left_out = {
        key: value for key, value in values.items() if key not in known and value not in (None, False)
    }
    return Converted(config, left_out, tuple(notes))


def _model(name: str, arguments: _Arguments, stage: Stage, notes: list[str]) -> dict[str, Any]:
    folder = Path(name).expanduser()
    if is_model_folder(folder):
        family = decoder_family(read_settings(folder), str(folder / CONFIG))
        model = {"type": family.decoder.__name__, "variant": name}
    else:
        model = _variant(name)
        notes.append(
            f"model_name_or_path {name} is no folder here: its sizes are those of {model['variant']}"
        )
    if arguments.get("lora", default=False):
        rank = int(arguments.get("lora_rank", default=8))
        alpha = arguments.get("lora_alpha", default=2 * rank)
        adapter = {"rank": rank, "alpha": alpha, "targets": _TARGETS}
        if arguments.get("rslora", default=False):
            adapter["rslora"] = True
        model["adapter"] = adapter
    return model


def _variant(name: str) -> dict[str, Any]:
    """By a name of the hub, such as meta-llama/Meta-Llama-3-8B-Instruct."""
    plain = re.sub(r"^meta-|-(instruct|base|chat|hf)\b", "", name.rpartition("/")[2].lower()).replace(
        "_", "-"
    )
    for family in decoder_families().values():
        if plain in family.config.variants:
            return {"type": family.decoder.__name__, "variant": plain}
    variants = [one for family in decoder_families().values() for one in family.config.variants]
    raise ConfigError(
        "the family of the model is not known",
        where="model_name_or_path",
        received=repr(name),
        allowed=f"a folder with {CONFIG}, or a name such as {', '.join(variants[:6])}",
    )


def _task(arguments: _Arguments, stage: Stage) -> dict[str, Any]:
    if stage in ("pretrain", "finetune"):
        return {"type": "CausalLanguageModel", "chunks": 8}
    loss = str(arguments.get("loss_type", default="kto" if stage == "kto" else "sigmoid"))
    if loss not in _LOSSES:
        raise ConfigError(
            "the loss is not known", where="loss_type", received=repr(loss), allowed=", ".join(_LOSSES)
        )
    options = {"beta": arguments.get("beta", default=0.1)}
    for theirs, ours in (
        ("label_smoothing", "smoothing"),
        ("simpo_gamma", "gamma"),
        ("dpop_lambda", "penalty"),
        ("desirable_weight", "desirable_weight"),
        ("undesirable_weight", "undesirable_weight"),
    ):
        value = arguments.get(theirs)
        if value:
            options[ours] = value
    task = {"type": "Preference", "loss_type": _LOSSES[loss], "options": options, "chunks": 8}
    weight = arguments.get("sft_loss_ratio")
    return {**task, "sft_weight": weight} if weight else task


def _data(arguments: _Arguments, stage: Stage, name: str, notes: list[str]) -> dict[str, Any]:
    devices = 1
    for degree in ("sharding_parallel_degree", "data_parallel_degree"):
        devices *= max(1, int(arguments.get(degree, default=1)))
    sizes = {
        "train": int(arguments.get("per_device_train_batch_size", default=8)) * devices,
        "eval": int(arguments.get("per_device_eval_batch_size", default=8)) * devices,
    }
    if stage == "pretrain":
        length = int(arguments.get("max_seq_length", "max_seq_len", default=1024))
        parts = [float(one) for one in str(arguments.get("split", default="949,50,1")).split(",")]
        first, second = parts[0] / sum(parts), sum(parts[:2]) / sum(parts)
        path = str(arguments.get("input_dir"))
        notes.append("input_dir names a folder there: write the prefix of its x.idx and x.bin as `path`")
        shares = {"train": [0.0, round(first, 6)], "eval": [round(first, 6), round(second, 6)]}
        sets = {
            part: {"type": "TokenRows", "path": path, "max_length": length, "separate": False, "share": share}
            for part, share in shares.items()
        }
    else:
        folder = str(arguments.get("dataset_name_or_path", "train_dataset_path", default="data"))
        files = {"train": f"{folder}/train.json", "eval": f"{folder}/dev.json"}
        sets = {part: _answers(arguments, stage, path, name) for part, path in files.items()}
    return {part: {"dataset": one, "batch_size": sizes[part]} for part, one in sets.items()}


def _answers(arguments: _Arguments, stage: Stage, path: str, name: str) -> dict[str, Any]:
    if stage == "finetune":
        arguments.get("src_length", "zero_padding")  # texts share rows here in any case
        length = int(arguments.get("max_length", "max_seq_length", "max_seq_len", default=2048))
        return {"type": "Chats", "paths": [path], "tokenizer": name, "max_length": length}
    kind = "LabelledAnswers" if stage == "kto" else "Preferences"
    return {
        "type": kind,
        "paths": [path],
        "tokenizer": name,
        "max_length": int(arguments.get("max_seq_len", "max_seq_length", "max_length", default=4096)),
        "max_prompt_length": int(arguments.get("max_prompt_len", default=2048)),
    }


def _optimizer(arguments: _Arguments, accumulate: int) -> dict[str, Any]:
    rate = float(arguments.get("learning_rate", default=5e-5))
    least = float(arguments.get("min_learning_rate", "min_lr", default=0.0))
    kind = str(arguments.get("lr_scheduler_type", default="linear"))
    decay: Any = {"type": "PolynomialDecay", "learning_rate": rate, "end_lr": least, "power": 1.0}
    if kind == "cosine":
        decay = {"type": "CosineAnnealingDecay", "learning_rate": rate, "eta_min": least}
    elif kind.startswith("constant"):
        decay = rate
    warmup = int(arguments.get("warmup_steps", default=0))
    ratio = arguments.get("warmup_ratio")
    steps = arguments.get("max_steps")
    if not warmup and ratio and steps:
        warmup = round(float(ratio) * int(steps))
    if warmup:
        decay = {
            "type": "LinearWarmup",
            "learning_rate": decay,
            "warmup_steps": warmup,
            "start_lr": 0.0,
            "end_lr": rate,
        }
    optimizer = {
        "type": "AdamW",
        "learning_rate": decay,
        "beta1": float(arguments.get("adam_beta1", default=0.9)),
        "beta2": float(arguments.get("adam_beta2", default=0.999)),
        "epsilon": float(arguments.get("adam_epsilon", default=1e-8)),
        "weight_decay": float(arguments.get("weight_decay", default=0.0)),
        "decay_norm_and_bias": False,
        "grad_clip": {"global_norm": float(arguments.get("max_grad_norm", default=1.0))},
    }
    return {**optimizer, "accumulate": accumulate} if accumulate > 1 else optimizer


def _train(arguments: _Arguments, accumulate: int) -> dict[str, Any]:
    steps = int(arguments.get("max_steps", default=-1))
    train: dict[str, Any] = {"iters": steps * accumulate} if steps > 0 else {}
    epochs = arguments.get("num_train_epochs", default=3)
    if not train:
        train["epochs"] = max(1, round(float(epochs)))
    for ours, theirs in (
        ("log_every", "logging_steps"),
        ("eval_every", "eval_steps"),
        ("save_every", "save_steps"),
    ):
        value = arguments.get(theirs)
        if value:
            train[ours] = int(value) * accumulate
    keep, seed = arguments.get("save_total_limit"), arguments.get("seed")
    train |= {"keep": int(keep)} if keep else {}
    train |= {"seed": int(seed)} if seed is not None else {}
    if arguments.get("bf16", default=False):
        train["amp"] = "bfloat16"
    elif arguments.get("fp16", default=False):
        train["amp"] = "float16"
    level = arguments.get("fp16_opt_level", default="O1")
    if "amp" in train and level in ("O1", "O2"):
        train["amp_level"] = level
    arguments.get("recompute_granularity", "recompute_use_reentrant")
    if arguments.get("recompute", default=False):
        train["recompute"] = r"layers\.\d+$"
    return train


def _parallel(arguments: _Arguments) -> dict[str, Any]:
    parallel = {}
    for ours, theirs in (
        ("fsdp", "sharding_parallel_degree"),
        ("data", "data_parallel_degree"),
        ("tensor", "tensor_parallel_degree"),
        ("pipeline", "pipeline_parallel_degree"),
        ("sequence", "sep_parallel_degree"),
        ("expert", "expert_parallel_degree"),
    ):
        degree = int(arguments.get(theirs, default=1))
        if degree > 1:
            parallel[ours] = degree
    stage = re.search(r"stage([123])", str(arguments.get("sharding", default="")))
    if stage and parallel.get("fsdp"):
        parallel["stage"] = int(stage[1])
    arguments.get("sequence_parallel", "context_parallel_degree")
    return parallel


def as_yaml(converted: Converted, source: str) -> str:
    """The text of a configuration: every section a line, in YAML's own short form."""
    lines = [f"# From {source} of PaddleNLP."]
    lines += [f"# {note}" for note in converted.notes]
    if converted.left_out:
        names = ", ".join(f"{key}={value}" for key, value in converted.left_out.items())
        lines.append(f"# Left out: {names}")
    for name, section in converted.config.items():
        if name == "data":
            lines.append("data:")
            lines += [f"  {part}: {_flow(one)}" for part, one in section.items()]
        else:
            lines.append(f"{name}: {_flow(section)}")
    return "\n".join(lines) + "\n"


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_flow, value)) + "]"
    text = json.dumps(value, ensure_ascii=False)
    # A number with an exponent and no point is a text in YAML 1.1.
    return text.replace("e", ".0e") if isinstance(value, float) and "e" in text and "." not in text else text
