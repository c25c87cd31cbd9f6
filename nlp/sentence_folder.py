"""Folders of sentence-transformers: which modules stand behind a transformer, and its prompts.

Reference: sentence-transformers 6 (modules.json, 1_Pooling/config.json, config_sentence_transformers.json), and the
    forms that its versions since 0.3 wrote
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from framework.core.bounded import SETTINGS, check_mapping, read_json
from framework.core.errors import ConfigError, FormatError
from framework.interop import load_weights
from framework.interop.weights.model_folder import CONFIG
from nlp.layers.embedding_head import DenseConfig, Pooling

MODULES = "modules.json"
_SETTINGS = "config_sentence_transformers.json"
_OF_TRANSFORMER = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_xlm-roberta_config.json",
)
_MODES: Mapping[str, Pooling] = {
    "cls": "cls",
    "mean": "mean",
    "max": "max",
    "mean_sqrt_len_tokens": "mean_sqrt_len",
    "weightedmean": "weighted_mean",
    "lasttoken": "last",
}
_OLD_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


@dataclass(frozen=True, eq=False)
class SentenceFolder:
    """What a folder of sentence-transformers says.

    Attributes:
        transformer: The folder of the model.
        dense: Linear layers behind the pooling, with weights [in, out] and biases.
        prompts: What stands before texts, by name.
        max_length: Tokens of a text, at most; None: as many as the model takes.
        lower: Texts are put into lower case.
    """

    transformer: Path
    pooling: Pooling = "mean"
    normalized: bool = False
    dense: tuple[tuple[DenseConfig, dict[str, np.ndarray]], ...] = ()
    prompts: Mapping[str, str] | None = None
    default_prompt: str | None = None
    max_length: int | None = None
    lower: bool = False


def is_sentence_folder(folder: Path) -> bool:
    """Whether sentence-transformers wrote it."""
    return (folder / MODULES).is_file()


def read_sentence_folder(folder: Path) -> SentenceFolder:
    """What the files of a folder say.

    Raises:
        FormatError: a file is missing or damaged.
        ConfigError: a module is none of Transformer, Pooling, Dense and Normalize, or pools in a way that is not known.
    """
    rows = read_json(folder / MODULES, SETTINGS, "config")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise FormatError(
            "the file lists no modules",
            where=folder / MODULES,
            received=type(rows).__name__,
            allowed='[{"idx": 0, "name": "0", "path": "", "type": "…Transformer"}, …]',
        )
    transformer, pooling, normalized = folder, None, False
    dense: list[tuple[DenseConfig, dict[str, np.ndarray]]] = []
    for number, row in enumerate(cast(list[dict[str, Any]], rows)):
        kind, path = str(row.get("type", "")).rpartition(".")[2], _inside(folder, row.get("path", ""))
        if kind == "Transformer" and number == 0:
            transformer = path
        elif kind == "Pooling":
            pooling = _pooling(path)
        elif kind == "Dense":
            dense.append(_dense(path))
        elif kind == "Normalize":
            normalized = True
        elif kind != "Dropout":  # of training alone
            raise ConfigError(
                "a module of the embedder is not known",
                where=f"{folder / MODULES}: module {number}",
                received=str(row.get("type"))[:80],
                allowed="a Transformer first, then Pooling, Dense, Normalize",
            )
    if pooling is None:
        raise ConfigError(
            "no module makes one vector of a text",
            where=folder / MODULES,
            received=", ".join(str(row.get("type")).rpartition(".")[2] for row in rows),
            allowed="a Pooling behind the Transformer",
        )
    about = _read(folder / _SETTINGS)
    of_model = next(
        (_read(transformer / name) for name in _OF_TRANSFORMER if (transformer / name).is_file()), {}
    )
    prompts, default = about.get("prompts") or {}, about.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise FormatError("prompts are texts by name", where=folder / _SETTINGS, received=repr(prompts)[:80])
    length = of_model.get("max_seq_length")
    return SentenceFolder(
        transformer,
        pooling,
        normalized,
        tuple(dense),
        prompts,
        default if isinstance(default, str) and default in prompts else None,
        length if isinstance(length, int) and length > 0 else None,
        of_model.get("do_lower_case") is True,
    )


def reranker_activation(settings: Mapping[str, Any]) -> Literal["identity", "sigmoid"] | None:
    """What config.json of a CrossEncoder does to its number; None where it is of no CrossEncoder."""
    of_ours = settings.get("sentence_transformers")
    name = of_ours.get("activation_fn") if isinstance(of_ours, dict) else None
    name = name or settings.get("sbert_ce_default_activation_function")
    if name is None:
        return "sigmoid" if isinstance(of_ours, dict) else None
    kind = str(name).rpartition(".")[2]
    if kind not in ("Identity", "Sigmoid"):
        raise ConfigError(
            "what the reranker does to its number is not known",
            where=f"{CONFIG}: activation_fn",
            received=str(name)[:80],
            allowed="torch.nn.modules.linear.Identity, torch.nn.modules.activation.Sigmoid",
        )
    return "identity" if kind == "Identity" else "sigmoid"


def _read(path: Path) -> dict[str, Any]:
    return check_mapping(read_json(path, SETTINGS, "config"), path, "config") if path.is_file() else {}


def _inside(folder: Path, path: object) -> Path:
    """A module's folder. Raises: FormatError, where it is not in the folder."""
    if not isinstance(path, str) or ".." in Path(path).parts or Path(path).is_absolute() or "\0" in path:
        raise FormatError(
            "a module's path leads out of the folder", where=folder / MODULES, received=repr(path)[:80]
        )
    return folder / path


def _pooling(folder: Path) -> Pooling:
    said, where = _read(folder / CONFIG), folder / CONFIG
    modes = said.get("pooling_mode") or [mode for key, mode in _OLD_MODES.items() if said.get(key)]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or len(modes) != 1 or modes[0] not in _MODES:
        raise ConfigError(
            "texts are pooled in a way that is not known",
            where=where,
            received=repr(modes)[:120],
            allowed=f"one of {', '.join(_MODES)}",
        )
    if said.get("include_prompt") is False:
        raise ConfigError(
            "the tokens of prompts cannot be left out of the pooling",
            where=f"{where}: include_prompt",
            received=False,
            allowed=True,
        )
    return _MODES[modes[0]]


def _dense(folder: Path) -> tuple[DenseConfig, dict[str, np.ndarray]]:
    said, where = _read(folder / CONFIG), folder / CONFIG
    bias = said.get("bias", True) is True
    name = str(said.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2].lower()
    file = next((folder / name for name in _WEIGHTS if (folder / name).is_file()), None)
    if file is None:
        raise FormatError("a linear layer has no weights", where=folder, allowed=" or ".join(_WEIGHTS))
    arrays = load_weights(file)
    names = ("linear.weight", "linear.bias") if bias else ("linear.weight",)
    sizes = {key: said.get(key) for key in ("in_features", "out_features")}
    shape = (sizes["out_features"], sizes["in_features"])
    if any(one not in arrays for one in names) or tuple(arrays[names[0]].shape) != shape:
        raise FormatError(
            "the weights of a linear layer do not fit",
            where=file,
            received=", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())[:120],
            allowed=f"{' and '.join(names)} of {where}: {sizes}",
        )
    weights = {"weight": np.ascontiguousarray(np.asarray(arrays["linear.weight"], np.float32).T)}
    if bias:
        weights["bias"] = np.asarray(arrays["linear.bias"], np.float32)
    return DenseConfig(int(sizes["out_features"]), bias, name), weights  # type: ignore[arg-type]
