"""What config.json of a folder of transformers or PaddleNLP says of an encoder.

Sources: configuration.py of bert, ernie, roberta and albert in PaddleNLP 2.6 and in transformers 5
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from framework.core.errors import ConfigError, nearest
from framework.io.interop.model_folder import CONFIG, WEIGHTS, is_paddles, read_settings

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
# What upstream takes where config.json says nothing, besides _DEFAULTS.
_OWN_DEFAULTS: dict[str, dict[str, Any]] = {
    "bert": {},
    "ernie": {"type_vocab_size": 16},
    "roberta": {},
    "albert": {"vocab_size": 30000, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
}
FAMILIES = tuple(_OWN_DEFAULTS)
"""The `model_type`s whose encoders are in zoo.text."""


def family_of(settings: Mapping[str, Any], where: str) -> str:
    """One of FAMILIES. Raises: ConfigError."""
    name = str(settings.get("model_type", ""))
    if name not in FAMILIES:
        near = nearest(name, FAMILIES)
        raise ConfigError(
            "no encoder of this kind",
            where=f"{where}: model_type",
            received=repr(settings.get("model_type")),
            allowed=", ".join(FAMILIES),
            fix=f"did you mean {near!r}?" if near else None,
        )
    return name


def encoder_fields(settings: Mapping[str, Any], where: str, paddle: bool) -> dict[str, Any]:
    """The entries of `TextSize` that a config.json comes to.

    Args:
        paddle: The weights beside it are PaddleNLP's, whose ERNIE does not read `layer_norm_eps`.

    Raises:
        ConfigError: it describes no encoder of zoo.text.
    """
    family = family_of(settings, where)
    _refuse(settings, where)
    said = {**_DEFAULTS, **_OWN_DEFAULTS[family], **{k: v for k, v in settings.items() if v is not None}}
    keys = {**_KEYS, **(_ALBERT_KEYS if family == "albert" else {})}
    values = {ours: said[theirs] for theirs, ours in keys.items()}
    wrong = next((k for k, v in keys.items() if type(said[k]) not in _kinds(_DEFAULTS[k])), None)
    if wrong is not None:
        raise ConfigError(
            "this is no number of an encoder" if wrong != "hidden_act" else "this is no name of a function",
            where=f"{where}: {wrong}",
            received=repr(said[wrong])[:80],
            allowed=f"such as {_DEFAULTS[wrong]!r}",
        )
    if family == "ernie":
        values["task_types"] = said.get("task_type_vocab_size", 3) if said.get("use_task_id") else 0
        if paddle:
            values["epsilon"] = 1e-12
    return values


def _kinds(example: Any) -> tuple[type, ...]:
    return (int, float) if isinstance(example, float) else (type(example),)


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


def folder_fields(folder: Path, family: str) -> dict[str, Any]:
    """`encoder_fields` of a folder, which must hold a model of this family, with or without weights.

    Raises:
        FormatError, ConfigError: as `read_settings` and `encoder_fields`, or the model is of another family.
    """
    settings, where = read_settings(folder), str(folder / CONFIG)
    found = family_of(settings, where)
    if found != family:
        raise ConfigError(
            "the folder holds an encoder of another kind",
            where=f"{where}: model_type",
            received=repr(found),
            allowed=repr(family),
            fix=f"write type: {found.title()} in the config",
        )
    weights = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    return encoder_fields(settings, where, weights is not None and is_paddles(weights))
