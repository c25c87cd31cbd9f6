"""Texts with questions whose answers stand in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from framework.config.registry import register
from framework.core.errors import FormatError, InputError
from framework.text.sample import TextSample
from nlp.data.texts import TextDataset


@register("dataset")
@dataclass(frozen=True)
class QuestionAnswers(TextDataset):
    """A JSON file of SQuAD's layout, 1.1 and 2.0; CMRC 2018 and DuReader-robust have it too.

    `data` is a list of articles with `paragraphs`, each of which has a `context` and a list `qas` of questions with
    `id`, `question` and `answers`, which have `text` and `answer_start`. A question without answers has none in the
    text (`is_impossible`); one that lacks the key `answers` can only be asked. An answer that does not stand where the
    file says is looked for; the nearest place is taken.

    Raises:
        InputError: at the first use, the file is missing.
        FormatError: it is no such JSON, a question or a context is missing, or an answer is not in its text.
    """

    path: Path

    @cached_property
    def samples(self) -> list[TextSample]:  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            articles = json.loads(self.path.read_bytes())["data"]
        except OSError as error:
            raise InputError("the file cannot be read", where=self.path, received=error.strerror) from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._misfit("file", repr(error)[:120]) from error
        samples = []
        for number, article in enumerate(_list(articles), start=1):
            for paragraph_number, paragraph in enumerate(_list(_get(article, "paragraphs")), start=1):
                where = f"article {number}, paragraph {paragraph_number}"
                context = _get(paragraph, "context")
                if not isinstance(context, str) or not isinstance(_get(paragraph, "qas"), list):
                    raise self._misfit(where, f"{paragraph!r}"[:120])
                samples += [self._sample(context, item, where) for item in _list(_get(paragraph, "qas"))]
        if not samples:
            raise self._misfit("data", f"{articles!r}"[:120])
        return samples

    def _sample(self, context: str, item: object, where: str) -> TextSample:
        question, name = _get(item, "question"), str(_get(item, "id") or where)
        if not isinstance(question, str):
            raise self._misfit(where, f"{item!r}"[:120])
        if not isinstance(answers := _get(item, "answers"), list):
            no_answers = () if _get(item, "is_impossible") else None
            return TextSample(context, pair=question, answers=no_answers, id=name)
        spans = tuple(self._locate(context, answer, f"{where}, question {name}") for answer in answers)
        return TextSample(
            context, pair=question, answers=() if _get(item, "is_impossible") else spans, id=name
        )

    def _locate(self, context: str, answer: object, where: str) -> tuple[int, int]:
        text, start = _get(answer, "text"), _get(answer, "answer_start")
        if not isinstance(text, str) or not text or not isinstance(start, int) or isinstance(start, bool):
            raise self._misfit(where, f"{answer!r}"[:120])
        if context[max(0, start) : max(0, start) + len(text)] != text:
            after, before = (
                context.find(text, max(0, start)),
                context.rfind(text, 0, max(0, start) + len(text)),
            )
            there = [place for place in (after, before) if place >= 0]
            if not there:
                raise FormatError(
                    "the answer is not in the text",
                    where=f"{self.path}, {where}",
                    received=repr(text[:80]),
                    fix="correct the answer, or take the question out",
                )
            stated = start
            start = min(there, key=lambda place: abs(place - stated))
        return start, start + len(text)

    def _misfit(self, where: str, received: str) -> FormatError:
        return FormatError(
            "the file has not SQuAD's layout",
            where=f"{self.path}, {where}",
            received=received,
            allowed='{"data": [{"paragraphs": [{"context": "…", "qas": [{"id": "…", "question": "…", "answers": '
            '[{"text": "…", "answer_start": 0}]}]}]}]}',
        )


def _get(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
