"""Letters of one word that are set apart: at one distance from each other, wider than that of a line's letters.

Writers set words so for emphasis, in headings and in logos. The letters of such a word follow one another in the
content, and no space of the document stands between them. Where a document has no spaces at all, as those of TeX and of
browsers, more is asked: letters alone, and other white around the word than inside it. Where each letter is drawn by
itself a space of the document has to stand before or behind the word, or the letters have to be many: letters that
stand in the cells of a row are drawn so, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Multiples of the size of the type.
LEAST, MOST = 0.12, 3.0  # between letters that are set apart
TEX_MOST = 1.0  # the same where the document has no spaces, of a word alone
FEW, FEW_CAPITALS = 3, 4  # letters, where more than their distance is asked; of capitals, which may be cells
EVEN, EVEN_SHARE = 0.08, 0.12  # by how much such distances differ, at most; as a part of them
WORD_SPACE = 0.8  # between two such words, beyond two of their distances, at most
# White around a word without spaces: to the distance, or beyond it in sizes, at least; the distance to the white before
# it, at least, where that is narrower.
AROUND, WIDER, NARROWER = 1.25, 0.15, 1.15
SPACES = 1 / 25  # of the characters, in documents that have spaces, at least
DIGITS = 0.6  # digits that stand further apart may be cells


class Neighbours(NamedTuple):
    """What is known of each two characters [N - 1] that follow one another in the content.

    `gap` is the white between them, `em` the size of their type, `together` says that they are level and follow one
    another to the right, `whole` that they are of one text object, `spaced` that a space of the document stands between
    them.
    """

    gap: np.ndarray
    em: np.ndarray
    together: np.ndarray
    whole: np.ndarray
    spaced: np.ndarray


def spaced_letters(codes: list[str], near: Neighbours, spaces: int) -> tuple[np.ndarray, np.ndarray]:
    """Which neighbours [N - 1] are letters of one word that is set apart, and which are ends of two such words that
    stand in one line.

    Args:
        codes: The characters [N] without spaces.
        spaces: How many spaces the document has among them.
    """
    tied = np.zeros(len(near.gap), bool)
    lines = np.zeros(len(near.gap), bool)
    wide = near.together & ~near.spaced & (near.gap > LEAST * near.em) & (near.gap < MOST * near.em)
    if not wide.any():
        return tied, lines
    has_spaces = spaces >= SPACES * len(codes)
    words: list[tuple[int, int, float]] = []
    rest: list[tuple[int, int, float]] = []
    for first, last in _stretches(wide, near):
        first, last = first + _touch(near, first - 1), last - _touch(near, last)  # ends of other words
        if first < last:
            one = (first, last, float(np.median(near.gap[first:last])))
            (words if last - first > 1 else rest).append(one)
    accepted: list[tuple[int, float]] = []
    for first, last, distance in words:
        sure = any(other != first and _are_alike(near, first, distance, other, d) for other, _, d in words)
        if _is_word(codes[first : last + 1], near, first, last, distance, has_spaces, sure):
            tied[first:last] = True
            accepted.append((first, distance))
        else:
            rest.append((first, last, distance))
    for first, last, distance in rest:  # such as "of" or a year, in a line whose other words are set apart
        tied[first:last] |= any(_are_alike(near, first, distance, other, one) for other, one in accepted)
    for at in np.flatnonzero(near.together & ~tied):
        sides = [n for n in (at - 1, at + 1) if 0 <= n < len(tied) and tied[n]]
        if sides and near.gap[at] < 2 * near.gap[sides].max() + WORD_SPACE * near.em[at]:
            lines[at] = True
    return tied, lines


def _stretches(wide: np.ndarray, near: Neighbours) -> list[tuple[int, int]]:
    """(first, last) of neighbours that follow one another and stand equally far apart: characters first to last."""
    stretches: list[tuple[int, int]] = []
    indices = np.flatnonzero(wide).tolist()
    gaps, em = near.gap.tolist(), near.em.tolist()
    for at in indices:
        if stretches and stretches[-1][1] == at:
            before = gaps[at - 1]
            if abs(gaps[at] - before) <= EVEN * em[at] + EVEN_SHARE * max(before, gaps[at]):
                stretches[-1] = (stretches[-1][0], at + 1)
                continue
        stretches.append((at, at + 1))
    return stretches


def _touch(near: Neighbours, at: int) -> bool:
    """Whether two neighbours stand no further apart than letters usually do."""
    inside = 0 <= at < len(near.gap)
    return inside and bool(near.together[at] and not near.spaced[at] and near.gap[at] <= LEAST * near.em[at])


def _is_word(
    codes: list[str],
    near: Neighbours,
    first: int,
    last: int,
    distance: float,
    has_spaces: bool,
    sure: bool,
) -> bool:
    """Whether three characters or more that stand equally far apart are a word; `sure` says that others of the line
    stand as far apart.
    """
    letters = all(code.isalpha() for code in codes)
    em = float(near.em[first])
    around = [n for n in (first - 1, last) if 0 <= n < len(near.gap) and near.together[n]]
    if not has_spaces:
        # The space before such a word is as wide as others are, what is behind it follows its last letter's distance.
        wider = min(AROUND * distance, distance + WIDER * em)
        other = all(near.gap[n] > wider or (n < first and NARROWER * near.gap[n] < distance) for n in around)
        few = FEW if near.whole[first:last].all() or any(map(str.islower, codes)) else FEW_CAPITALS
        return len(codes) > few and letters and other and (sure or distance < TEX_MOST * em)
    if not near.whole[first:last].all():
        spaced = any(near.spaced[n] and near.gap[n] < 2 * distance + WORD_SPACE * em for n in around)
        return letters and (spaced or (len(codes) > FEW and distance < TEX_MOST * em))
    return letters or distance <= DIGITS * em or any(code.isalpha() for code in codes)


def _are_alike(near: Neighbours, at: int, distance: float, other: int, other_distance: float) -> bool:
    """Whether letters at two indices stand equally far apart, on one line."""
    first, last = sorted((at, other))
    alike = abs(distance - other_distance) <= EVEN * near.em[at] + EVEN_SHARE * other_distance
    return bool(alike and near.together[first:last].all())
