"""Texts with questions whose answers stand in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from framework.config.registry import register
from framework.core.errors import FormatError
from framework.text.sample import TextSample
from nlp.data.json_files import read_entries
from nlp.data.texts import TextDataset, warn_of_problems


@register("dataset")
@dataclass(frozen=True)
class QuestionAnswers(TextDataset):
    """A JSON file of SQuAD's layout, 1.1 and 2.0; CMRC 2018 and DuReader-robust have it too.

    `data` is a list of articles with `paragraphs`, each of which has a `context` and a list `qas` of questions with
    `id`, `question` and `answers`, which have `text` and `answer_start`. Or each question is an entry, or a line, of
    its own with its `context`, and `answers` may be {"text": [...], "answer_start": [...]}, as `datasets` of Hugging
    Face writes them. A question without answers has none in the text (`is_impossible`); one that lacks the key
    `answers` can only be asked. An answer that does not stand where the file says is looked for; the nearest place is
    taken. One that is not in the text is left out, and its question with it where there is no other; the log counts
    these.

    Raises:
        InputError: at the first use, the file is missing.
        FormatError: it is no such JSON, a question or a context is missing, or no answer is in its text.
    """

    path: Path

    @property
    def samples(self) -> list[TextSample]:
        return self._read[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """Answers that are not in their texts."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[list[TextSample], tuple[str, ...]]:
        problems: list[str] = []
        samples = [
            sample
            for context, item, where in self._questions()
            if (sample := self._sample(context, item, where, problems)) is not None
        ]
        if not samples and problems:
            raise FormatError(
                "no answer is in its text",
                where=f"{self.path}, {problems[0]}",
                received=f"{len(problems)} answers",
                fix="correct the answers, or take the questions out",
            )
        if not samples:
            raise self._misfit("file", "no questions")
        warn_of_problems(self.path, problems, "answers are not in their texts and are left out")
        return samples, tuple(problems)

    def _questions(self) -> Iterator[tuple[str, object, str]]:
        """(context, question, where) of each question."""
        for number, (location, entry) in enumerate(read_entries(self.path), start=1):
            if _get(entry, "question") is not None:
                yield self._context(entry, location.rpartition(", ")[2]), entry, location.rpartition(", ")[2]
                continue
            paragraphs = [entry] if _get(entry, "qas") is not None else _list(_get(entry, "paragraphs"))
            if not paragraphs and _get(entry, "paragraphs") != []:
                raise self._misfit(location.rpartition(", ")[2], f"{entry!r}"[:120])
            for paragraph_number, paragraph in enumerate(paragraphs, start=1):
                where = f"article {number}, paragraph {paragraph_number}"
                if not isinstance(_get(paragraph, "qas"), list):
                    raise self._misfit(where, f"{paragraph!r}"[:120])
                context = self._context(paragraph, where)
                yield from ((context, item, where) for item in _list(_get(paragraph, "qas")))

    def _context(self, value: object, where: str) -> str:
        context = _get(value, "context")
        if not isinstance(context, str):
            raise self._misfit(where, f"{value!r}"[:120])
        return context

    def _sample(self, context: str, item: object, where: str, problems: list[str]) -> TextSample | None:
        """None: it has answers, and none of them is in the text."""
        question, name = _get(item, "question"), str(_get(item, "id") or where)
        if not isinstance(question, str):
            raise self._misfit(where, f"{item!r}"[:120])
        answers, impossible = self._answers(item, where), bool(_get(item, "is_impossible"))
        if answers is None or impossible:
            return TextSample(context, pair=question, answers=() if impossible else None, id=name)
        spans = [self._locate(context, answer, f"{where}, question {name}", problems) for answer in answers]
        located = tuple(span for span in spans if span is not None)
        return (
            TextSample(context, pair=question, answers=located, id=name) if located or not answers else None
        )

    def _answers(self, item: object, where: str) -> list[object] | None:
        answers = _get(item, "answers")
        if not isinstance(answers, dict):
            return answers if isinstance(answers, list) else None
        texts, starts = _list(answers.get("text")), _list(answers.get("answer_start"))
        if len(texts) != len(starts):
            raise self._misfit(where, f"{answers!r}"[:120])
        return [{"text": text, "answer_start": start} for text, start in zip(texts, starts)]

    def _locate(
        self, context: str, answer: object, where: str, problems: list[str]
    ) -> tuple[int, int] | None:
        text, start = _get(answer, "text"), _get(answer, "answer_start")
        if not isinstance(text, str) or not text or not isinstance(start, int) or isinstance(start, bool):
            raise self._misfit(where, f"{answer!r}"[:120])
        if context[max(0, start) : max(0, start) + len(text)] != text:
            after, before = (
                context.find(text, max(0, start)),
                context.rfind(text, 0, max(0, start) + len(text)),
            )
            starts = [at for at in (after, before) if at >= 0]
            if not starts:
                problems.append(f"{where}: the answer is not in the text: {text[:80]!r}")
                return None
            stated = start
            start = min(starts, key=lambda at: abs(at - stated))
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
