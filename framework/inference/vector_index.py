"""The nearest of many vectors: a product and `top_k`, which is exact and fast up to some million of them.

Beyond that an index of faiss, an extra: its default efSearch of 16 finds 62 of 100 neighbours of clustered vectors.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import ConfigError, MissingExtraError, ShapeError
from framework.core.lazy import LazyModule

if TYPE_CHECKING:
    import jax
else:
    jax = LazyModule("jax")  # a domain is known without it

_QUERIES = 128  # that run together


@functools.cache
def _search() -> Callable[..., tuple[jax.Array, jax.Array]]:
    """(vectors [V, D], queries [N, D], top) -> (products, indices), [N, top] each; compiled at its first use."""

    def run(vectors: jax.Array, queries: jax.Array, top: int) -> tuple[jax.Array, jax.Array]:
        return jax.lax.top_k(queries @ vectors.T, top)

    return jax.jit(run, static_argnames="top")


class _Graph(Protocol):
    """What is used of an index of faiss."""

    def search(self, x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]: ...


class VectorIndex:
    """Finds the vectors with the largest inner products.

    Args:
        vectors: [V, D].
        backend: exact, or faiss: HNSW graphs, approximate.
        ef_search: Of faiss, how many candidates are looked at; 256 finds about 97 of 100.

    Raises:
        ShapeError: these are no vectors. MissingExtraError: faiss is not installed.
    """

    def __init__(
        self, vectors: ArrayLike, backend: Literal["exact", "faiss"] = "exact", ef_search: int = 256
    ) -> None:
        self.vectors = np.ascontiguousarray(vectors, np.float32)
        if self.vectors.ndim != 2 or not self.vectors.size:
            raise ShapeError("an index needs vectors", received=list(self.vectors.shape), allowed="[V, D]")
        if backend not in ("exact", "faiss") or ef_search < 1:
            raise ConfigError(
                "unknown kind of index",
                received=f"{backend}, ef_search {ef_search}",
                allowed="exact or faiss, from 1",
            )
        self._graph: _Graph | None = None
        if backend == "faiss":
            try:
                faiss = importlib.import_module("faiss")
            except ImportError as error:
                raise MissingExtraError("faiss", "faiss", "approximate indices of items") from error
            graph = faiss.IndexHNSWFlat(self.vectors.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
            graph.hnsw.efSearch = ef_search
            graph.add(self.vectors)
            self._graph = graph

    def search(
        self, queries: ArrayLike, top: int, exclude: Sequence[Sequence[int]] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(scores, indices) [N, top] of queries [N, D], best first; -1 where there are not so many items.

        Args:
            exclude: Of each query the indices that are left out.
        """
        array = np.atleast_2d(np.asarray(queries, np.float32))
        if array.shape[1] != self.vectors.shape[1] or top < 1:
            raise ShapeError(
                "queries do not fit the index",
                received=f"{list(array.shape)}, top {top}",
                allowed=f"[N, {self.vectors.shape[1]}], top from 1",
            )
        most = max((len(set(one)) for one in exclude), default=0) if exclude is not None else 0
        wide = min(top + most, len(self.vectors))
        scores, indices = self._nearest(array, wide)
        if exclude is not None:
            for row, left_out in enumerate(exclude):
                keep = ~np.isin(indices[row], list(left_out))
                order = np.argsort(~keep, kind="stable")
                scores[row] = np.where(keep[order], scores[row][order], -np.inf)
                indices[row] = np.where(keep[order], indices[row][order], -1)
        missing = max(0, top - wide)
        scores = np.pad(scores[:, :top], ((0, 0), (0, missing)), constant_values=-np.inf)
        return scores, np.pad(indices[:, :top], ((0, 0), (0, missing)), constant_values=-1)

    def _nearest(self, queries: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        if self._graph is not None:
            scores, indices = self._graph.search(queries, count)
            return np.array(scores), np.array(indices)
        blocks = []
        for first in range(0, len(queries), _QUERIES):
            block = queries[first : first + _QUERIES]
            padded = np.pad(block, ((0, _QUERIES - len(block)), (0, 0)))  # one shape is compiled
            scores, indices = _search()(self.vectors, padded, count)
            blocks.append((np.array(scores)[: len(block)], np.array(indices)[: len(block)]))
        return np.concatenate([one for one, _ in blocks]), np.concatenate([one for _, one in blocks])
