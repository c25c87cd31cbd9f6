"""Whether two results of the same file say the same: what a domain counts, and what any result allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from framework.workflow.domain.result import Json, Result

_LEFT_OUT = ("source", "seconds")  # where a result came from and how long it took
_ROUNDING = 1e-3


@dataclass(frozen=True)
class Comparison:
    """What is equal in two results, or in many pairs of them.

    Attributes:
        equal, total: How many of the things that are counted are the same in both.
        differences: The largest difference of matching things, by what differs: {"px": 0.2, "score": 1e-4}.
    """

    equal: int = 0
    total: int = 0
    differences: Mapping[str, float] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Of what is equal; 1 where there is nothing in either."""
        return self.equal / self.total if self.total else 1.0

    def __add__(self, other: Comparison) -> Comparison:
        names = {**self.differences, **other.differences}
        worst = {
            name: max(self.differences.get(name, 0.0), other.differences.get(name, 0.0)) for name in names
        }
        return Comparison(self.equal + other.equal, self.total + other.total, worst)


@dataclass(frozen=True)
class ResultComparison:
    """How a domain compares results of one file.

    Attributes:
        counts: What is counted: "lines", "boxes".
        least: The share that has to be equal.
        compare: Of the reference's result and another's.
    """

    counts: str
    least: float
    compare: Callable[..., Comparison]


@dataclass(frozen=True)
class ContentComparison:
    """What of a domain's results counts where numbers are rounded: how `oar quantize` holds a pipeline, for which there
    are no labelled data.

    Attributes:
        counts: What is counted: "words".
        compare: Of the reference's result and another's. Things of either are counted, so that the share is their F1.
    """

    counts: str
    compare: Callable[..., Comparison]


def compare_json(reference: Result, other: Result) -> Comparison:
    """One thing is counted, the whole of `to_dict`, whose numbers may differ by a thousandth."""
    distance = _distance(reference.to_dict(), other.to_dict())
    same = distance <= _ROUNDING
    return Comparison(int(same), 1, {} if math.isinf(distance) else {"value": distance})


def _distance(one: Json, other: Json) -> float:
    """The largest difference of two numbers in equal places; infinite where anything else differs."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names, others = ({name for name in data if name not in _LEFT_OUT} for data in (one, other))
        if names != others:
            return math.inf
        return max((_distance(one[name], other[name]) for name in names), default=0.0)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return math.inf
        return max(map(_distance, one, other), default=0.0)
    if isinstance(one, int | float) and isinstance(other, int | float) and not isinstance(one, bool):
        return abs(one - other)
    return 0.0 if one == other else math.inf


ANY_RESULT = ResultComparison("results", 1.0, compare_json)
