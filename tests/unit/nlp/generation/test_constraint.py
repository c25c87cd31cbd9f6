"""Schemas of JSON: what of them a text is held to."""

from __future__ import annotations

import pytest

from framework.core.errors import InputError
from framework.core.types import JSON
from nlp.generation.constraint import ConstraintVocabulary, JsonSchema
from tests.unit.nlp.generation.tiny_decoder import byte_tokenizer


@pytest.fixture(scope="module")
def vocabulary() -> ConstraintVocabulary:
    tokenizer = byte_tokenizer()
    return ConstraintVocabulary(tokenizer, tokenizer.vocab_size, [257])


def _allows(vocabulary: ConstraintVocabulary, schema: JSON, text: str) -> bool:
    matcher = vocabulary.matcher(JsonSchema(schema))
    for token in byte_tokenizer().encode(text, add_special=False).ids:
        if not matcher.allowed()[token // 32] >> token % 32 & 1:
            return False
        matcher.add(token)
    return True


def test_a_format_that_is_not_followed_says_nothing(vocabulary: ConstraintVocabulary) -> None:
    """gemini-cli#6948, git-mcp-server#47: schemas of tools have formats of OpenAPI."""
    for name in ("int64", "password", "url"):
        assert _allows(vocabulary, {"type": "string", "format": name}, '"any"')
    assert not _allows(vocabulary, {"type": "string", "format": "date"}, '"any"')
    value: JSON = {"format": "url"}
    named: JSON = {"properties": {"const": {"type": "string", "format": "url"}, "format": {"const": value}}}
    assert _allows(vocabulary, named, '{"const": "any", "format": {"format": "url"}}')
    assert not _allows(vocabulary, named, '{"format": {}}')


def test_what_cannot_be_followed_is_named(vocabulary: ConstraintVocabulary) -> None:
    with pytest.raises(InputError, match="uniqueItems"):
        vocabulary.matcher(JsonSchema({"type": "array", "uniqueItems": True}))
