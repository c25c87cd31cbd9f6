"""What models of this domain say: probabilities of a row, or the items that a user takes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from framework.workflow.domain.result import Json, Result, read_result


class _ItemData(TypedDict):
    item: str
    score: float


class _RecommendationData(TypedDict):
    items: list[_ItemData]
    warnings: NotRequired[list[str]]


class _ScoreData(TypedDict):
    scores: dict[str, float]
    warnings: NotRequired[list[str]]


@dataclass(frozen=True)
class RowScores(Result):
    """Probabilities of a row.

    Attributes:
        scores: By task, such as {"click": 0.03}; those of a chain are of all steps up to there.
        warnings: What of the row was not read.
    """

    scores: Mapping[str, float]
    warnings: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def score(self) -> float:
        """Of the first task."""
        return next(iter(self.scores.values()))

    def to_dict(self) -> dict[str, Json]:
        return {
            "scores": {name: round(score, 7) for name, score in self.scores.items()},
            **_notes(self.warnings),
        }


@dataclass(frozen=True)
class Item:
    """An item with its score: only the order of scores means something."""

    item: str
    score: float


@dataclass(frozen=True)
class Recommendations(Result):
    """The best items for a user, best first. `warnings` say what of the row was not read."""

    items: tuple[Item, ...]
    warnings: tuple[str, ...] = field(default=(), kw_only=True)

    def to_dict(self) -> dict[str, Json]:
        items = [{"item": one.item, "score": round(one.score, 6)} for one in self.items]
        return {"items": items, **_notes(self.warnings)}


def _notes(warnings: tuple[str, ...]) -> dict[str, Json]:
    return {"warnings": list(warnings)} if warnings else {}


def result_from_dict(data: Mapping[str, Json]) -> RowScores | Recommendations:
    """The result that `to_dict` wrote. Raises: FormatError."""
    if "items" in data:
        return read_result(data, _read_recommendations, "items, each with item and score")
    return read_result(data, _read_scores, "scores by task")


def _read_recommendations(data: _RecommendationData) -> Recommendations:
    items = tuple(Item(one["item"], one["score"]) for one in data["items"])
    return Recommendations(items, warnings=tuple(data.get("warnings", ())))


def _read_scores(data: _ScoreData) -> RowScores:
    return RowScores(dict(data["scores"]), warnings=tuple(data.get("warnings", ())))
