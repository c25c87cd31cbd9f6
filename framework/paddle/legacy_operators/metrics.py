"""Metrics that Paddle's older programs compute by operators, and conditional random fields.

Source: paddle/fluid/operators/{metrics,chunk_eval_op,positive_negative_pair_op,linear_chain_crf_op,crf_decoding_op}
"""

from __future__ import annotations

import itertools
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from framework.paddle.legacy_operators.operands import (
    Operands,
    Outputs,
    Ragged,
    Table,
    offsets_of,
    pad,
    registrar,
)

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Chunk = tuple[int, int, int]  # first row, last row, type


@operator("positive_negative_pair")
def _positive_negative_pair(a: Operands) -> Outputs:
    """How many pairs of a query are in the order of their labels, in the other one, or tied."""
    score, label = a.host("Score")[:, a.attr("column", -1)], a.host("Label").ravel()
    query = a.host("QueryID").ravel()
    weight = np.ones(len(label)) if a.get("Weight") is None else a.host("Weight").ravel()
    first, second = np.triu_indices(len(label), 1)
    counts = (query[first] == query[second]) & (label[first] != label[second])
    first, second = first[counts], second[counts]
    weights = (weight[first] + weight[second]) / 2
    order = (score[first] - score[second]) * (label[first] - label[second])
    tied = score[first] == score[second]
    sums = {"Positive": ~tied & (order > 0), "Negative": ~tied & (order <= 0), "Neutral": tied}
    out: dict[str, np.ndarray] = {}
    for kind, mask in sums.items():
        before = a.get(f"Accumulate{kind}Pair")
        total = weights[mask].sum() + (0 if before is None else float(np.asarray(before).ravel()[0]))
        out[f"{kind}Pair"] = np.array([total], np.float32)
    return out


def _ratio(count: np.ndarray, rest: np.ndarray, empty: float) -> np.ndarray:
    return np.where(count + rest > 0, count / np.maximum(count + rest, 1e-30), empty)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _precision_metrics(states: np.ndarray) -> np.ndarray:
    """Macro and micro average of precision, recall and F1; a row of `states` has TP, FP, TN and FN of a class."""
    macro = [float(_ratio(states[:, 0], states[:, column], 1.0).mean()) for column in (1, 3)]
    total = states.sum(0, keepdims=True)
    micro = [float(_ratio(total[:, 0], total[:, column], 1.0)[0]) for column in (1, 3)]
    return np.array([*macro, _f1(*macro), *micro, _f1(*micro)])


@operator("precision_recall")
def _precision_recall(a: Operands) -> Outputs:
    index, label = a.host("Indices").ravel(), a.host("Labels").ravel()
    classes = a.attr("class_number", 1)
    weight = np.ones(len(label)) if a.get("Weights") is None else a.host("Weights").ravel()
    states = np.zeros((classes, 4))
    right = index == label
    np.add.at(states[:, 0], index[right], weight[right])
    np.add.at(states[:, 1], index[~right], weight[~right])
    np.add.at(states[:, 3], label[~right], weight[~right])
    states[:, 2] = weight.sum() - states[:, 0] - states[:, 1] - states[:, 3]
    total = states if a.get("StatesInfo") is None else states + a.host("StatesInfo")
    return {
        "BatchMetrics": _precision_metrics(states),
        "AccumMetrics": _precision_metrics(total),
        "AccumStatesInfo": total.astype(np.float32),
    }


@operator("auc")
def _auc(a: Operands) -> Outputs:
    """The area under the ROC curve from histograms of scores; `slide_steps` are kept one behind the other, their sum
    behind them, and at the end the number of calls."""
    bins, steps = a.attr("num_thresholds", 4095), a.attr("slide_steps", 1)
    score, label = a.host("Predict")[:, -1], a.host("Label").ravel()
    weights = np.ones(len(label)) if a.get("InsTagWeight") is None else a.host("InsTagWeight").ravel()
    index = (score * bins).astype(np.int64)
    out: dict[str, np.ndarray] = {}
    totals: list[np.ndarray] = []
    for slot, mask in (("StatPos", label > 0), ("StatNeg", label <= 0)):
        state = a.host(slot)
        counts = np.bincount(index[mask], weights[mask], bins + 1).astype(np.int64)
        flat = state.ravel().copy()
        if steps == 0:
            flat[: bins + 1] += counts
            totals.append(flat[: bins + 1])
        else:
            current = int(flat[-1]) % steps * (bins + 1)
            summed = slice(steps * (bins + 1), (steps + 1) * (bins + 1))
            flat[summed] += counts - flat[current : current + bins + 1]
            flat[current : current + bins + 1] = counts
            flat[-1] += 1
            totals.append(flat[summed])
        out[f"{slot}Out"] = flat.reshape(state.shape)
    out["AUC"] = np.array(_area(*totals))
    return cast("Outputs", out)


