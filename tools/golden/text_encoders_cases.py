"""Cases of tools/golden/text_encoders.py and tests/golden/test_text_encoders.py: sizes, inputs, weights from names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from framework.interop.named_weights import named_weights

KEPT = 72  # values of each output
CLASSES = 5
TOKENS, LENGTHS = 32, (32, 19, 6)
HEADS = (
    "Model",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMaskedLM",
)

_SMALL = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 120,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}
_ERNIE = {"type_vocab_size": 4, "use_task_id": True, "task_type_vocab_size": 3}
_ERNIE_3 = {**_ERNIE, "vocab_size": 40000, "max_position_embeddings": 2048}
_ROBERTA = {"pad_token_id": 1, "layer_norm_eps": 1e-5, "type_vocab_size": 1}
_ALBERT = {"embedding_size": 24, "num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2}


@dataclass(frozen=True)
class Case:
    """`library` is transformers or paddlenlp; `settings` are what its config.json says; `variant` is ours."""

    library: str
    family: str  # the prefix of the library's classes
    settings: Mapping[str, Any] = field(default_factory=dict)
    variant: str | None = None

    @property
    def model_type(self) -> str:
        return self.family.lower()

    @property
    def pad(self) -> int:
        return self.settings.get("pad_token_id", 0)


CASES = {
    "bert_small": Case("transformers", "Bert", _SMALL),
    "roberta_small": Case("transformers", "Roberta", {**_SMALL, **_ROBERTA}),
    "albert_small": Case("transformers", "Albert", {**_SMALL, **_ALBERT, "hidden_act": "gelu_new"}),
    "ernie_small": Case("transformers", "Ernie", {**_SMALL, **_ERNIE}),
    "paddle_bert_small": Case("paddlenlp", "Bert", _SMALL),
    "paddle_roberta_small": Case("paddlenlp", "Roberta", {**_SMALL, **_ROBERTA}),
    # Without `inner_group_num`: PaddleNLP cuts a list of masks too short for a second block in a group.
    "paddle_albert_small": Case("paddlenlp", "Albert", {**_SMALL, **_ALBERT, "inner_group_num": 1}),
    "paddle_ernie_small": Case("paddlenlp", "Ernie", {**_SMALL, **_ERNIE}),
    "bert_base": Case("transformers", "Bert", {}, "bert-base-uncased"),
    "roberta_base": Case(
        "transformers",
        "Roberta",
        {**_ROBERTA, "vocab_size": 50265, "max_position_embeddings": 514},
        "roberta-base",
    ),
    "albert_base": Case(
        "transformers",
        "Albert",
        {
            "hidden_size": 768,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "hidden_act": "gelu_new",
            "vocab_size": 30000,
        },
        "albert-base-v2",
    ),
    "ernie_1": Case(
        "paddlenlp",
        "Ernie",
        {"vocab_size": 18000, "max_position_embeddings": 513, "type_vocab_size": 2, "hidden_act": "relu"},
        "ernie-1.0-base-zh",
    ),
    "ernie_3_base": Case("paddlenlp", "Ernie", _ERNIE_3, "ernie-3.0-base-zh"),
    "ernie_3_nano": Case(
        "paddlenlp",
        "Ernie",
        {
            **_ERNIE_3,
            "hidden_size": 312,
            "num_hidden_layers": 4,
            "intermediate_size": 1248,
            "task_type_vocab_size": 16,
        },
        "ernie-3.0-nano-zh",
    ),
}


@dataclass(frozen=True)
class Inputs:
    """[N, T] each: three texts of different lengths, padded; `holes` hides a fifth of the tokens as well."""

    ids: np.ndarray
    types: np.ndarray
    tasks: np.ndarray
    real: np.ndarray
    holes: np.ndarray


def inputs(case: Case) -> Inputs:
    rng = np.random.RandomState(5)
    shape = (len(LENGTHS), TOKENS)
    settings = {"vocab_size": 30522, "type_vocab_size": 2, **case.settings}
    real = np.arange(TOKENS) < np.array(LENGTHS)[:, None]
    ids = rng.randint(5, settings["vocab_size"], shape)
    types = rng.randint(0, settings["type_vocab_size"], shape)
    tasks = rng.randint(0, settings.get("task_type_vocab_size", 1), shape)
    holes = real & (rng.uniform(size=shape) < 0.8)
    holes[:, 0] = True
    return Inputs(np.where(real, ids, case.pad), types, tasks, real, holes)


def drawn(case: Case, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Values for a state dict of the library, from its names without the encoder's: the same under every head.

    Rows of embeddings are of about unit size, padding is zero where the family says so, and second names of the word
    embeddings and of the decoder's bias get the values of the first.
    """

    def source(name: str) -> str:
        name = re.sub(r"^(?:bert|ernie|roberta|albert|transformer)\.", "", name)
        name = re.sub(r"^.*decoder[._]weight$", "embeddings.word_embeddings.weight", name)
        return re.sub(r"^(.*?)\.(?:decoder[._])?bias$", r"\1.bias", name)

    values = named_weights({source(name): shape for name, shape in shapes.items()})
    for name, value in values.items():
        if re.search(r"embeddings\.\w+_embeddings\.weight$", name):
            value *= np.sqrt(len(value) / 2, dtype=np.float32)
        if name.endswith("word_embeddings.weight") and case.family != "Bert":
            value[case.pad] = 0
    return {name: values[source(name)] for name in shapes}


def thin(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // KEPT)].astype(np.float32)
