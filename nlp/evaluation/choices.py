"""Questions with several answers: the model's is the one that is most probable behind the question.

Source: lm-evaluation-harness 0.4, ConfigurableTask.process_results of "multiple_choice"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from framework.core.errors import InputError
from framework.core.types import JSON
from framework.text.tokenizer import Tokenizer
from nlp.evaluation.likelihood import Scorer, encode_pair


@dataclass(frozen=True)
class Question:
    """`context` with `choices` that go on from it, each with the space between words that belongs there; `answers` are
    the indices of those that are right."""

    context: str
    choices: tuple[str, ...]
    answers: tuple[int, ...]

    @classmethod
    def from_dict(cls, row: Mapping[str, JSON], where: object) -> Question:
        """{"context": "…", "choices": [" a", " b"], "answer": 0}. Raises: InputError."""
        context, choices, answer = row.get("context"), row.get("choices"), row.get("answer")
        answers = answer if isinstance(answer, list) else [answer]
        if (
            isinstance(context, str)
            and isinstance(choices, list)
            and choices
            and all(isinstance(choice, str) and choice for choice in choices)
            and answers
            and all(type(one) is int and 0 <= one < len(choices) for one in answers)
        ):
            return cls(context, tuple(map(str, choices)), tuple(int(one) for one in answers))  # type: ignore[arg-type]
        raise InputError(
            "a question has a context, choices and the index of the right one",
            where=where,
            received=str(dict(row))[:120],
            allowed='{"context": "…", "choices": [" a", " b"], "answer": 0}',
        )


@dataclass(frozen=True)
class ChoiceScores:
    """Shares of questions that are answered right.

    Attributes:
        acc: By the probability of the whole choice.
        acc_norm: By its logarithm divided by the characters of the choice, lm-eval's acc_norm.
        acc_bytes: Divided by its bytes.
    """

    acc: float
    acc_norm: float
    acc_bytes: float
    questions: int

    def to_dict(self) -> dict[str, float]:
        return dict(vars(self))


def choose(scorer: Scorer, tokenizer: Tokenizer, questions: Sequence[Question]) -> list[np.ndarray]:
    """The log-likelihood of each choice of each question, [C] float64."""
    pairs = [encode_pair(tokenizer, one.context, choice) for one in questions for choice in one.choices]
    scores = iter(scorer.score(pairs))
    return [np.array([next(scores).log_likelihood for _ in one.choices]) for one in questions]


def measure_choices(scorer: Scorer, tokenizer: Tokenizer, questions: Sequence[Question]) -> ChoiceScores:
    """How many questions are answered right. Raises: InputError, where there is none."""
    if not questions:
        raise InputError("there is no question", where="choices", allowed="1 or more")
    right = np.zeros(3)
    for question, logs in zip(questions, choose(scorer, tokenizer, questions)):
        characters = np.array([len(choice) for choice in question.choices])
        size = np.array([len(choice.encode("utf-8", "surrogatepass")) for choice in question.choices])
        best = [int(np.argmax(values)) for values in (logs, logs / characters, logs / size)]
        right += [one in question.answers for one in best]
    acc, norm, of_bytes = (right / len(questions)).tolist()
    return ChoiceScores(acc, norm, of_bytes, len(questions))
