"""Encoders and models on them from a folder of Hugging Face's or PaddleNLP's: `config.json` and files of weights.

from nlp.pretrained import from_pretrained

encoder = from_pretrained("ernie-3.0-base-zh", head="encoder")
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from framework import nn
from framework.config import build
from framework.core.errors import ConfigError, WeightError, nearest
from framework.core.model_config import ModelConfig
from framework.core.torch_state import TorchState
from framework.interop import load_weights
from framework.interop.weights.model_folder import CONFIG, find_weights, is_paddles, read_settings
from framework.interop.weights.wrappers import remove_wrappers
from framework.workflow.domain.weights import load_state_into
from nlp.models.masked_lm import MaskedLMConfig
from nlp.models.question_answering import QuestionAnsweringConfig
from nlp.models.sequence_classification import SequenceClassifierConfig
from nlp.models.token_classification import TokenClassifierConfig
from zoo.layers.text_encoder import TextEncoder, TextEncoderConfig, TextSize, encoder_family

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
_MOST_LABELS = 10_000_000
_SMALL_MODEL = 10_000_000  # numbers, which are made in no time
_KINDS_OF_ENTRIES: dict[str, tuple[type, ...]] = {
    "num_labels": (int,),
    "id2label": (dict,),
    "label2id": (dict,),
    "architectures": (list, tuple),
    "model_type": (str,),
    "problem_type": (str,),
    "classifier_dropout": (int, float),
    "classifier_dropout_prob": (int, float),
}
_CLASSIFIERS = ("sequence_classification", "token_classification")


@dataclass(frozen=True, eq=False)
class Pretrained:
    """What a folder holds: a model with its weights, in evaluation mode, and what config.json says besides."""

    folder: Path
    kind: str
    """One of KINDS"""
    model: nn.Layer
    config: ModelConfig
    """What the model was built from"""
    labels: tuple[str, ...]
    """The names of the classes by index; () where the head has none"""
    problem: str | None
    """config.json's `problem_type`, such as "multi_label_classification\""""


def from_pretrained(folder: str | Path, head: str | None = None) -> nn.Layer:
    """The model of a folder, with its weights, in evaluation mode. Nothing is fetched.

    The folder holds `config.json` and one of `model.safetensors`, `pytorch_model.bin` and `model_state.pdparams`, or
    the index and the parts of one (`model.safetensors.index.json`). All weights must fit: none is left at its start,
    and none is left over but those of a second head of pre-training.

    Args:
        head: "encoder", "sequence_classification", "token_classification", "question_answering" or "masked_lm"; None is
            what `architectures` of config.json says: of ELECTRA's discriminator, the encoder. "encoder" leaves out
            whatever stands on the encoder.

    Raises:
        FormatError: a file is missing or damaged.
        ConfigError: config.json describes no model of these, or `head` is none of the names.
        WeightError: the weights do not fit.
    """
    return read_pretrained(folder, head).model


def read_pretrained(folder: str | Path, head: str | None = None) -> Pretrained:
    """`from_pretrained` with what belongs to the model. Raises: as there."""
    folder = Path(folder).expanduser()
    where = str(folder / CONFIG)
    try:
        return _read(folder, head)
    except ConfigError as error:
        if where in str(error) or error.where == "head":
            raise
        raise ConfigError(  # of a layer, which knows of no file
            error.problem,
            where=f"{where}: {error.where}",
            received=str(error.received)[:200],
            allowed=error.allowed,
            fix=error.fix,
        ) from None


def _read(folder: Path, head: str | None) -> Pretrained:
    settings, where = read_settings(folder), str(folder / CONFIG)
    _check_kinds(settings, where)
    path = find_weights(folder)
    kind = _kind(settings, head, where)
    encoder = encoder_config(settings, where, paddle=is_paddles(path))
    labels = labels_of(settings, where) if kind in _CLASSIFIERS else ()
    state = remove_wrappers(load_weights(path))
    _check_sizes(encoder.size(), len(labels), state, where)
    encoder = dataclasses.replace(encoder, pooler=any(".pooler." in f".{name}" for name in state))
    if kind == "encoder":
        config = encoder
        state = encoder_state(state, encoder_family(settings, where).encoder, str(path))
    else:
        config = _model_config(kind, encoder, settings, len(labels))
    try:
        model = load_state_into(build(config), state).eval()
    except WeightError as error:
        raise WeightError(
            error.problem,
            where=str(path),
            received=error.received,
            allowed=error.allowed,
            fix=f"{where} must be that of these weights, in its sizes (vocab_size, hidden_size, id2label, …) and in "
            'its `architectures`; head="encoder" reads the encoder alone',
        ) from None
    return Pretrained(folder, kind, model, config, labels, settings.get("problem_type"))


def _check_sizes(size: TextSize, classes: int, state: Mapping[str, np.ndarray], where: str) -> None:
    """Raises: WeightError, where the model would be many times as large as its weights: it is not built first."""
    width, inner = size.hidden_size, size.intermediate_size
    rows = size.vocab_size + size.max_positions + size.type_vocab_size
    layers = size.num_layers if size.num_groups == 1 and size.layers_per_group == 1 else 1
    needed = (
        rows * (size.embedding_size or width) + layers * width * (4 * width + 2 * inner) + classes * width
    )
    there = sum(array.size for array in state.values())
    if needed > 4 * there + _SMALL_MODEL:
        raise WeightError(
            "the weights are of another model",
            where=where,
            received=f"sizes of {needed:,} numbers, and {there:,} in the weights",
            fix="copy config.json and the weights from one place",
        )


