"""How a text becomes rows of the program."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import Tokenize
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
