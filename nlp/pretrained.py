"""Encoders and models on them from a folder of Hugging Face's or PaddleNLP's: `config.json` and a file of weights.

from nlp.pretrained import from_pretrained

encoder = from_pretrained("ernie-3.0-base-zh", head="encoder")
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from framework import nn
from framework.config import build
from framework.core.errors import ConfigError, FormatError, WeightError, nearest
from framework.io.interop import load_weights
from nlp.layers.encoder_model import HEADS
from nlp.models.masked_lm import MaskedLMConfig
from nlp.models.question_answering import QuestionAnsweringConfig
from nlp.models.sequence_classification import SequenceClassifierConfig
from nlp.models.token_classification import TokenClassifierConfig
from zoo.layers.text_encoder import TextEncoderConfig
from zoo.loading import load_state_into
from zoo.text.albert import AlbertConfig
from zoo.text.bert import BertConfig
from zoo.text.ernie import ErnieConfig
from zoo.text.roberta import RobertaConfig

WEIGHTS = ("model.safetensors", "pytorch_model.bin", "model_state.pdparams")
PADDLE_FILE = "model_state.pdparams"


class _Family(NamedTuple):
    config: type[TextEncoderConfig]
    prefix: str
    defaults: Mapping[str, Any]
    """What upstream takes where config.json says nothing, besides `_DEFAULTS`."""


_FAMILIES = {
    "bert": _Family(BertConfig, "bert", {}),
    "ernie": _Family(ErnieConfig, "ernie", {"type_vocab_size": 16}),
    "roberta": _Family(RobertaConfig, "roberta", {}),
    "albert": _Family(
        AlbertConfig,
        "transformer",
        {"vocab_size": 30000, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    ),
}
_KEYS = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_size",
    "max_position_embeddings": "max_positions",
    "type_vocab_size": "type_vocab_size",
    "hidden_act": "activation",
    "layer_norm_eps": "epsilon",
    "pad_token_id": "pad_id",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}
_ALBERT_KEYS = {
    "embedding_size": "embedding_size",
    "num_hidden_groups": "num_groups",
    "inner_group_num": "layers_per_group",
}
# The same in both libraries but for ERNIE's types, where Hugging Face's files always say the number.
_DEFAULTS = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "embedding_size": 128,
    "num_hidden_groups": 1,
    "inner_group_num": 1,
}
_ARCHITECTURES = {
    "Model": "encoder",
    "ForSequenceClassification": "sequence_classification",
    "ForTokenClassification": "token_classification",
    "ForQuestionAnswering": "question_answering",
    "ForMaskedLM": "masked_lm",
    "ForPreTraining": "masked_lm",
    "ForPretraining": "masked_lm",
}
KINDS = tuple(dict.fromkeys(_ARCHITECTURES.values()))


def from_pretrained(folder: str | Path, head: str | None = None) -> nn.Layer:
    """The model of a folder, with its weights, in evaluation mode. Nothing is fetched.

    The folder holds `config.json` and one of `model.safetensors`, `pytorch_model.bin` and `model_state.pdparams`. All
    weights must fit: none is left at its start, and none is left over but those of a second head of pre-training.

    Args:
        head: "encoder", "sequence_classification", "token_classification", "question_answering" or "masked_lm"; None is
            what `architectures` of config.json says. "encoder" leaves out whatever stands on the encoder.

    Raises:
        FormatError: a file is missing or damaged.
        ConfigError: config.json describes no model of these, or `head` is none of the names.
        WeightError: the weights do not fit.
    """
    folder = Path(folder)
    settings, where = _settings(folder)
    path = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if path is None:
        raise FormatError(
            "there are no weights in the folder",
            where=str(folder),
            received=", ".join(sorted(item.name for item in folder.iterdir())[:10]),
            allowed="one of " + ", ".join(WEIGHTS),
            fix="weights that are divided into several files are not read: save them as one",
        )
    family, kind = _family(settings, where), _kind(settings, head, where)
    state = load_weights(path)
    encoder = encoder_config(settings, where, paddle=path.name == PADDLE_FILE)
    encoder = dataclasses.replace(encoder, pooler=any(".pooler." in f".{name}" for name in state))
    if kind == "encoder":
        return load_state_into(build(encoder), _encoder_state(state, family, where)).eval()
    return load_state_into(build(_model_config(kind, encoder, settings)), state).eval()


def encoder_config(
    settings: Mapping[str, Any], where: str = "config.json", paddle: bool = False
) -> TextEncoderConfig:
    """The config of an encoder from what a `config.json` says. `paddle`: the weights beside it are PaddleNLP's.

    Raises:
        ConfigError: it describes no encoder of zoo.text.
    """
    family = _family(settings, where)
    _refuse(settings, where)
    said = {**_DEFAULTS, **family.defaults, **{k: v for k, v in settings.items() if v is not None}}
    keys = {**_KEYS, **(_ALBERT_KEYS if family.config is AlbertConfig else {})}
    values = {ours: said[theirs] for theirs, ours in keys.items()}
    if family.config is ErnieConfig:
        values["task_types"] = said.get("task_type_vocab_size", 3) if said.get("use_task_id") else 0
        if paddle:
            values["epsilon"] = 1e-12  # PaddleNLP's ErnieModel does not read layer_norm_eps
    return family.config(**values)


def _settings(folder: Path) -> tuple[dict[str, Any], str]:
    path = folder / "config.json"
    if not path.is_file():
        raise FormatError(
            "the folder has no config.json",
            where=str(folder),
            allowed="a folder as save_pretrained of transformers or PaddleNLP writes it",
        )
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FormatError("this is no JSON", where=str(path), received=str(error)) from None
    if not isinstance(settings, dict):
        raise FormatError("this is no config", where=str(path), received=type(settings).__name__)
    return settings, str(path)


def _family(settings: Mapping[str, Any], where: str) -> _Family:
    name = str(settings.get("model_type", ""))
    if name not in _FAMILIES:
        near = nearest(name, _FAMILIES)
        raise ConfigError(
            "no encoder of this kind",
            where=f"{where}: model_type",
            received=repr(settings.get("model_type")),
            allowed=", ".join(_FAMILIES),
            fix=f"did you mean {near!r}?" if near else None,
        )
    return _FAMILIES[name]


def _refuse(settings: Mapping[str, Any], where: str) -> None:
    """What the encoders of zoo.text cannot do."""
    for key, allowed in (
        ("position_embedding_type", "absolute"),
        ("is_decoder", False),
        ("tie_word_embeddings", True),
        ("pool_act", "tanh"),
    ):
        if settings.get(key, allowed) != allowed:
            raise ConfigError(
                "the encoder cannot do this",
                where=f"{where}: {key}",
                received=repr(settings[key]),
                allowed=repr(allowed),
            )


def _kind(settings: Mapping[str, Any], head: str | None, where: str) -> str:
    if head is not None:
        if head not in KINDS:
            near = nearest(head, KINDS)
            raise ConfigError(
                "no such head",
                where="head",
                received=repr(head),
                allowed=", ".join(KINDS),
                fix=f"did you mean {near!r}?" if near else None,
            )
        return head
    name = str((settings.get("architectures") or [""])[0])
    for ending, kind in _ARCHITECTURES.items():
        if name.endswith(ending):
            return kind
    raise ConfigError(
        "no model for this architecture",
        where=f"{where}: architectures",
        received=repr(settings.get("architectures")),
        allowed="a name that ends in " + ", ".join(_ARCHITECTURES),
        fix="say `head`, which may be 'encoder'",
    )


def _model_config(kind: str, encoder: TextEncoderConfig, settings: Mapping[str, Any]) -> Any:
    if kind == "masked_lm":
        return MaskedLMConfig(encoder)
    if kind == "question_answering":
        return QuestionAnsweringConfig(encoder)
    made = SequenceClassifierConfig if kind == "sequence_classification" else TokenClassifierConfig
    classes = len(settings.get("id2label") or ()) or int(settings.get("num_labels") or 2)
    dropout = settings.get("classifier_dropout")
    dropout = settings.get("classifier_dropout_prob") if dropout is None else dropout
    return made(encoder, classes, dropout)


def _encoder_state(state: Mapping[str, np.ndarray], family: _Family, where: str) -> dict[str, np.ndarray]:
    """The entries of the encoder, under its own names, whether or not the file is a model's on top of it."""
    for prefix in (f"{family.prefix}.", f"{HEADS[family.prefix].huggingface}."):
        found = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
        if found:
            return found
    own = ("embeddings.", "encoder.", "pooler.")
    found = {name: value for name, value in state.items() if name.startswith(own)}
    if not found:
        raise WeightError(
            "the file has no encoder",
            where=where,
            received=", ".join(list(state)[:3]),
            allowed=f"names that begin with {family.prefix}. or with {', '.join(own)}",
        )
    return found
