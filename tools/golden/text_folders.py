"""What pipelines of transformers answer: folders as users have them, which the tests write too, and gaps filled.

Weights are drawn from the names that transformers gives them, so that a folder is the same wherever it is written.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from framework.interop import write_safetensors
from tools.golden import texts
from tools.golden.network import import_torch, named_weights
from tools.golden.tables import load

DATA = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data"

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
    """A row of text_folders.yml."""

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
        return [token for token, _ in UNIGRAM]


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
UNIGRAM = [
    ("<pad>", 0.0),
    ("<unk>", 0.0),
    ("[CLS]", 0.0),
    ("[SEP]", 0.0),
    ("[MASK]", 0.0),
    *((f"▁{word.lower()}", -3.0 - place / 8) for place, word in enumerate(_WORDS)),
    *((letter, -8.0 - place / 16) for place, letter in enumerate([*_LETTERS, ".", ",", "'", "!", "-", "▁"])),
]


def _case(row: dict[str, Any]) -> Case:
    texts = tuple(tuple(text) if isinstance(text, list) else text for text in row.pop("texts"))
    return Case(labels=tuple(row.pop("labels")), texts=texts, **row)


CASES = {name: _case(dict(row)) for name, row in load("text_folders").items()}


def write_folder(folder: Path, case: Case, shapes: Mapping[str, tuple[int, ...]]) -> Path:
    """config.json, the tokenizer's files and weights of these names and shapes."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "config.json", case.config())
    classes = {"wordpiece": "BertTokenizer", "bpe": "RobertaTokenizer", "unigram": "PreTrainedTokenizerFast"}
    settings = {"tokenizer_class": classes[case.tokenizer], **case.tokenizer_settings}
    if case.tokenizer == "unigram":
        settings |= {f"{role}_token": f"<{role}>" for role in ("pad", "unk")}
        settings |= {f"{role}_token": f"[{role.upper()}]" for role in ("cls", "sep", "mask")}
        _write(folder / "tokenizer.json", unigram())
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


def unigram() -> dict[str, Any]:
    special = {
        name: {"id": name, "ids": [UNIGRAM.index((name, 0.0))], "tokens": [name]}
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
            for place, (token, score) in enumerate(UNIGRAM)
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
            "vocab": [list(row) for row in UNIGRAM],
            "byte_fallback": False,
        },
    }


def _write(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")


def answers(case: Case, folder: Path) -> list[Any]:
    from transformers import pipeline

    if case.head == "ForSequenceClassification":
        ask: Any = pipeline("text-classification", model=str(folder), device="cpu")
        found = []
        for text in case.texts:
            given = text if isinstance(text, str) else {"text": text[0], "text_pair": text[1]}
            rows = ask(given, top_k=None, truncation=True)
            found.append([[row["label"], round(row["score"], 6)] for row in rows])
        return found
    ask = pipeline("token-classification", model=str(folder), device="cpu")
    found = []
    for text in case.texts:
        tokens = ask(text, aggregation_strategy="none", ignore_labels=[])
        heads = [token for token in tokens if not token["word"].startswith("##")]
        groups = ask(text, aggregation_strategy="first")
        found.append(
            [
                [
                    group["entity_group"],
                    group["start"],
                    group["end"],
                    round(
                        min(float(t["score"]) for t in heads if group["start"] <= t["start"] < group["end"]),
                        6,
                    ),
                ]
                for group in groups
            ]
        )
    return found


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, str]]:
    if name == "fill_mask":
        yield DATA / "fill_mask.json", json.dumps(gaps(), ensure_ascii=False, indent=1)
        return
    import_torch()
    import transformers

    path = DATA / "text_folders.json"
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for chosen in cases or CASES:
        case = CASES[chosen]
        with tempfile.TemporaryDirectory() as work:
            config = getattr(transformers, f"{case.family}Config")(**case.config())
            model = getattr(transformers, case.family + case.head)(config)
            shapes = texts.shapes_of(model)
            folder = write_folder(Path(work) / chosen, case, shapes)
            stored[chosen] = {"shapes": shapes, "answers": answers(case, folder)}
    lines = (f'"{name}": {json.dumps(stored[name], ensure_ascii=False)}' for name in sorted(stored))
    yield path, "{\n" + ",\n".join(lines) + "\n}\n"


MASKED = (
    "the cat sat on the [MASK]",
    "[MASK]",
    "A man is [MASK] the guitar, and nobody [MASK].",
    "[MASK] [MASK] in Straße and café",
)


def gaps() -> dict[str, Any]:
    """(token, token_str, score, sequence) of FillMaskPipeline for each gap of each text, best first, and the names and
    shapes of a small BERT."""
    torch = import_torch()
    import transformers

    tokenizer = transformers.BertTokenizer(vocab=str(DATA / "tokenizers" / "bert" / "vocab.txt"))
    case = texts.CASES["bert_small"]
    config = transformers.BertConfig(**{**case.settings, "vocab_size": len(tokenizer)})
    model = transformers.BertForMaskedLM(config).eval()
    shapes = texts.shapes_of(model)
    state = {name: torch.from_numpy(value) for name, value in texts.drawn(case, shapes).items()}
    model.load_state_dict(state)
    fill = transformers.FillMaskPipeline(model=model, tokenizer=tokenizer)
    found: dict[str, Any] = {"vocab_size": len(tokenizer), "texts": {}}
    for text in MASKED:
        rows: Any = fill(text, top_k=5)
        found["texts"][text] = [
            [(one["token"], one["token_str"], one["score"], one["sequence"]) for one in gap]
            for gap in (rows if isinstance(rows[0], list) else [rows])
        ]
    return found | {"shapes": shapes}
