"""Several texts in one row of tokens, none of which sees another: what decoders are trained on.

Best-fit packing: Ding et al. 2024, https://arxiv.org/abs/2404.10830
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from framework.core.sample import Sample

IGNORED = -100
"""The target of a token behind which nothing is learned"""


@dataclass(frozen=True, eq=False)
class TokenSample(Sample):
    """A row of T tokens, and what follows each."""

    ids: np.ndarray
    """[T] int32"""
    targets: np.ndarray
    """[T] int32: the token behind each, or IGNORED"""
    positions: np.ndarray
    """[T] int32, which begin at 0 with each text"""
    segments: np.ndarray | None = None
    """[T] int32: the number of the text that a token belongs to, 0 of padding; None: the row is one text"""
    text_bytes: int = 0
    """Of the text that `targets` spell, in UTF-8; 0: not known"""


class TokenText(NamedTuple):
    """A text as tokens."""

    ids: np.ndarray
    """[T] int32"""
    learned: np.ndarray
    """[T] bool: whether a model is to learn to write the token"""


def whole_text(ids: np.ndarray) -> TokenText:
    """A text of which everything is learned."""
    return TokenText(ids, np.ones(len(ids), bool))


def row_of(texts: Sequence[TokenText], length: int, pad_id: int = 0) -> TokenSample:
    """Texts one behind the other, filled up to `length` tokens with `pad_id`.

    The first token of a text is the target of none: no text is guessed from the one before it.
    """
    total = sum(len(text.ids) for text in texts)
    assert total <= length, "the texts have more tokens than the row"
    row = TokenSample(
        np.full(length, pad_id, np.int32),
        np.full(length, IGNORED, np.int32),
        np.zeros(length, np.int32),
        np.zeros(length, np.int32),
    )
    assert row.segments is not None
    start = 0
    for number, text in enumerate(texts, start=1):
        end = start + len(text.ids)
        row.ids[start:end] = text.ids
        row.targets[start : end - 1] = np.where(text.learned[1:], text.ids[1:], IGNORED)
        row.positions[start:end] = np.arange(end - start)
        row.segments[start:end] = number
        start = end
    row.positions[start:] = np.arange(length - start)
    return row


def pack_best_fit(lengths: Sequence[int], room: int) -> list[list[int]]:
    """Which texts share a row of `room` tokens: each, the longest first, goes where the least stays free. Rows are in
    the order of their first text, and texts within a row in their own order.

    `lengths` are at most `room`.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    rows: list[list[int]] = []
    by_space: dict[int, list[int]] = {}  # rows by what is free in them
    spaces: list[int] = []  # the keys of by_space, ascending
    for index in order:
        need = lengths[index]
        place = bisect.bisect_left(spaces, need)
        if place == len(spaces):
            row, space = len(rows), room
            rows.append([])
        else:
            space = spaces[place]
            row = by_space[space].pop()
            if not by_space[space]:
                del by_space[space], spaces[place]
        rows[row].append(index)
        left = space - need
        if left not in by_space:
            by_space[left] = []
            bisect.insort(spaces, left)
        by_space[left].append(row)
    return sorted(map(sorted, rows))
