"""A search with beams over sequences of prefixes: its step, and the sequences that all steps together found.

Source: paddle/phi/kernels/funcs/math/beam_search.cc, paddle/fluid/operators/beam_search_decode_op.h
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from framework.core.errors import ShapeError
from framework.paddle.legacy_operators.operands import (
    LengthsError,
    Operands,
    Outputs,
    Ragged,
    Table,
    offsets_of,
    registrar,
)

OPERATORS: Table = {}
operator = registrar(OPERATORS)


class _Beam(NamedTuple):
    """A prefix that goes on with a token; of equal scores the later prefix is the better one."""

    score: float
    prefix: int
    token: int


@operator("beam_search")
def _beam_search(a: Operands) -> Outputs:
    """The `beam_size` best tokens behind the prefixes of each source, none where all its prefixes have ended."""
    scores, size, end = a.host("scores"), a.attr("beam_size", 0), a.attr("end_id", 0)
    level, levels = a.attr("level", 0), a.lod("scores") or ()
    if size < 1 or level >= len(levels):
        raise ShapeError(
            "beam_search takes a positive beam_size, and scores with the lengths of sources and prefixes",
            where="beam_search",
            received=f"beam_size {size}, lengths {levels}",
        )
    counts = np.asarray(levels[level], np.int64)
    for lower in levels[level + 1 :]:  # a level counts sequences of the one below it
        counts = np.diff(offsets_of(lower)[offsets_of(counts)])
    tokens = (
        a.host("ids")
        if a.get("ids") is not None
        else np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    )
    before, before_scores = a.host("pre_ids").ravel(), a.host("pre_scores").ravel()
    if not a.attr("is_accumulated", True):
        scores = before_scores[:, None] + np.log(scores)
    selected: list[_Beam] = []
    sources = offsets_of(counts)
    for first, last in itertools.pairwise(sources):
        beams: list[_Beam] = []
        for prefix in range(first, last):
            if before[prefix] == end:
                beams.append(_Beam(float(before_scores[prefix]), prefix, end))
            else:
                beams += [
                    _Beam(float(s), prefix, int(t))
                    for s, t in zip(scores[prefix], tokens[prefix], strict=True)
                ]
        best = sorted(beams, key=lambda beam: beam[:2], reverse=True)[:size]
        if not all(beam.token == end and before[beam.prefix] == end for beam in best):
            selected += sorted(best, key=lambda beam: beam.prefix)
    per_prefix = np.bincount([beam.prefix for beam in selected], minlength=int(sources[-1]))
    lengths = [counts.tolist(), per_prefix.tolist()]
    return {
        "selected_ids": Ragged(
            jnp.asarray([[beam.token] for beam in selected], np.int64).reshape(-1, 1), lengths
        ),
        "selected_scores": Ragged(
            jnp.asarray([[b.score] for b in selected], scores.dtype).reshape(-1, 1), lengths
        ),
        "parent_idx": np.array([beam.prefix for beam in selected], np.int32),
    }


class _Step(NamedTuple):
    """What a step selected: rows by the prefixes that they go on with, these by sources; both as offsets."""

    tokens: np.ndarray
    scores: np.ndarray
    sources: np.ndarray
    prefixes: np.ndarray


class _Path(NamedTuple):
    """A sequence from its last token back, with the scores that it had at each."""

    tokens: list[int]
    scores: list[float]


def _paths_of(source: int, steps: Sequence[_Step], end: int) -> list[_Path]:
    """The sequences that are left in the last step in which a source has rows, the best first."""
    paths: list[_Path] = []
    rows: list[int] = []
    for step in reversed(steps):
        if not paths:
            first, last = step.prefixes[step.sources[source : source + 2]]
            rows = list(range(first, last))
            paths = [_Path([], []) for _ in rows]
        for path, row in zip(paths, rows, strict=True):
            if not path.tokens or step.tokens[row] != end:  # one end is enough
                path.tokens.append(int(step.tokens[row]))
                path.scores.append(float(step.scores[row]))
        rows = [int(np.searchsorted(step.prefixes, row, side="right")) - 1 for row in rows]
    return sorted(paths, key=lambda path: path.scores[0], reverse=True)


@operator("beam_search_decode")
def _beam_search_decode(a: Operands) -> Outputs:
    """The sequences of each source with their scores, from what `beam_search` selected in every step."""
    pairs = list(zip(a.all("Ids"), a.all("Scores"), strict=True))
    arrays = [(np.asarray(ids).ravel(), np.asarray(scores).ravel()) for ids, scores in pairs]
    steps: list[_Step] = []
    for index, (tokens, scores) in enumerate(arrays):
        levels = a.lod("Ids", index) or ()
        if len(levels) != 2 or sum(levels[1]) != len(tokens):
            raise LengthsError(
                "each step has the lengths of sources and prefixes, as beam_search gives them",
                where=a.name,
                received=f"{levels} for {len(tokens)} rows",
            )
        steps.append(_Step(tokens, scores, offsets_of(levels[0]), offsets_of(levels[1])))
    sequences = [_paths_of(source, steps, a.attr("end_id", 0)) for source in range(len(steps[0].sources) - 1)]
    paths = list(itertools.chain.from_iterable(sequences))
    lengths = [[len(of_source) for of_source in sequences], [len(path.tokens) for path in paths]]
    tokens = [token for path in paths for token in reversed(path.tokens)]
    scores = [score for path in paths for score in reversed(path.scores)]
    return {
        "SentenceIds": Ragged(jnp.asarray(np.array(tokens, np.int64)), lengths),
        "SentenceScores": Ragged(jnp.asarray(np.array(scores, arrays[0][1].dtype)), lengths),
    }
