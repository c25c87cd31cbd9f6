"""Recommendation: how likely a click is, and which items a user takes next.

from zoo.recommendation import predictor

rank = predictor("deepfm_criteo_tiny")
print(rank({"I1": "3", "C1": "68fd1e64"}).score)
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoo.recommendation.domain import Recommender

    predictor: Callable[..., Recommender]


def __getattr__(name: str) -> object:
    if name == "predictor":
        from zoo.recommendation.domain import predictor

        return predictor
    raise AttributeError(f"module 'zoo.recommendation' has no attribute {name!r}")
