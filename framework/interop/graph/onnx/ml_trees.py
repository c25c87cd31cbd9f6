"""Trees of ai.onnx.ml: TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble, all samples and trees at once.

Source: https://github.com/onnx/onnx/blob/main/docs/Operators-ml.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from framework.interop.graph.onnx.ml import DOMAIN, class_count, labels, numbers, transform
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Item, Value, to_jax
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Array = jax.Array
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
_LEAF, _EQUAL, _MEMBER = 6, 4, 6


@dataclass(frozen=True, eq=False)
class _Trees:
    """Nodes of all trees in one list; the leaves lead to themselves."""

    roots: np.ndarray
    feature: np.ndarray
    mode: np.ndarray
    split: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    missing: np.ndarray  # whether a value that is not there goes to `yes`
    weights: np.ndarray  # [nodes, targets]
    present: np.ndarray  # [nodes, targets]: whether a leaf has a weight for the target

    def depth(self) -> int:
        """Steps from a root to the farthest leaf."""
        level, steps = np.unique(self.roots), 0
        while (self.mode[level] != _LEAF).any() and steps <= len(self.mode):
            inner = level[self.mode[level] != _LEAF]
            level, steps = np.unique(np.concatenate([self.yes[inner], self.no[inner]])), steps + 1
        return steps

    def leaves(self, x: Array) -> Array:
        """The leaf of every sample in every tree, [N, trees]."""
        feature, mode, split, yes, no, missing = map(
            jnp.asarray, (self.feature, self.mode, self.split, self.yes, self.no, self.missing)
        )

        def step(_: int, at: Array) -> Array:
            value = jnp.take_along_axis(x, feature[at], 1)
            edge, kind = split[at], mode[at]
            tests = (value <= edge, value < edge, value >= edge, value > edge, value == edge, value != edge)
            passes = jnp.select([kind == i for i in range(_LEAF)], tests, False)
            passes = passes | (jnp.isnan(value) & missing[at])
            return jnp.where(kind == _LEAF, at, jnp.where(passes, yes[at], no[at]))

        start = jnp.broadcast_to(jnp.asarray(self.roots), (x.shape[0], len(self.roots)))
        return jax.lax.fori_loop(0, self.depth(), step, start)

    def total(self, x: Array, aggregate: str) -> Array:
        """[N, targets]: the weights of the leaves together."""
        at = self.leaves(x)
        weights, there = jnp.asarray(self.weights)[at], jnp.asarray(self.present)[at]
        if aggregate in ("MIN", "MAX"):
            limit = np.inf if aggregate == "MIN" else -np.inf
            best = jnp.where(there, weights, limit)
            best = best.min(1) if aggregate == "MIN" else best.max(1)
            return jnp.where(there.any(1), best, 0)
        summed = weights.sum(1)
        return summed / len(self.roots) if aggregate == "AVERAGE" else summed


def _read(call: Call, side: str, targets: int) -> _Trees:
    """The trees of opset 1 to 4, whose nodes are named by tree and number."""
    trees, ids = np.asarray(call.required("nodes_treeids")), np.asarray(call.required("nodes_nodeids"))
    index = {pair: i for i, pair in enumerate(zip(trees.tolist(), ids.tolist(), strict=True))}
    mode = np.asarray([_MODES.index(name) for name in call.required("nodes_modes")], np.int32)
    numbers_of = np.arange(len(mode), dtype=np.int32)

    def follow(name: str) -> np.ndarray:
        ends = zip(trees.tolist(), call.required(name), mode.tolist(), numbers_of.tolist(), strict=True)
        return np.asarray([i if m == _LEAF else index[tree, int(to)] for tree, to, m, i in ends], np.int32)

    yes, no = follow("nodes_truenodeids"), follow("nodes_falsenodeids")
    targeted = np.zeros(len(mode), bool)
    for children in (yes, no):
        targeted[children[mode != _LEAF]] = True
    roots = np.asarray([i for i in np.sort(np.unique(trees, return_index=True)[1])], np.int32)
    if targeted[roots].any():  # the nodes of a tree in any order: its root is the node that nobody leads to
        roots = np.flatnonzero(~targeted).astype(np.int32)
    weights, present = np.zeros((len(mode), targets), np.float32), np.zeros((len(mode), targets), bool)
    values = numbers(call, f"{side}_weights")
    owners = zip(*(call.required(f"{side}_{name}") for name in ("treeids", "nodeids", "ids")), strict=True)
    for (tree, node, target), value in zip(owners, values.tolist(), strict=True):
        weights[index[tree, node], target] += value
        present[index[tree, node], target] = True
    return _Trees(
        roots, np.asarray(call.required("nodes_featureids"), np.int32), mode, numbers(call, "nodes_values"), yes, no,
        _flags(call, len(mode)), weights, present,
    )  # fmt: skip


def _flags(call: Call, count: int) -> np.ndarray:
    flags = np.asarray(call.attr("nodes_missing_value_tracks_true", ()), bool)
    return flags if flags.size else np.zeros(count, bool)


def _base(call: Call, scores: Array) -> Array:
    base = numbers(call, "base_values")
    return scores + base if base.size else scores


@operator(DOMAIN + "TreeEnsembleRegressor")
def _regressor(call: Call, x: Array) -> Array:
    trees = _read(call, "target", call.attr("n_targets", 1))
    return transform(
        call, _base(call, trees.total(x.astype(jnp.float32), call.attr("aggregate_function", "SUM")))
    )


@operator(DOMAIN + "TreeEnsembleClassifier", style="values")
def _classifier(call: Call, x: Item) -> tuple[Item, Item]:
    count = class_count(call)
    trees, used = _read(call, "class", count), np.unique(call.required("class_ids"))
    scores = trees.total(to_jax(x).astype(jnp.float32), "SUM")
    if count != 2 or len(used) != 1:
        scores = _base(call, scores)
        return labels(call, jnp.argmax(scores, -1).astype(jnp.int32)), Value.of(transform(call, scores))
    # Weights of one of two classes: where none is negative they are shares, else the other class has the opposite.
    base, one = numbers(call, "base_values"), scores[:, int(used[0])]
    one = one + (base[-1] if base.size else 0)
    shares = bool((numbers(call, "class_weights") >= 0).all())
    index = (one > (0.5 if shares else 0)).astype(jnp.int32)
    if call.attr("post_transform", "NONE") == "LOGISTIC" and not shares:
        pair = (F.sigmoid(-one), F.sigmoid(one))
    else:
        pair = (1 - one if shares else -one, one)
    return labels(call, index), Value.of(jnp.stack(pair, -1))


@operator(DOMAIN + "TreeEnsemble")
def _ensemble(call: Call, x: Array) -> Array:
    """The form of opset 5: inner nodes and leaves in two lists, and sets of values for membership."""
    ids, values = (
        np.asarray(call.required("leaf_targetids")),
        np.asarray(call.required("leaf_weights"), np.float32),
    )
    names = ("nodes_modes", "nodes_splits", "nodes_featureids")
    mode, split, feature = (np.asarray(call.required(name)).tolist() for name in names)
    missing = _flags(call, len(mode)).tolist()
    # Behind the inner nodes stand the leaves; `~i` is leaf i until it is known how many inner nodes there are.
    yes, no = (
        [~end if leaf else end for end, leaf in zip(call.required(ends), call.required(leaves), strict=True)]
        for ends, leaves in (
            ("nodes_truenodeids", "nodes_trueleafs"),
            ("nodes_falsenodeids", "nodes_falseleafs"),
        )
    )
    sets = iter(_split_sets(call.attr("membership_values", ())))
    for node in [i for i, m in enumerate(mode) if m == _MEMBER]:
        first, *others = next(sets)
        mode[node], split[node] = _EQUAL, first
        for value in others:  # a test for each of the values, one behind the other
            last = (_EQUAL, value, feature[node], False, yes[node], no[node])
            for column, entry in zip((mode, split, feature, missing, yes, no), last, strict=True):
                column.append(entry)
            no[node], node = len(mode) - 1, len(mode) - 1
    inner, leaves = len(mode), len(ids)
    weights = np.zeros((inner + leaves, call.attr("n_targets", 1)), np.float32)
    weights[inner + np.arange(leaves), ids] = values
    present = np.zeros(weights.shape, bool)
    present[inner + np.arange(leaves), ids] = True

    def extended(column: Sequence[float], fill: Sequence[float], dtype: type) -> np.ndarray:
        return np.asarray([*column, *fill], dtype)

    numbers_of = [inner + i for i in range(leaves)]
    trees = _Trees(
        np.asarray(call.required("tree_roots"), np.int32),
        extended(feature, [0] * leaves, np.int32),
        extended(mode, [_LEAF] * leaves, np.int32),
        extended(split, [0] * leaves, np.float32),
        extended([inner + ~end if end < 0 else end for end in yes], numbers_of, np.int32),
        extended([inner + ~end if end < 0 else end for end in no], numbers_of, np.int32),
        extended(missing, [False] * leaves, bool),
        weights,
        present,
    )
    aggregate = ("AVERAGE", "SUM", "MIN", "MAX")[call.attr("aggregate_function", 1)]
    return transform(call, trees.total(x.astype(jnp.float32), aggregate))


def _split_sets(values: Sequence[float]) -> list[list[float]]:
    """Sets of values, which NaNs part."""
    array = np.asarray(values, np.float32).reshape(-1)
    return [part[~np.isnan(part)].tolist() for part in np.split(array, np.flatnonzero(np.isnan(array)))]
