"""text_offset of completions: tokens are bytes, and a character may take several."""

import pytest

from framework.core.types import JSON
from framework.serving.openai_answers import CompletionChoice, TokenOffsets
from framework.workflow.domain.text_generation import TextDelta, TokenScore


def _scores(*data: bytes) -> list[TokenScore]:
    return [TokenScore(one.decode("utf-8", "replace"), one, -1.0) for one in data]


@pytest.mark.parametrize(
    ("tokens", "offsets"),
    [
        ((b"a", "é".encode(), b"b"), [0, 1, 2]),
        ((b"a", b"\xf0\x9f", b"\x98", b"\x80", b"b"), [0, 1, 1, 1, 2]),
        ((b"\xe4", b"b", b"c"), [0, 1, 2]),  # a character that never ends is one sign of the text
        ((b"\x80", b"b"), [0, 1]),
        ((b"a\xe4", b"\xbd\xa0b", b""), [0, 1, 3]),
    ],
)
def test_offsets_count_characters(tokens: tuple[bytes, ...], offsets: list[int]) -> None:
    measured = TokenOffsets()
    measured.add(_scores(*tokens))
    assert measured.values == offsets


def test_tokens_whose_text_is_held_back_keep_their_offsets_in_a_stream() -> None:
    """A stop string that may begin holds text back, whose tokens and logarithms are there already."""
    choice = CompletionChoice(0, ("é", _scores("é".encode())), 1)
    deltas = [TextDelta("", 1, tuple(_scores(b"b"))), TextDelta("bx", 1, tuple(_scores(b"x")), "length")]
    chunks = [one for delta in deltas for one in choice.add(delta)]
    assert [_offsets(one) for one in chunks] == [[0, 1], [2]] and _offsets(choice.whole()) == [0, 1, 2]


def _offsets(choice: dict[str, JSON]) -> JSON:
    logprobs = choice["logprobs"]
    assert isinstance(logprobs, dict)
    return logprobs["text_offset"]