def _check_kinds(settings: Mapping[str, object], where: str) -> None:
    """Raises: ConfigError, where an entry that is read here is of another kind than those toolkits write."""
    for key, value in settings.items():
        hint = _KINDS_OF_ENTRIES.get(key)
        if (
            hint is not None
            and value is not None
            and (not isinstance(value, hint) or isinstance(value, bool))
        ):
            raise ConfigError(
                "an entry of the config has the wrong type",
                where=f"{where}: {key}",
                received=repr(value)[:80],
                allowed=" or ".join(one.__name__ for one in hint),
            )
    for key in ("id2label", "label2id"):
        names = settings.get(key)
        for name, value in names.items() if isinstance(names, dict) else ():
            if not isinstance(value, str | int) or isinstance(value, bool):
                raise ConfigError(
                    "a class has no name" if key == "id2label" else "a class has no number",
                    where=f"{where}: {key}.{name[:40]}",
                    received=repr(value)[:80],
                    allowed="text and numbers",
                )
    count = settings.get("num_labels")
    if isinstance(count, int) and not 1 <= count <= _MOST_LABELS:
        raise ConfigError(
            "there cannot be so many classes",
            where=f"{where}: num_labels",
            received=count,
            allowed=f"1 to {_MOST_LABELS:,}",
        )


def encoder_config(
    settings: Mapping[str, Any], where: str = CONFIG, paddle: bool = False
) -> TextEncoderConfig:
    """The config of an encoder from what a `config.json` says. `paddle`: the weights beside it are PaddleNLP's.

    Raises:
        ConfigError: it describes no encoder of zoo.text.
    """
    return encoder_family(settings, where).config.from_pretrained_config(settings, where, paddle)


def labels_of(settings: Mapping[str, Any], where: str = CONFIG) -> tuple[str, ...]:
    """The names of the classes by index, from `id2label`, else from `label2id`, else LABEL_0 and so on, `num_labels` of
    them, as transformers calls them.

    Raises:
        ConfigError: the numbers are not 0, 1, 2 and so on, or these entries contradict one another.
    """
    count = settings.get("num_labels")
    key = "id2label" if settings.get("id2label") else "label2id"
    pairs = [(str(number), str(label)) for number, label in dict(settings.get("id2label") or {}).items()]
    if not pairs:
        pairs = [(str(number), str(label)) for label, number in dict(settings.get("label2id") or {}).items()]
    if not pairs:
        return tuple(f"LABEL_{number}" for number in range(2 if count is None else int(count)))
    labels = dict(pairs)
    if labels.keys() != {str(number) for number in range(len(pairs))}:
        raise ConfigError(
            "the numbers of the classes are not 0, 1, 2 and so on",
            where=f"{where}: {key}",
            received=", ".join(number for number, _ in pairs)[:120],
            allowed=f"each from 0 to {len(pairs) - 1} once",
        )
    if count is not None and int(count) != len(labels):
        raise ConfigError(
            "the number of classes is given twice",
            where=f"{where}: num_labels",
            received=f"{count}, and {len(labels)} names in {key}",
            allowed="one number",
            fix="take num_labels out, or name all classes",
        )
    return tuple(labels[str(number)] for number in range(len(labels)))


def _kind(settings: Mapping[str, Any], head: str | None, where: str) -> str:
    if head is not None:
        if head not in KINDS:
            near = nearest(head, KINDS)
            raise ConfigError(
                "unknown head",
                where="head",
                received=repr(head),
                allowed=", ".join(KINDS),
                fix=f"did you mean {near!r}?" if near else None,
            )
        return head
    name = str((settings.get("architectures") or [""])[0])
    for ending, kind in _ARCHITECTURES.items():
        if name.endswith(ending):
            if ending.lower() == "forpretraining":
                return encoder_family(settings, where).encoder.heads.pretraining
            return kind
    raise ConfigError(
        "no model for this architecture",
        where=f"{where}: architectures",
        received=repr(settings.get("architectures")),
        allowed="a name that ends in " + ", ".join(_ARCHITECTURES),
        fix="say `head`, which may be 'encoder'",
    )


def _model_config(
    kind: str, encoder: TextEncoderConfig, settings: Mapping[str, Any], classes: int
) -> ModelConfig:
    if kind == "masked_lm":
        return MaskedLMConfig(encoder)
    if kind == "question_answering":
        return QuestionAnsweringConfig(encoder)
    config = SequenceClassifierConfig if kind == "sequence_classification" else TokenClassifierConfig
    dropout = settings.get("classifier_dropout")
    dropout = settings.get("classifier_dropout_prob") if dropout is None else dropout
    return config(encoder, classes, dropout)


def encoder_state(
    state: Mapping[str, np.ndarray], encoder: type[TextEncoder], where: str
) -> dict[str, np.ndarray]:
    """The entries of the encoder, under its own names, whether or not the file is a model's on top of it, and whatever
    a trainer put before them."""
    for one in (f"{encoder.prefix}.", f"{encoder.heads.huggingface}."):
        for before in sorted({name[: name.index(one)] for name in state if f".{one}" in f".{name}"}):
            start = before + one
            if before and not before.endswith("."):
                continue
            of_encoder = {k.removeprefix(start): value for k, value in state.items() if k.startswith(start)}
            if of_encoder:
                return _same_kind(state, of_encoder)
    of_encoder = {name: value for name, value in state.items() if name.startswith(encoder.names)}
    if not of_encoder:
        raise WeightError(
            "the file has no encoder",
            where=where,
            received=", ".join(list(state)[:3]),
            allowed=f"names that begin with {encoder.prefix}. or with {', '.join(encoder.names)}",
        )
    return _same_kind(state, of_encoder)


def _same_kind(state: Mapping[str, np.ndarray], arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays, with what is known of their layout."""
    return TorchState(arrays) if isinstance(state, TorchState) else arrays
