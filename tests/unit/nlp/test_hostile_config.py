"""config.json of a folder of transformers with entries of other kinds: each is named, none is a Python error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, WeightError
from framework.interop import write_safetensors
from nlp.pretrained import read_pretrained

SETTINGS = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 40,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id2label", 16),
        ("id2label", ["a"]),
        ("id2label", {"0": {"a": 1}}),
        ("label2id", {"a": [0]}),
        ("num_labels", "two"),
        ("num_labels", [2]),
        ("num_labels", 10**12),
        ("num_labels", -1),
        ("architectures", {"a": ["BertForSequenceClassification"]}),
        ("architectures", 3),
        ("architectures", [[1]]),
        ("model_type", ["bert"]),
        ("hidden_size", [8]),
        ("hidden_act", {"a": 1}),
        ("classifier_dropout", "much"),
    ],
)
def test_entries_of_another_kind(tmp_path: Path, key: str, value: Any) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**SETTINGS, key: value}), encoding="utf-8")
    write_safetensors(tmp_path / "model.safetensors", {"a": np.zeros(2, np.float32)})
    with pytest.raises((ConfigError, FormatError), match=r"config\.json"):
        read_pretrained(tmp_path)


def test_a_model_that_is_far_larger_than_its_weights_is_not_built(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**SETTINGS, "hidden_size": 2**20}), encoding="utf-8")
    write_safetensors(tmp_path / "model.safetensors", {"a": np.zeros(2, np.float32)})
    with pytest.raises(WeightError, match=r"config\.json: the weights are of another model"):
        read_pretrained(tmp_path)