def _area(positive: np.ndarray, negative: np.ndarray) -> float:
    hits, misses = np.cumsum(positive[::-1]), np.cumsum(negative[::-1])
    heights = hits + np.concatenate([[0], hits[:-1]])
    area = (negative[::-1] * heights / 2).sum()
    return float(area / (hits[-1] * misses[-1])) if hits[-1] and misses[-1] else 0.0


_SCHEMES = {"plain": 1, "IOB": 2, "IOE": 2, "IOBES": 4}


def _chunks(tags: np.ndarray, scheme: str, types: int, excluded: list[int]) -> list[Chunk]:
    """The chunks of one sequence: a tag is type * tags of the scheme + position, types * tags is outside."""
    width = _SCHEMES[scheme]
    position, kind = tags % width, tags // width
    chunks: list[Chunk] = []
    start = -1
    for row in range(len(tags)):
        outside = kind[row] >= types
        follows = start >= 0 and kind[row] == kind[row - 1] and not outside
        if scheme == "IOB":
            follows = follows and position[row] == 1
        elif scheme == "IOE":
            follows = follows and position[row - 1] != 1
        elif scheme == "IOBES":
            follows = follows and position[row] in (1, 2) and position[row - 1] in (0, 1)
        if start >= 0 and not follows:
            chunks.append((start, row - 1, int(kind[start])))
            start = -1
        if start < 0 and not outside:
            start = row
    if start >= 0:
        chunks.append((start, len(tags) - 1, int(kind[start])))
    return [chunk for chunk in chunks if chunk[2] not in excluded]


@operator("chunk_eval")
def _chunk_eval(a: Operands) -> Outputs:
    settings = (
        a.attr("chunk_scheme", "IOB"),
        a.attr("num_chunk_types", 1),
        a.attr("excluded_chunk_types", cast("list[int]", [])),
    )
    inferred, label = a.host("Inference"), a.host("Label")
    if a.get("SeqLength") is not None:
        lengths = a.host("SeqLength").ravel()
        pairs = [(i.ravel()[:n], j.ravel()[:n]) for i, j, n in zip(inferred, label, lengths)]
    else:
        bounds = itertools.pairwise(offsets_of(a.lengths("Label")))
        pairs = [(inferred.ravel()[start:end], label.ravel()[start:end]) for start, end in bounds]
    counts = np.zeros(3, np.int64)
    for one, other in pairs:
        first, second = _chunks(one, *settings), _chunks(other, *settings)
        counts += (len(first), len(second), len(set(first) & set(second)))
    precision, recall = (float(counts[2] / n) if n else 0.0 for n in counts[:2])
    return {
        "Precision": np.array([precision], np.float32),
        "Recall": np.array([recall], np.float32),
        "F1-Score": np.array([_f1(precision, recall)], np.float32),
        "NumInferChunks": counts[:1],
        "NumLabelChunks": counts[1:2],
        "NumCorrectChunks": counts[2:],
    }


def _padded(a: Operands, slot: str) -> tuple[jax.Array, np.ndarray]:
    """(values as [sequence, step, ...], lengths), whether they lie padded or one after the other."""
    if a.get("Length") is not None:
        return a.array(slot), a.host("Length").ravel()
    lengths = a.lengths(slot)
    return pad(a.array(slot), lengths, int(lengths.max(initial=0))), lengths


