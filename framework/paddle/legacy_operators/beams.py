"""The step of a search with beams over sequences of prefixes.

Source: paddle/phi/kernels/funcs/math/beam_search.cc
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from framework.core.errors import ShapeError
from framework.paddle.legacy_operators.operands import Operands, Outputs, Ragged, Table, offsets_of, registrar

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
