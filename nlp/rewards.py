"""Rewards that a program can check: what GRPO learns from. A user's own are registered in a file of `imports:`.

@register("reward")
@dataclass(frozen=True)
class Short:
    def __call__(self, prompt: str, answer: str, expected: str) -> float:
        return float(len(answer) < 20)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Protocol

from framework.config import register

_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")


class Reward(Protocol):
    """How good an answer is; the larger the better."""

    __dataclass_fields__: ClassVar[dict]

    def __call__(self, prompt: str, answer: str, expected: str) -> float:
        """`expected` is the `answer` of the entry, "" where it has none. `answer` is without its end token."""
        ...


@register("reward")
@dataclass(frozen=True)
class SameText:
    """1 where the answer is the expected one, but for white space around it and, without `case`, capitals; else 0."""

    case: bool = True

    def __call__(self, prompt: str, answer: str, expected: str) -> float:
        found, right = answer.strip(), expected.strip()
        return float(found == right if self.case else found.casefold() == right.casefold())


@register("reward")
@dataclass(frozen=True)
class SameNumber:
    """1 where the last number of the answer is the last one of what is expected, such as of "#### 72"; else `other`,
    and 0 without a number."""

    other: float = 0.0

    def __call__(self, prompt: str, answer: str, expected: str) -> float:
        found, right = (_NUMBER.findall(text) for text in (answer, expected))
        if not found or not right:
            return 0.0
        return 1.0 if _value(found[-1]) == _value(right[-1]) else self.other


def _value(number: str) -> float:
    return float(number.replace(",", ""))


@register("reward")
@dataclass(frozen=True)
class Matches:
    """1 where a regular expression is found in the answer, such as of a format that it should have; else 0."""

    pattern: str

    def __call__(self, prompt: str, answer: str, expected: str) -> float:
        return float(re.search(self.pattern, answer, re.DOTALL) is not None)
