"""Cases of tools/golden/text_folders.py and tests/golden/test_text_folders.py: folders as users have them, and texts.

Weights are drawn from the names that transformers gives them, so that a folder is the same wherever it is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from framework.interop import write_safetensors
from framework.interop.named_weights import named_weights

_SIZE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORDS = ["good", "bad", "film", "the", "was", "and", "Ann", "Bob", "Rome", "lives", "in", "London", "ton"]
WORD_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS, ".", ",", "'", "!", "-", "天", "气"]
WORD_PIECES += [*_LETTERS, *_LETTERS.upper(), *(f"##{letter}" for letter in _LETTERS), "##ing", "##ton"]
_TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@dataclass(frozen=True)
class Case:
    """`head` ends the class in transformers; `tokenizer` is a kind of files; `texts` have a pair where they are two."""

    family: str
    head: str
    tokenizer: str
    labels: tuple[str, ...]
    texts: tuple[Any, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    tokenizer_settings: Mapping[str, Any] = field(default_factory=dict)
    shards: int = 1

    def config(self) -> dict[str, Any]:
        """What config.json says."""
        return {
            "model_type": self.family.lower(),
            "architectures": [self.family + self.head],
            **_SIZE,
            "vocab_size": len(self.vocabulary()),
            "id2label": {str(number): label for number, label in enumerate(self.labels)},
            "label2id": {label: number for number, label in enumerate(self.labels)},
            **self.settings,
        }

    def vocabulary(self) -> list[str]:
        if self.tokenizer == "wordpiece":
            return WORD_PIECES
        if self.tokenizer == "bpe":
            merges = (first + second for first, second in _MERGES)
            return ["<s>", "<pad>", "</s>", "<unk>", *_BYTES, *merges, "<mask>"]
        return [token for token, _ in _UNIGRAM]


_BYTES = [*_LETTERS, *_LETTERS.upper(), ".", ",", "'", "!", "-", "Ġ"]
_MERGES = [
    ("o", "o"),
    ("g", "oo"),
    ("goo", "d"),
    ("Ġ", "f"),
    ("i", "l"),
    ("Ġf", "il"),
    ("Ġ", "w"),
    ("a", "s"),
]
_UNIGRAM = [
    ("<pad>", 0.0),
    ("<unk>", 0.0),
    ("[CLS]", 0.0),
    ("[SEP]", 0.0),
    ("[MASK]", 0.0),
    *((f"▁{word.lower()}", -3.0 - place / 8) for place, word in enumerate(_WORDS)),
    *((letter, -8.0 - place / 16) for place, letter in enumerate([*_LETTERS, ".", ",", "'", "!", "-", "▁"])),
]
_SENTENCES = (
    "The film was good!",
    "bad",
    "",
    "Zoë's film, in London - the good and the bad and the film and the good.",
)

CASES = {
    "bert_classes": Case(
        "Bert",
        "ForSequenceClassification",
        "wordpiece",
        ("negative", "neutral", "positive"),
        (*_SENTENCES, "天气 was good", ("the film", "was bad")),
        tokenizer_settings={"do_lower_case": True, "model_max_length": 16},
    ),
    "bert_entities": Case(
        "Bert",
        "ForTokenClassification",
        "wordpiece",
        tuple(_TAGS),
        (
            "Ann Smith lives in Washington, Rome.",
            "Bob's London-Rome film",
            "天气 in Birmington was good",
            "bad",
        ),
        tokenizer_settings={"do_lower_case": False},
    ),
    "bert_one_class": Case("Bert", "ForSequenceClassification", "wordpiece", ("relevant",), _SENTENCES[:2]),
    "roberta_pairs": Case(
        "Roberta",
        "ForSequenceClassification",
        "bpe",
        ("different", "same"),
        (*_SENTENCES[:3], ("good film", "bad film"), ("a film", "Rome, and the film that was in Rome")),
        {"type_vocab_size": 1, "pad_token_id": 1, "layer_norm_eps": 1e-5},
        shards=3,
    ),
    "albert_several": Case(
        "Albert",
        "ForSequenceClassification",
        "unigram",
        ("sport", "money", "art"),
        _SENTENCES[:3],
        {"problem_type": "multi_label_classification", "embedding_size": 16, "hidden_act": "gelu_new"},
    ),
    "ernie_classes": Case(
        "Ernie",
        "ForSequenceClassification",
        "wordpiece",
        ("0", "1"),
        ("天气 good", "bad"),
        {"use_task_id": True, "task_type_vocab_size": 3, "type_vocab_size": 4},
    ),
}


def write_folder(folder: Path, case: Case, shapes: Mapping[str, tuple[int, ...]]) -> Path:
    """config.json, the tokenizer's files and weights of these names and shapes."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "config.json", case.config())
    classes = {"wordpiece": "BertTokenizer", "bpe": "RobertaTokenizer", "unigram": "PreTrainedTokenizerFast"}
    settings = {"tokenizer_class": classes[case.tokenizer], **case.tokenizer_settings}
    if case.tokenizer == "unigram":
        settings |= {f"{role}_token": f"<{role}>" for role in ("pad", "unk")}
        settings |= {f"{role}_token": f"[{role.upper()}]" for role in ("cls", "sep", "mask")}
        _write(folder / "tokenizer.json", _unigram())
    elif case.tokenizer == "wordpiece":
        (folder / "vocab.txt").write_text("\n".join(WORD_PIECES) + "\n", encoding="utf-8")
    else:
        _write(folder / "vocab.json", {token: number for number, token in enumerate(case.vocabulary())})
        lines = ["#version: 0.2", *(f"{first} {second}" for first, second in _MERGES)]
        (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _write(folder / "tokenizer_config.json", settings)
    state = drawn(shapes)
    if case.shards == 1:
        write_safetensors(folder / "model.safetensors", state, {"format": "pt"})
        return folder
    names = list(state)
    files = [f"model-{number:05}-of-{case.shards:05}.safetensors" for number in range(1, case.shards + 1)]
    for place, file in enumerate(files):
        write_safetensors(
            folder / file, {name: state[name] for name in names[place :: case.shards]}, {"format": "pt"}
        )
    index = {name: files[place % case.shards] for place, name in enumerate(names)}
    size = sum(value.nbytes for value in state.values())
    _write(folder / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": index})
    return folder


def drawn(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Values from the names; rows of embeddings of about unit size, a head that is not too sure."""
    values = named_weights(dict(shapes))
    for name, value in values.items():
        if name.endswith("_embeddings.weight"):
            value *= np.sqrt(len(value) / 2, dtype=np.float32)
        if name.startswith("classifier.") and not name.startswith("classifier.dense"):
            value *= 0.2
        if name == "classifier.bias" and len(value) == len(_TAGS):
            value[0] -= 0.5  # so that not all tags are "O"
    return values


def _unigram() -> dict[str, Any]:
    special = {
        name: {"id": name, "ids": [_UNIGRAM.index((name, 0.0))], "tokens": [name]}
        for name in ("[CLS]", "[SEP]")
    }
    first, last = ({"SpecialToken": {"id": name, "type_id": 0}} for name in special)
    text = {"Sequence": {"id": "A", "type_id": 0}}
    second = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": place, "content": token, "special": True, "single_word": False, "lstrip": False}
            | {"rstrip": False, "normalized": False}
            for place, (token, score) in enumerate(_UNIGRAM)
            if score == 0
        ],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, text, last],
            "pair": [first, text, last, *second],
            "special_tokens": special,
        },
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "model": {
            "type": "Unigram",
            "unk_id": 1,
            "vocab": [list(row) for row in _UNIGRAM],
            "byte_fallback": False,
        },
    }


def _write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")
