"""Edit distance of ordered trees, computed for many pairs of subtrees at once.

Source: Zhang and Shasha 1989, https://doi.org/10.1137/0218082
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_MOST_CELLS = 4_000_000  # of one table of the dynamic program


class PostOrder:
    """The numbering of a tree that the distance needs.

    Attributes:
        lefts: [n] int: the first node of the subtree of each node; nodes are numbered from 0, children before parents.
        roots: Nodes with a left sibling and the root, in groups by their subtrees' heights, lower ones first: what is
            in one group does not depend on one another.
    """

    def __init__(self, children: Sequence[Sequence[int]]) -> None:
        """`children` of each node by their numbers, in post-order."""
        count = len(children)
        self.lefts = np.arange(count)
        heights, starts = [0] * count, [True] * count
        for node, below in enumerate(children):
            if below:
                self.lefts[node] = self.lefts[below[0]]
                heights[node] = 1 + max(heights[child] for child in below)
                starts[below[0]] = False
        groups: dict[int, list[int]] = {}
        for node in range(count):
            if starts[node]:
                groups.setdefault(heights[node], []).append(node)
        self.roots = [groups[height] for height in sorted(groups)]

    def __len__(self) -> int:
        return len(self.lefts)


def tree_distance(one: PostOrder, other: PostOrder, rename: np.ndarray) -> float:
    """The least cost to turn a tree into another one: inserting or deleting a node costs 1.

    Args:
        rename: [n, m] float64: what it costs to turn a node of `one` into a node of `other`.
    """
    if not len(one) or not len(other):
        return float(len(one) + len(other))
    distances = np.zeros((len(one) + 1, len(other) + 1))  # with a last row and column that padding points to
    padded = np.zeros((len(one) + 1, len(other) + 1))
    padded[:-1, :-1] = rename
    for first in one.roots:
        for second in other.roots:
            longest = (1 + int((first - one.lefts[first]).max()) + 1) * (
                1 + int((second - other.lefts[second]).max()) + 1
            )
            step = max(1, _MOST_CELLS // (longest * len(second)))
            for start in range(0, len(first), step):
                _compare(one, other, padded, distances, first[start : start + step], second)
    return float(distances[-2, -2])


def _compare(
    one: PostOrder,
    other: PostOrder,
    rename: np.ndarray,
    distances: np.ndarray,
    first: Sequence[int],
    second: Sequence[int],
) -> None:
    """Fills in the distances of all pairs of subtrees whose leftmost paths begin in `first` and `second`.

    `forest[a, b, i, j]`: of the first i nodes of root a's subtree and the first j of root b's.
    """
    nodes, valid = _members(one, first)  # [A, I]
    others, other_valid = _members(other, second)  # [B, J]
    rows, columns = nodes.shape[1], others.shape[1]
    forest = np.empty((len(first), len(second), rows + 1, columns + 1))
    steps = np.arange(columns + 1, dtype=np.float64)
    forest[:, :, 0] = steps
    # Where a node's own subtree begins, as a column of `forest`, and whether that is the subtree's first node.
    begins = np.where(other_valid, _lefts(other, others) - others[:, :1], 0)  # [B, J]
    on_path = begins == 0
    column = np.arange(len(second))[:, None]
    a_index = np.arange(len(first))[:, None, None]
    for i in range(rows):
        node = nodes[:, i]  # [A]
        above = forest[:, :, i]
        begin = np.where(valid[:, i], _lefts(one, node) - nodes[:, 0], 0)  # [A]
        both = (begin == 0)[:, None, None] & on_path[None]
        whole = above[:, :, :-1] + rename[node][:, others]
        before = forest[a_index, column[None], begin[:, None, None], begins[None]]
        apart = before + distances[node][:, others]
        row = np.minimum(above[:, :, 1:] + 1.0, np.where(both, whole, apart))
        # Insertions run along the row: the least of row[k] + (j - k).
        best = np.concatenate([forest[:, :, :1, 0] + i + 1.0, row], axis=-1) - steps
        forest[:, :, i + 1] = np.minimum.accumulate(best, axis=-1) + steps
        fill = both & valid[:, i, None, None] & other_valid[None]
        a, b, j = np.nonzero(fill)
        distances[node[a], others[b, j]] = forest[a, b, i + 1, j + 1]


def _members(tree: PostOrder, roots: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of each root's subtree [K, longest], padded with the number behind the last node, and which count."""
    last = np.asarray(roots)[:, None]
    left = tree.lefts[roots][:, None]
    places = left + np.arange(int((last - left).max()) + 1)
    valid = places <= last
    return np.where(valid, places, len(tree)), valid


def _lefts(tree: PostOrder, nodes: np.ndarray) -> np.ndarray:
    return np.append(tree.lefts, 0)[nodes]
