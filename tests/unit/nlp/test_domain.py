"""The models in the package answer without a hub, from several threads, whatever the text."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from framework.core.errors import FormatError, InputError
from nlp import predictor
from nlp.analyzer import TextAnalyzer


@pytest.fixture(scope="module")
def tag() -> TextAnalyzer:
    return predictor("pos_tagging_en")


def test_parts_of_speech(tag: TextAnalyzer) -> None:
    assert tag("She reads the letter.") == (
        ("She", "PRON"),
        ("reads", "VERB"),
        ("the", "DET"),
        ("letter", "NOUN"),
        (".", "PUNCT"),
    )
    (whole,) = tag.predict_attempts(["She  reads."])
    assert [(span.start, span.end) for span in whole.spans] == [(0, 3), (5, 10), (10, 11)]


@pytest.mark.parametrize("text", ["", "  \n", "\x00", "😀 \u202e abc", "\ud800", "天气 good 42", "a" * 3000])
def test_odd_texts(tag: TextAnalyzer, text: str) -> None:
    (result,) = tag.predict_attempts([text])
    assert result.text == text
    assert "".join(span.text for span in result.spans) == "".join(text.split())


def test_a_long_text_is_read_whole(tag: TextAnalyzer) -> None:
    text = "All work and no play makes Jack a dull boy. " * 2300  # 101,200 characters
    began = time.monotonic()
    assert len(tag(text)) == 11 * 2300
    assert time.monotonic() - began < 120


def test_companions_and_threads_change_nothing(tag: TextAnalyzer) -> None:
    texts = [f"Number {n} " + "sees the dog and " * (n % 7) + "sleeps." for n in range(40)]
    alone = [tag(text) for text in texts]
    assert tag(texts) == alone
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(tag, texts)) == alone


def test_intents() -> None:
    ask = predictor("intent", top=2)
    assert [result.label for result in ask(["will it rain in Oslo tomorrow", "play some jazz"])] == [
        "GetWeather",
        "PlayMusic",
    ]
    assert len(ask("play some jazz").classes) == 2


def test_errors(tag: TextAnalyzer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"(?s)an input must be text.*bytes.*decode"):
        tag(b"bytes")
    with pytest.raises(InputError, match="unknown model"):
        predictor("pos_taging_en")
    with pytest.raises((FormatError, InputError)):
        predictor(tmp_path)


def test_chinese_words() -> None:
    analyze = predictor("lexical_analysis")
    text = "今天天气很好，我们去公园散步。"
    result = analyze(text)
    assert "".join(result.words) == text and "公园" in result.words
    assert predictor("word_segmentation")(text) == result.words
    assert predictor("word_segmentation", view="pairs")(text) == predictor("pos_tagging")(text)
