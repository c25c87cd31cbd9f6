"""Results of texts from their JSON: the inverse of their `to_dict`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict

import numpy as np

from framework.core.types import JSON
from framework.workflow.domain.result import read_result
from nlp.answers import Answer, AnsweredQuestion
from nlp.fill_mask import Candidate, FilledMask, Mask
from nlp.results import Label, Similarity, Span, Tagged, TextLabels, TextVector, Translated

TextAnswer = Tagged | Translated | TextLabels | Similarity | AnsweredQuestion | FilledMask | TextVector


class _Label(TypedDict):
    label: str
    category_id: int
    score: float


class _Span(TypedDict):
    text: str
    label: str
    start: int
    end: int
    score: float


class _Answer(TypedDict):
    text: str
    start: int
    end: int
    score: float


class _Candidate(TypedDict):
    token: str
    token_id: int
    score: float
    sequence: str


class _Mask(TypedDict):
    start: int
    end: int
    candidates: list[_Candidate]


class _Data(TypedDict):
    """The keys of all results. Those that are there tell them apart: `read_result` says which is missing."""

    text: str
    pair: str
    question: str
    translation: str
    score: float
    spans: list[_Span]
    classes: list[_Label]
    answers: list[_Answer]
    masks: list[_Mask]
    vector: list[float]
    left_out_tokens: int


def result_from_dict(data: Mapping[str, JSON]) -> TextAnswer:
    """The result that `to_dict` of one of these classes wrote. Raises: FormatError."""
    return read_result(data, _read, f"text, and {', '.join(_BY_KEY)}, or pair and score")


def _read(data: _Data) -> TextAnswer:
    read = next((read for key, read in _BY_KEY.items() if key in data), _read_similarity)
    return read(data)


def _read_similarity(data: _Data) -> TextAnswer:
    return Similarity(data["text"], data["pair"], data["score"], left_out_tokens=_left_out(data))


def _left_out(data: _Data) -> int:
    return data.get("left_out_tokens", 0)


def _read_mask(data: _Mask) -> Mask:
    return Mask(data["start"], data["end"], tuple(Candidate(**one) for one in data["candidates"]))


_BY_KEY: Mapping[str, Callable[[_Data], TextAnswer]] = {
    "spans": lambda data: Tagged(data["text"], tuple(Span(**span) for span in data["spans"])),
    "translation": lambda data: Translated(data["text"], data["translation"], data["score"]),
    "classes": lambda data: TextLabels(
        data["text"],
        tuple(Label(**label) for label in data["classes"]),
        data.get("pair"),
        left_out_tokens=_left_out(data),
    ),
    "answers": lambda data: AnsweredQuestion(
        data["text"], data["question"], tuple(Answer(**answer) for answer in data["answers"])
    ),
    "masks": lambda data: FilledMask(data["text"], tuple(map(_read_mask, data["masks"]))),
    "vector": lambda data: TextVector(
        data["text"],
        np.array(data["vector"], np.float32),
        data.get("pair"),
        left_out_tokens=_left_out(data),
    ),
}
