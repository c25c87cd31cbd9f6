from __future__ import annotations

import numpy as np
import pytest

from framework.text.tokenizer import Tokenizer
from nlp.generation.stops import StopStrings, TextStream
from tests.unit.nlp.generation.tiny_decoder import byte_tokenizer, fallback_tokenizer

TEXTS = [
    "plain text",
    "emoji 😀👍🏽👨‍👩‍👧 and 🇩🇪 flags",
    "中文没有空格，かな、한국어",
    "a中b中 a b  b",
    "é combining and é composed ﬁ",
    "\ufffd is a character, too",
    " leading and trailing ",
    "a\nb\t\tb\r\n",
    "𝒳𝓎𝓏",
]


def stream(tokenizer: Tokenizer, ids: list[int], context: list[int]) -> list[str]:
    text = TextStream(lambda tokens: tokenizer.decode(tokens, skip_special=False), context)
    return [*(text.add(token) for token in ids), text.finish()]


@pytest.mark.parametrize("make", [byte_tokenizer, fallback_tokenizer])
@pytest.mark.parametrize("text", TEXTS)
def test_parts_are_whole_characters(make: type[Tokenizer], text: str) -> None:
    tokenizer = make()
    ids = tokenizer.segmenter.split(text).ids.tolist()
    whole = tokenizer.decode(ids, skip_special=False)
    parts = stream(tokenizer, ids, [])
    assert "".join(parts) == whole
    if "\ufffd" not in text:
        assert not any("\ufffd" in part for part in parts)
    assert sum(bool(part) for part in parts) > 1


@pytest.mark.parametrize("make", [byte_tokenizer, fallback_tokenizer])
@pytest.mark.parametrize("cut", [1, 2, 5, 7])
def test_a_text_goes_on_behind_its_prompt(make: type[Tokenizer], cut: int) -> None:
    """The space before the first word belongs to the text."""
    tokenizer = make()
    text = "a b a 中 b 😀 a b"
    ids = tokenizer.segmenter.split(text).ids.tolist()
    before = tokenizer.decode(ids[:cut], skip_special=False).rstrip("\ufffd")
    parts = stream(tokenizer, ids[cut:], ids[:cut])
    assert before + "".join(parts) == text


def test_a_character_comes_with_its_last_token() -> None:
    tokenizer = byte_tokenizer()
    parts = stream(tokenizer, tokenizer.segmenter.split("a😀b").ids.tolist(), [])
    assert parts == ["a", "", "", "", "😀", "b", ""]


@pytest.mark.parametrize("make", [byte_tokenizer, fallback_tokenizer])
def test_a_text_may_end_the_character_that_its_prompt_began(make: type[Tokenizer]) -> None:
    tokenizer = make()
    ids = tokenizer.segmenter.split("a😀b").ids.tolist()
    cut = len(ids) - 2
    assert "".join(stream(tokenizer, ids[cut:], ids[:cut])) == "😀b"


def test_bytes_that_are_no_character_are_written_at_the_end() -> None:
    tokenizer = byte_tokenizer()
    ids = tokenizer.segmenter.split("a😀").ids.tolist()
    assert stream(tokenizer, ids[:-1], []) == ["a", "", "", "", "\ufffd"]
    broken = [*ids[:2], *tokenizer.segmenter.split("b").ids.tolist()]
    assert "".join(stream(tokenizer, broken, [])) == "a\ufffdb"


def test_bytes_that_never_become_characters_are_not_held_back_for_ever() -> None:
    tokenizer = byte_tokenizer()
    first = tokenizer.segmenter.split("😀").ids.tolist()[0]
    text = TextStream(lambda tokens: tokenizer.decode(tokens, skip_special=False))
    assert any(text.add(first) for _ in range(100))


def test_random_tokens_give_their_text() -> None:
    tokenizer = byte_tokenizer()
    rng = np.random.default_rng(0)
    for _ in range(50):
        ids = rng.integers(0, 256, 40).tolist()
        assert "".join(stream(tokenizer, ids, [])) == tokenizer.decode(ids, skip_special=False)


def feed(stops: StopStrings, parts: list[str]) -> tuple[list[str], str | None]:
    texts = []
    for part in parts:
        tail = stops.add(part)
        texts.append(tail.text)
        if tail.stop is not None:
            return texts, tail.stop
    return [*texts, stops.finish()], None


@pytest.mark.parametrize(
    "stops, parts, expected, stop",
    [
        (["\n"], ["a", "b\nc"], ["a", "b"], "\n"),
        (["END"], ["a E", "N", "D b"], ["a ", "", ""], "END"),
        (["END"], ["a E", "N", "A END"], ["a ", "", "ENA "], "END"),
        (["aab"], ["a", "a", "a", "b"], ["", "", "a", ""], "aab"),
        (["abc", "b"], ["ab", "c"], ["a"], "b"),
        (["##", "###"], ["x#", "##y"], ["x", ""], "###"),
        (["xyz"], ["x", "y"], ["", "", "xy"], None),
        ([], ["x", "y"], ["x", "y", ""], None),
        (["。"], ["好", "。再"], ["好", ""], "。"),
    ],
)
def test_stop_strings(stops: list[str], parts: list[str], expected: list[str], stop: str | None) -> None:
    assert feed(StopStrings(stops), parts) == (expected, stop)


def test_a_stop_string_may_stay() -> None:
    assert feed(StopStrings(["END"], include=True), ["a E", "ND b"]) == (["a ", "END"], "END")


def test_before_the_least_number_of_tokens_nothing_stops() -> None:
    stops = StopStrings(["x"])
    assert stops.add("a x", may_stop=False) == ("a x", None)
    assert stops.add("b x") == ("b ", "x")


def test_every_division_of_a_text_gives_the_same() -> None:
    rng = np.random.default_rng(1)
    text = "".join(rng.choice(list("ab"), 60)) + "abba" + "".join(rng.choice(list("ab"), 9))
    whole = StopStrings(["abba", "babab"]).add(text)
    for _ in range(50):
        cuts = np.sort(rng.integers(0, len(text), 12))
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)])]
        texts, stop = feed(StopStrings(["abba", "babab"]), parts)
        assert ("".join(texts), stop) == whole
