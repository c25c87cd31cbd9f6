"""Tokenizers in the metadata of GGUF files: how texts are divided, and what they begin with."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, pre_tokenizers

from framework.text.gguf_tokenizer import gguf_tokenizer

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
TEXT = "It's 1234 naïveBlue/\n\tok"


def tokenizer(form: str, **more: object) -> Tokenizer:
    tokens = [*BYTES, "ab", "abc", "<s>"]
    metadata = {
        "model": "gpt2",
        "pre": form,
        "tokens": tokens,
        "token_type": [1] * (len(tokens) - 1) + [3],
        "merges": ["a b"],
        "bos_token_id": len(tokens) - 1,
        **more,
    }
    text = gguf_tokenizer({f"tokenizer.ggml.{key}": value for key, value in metadata.items()}, "tiny")
    assert text is not None
    return Tokenizer.from_str(text)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("gpt-2", ["It", "'s", " 1234", " naïveBlue", "/", "\n", "\t", "ok"]),
        ("smollm", ["It", "'s", " ", "1", "2", "3", "4", " naïveBlue", "/", "\n", "\t", "ok"]),
        ("qwen2", ["It", "'s", " ", "1", "2", "3", "4", " naïveBlue", "/\n", "\tok"]),
        ("starcoder", ["It", "'s", " ", "1", "2", "3", "4", " naïveBlue", "/", "\n", "\t", "ok"]),
        ("olmo", ["It", "'s", " 1234", " naïveBlue", "/", "\n", "\t", "ok"]),
        ("glm4", ["It", "'s", " ", "123", "4", " naïveBlue", "/\n", "\tok"]),
        ("falcon3", ["It", "'s", " ", "123", "4", " naïveBlue", "/\n", "\tok"]),
        ("tekken", ["It", "'s", " ", "1", "2", "3", "4", " naïve", "Blue", "/\n", "\tok"]),
    ],
)
def test_words(form: str, words: list[str]) -> None:
    before = tokenizer(form).pre_tokenizer
    assert before is not None
    assert [TEXT[start:end] for _, (start, end) in before.pre_tokenize_str(TEXT)] == words


@pytest.mark.parametrize(
    ("form", "more", "begins"),
    [
        ("llama-bpe", {}, True),
        ("llama-bpe", {"add_bos_token": False}, False),
        ("tekken", {}, True),
        ("qwen2", {}, False),
        ("gpt-2", {"add_bos_token": True}, True),
        ("glm4", {}, False),
    ],
)
def test_texts_begin_as_llama_cpp_begins_them(form: str, more: dict[str, object], begins: bool) -> None:
    tokens = tokenizer(form, **more).encode("abc").tokens
    word = ["abc"] if form in ("llama-bpe", "tekken") else ["ab", "c"]
    assert tokens == [*["<s>"] * begins, *word]
