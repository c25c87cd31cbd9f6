"""How a text becomes rows of the program."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from framework.text.hashing import HashFeatures
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import Tokenize
from nlp.json_results import result_from_dict
from nlp.processors import ClassProcessor, ProcessorContext, TagProcessor


def test_a_tagger_loses_no_character_to_special_tokens(tmp_path: Path) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    path = Tokenizer.train("characters", [letters], 40).save(tmp_path / "tokenizer.json")
    process = TagProcessor(ProcessorContext((Tokenize(str(path), 12, "subwords"),), ("O", "X"), 12, 5))
    sample = TextSample(letters)
    parts = process.parts(sample)
    assert [len(part.text) for part in parts] == [10, 10, 6]
    assert all(part.ids is not None and len(part.ids) == len(part.text) + 2 for part in parts)
    outputs = [{"tags": np.ones(12, int), "scores": np.ones(12)} for _ in parts]
    assert "".join(span.text for span in process.result(sample, parts, outputs).spans) == letters


def test_a_blank_text_has_no_class() -> None:
    process = ClassProcessor(ProcessorContext((), ("good", "bad"), 12, 5))
    outputs = [{"scores": np.array([0.5, 0.5], np.float32)}]
    for text, classes in (("", 0), (" \t", 0), ("fine", 2)):
        found = process.result(TextSample(text), [], outputs)
        assert len(found.classes) == classes and found.to_dict()["text"] == text
    blank = process.result(TextSample(" "), [], outputs)
    assert (blank.label, blank.score, blank.to_dict()["classes"]) == ("", 0.0, [])
    assert process.result(TextSample("", pair="fine"), [], outputs).label == "good"


def test_a_text_that_fits_goes_through_whole(tmp_path: Path) -> None:
    words = ["Anna", "lives", "in", "Xanten", ".", "She", "sings"]
    path = Tokenizer.train("words", [words], 40).save(tmp_path / "tokenizer.json")
    process = TagProcessor(ProcessorContext((Tokenize(str(path), 16, "words"),), ("O", "X"), 16, 5))
    text = "Anna lives in Xanten. She sings."
    assert [part.text for part in process.parts(TextSample(text))] == [text]
    longer = text + " " + text
    assert [part.text for part in process.parts(TextSample(longer))] == [
        *("Anna lives in Xanten. ", "She sings. ", "Anna lives in Xanten. ", "She sings."),
    ]


def test_characters_of_several_tokens_are_all_tagged(tmp_path: Path) -> None:
    path = Tokenizer.train("bpe", ["abc"], 300).save(tmp_path / "tokenizer.json")
    process = TagProcessor(ProcessorContext((Tokenize(str(path), 12, "subwords"),), ("O", "X"), 12, 5))
    for text in ("张三在北京工作李四住在上海", "😀😀😀😀😀😀😀", "naïve Ünïcode " * 5, "a" * 40, "Ω b " * 9):
        parts = process.parts(TextSample(text))
        assert "".join(part.text for part in parts) == text
        assert all(part.ids is not None and len(part.ids) <= 12 for part in parts)
        for part in parts:  # nothing was cut: the last token ends where the text ends
            assert part.offsets is not None
            assert part.offsets.max() >= len(part.text.rstrip())


def test_a_result_says_what_was_left_out(tmp_path: Path) -> None:
    path = Tokenizer.train("words", [["one", "two", "three"]], 40).save(tmp_path / "tokenizer.json")
    outputs = [{"scores": np.array([0.4, 0.6], np.float32)}]
    for transform in (Tokenize(str(path), 4), HashFeatures(max_length=2)):
        process = ClassProcessor(ProcessorContext((transform,), ("good", "bad"), 12, 5))
        for text, count in (("one two", 0), ("one two three one two", 3)):
            sample = TextSample(text)
            result = process.result(sample, process.parts(sample), outputs)
            assert result.left_out_tokens == result.to_dict().get("left_out_tokens", 0) == count
            assert result_from_dict(result.to_dict()).to_dict() == result.to_dict()
