"""Scores of ranked lists: recall, hit rate, NDCG and reciprocal rank at k, with ties averaged.

Items with equal scores share the mean of their ranks, so that a scorer that says the same of all items wins nothing.
"""

from __future__ import annotations

import numpy as np
from jax.typing import ArrayLike

from framework.core.errors import ShapeError


def ranks_of(scores: ArrayLike, relevant: ArrayLike) -> np.ndarray:
    """The rank from 1 of each relevant item, best first, ascending [R]; ties have the mean of their ranks.

    Args:
        scores: [V]; -inf takes an item out of the list.
        relevant: Indices of items, or bool [V].

    Raises:
        ShapeError: the scores are no vector, or a relevant item is none of them.
    """
    values = np.asarray(scores, np.float64)
    index = np.asarray(relevant)
    index = np.flatnonzero(index) if index.dtype == bool else index.reshape(-1)
    if values.ndim != 1 or (index.size and not 0 <= index.min() <= index.max() < values.size):
        raise ShapeError(
            "scores and relevant items do not fit",
            received=f"scores {values.shape}, items {index.tolist()[:5]}",
            allowed="scores [V] and indices below V",
        )
    own_scores = values[index][:, None]
    above = (values[None] > own_scores).sum(axis=1)
    equal = (values[None] == own_scores).sum(axis=1)
    ranks = above + (equal + 1) / 2.0
    return np.sort(np.where(np.isneginf(values[index]), np.inf, ranks))


def hit_rate(ranks: np.ndarray, k: int) -> float:
    """1 where a relevant item is among the first k."""
    return float((ranks <= k).any())


def recall(ranks: np.ndarray, k: int) -> float:
    """The share of the relevant items among the first k."""
    return float((ranks <= k).mean()) if ranks.size else 0.0


def ndcg(ranks: np.ndarray, k: int) -> float:
    """The discounted gain of the first k over that of the best list. Source: Jarvelin and Kekalainen 2002."""
    best = (1 / np.log2(np.arange(1, min(k, ranks.size) + 1) + 1)).sum()
    gain = (1 / np.log2(ranks[ranks <= k] + 1)).sum()
    return float(gain / best) if ranks.size else 0.0


def reciprocal_rank(ranks: np.ndarray, k: int) -> float:
    """1 / rank of the first relevant item; 0 beyond k."""
    return float(1 / ranks[0]) if ranks.size and ranks[0] <= k else 0.0


RANKING_SCORES = {"hr": hit_rate, "ndcg": ndcg, "mrr": reciprocal_rank, "recall": recall}
"""Functions (ranks, k) by the names that results have."""
