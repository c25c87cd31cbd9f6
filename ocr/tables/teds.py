"""How alike tables are: TEDS, the similarity of their trees, with text and without.

Source: Zhong et al. 2020, https://arxiv.org/abs/1911.10683, section 5; ibm-aur-nlp/PubTabNet src/metric.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from framework.core.errors import InputError
from ocr.tables.html import Node, TableTree, read_table
from ocr.tables.tree_distance import PostOrder, tree_distance
from ocr.text.scores import edit_distance

# What the distance is divided by: the larger number of elements below `table`, as PubTabNet's own code counts, or the
# larger number of nodes of the tree, of which `table` is one and what stands inside of cells is none.
Divisor = Literal["elements", "nodes"]
_WORD = 64


def teds(found: str, wanted: str, *, structure_only: bool = False, divisor: Divisor = "elements") -> float:
    """1 less the edit distance of two tables' trees over the size of the larger one: 1 for equal tables.

    Args:
        found, wanted: HTML with a table in it; other text gives 0.
        structure_only: TEDS-S: cells are compared without what they say.
        divisor: "elements" is what published scores use; "nodes" is what the package table-recognition-metric uses.

    Raises:
        InputError: there is no such divisor.
    """
    if divisor not in get_args(Divisor):
        raise InputError(
            "there is no such divisor",
            where="divisor",
            received=divisor,
            allowed=", ".join(get_args(Divisor)),
        )
    one, other = read_table(found), read_table(wanted)
    if one is None or other is None:
        return 0.0
    return tree_similarity(one, other, structure_only=structure_only, divisor=divisor)


def tree_similarity(
    one: TableTree, other: TableTree, *, structure_only: bool = False, divisor: Divisor = "elements"
) -> float:
    """`teds` of tables that are read already."""
    first, first_order = _number(one.root)
    second, second_order = _number(other.root)
    rename = _rename_costs(first, second, structure_only)
    distance = tree_distance(first_order, second_order, rename)
    size = max(len(first), len(second)) if divisor == "nodes" else max(one.elements, other.elements)
    return 1.0 - distance / size if size else 1.0


@dataclass
class TableScores:
    """Means over tables: `teds` and `teds_structure` of all, and `teds_simple`, `teds_complex` of those without and
    with spans where both kinds came; `divisor` as of `teds`."""

    divisor: Divisor = "elements"

    def __post_init__(self) -> None:
        self._rows: list[tuple[float, float, bool]] = []

    def add(self, found: str, wanted: str) -> None:
        """Take in one table. Raises: InputError, where the wanted one is none."""
        one, other = read_table(found), read_table(wanted)
        if other is None:
            raise InputError("the label holds no table", received=wanted[:80], allowed="HTML with <table>")
        complex_ = any(node.colspan > 1 or node.rowspan > 1 for node in _number(other.root)[0])
        both = (False, True)
        scores = [
            0.0 if one is None else tree_similarity(one, other, structure_only=only, divisor=self.divisor)
            for only in both
        ]
        self._rows.append((scores[0], scores[1], complex_))

    def result(self) -> dict[str, float]:
        """Empty for no table."""
        if not self._rows:
            return {}
        found = {
            "teds": _mean(row[0] for row in self._rows),
            "teds_structure": _mean(row[1] for row in self._rows),
        }
        kinds = {row[2] for row in self._rows}
        if len(kinds) == 2:
            found["teds_simple"] = _mean(row[0] for row in self._rows if not row[2])
            found["teds_complex"] = _mean(row[0] for row in self._rows if row[2])
        return found


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _number(root: Node) -> tuple[list[Node], PostOrder]:
    """The nodes of a tree, children before parents, and their numbering."""
    nodes: list[Node] = []
    children: list[list[int]] = []

    def visit(node: Node) -> int:
        below = [visit(child) for child in node.children]
        nodes.append(node)
        children.append(below)
        return len(nodes) - 1

    visit(root)
    return nodes, PostOrder(children)


def _rename_costs(first: Sequence[Node], second: Sequence[Node], structure_only: bool) -> np.ndarray:
    """[n, m]: 1 for other tags or spans, between two cells the normalised distance of their tokens, else 0."""
    kinds: dict[tuple[str, int, int], int] = {}
    one, other = (
        np.array([kinds.setdefault((node.tag, node.colspan, node.rowspan), len(kinds)) for node in nodes])
        for nodes in (first, second)
    )
    costs = (one[:, None] != other[None, :]).astype(np.float64)
    if structure_only:
        return costs
    words: dict[tuple[str, ...], int] = {}
    at = [[words.setdefault(tuple(node.tokens), len(words)) for node in nodes] for nodes in (first, second)]
    texts, uses = list(words), [sorted(set(places)) for places in at]
    ranks = [{place: rank for rank, place in enumerate(used)} for used in uses]
    table = token_distances([texts[i] for i in uses[0]], [texts[i] for i in uses[1]])
    rows, columns = (np.array([rank[i] for i in places]) for rank, places in zip(ranks, at))
    return np.maximum(costs, table[np.ix_(rows, columns)])


def token_distances(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]]) -> np.ndarray:
    """[n, m] float64: Levenshtein distances of lists of tokens over the longer length, 0 for two empty ones.

    Bit-parallel over all pairs at once where the shorter side has up to 64 tokens. Source: as of `edit_distance`.
    """
    symbols: dict[str, int] = {}
    one, other = (
        [[symbols.setdefault(t, len(symbols)) for t in item] for item in side] for side in (first, second)
    )
    sizes = np.array([len(item) for item in one], np.int64), np.array([len(item) for item in other], np.int64)
    longest = np.maximum(sizes[0][:, None], sizes[1][None, :])
    distance = longest.astype(np.float64)  # where one is empty
    short = [i for i, item in enumerate(one) if 0 < len(item) <= _WORD]
    filled = [j for j, item in enumerate(other) if item]
    if short and filled:
        pairs = _bit_parallel([one[i] for i in short], [other[j] for j in filled], len(symbols))
        distance[np.ix_(short, filled)] = pairs
    for i, item in enumerate(one):
        if len(item) > _WORD:
            for j in filled:
                distance[i, j] = edit_distance(item, other[j])
    return distance / np.maximum(longest, 1)


def _bit_parallel(
    first: Sequence[Sequence[int]], second: Sequence[Sequence[int]], symbols: int
) -> np.ndarray:
    """Levenshtein distances [n, m] of lists of numbers, those of `first` with 1 to 64 of them."""
    masks = np.zeros((len(first), symbols + 1), np.uint64)
    for row, item in enumerate(first):
        for place, symbol in enumerate(item):
            masks[row, symbol] |= np.uint64(1 << place)
    lengths = np.array([len(item) for item in second])
    order = np.argsort(-lengths, kind="stable")  # longest first: what is done stands at the end
    text = np.full((len(second), int(lengths.max())), symbols)
    for row, place in enumerate(order):
        text[row, : lengths[place]] = second[place]
    shape = (len(first), len(second))
    last = np.array([1 << (len(item) - 1) for item in first], np.uint64)[:, None]
    up, down = np.full(shape, ~np.uint64(0)), np.zeros(shape, np.uint64)
    distance = np.repeat(np.array([len(item) for item in first])[:, None], len(second), axis=1)
    one_bit = np.uint64(1)
    for step in range(text.shape[1]):
        active = int((lengths[order] > step).sum())
        u, d = up[:, :active], down[:, :active]
        match = masks[:, text[:active, step]]
        diagonal = (((match & u) + u) ^ u) | match | d
        rises, falls = d | ~(diagonal | u), u & diagonal
        distance[:, :active] += ((rises & last) != 0).astype(np.int64) - ((falls & last) != 0)
        rises, falls = rises << one_bit | one_bit, falls << one_bit
        up[:, :active], down[:, :active] = falls | ~(diagonal | rises), rises & diagonal
    found = np.empty(shape, np.int64)
    found[:, order] = distance
    return found
