"""Results of texts from their JSON: the inverse of their `to_dict`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from framework.workflow.domain.result import read_result
from nlp.answers import Answer, AnsweredQuestion
from nlp.fill_mask import Candidate, FilledMask, Mask
from nlp.results import Label, Similarity, Span, Tagged, TextLabels, Translated
from nlp.tasks.embedding import TextVector

TextAnswer = Tagged | Translated | TextLabels | Similarity | AnsweredQuestion | FilledMask | TextVector


def result_from_dict(data: Mapping[str, Any]) -> TextAnswer:
    """The result that `to_dict` of one of these classes wrote. Raises: FormatError."""
    return read_result(data, _read, f"text, and {', '.join(_BY_KEY)}, or pair and score")


def _read(data: Mapping[str, Any]) -> TextAnswer:
    read = next((read for key, read in _BY_KEY.items() if key in data), _read_similarity)
    return read(data)


def _read_similarity(data: Mapping[str, Any]) -> TextAnswer:
    return Similarity(data["text"], data["pair"], data["score"])


def _read_mask(data: Mapping[str, Any]) -> Mask:
    return Mask(data["start"], data["end"], tuple(Candidate(**one) for one in data["candidates"]))


# What tells the classes apart.
_BY_KEY: Mapping[str, Callable[[Mapping[str, Any]], TextAnswer]] = {
    "spans": lambda data: Tagged(data["text"], tuple(Span(**span) for span in data["spans"])),
    "translation": lambda data: Translated(data["text"], data["translation"], data["score"]),
    "classes": lambda data: TextLabels(
        data["text"], tuple(Label(**label) for label in data["classes"]), data.get("pair")
    ),
    "answers": lambda data: AnsweredQuestion(
        data["text"], data["question"], tuple(Answer(**answer) for answer in data["answers"])
    ),
    "masks": lambda data: FilledMask(data["text"], tuple(map(_read_mask, data["masks"]))),
    "vector": lambda data: TextVector(data["text"], np.array(data["vector"], np.float32), data.get("pair")),
}
