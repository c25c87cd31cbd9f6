"""The tokenizer in the metadata of a GGUF file, as a tokenizer.json of the library `tokenizers`.

Source: `tokenizer.ggml.*` of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the expressions that divide
    texts are those of the models' own tokenizer.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from framework.core.errors import FormatError

_UNKNOWN, _CONTROL, _USER = 2, 3, 4
"""Codes of `tokenizer.ggml.token_type`."""
_DIGITS = r"\p{N}"
_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
    + _DIGITS
    + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA = _QWEN.replace(_DIGITS + "|", _DIGITS + "{1,3}|", 1)
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMAS = ("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral")
_PATTERNS = {
    "qwen2": _QWEN,
    "deepseek-r1-qwen": _QWEN,
    "tekken": _TEKKEN,
    **dict.fromkeys((*_LLAMAS, "glm4", "chatglm-bpe", "dbrx", "smaug-bpe"), _LLAMA),
}
"""By `tokenizer.ggml.pre`; "default", "gpt-2" and others divide as GPT-2 does."""
_WHOLE = (*_LLAMAS, "tekken")
"""Where a word that is a token is not made of others, and where a text begins with bos unless the file says no."""
_DIGITS_APART = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b")
"""As GPT-2, but each digit is a word."""
_PLAIN = (
    "default",
    "gpt-2",
    "gpt2",
    "",
    "mpt",
    "olmo",
    "jais",
    "trillion",
    "granite-docling",
    *_DIGITS_APART,
)
_SPACE = "\u2581"


def gguf_tokenizer(metadata: Mapping[str, object], where: str) -> str | None:
    """The JSON of the tokenizer in the metadata of a file; None where there is none.

    Raises:
        FormatError: a kind of tokenizer that is not read, or lists that do not belong together.
    """
    kind, tokens = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.tokens")
    if kind is None or tokens is None or kind in ("none", "no_vocab"):
        return None
    types = metadata.get("tokenizer.ggml.token_type")
    if not isinstance(tokens, list) or not all(isinstance(one, str) for one in tokens) or not tokens:
        raise _error(where, "tokenizer.ggml.tokens are no list of texts")
    types = types if isinstance(types, list) and len(types) == len(tokens) else [1] * len(tokens)
    if kind == "gpt2":
        fields = _byte_level(metadata, tokens, where)
    elif kind == "llama":
        fields = _sentence_pieces(metadata, tokens, types, where)
    else:
        raise FormatError(
            "a tokenizer of this kind is not read from GGUF",
            where=f"{where}: tokenizer.ggml.model",
            received=repr(kind)[:80],
            allowed="gpt2, llama",
            fix="put the model's tokenizer.json beside the file",
        )
    added = [
        {
            "id": number,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": types[number] in (_CONTROL, _UNKNOWN),
        }
        for number, token in enumerate(tokens)
        if types[number] in (_CONTROL, _USER, _UNKNOWN)
    ]
    frame = _frame(metadata, tokens, kind == "llama" or metadata.get("tokenizer.ggml.pre") in _WHOLE)
    return json.dumps(
        {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, **fields, **frame}
    )


def _byte_level(metadata: Mapping[str, object], tokens: Sequence[str], where: str) -> dict[str, object]:
    merges = metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, list) or not all(isinstance(one, str) and " " in one[1:] for one in merges):
        raise _error(where, "tokenizer.ggml.merges are no list of pairs")
    form = str(metadata.get("tokenizer.ggml.pre", ""))
    if form not in _PATTERNS and form not in _PLAIN:
        raise FormatError(
            "texts of this model are divided in a way that is not known",
            where=f"{where}: tokenizer.ggml.pre",
            received=repr(form)[:80],
            allowed=", ".join(sorted({*_PATTERNS, *_PLAIN} - {""})),
            fix="put the model's tokenizer.json beside the file",
        )
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": form in _PLAIN,
    }
    split = {
        "type": "Split",
        "pattern": {"Regex": _PATTERNS.get(form, "")},
        "behavior": "Isolated",
        "invert": False,
    }
    first = {"type": "Digits", "individual_digits": True} if form in _DIGITS_APART else split
    before: dict[str, object] = {"type": "Sequence", "pretokenizers": [first, byte_level]}
    if form in _PLAIN and form not in _DIGITS_APART:
        before = byte_level
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": form in _WHOLE,
        "vocab": {token: number for number, token in enumerate(tokens)},
        "merges": merges,
    }
    return {
        "normalizer": {"type": "NFC"} if _PATTERNS.get(form) == _QWEN else None,
        "pre_tokenizer": before,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": model,
    }


def _sentence_pieces(
    metadata: Mapping[str, object], tokens: Sequence[str], types: Sequence[int], where: str
) -> dict[str, object]:
    """SentencePiece's pairs: two pieces become one where the result is a piece, the likeliest first."""
    scores = metadata.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise _error(where, "there is no tokenizer.ggml.scores for each token")
    numbers = {token: number for number, token in enumerate(tokens)}
    pairs = [
        (-scores[number], numbers[token[:cut]], numbers[token[cut:]], token[:cut], token[cut:])
        for token, number in numbers.items()
        if types[number] not in (_CONTROL, _UNKNOWN) and len(token) <= 128
        for cut in range(1, len(token))
        if token[:cut] in numbers and token[cut:] in numbers
    ]
    unknown = metadata.get("tokenizer.ggml.unknown_token_id", 0)
    name = tokens[unknown] if isinstance(unknown, int) and 0 <= unknown < len(tokens) else tokens[0]
    prefix = metadata.get("tokenizer.ggml.add_space_prefix", True) is not False
    steps = [{"type": "Prepend", "prepend": _SPACE}] if prefix else []
    steps.append({"type": "Replace", "pattern": {"String": " "}, "content": _SPACE})  # type: ignore[dict-item]
    decoders: list[dict[str, object]] = [
        {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if prefix:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": name,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": numbers,
            "merges": [[left, right] for *_, left, right in sorted(pairs)],
        },
    }


def _frame(metadata: Mapping[str, object], tokens: Sequence[str], begins: bool) -> dict[str, object]:
    """The tokens that are put around a text."""
    ids = {}
    for role, default in (("bos", begins), ("eos", False)):
        number = metadata.get(f"tokenizer.ggml.{role}_token_id")
        put = metadata.get(f"tokenizer.ggml.add_{role}_token", default)
        if put is True and isinstance(number, int) and 0 <= number < len(tokens):
            ids[role] = number
    if not ids:
        return {"post_processor": None}

    def surround(text: str, kind: int) -> list[dict[str, dict[str, str | int]]]:
        first = [
            {"SpecialToken": {"id": tokens[ids[role]], "type_id": kind}} for role in ids if role == "bos"
        ]
        last = [{"SpecialToken": {"id": tokens[ids[role]], "type_id": kind}} for role in ids if role == "eos"]
        return [*first, {"Sequence": {"id": text, "type_id": kind}}, *last]

    special = {tokens[n]: {"id": tokens[n], "ids": [n], "tokens": [tokens[n]]} for n in ids.values()}
    pair = [*surround("A", 0), *surround("B", 1)]
    return {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": surround("A", 0),
            "pair": pair,
            "special_tokens": special,
        }
    }


def _error(where: str, problem: str) -> FormatError:
    return FormatError(problem, where=where, fix="convert the model again with a recent llama.cpp")
