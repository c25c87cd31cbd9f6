"""Answers that stand in a text: how spans of tokens become them, and how good they are."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

import numpy as np

from framework.config import register
from framework.core.types import JSON
from framework.text.sample import TextSample
from nlp.packing import pack_tokens
from nlp.processors import Outputs, TextProcessor

NEVER = -1e9  # the score of what is no answer
_PUNCTUATION = set(string.punctuation)
_CHINESE = "[\u4e00-\u9fa5]"
# What CMRC's script leaves out
_CHINESE_PUNCTUATION = set("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_Normal = Callable[[str], list[str]]


@dataclass(frozen=True)
class Answer:
    """What stands in the text from character `start` to the one before `end`; `score` in [0, 1] is its probability
    among the answers that were looked at. Without an answer in the text it is "" from 0 to 0."""

    text: str
    start: int
    end: int
    score: float

    def to_dict(self) -> dict[str, JSON]:
        return {**vars(self), "score": round(self.score, 6)}


@dataclass(frozen=True)
class AnsweredQuestion:
    """The answers to a question about a text, best first; there is at least one."""

    text: str
    question: str
    answers: tuple[Answer, ...]

    @property
    def answer(self) -> Answer:
        return self.answers[0]

    def to_dict(self) -> dict[str, JSON]:
        return {**vars(self), "answers": [answer.to_dict() for answer in self.answers]}


def pack_question(sample: TextSample) -> dict[str, np.ndarray]:
    """The tokens of a sample, and "context" [T] bool: where an answer may be."""
    arrays = pack_tokens(sample)
    assert sample.word_ids is not None
    return {**arrays, "context": sample.word_ids >= 0}


def best_answers(
    text: str, windows: Sequence[tuple[np.ndarray, Mapping[str, np.ndarray]]], top: int
) -> tuple[Answer, ...]:
    """The best answers of all windows of a text.

    Args:
        windows: The offsets [T, 2] of each one's tokens, and the outputs of SpanExtraction.
    """
    spans: dict[tuple[int, int], float] = {}
    for offsets, candidates in windows:
        for first, last, score in zip(candidates["first"], candidates["last"], candidates["scores"]):
            if score > NEVER / 2:
                span = int(offsets[first, 0]), int(offsets[last, 1])
                spans[span] = max(spans.get(span, NEVER), float(score))
    none = min(float(candidates["none"]) for _, candidates in windows)
    if none > NEVER / 2 or not spans:
        spans[0, 0] = none
    scores = np.array(list(spans.values()))
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    order = np.argsort(-chances, kind="stable")[:top]
    ranked = list(spans)
    return tuple(
        Answer(text[ranked[n][0] : ranked[n][1]], *ranked[n], float(chances[n])) for n in map(int, order)
    )


class AnswerProcessor(TextProcessor):
    """Of what SpanExtraction gives. It takes a text and a question as a tuple of two, in this order."""

    pairs = True

    def pack(self, part: TextSample) -> dict[str, np.ndarray]:
        return pack_question(part)

    def result(
        self, sample: TextSample, parts: Sequence[TextSample], outputs: Sequence[Outputs]
    ) -> AnsweredQuestion:
        assert sample.pair is not None
        windows = [(part.offsets, rows) for part, rows in zip(parts, outputs) if part.offsets is not None]
        return AnsweredQuestion(
            sample.text, sample.pair, best_answers(sample.text, windows, self.context.top)
        )


@register("metric")
@dataclass(frozen=True)
class AnswerF1:
    """How well answers fit the right ones: {"f1", "exact_match"}, means over the questions, each with its best answer.

    Attributes:
        unit: What F1 counts. With "words" texts are compared as SQuAD compares them: in lower case, without punctuation
            and the articles a, an, the, whatever the order of their words. With "characters" as CMRC 2018 compares
            them: the longest run of Chinese characters, and of other words, that both have.

    Source: the official evaluate-v1.1.py and evaluate-v2.0.py of https://rajpurkar.github.io/SQuAD-explorer/;
        cmrc2018_evaluate.py of https://github.com/ymcui/cmrc2018
    Differs: words beside Chinese characters are runs of letters and digits, where CMRC's script has NLTK divide them,
        and white space makes no difference to an exact match.
    """

    unit: Literal["words", "characters"] = "words"

    def start(self, labels: tuple[str, ...]) -> _AnswerF1:
        if self.unit == "words":
            return _AnswerF1(normal_words, lambda given, wanted: (Counter(given) & Counter(wanted)).total())
        return _AnswerF1(
            normal_characters,
            lambda given, wanted: (
                SequenceMatcher(None, given, wanted, autojunk=False).find_longest_match().size
            ),
        )


class _AnswerF1:
    higher_is_better = True

    def __init__(self, normal: _Normal, common: Callable[[list[str], list[str]], int]) -> None:
        self.normal, self.common = normal, common
        self.windows: dict[str, list[tuple[np.ndarray, dict[str, np.ndarray]]]] = {}
        self.questions: dict[str, tuple[str, list[str]]] = {}

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        for row, name in enumerate(map(str, batch["question"])):
            candidate = {key: outputs[key][row, :1] for key in ("first", "last", "scores")}
            candidate["none"] = outputs["none"][row]
            self.windows.setdefault(name, []).append((batch["offsets"][row], candidate))
            self.questions[name] = str(batch["text"][row]), json.loads(str(batch["answers"][row]))

    def result(self) -> dict[str, float]:
        exact, f1 = [], []
        for name, (text, right) in self.questions.items():
            answer = self.normal(best_answers(text, self.windows[name], 1)[0].text)
            references = [self.normal(one) for one in right or [""]]
            exact.append(max(float(answer == one) for one in references))
            f1.append(max(self._overlap(answer, one) for one in references))
        count = max(1, len(exact))
        return {"f1": sum(f1) / count, "exact_match": sum(exact) / count}

    def _overlap(self, answer: list[str], reference: list[str]) -> float:
        if not answer or not reference:
            return float(answer == reference)
        return 2 * self.common(answer, reference) / (len(answer) + len(reference))


def normal_words(text: str) -> list[str]:
    """The words by which SQuAD compares answers."""
    text = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def normal_characters(text: str) -> list[str]:
    """The Chinese characters, and the words and signs between them, by which CMRC 2018 compares answers."""
    text = "".join(character for character in text.lower() if character not in _CHINESE_PUNCTUATION)
    return re.findall(rf"{_CHINESE}|(?:(?!{_CHINESE})\w)+|[^\w\s]", text)