@operator("linear_chain_crf")
def _linear_chain_crf(a: Operands) -> Outputs:
    """Minus the log of the probability of the labels; the rows of Transition are the first tag, the last, and pairs."""
    x, lengths = _padded(a, "Emission")
    label = _padded(a, "Label")[0].reshape(x.shape[:2])
    transition = a.array("Transition")
    first, last, pairs = transition[0], transition[1], transition[2:]
    counts = (np.arange(x.shape[1]) < lengths[:, None])[..., None]
    scores = [first + x[:, 0]]
    for step in range(1, x.shape[1]):
        new = jax.nn.logsumexp(scores[-1][:, :, None] + pairs, 1) + x[:, step]
        scores.append(jnp.where(counts[:, step], new, scores[-1]))
    total = jax.nn.logsumexp(scores[-1] + last, 1)
    emitted = jnp.take_along_axis(x, label[..., None], 2)[..., 0]
    between = pairs[label[:, :-1], label[:, 1:]]
    ends = np.maximum(lengths - 1, 0)
    inside = counts[..., 0]
    path = jnp.where(inside, emitted, 0).sum(1) + jnp.where(inside[:, 1:], between, 0).sum(1)
    path = path + first[label[:, 0]] + last[label[np.arange(len(label)), ends]]
    likelihood = jnp.where(lengths > 0, total - path, 0)
    alpha = jnp.stack(scores, 1)
    flat = a.get("Length") is None
    rows = (np.repeat(np.arange(len(lengths)), lengths), np.concatenate([np.arange(n) for n in lengths]))
    exps = jnp.exp(x - x.max(-1, keepdims=True))
    return {
        "Alpha": jax.nn.softmax(alpha, -1)[rows] if flat else jnp.where(counts, jax.nn.softmax(alpha, -1), 0),
        "EmissionExps": exps[rows] if flat else jnp.where(counts, exps, 0),
        "TransitionExps": jnp.exp(transition),
        "LogLikelihood": likelihood[:, None],
    }


def _best_path(x: np.ndarray, transition: np.ndarray) -> np.ndarray:
    score, tracks = transition[0] + x[0], []
    for row in x[1:]:
        both = score[:, None] + transition[2:]
        tracks.append(both.argmax(0))
        score = both.max(0) + row
    path = [int((score + transition[1]).argmax())]
    for track in reversed(tracks):
        path.append(int(track[path[-1]]))
    return np.array(path[::-1], np.int64)


@operator("crf_decoding")
def _crf_decoding(a: Operands) -> Outputs:
    """The best path; with Label, 1 where it agrees."""
    emission, transition, label = a.host("Emission"), a.host("Transition"), a.get("Label")
    if a.get("Length") is not None:
        lengths = a.host("Length").ravel()
        path = np.zeros(emission.shape[:2], np.int64)
        for row, (x, length) in enumerate(zip(emission, lengths)):
            path[row, :length] = _best_path(x[:length], transition) if length else []
        if label is not None:
            inside = np.arange(emission.shape[1]) < lengths[:, None]
            path = ((path == np.asarray(label).reshape(path.shape)) & inside).astype(np.int64)
        return {"ViterbiPath": path}
    bounds = itertools.pairwise(offsets_of(a.lengths("Emission")))
    path = np.concatenate(
        [_best_path(emission[start:end], transition) for start, end in bounds if end > start]
    )
    if label is not None:
        path = (path == np.asarray(label).ravel()).astype(np.int64)
    return {"ViterbiPath": Ragged(jnp.asarray(path[:, None]), a.lod("Emission") or [])}


@operator("ctc_align")
def _ctc_align(a: Operands) -> Outputs:
    """Tokens without blanks and, where asked for, without repetitions."""
    tokens, blank = a.host("Input"), a.attr("blank", 0)
    merge = a.attr("merge_repeated", True)

    def align(row: np.ndarray) -> np.ndarray:
        repeated = np.concatenate([[False], row[1:] == row[:-1]]) & merge
        return row[(row != blank) & ~repeated]

    if a.get("InputLength") is not None:
        rows = [align(row[:n]) for row, n in zip(tokens, a.host("InputLength").ravel())]
        out = np.full_like(tokens, a.attr("padding_value", 0))
        for index, row in enumerate(rows):
            out[index, : len(row)] = row
        return {"Output": out, "OutputLength": np.array([[len(row)] for row in rows], np.int32)}
    bounds = itertools.pairwise(offsets_of(a.lengths("Input")))
    rows = [align(tokens[start:end].ravel()) for start, end in bounds]
    flat = np.concatenate(rows)[:, None]
    out = flat if len(flat) else np.full((1, 1), -1, tokens.dtype)
    return {"Output": Ragged(jnp.asarray(out), [[len(row) for row in rows]])}
