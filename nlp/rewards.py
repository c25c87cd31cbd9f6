"""Rewards that a program can check: what GRPO learns from. A user's own are registered in a file of `imports:`.

@register("reward")
@dataclass(frozen=True)
class Short:
    def __call__(self, prompt: str, answer: str, expected: str) -> float:
        return float(len(answer) < 20)
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from framework.config import register
from framework.core.errors import InputError

_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")


class Reward(Protocol):
    """How good an answer is; the larger the better."""

    __dataclass_fields__: ClassVar[dict]

    def __call__(self, prompt: str, answer: str, expected: str) -> float | None:
        """`expected` is the `answer` of the entry, "" where it has none. `answer` is without its end token. None says
        that this reward does not apply to the entry."""
        ...


def add_rewards(rewards: Sequence[Reward], prompt: str, answer: str, expected: str) -> float:
    """The sum of those that apply. Raises: InputError, where one is no finite number, which would make all answers to
    the prompt teach nothing."""
    total = 0.0
    for reward in rewards:
        value = reward(prompt, answer, expected)
        if value is None:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise InputError(
                "a reward is no number",
                where=f"{type(reward).__name__}, answer {answer[:60]!r}",
                received=repr(value),
                allowed="a finite number, or None where the reward does not apply",
            )
        total += number
    return total


@register("reward")
@dataclass(frozen=True)
class SameText:
    """1 where the answer is the expected one, but for white space around it and, without `case`, capitals; else 0."""

    case: bool = True

    def __call__(self, prompt: str, answer: str, expected: str) -> float:
        actual, right = answer.strip(), expected.strip()
        return float(actual == right if self.case else actual.casefold() == right.casefold())


@register("reward")
@dataclass(frozen=True)
class SameNumber:
    """1 where the last number of the answer is the last one of what is expected, such as of "#### 72"; else `other`,
    and 0 without a number."""

    other: float = 0.0

    def __call__(self, prompt: str, answer: str, expected: str) -> float:
        actual, right = (_NUMBER.findall(text) for text in (answer, expected))
        if not actual or not right:
            return 0.0
        return 1.0 if _value(actual[-1]) == _value(right[-1]) else self.other


def _value(number: str) -> float:
    return float(number.replace(",", ""))


@register("reward")
@dataclass(frozen=True)
class Matches:
    """1 where a regular expression is found in the answer, such as of a format that it should have; else 0."""

    pattern: str

    def __call__(self, prompt: str, answer: str, expected: str) -> float:
        return float(re.search(self.pattern, answer, re.DOTALL) is not None)
