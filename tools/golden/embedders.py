"""Embeddings and scores of pairs by sentence-transformers: folders as users have them, which the tests write too.

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
from tools.golden import text_folders, texts
from tools.golden.network import import_torch, named_weights
from tools.golden.tables import load

PATH = text_folders.DATA / "embedders.json"
Shapes = Mapping[str, tuple[int, ...]]
_END = "<|endoftext|>"
_SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_CLASSES = {
    "wordpiece": "BertTokenizer",
    "mpnet": "MPNetTokenizer",
    "unigram": "PreTrainedTokenizerFast",
    "bytes": "Qwen2Tokenizer",
}
_MPNET = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", *text_folders.WORD_PIECES[5:], "<mask>"]


@dataclass(frozen=True)
class Case:
    """A row of embedders.yml.

    Attributes:
        model: The class in transformers, without its ending "Model" or "ForSequenceClassification".
        tokenizer: A kind of files: wordpiece, mpnet, unigram or bytes.
        files: Files of sentence-transformers by name; {} is an encoder alone, or a reranker.
        dense: Shape [out, in] of a linear layer by its folder.
        texts, pairs: What is embedded; what is scored.
        calls: Arguments of `encode`, each for all texts.
    """

    model: str
    tokenizer: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    tokenizer_settings: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    dense: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    calls: tuple[Mapping[str, Any], ...] = ({},)

    @property
    def architecture(self) -> str:
        return self.model + ("ForSequenceClassification" if self.pairs else "Model")

    def config(self) -> dict[str, Any]:
        """What config.json says."""
        labels = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}} if self.pairs else {}
        counts = {
            "wordpiece": len(text_folders.WORD_PIECES),
            "mpnet": len(_MPNET),
            "unigram": len(text_folders.UNIGRAM),
        }
        size = counts.get(self.tokenizer) or len(_byte_level()["model"]["vocab"]) + 1
        return {"architectures": [self.architecture], **_SIZE, "vocab_size": size, **labels, **self.settings}


CASES = {name: Case(**row) for name, row in load("embedders").items() if name[0] != "_"}


def write_folder(folder: Path, case: Case, shapes: Shapes) -> Path:
    """config.json, the files of sentence-transformers and of the tokenizer, and weights of these names and shapes."""
    settings = {"tokenizer_class": _CLASSES[case.tokenizer], **case.tokenizer_settings}
    if case.tokenizer in ("wordpiece", "mpnet"):
        folder.mkdir(parents=True)
        vocabulary = _MPNET if case.tokenizer == "mpnet" else text_folders.WORD_PIECES
        (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    elif case.tokenizer == "unigram":
        settings |= {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        _write(folder / "tokenizer.json", text_folders.unigram())
    else:
        settings |= {"pad_token": _END, "eos_token": _END, "padding_side": "left"}
        _write(folder / "tokenizer.json", _byte_level())
    for name, content in {
        "config.json": case.config(),
        "tokenizer_config.json": settings,
        **case.files,
    }.items():
        _write(folder / name, content)
    write_safetensors(folder / "model.safetensors", drawn(shapes), {"format": "pt"})
    for name, (rows, columns) in case.dense.items():
        arrays = named_weights({f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)})
        arrays = {f"linear.{key.rpartition('.')[2]}": value for key, value in arrays.items()}
        write_safetensors(folder / name / "model.safetensors", arrays, {"format": "pt"})
    return folder


def drawn(shapes: Shapes) -> dict[str, np.ndarray]:
    """Values from the names; rows of embeddings of about unit size, so that texts differ."""
    values = named_weights(dict(shapes))
    for name, value in values.items():
        if "embeddings.weight" in name or "embed_tokens" in name:
            value *= np.sqrt(len(value) / 2, dtype=np.float32)
    return values


def _byte_level() -> dict[str, Any]:
    """Of Qwen's kind: bytes, a few merges, and one token behind each text."""
    from tokenizers import pre_tokenizers

    merges = [["t", "h"], ["th", "e"], ["Ġ", "the"], ["o", "o"], ["f", "i"], ["fi", "l"], ["fil", "m"]]
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in merges)]
    text = {"Sequence": {"id": "A", "type_id": 0}}
    ends = [{"SpecialToken": {"id": _END, "type_id": number}} for number in (0, 1)]
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [{"id": len(tokens), "content": _END, **flags}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [text, ends[0]],
            "pair": [text, ends[0], {"Sequence": {"id": "B", "type_id": 1}}, ends[1]],
            "special_tokens": {_END: {"id": _END, "ids": [len(tokens)], "tokens": [_END]}},
        },
        "model": {
            "type": "BPE",
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": merges,
        },
    }


def _write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")


def answers(case: Case, folder: Path) -> list[Any]:
    """Embeddings [texts, D] of each call, or the score of each pair."""
    from sentence_transformers import CrossEncoder, SentenceTransformer

    if case.pairs:
        scores = CrossEncoder(str(folder), device="cpu").predict([tuple(pair) for pair in case.pairs])
        return [round(float(score), 7) for score in scores]
    model = SentenceTransformer(str(folder), device="cpu")
    vectors = [model.encode(list(case.texts), batch_size=3, **call) for call in case.calls]
    return [[[round(float(value), 7) for value in row] for row in rows] for rows in vectors]


def files(reference: str, cases: list[str]) -> Iterator[tuple[Path, str]]:
    import_torch()
    import transformers

    stored = json.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {}
    for name in cases or CASES:
        case = CASES[name]
        with tempfile.TemporaryDirectory() as work:
            config = getattr(transformers, f"{case.model}Config")(**case.config())
            shapes = texts.shapes_of(getattr(transformers, case.architecture)(config))
            folder = write_folder(Path(work) / name, case, shapes)
            stored[name] = {"shapes": shapes, "answers": answers(case, folder)}
    lines = (f'"{name}": {json.dumps(stored[name], ensure_ascii=False)}' for name in sorted(stored))
    yield PATH, "{\n" + ",\n".join(lines) + "\n}\n"
