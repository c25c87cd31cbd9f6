"""Hashed features of a page's words: what a small tagger of fields reads. There is no vocabulary and no list of
keywords.

A word is told by itself, its ends and its shape, and by what stands beside it in its row, above it and below it: the
same features as those of `framework.text.hashing`, over the plane in place of the line. Numbers are told by how often
they stand on the page and how large they are among those of it; digits count as 0 where words are compared.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter

import numpy as np

from framework.text.hashing import shape
from ocr.fields.words import PageWords

NUM_FEATURES = 32
NUM_PLACES = 14
_NUMBER = re.compile(r"\D{0,3}(\d[\d ,.]*[.,]\d\d)\D?")
_LEFT = 4  # words of the row that are told beside one


def word_features(words: PageWords, buckets: int) -> np.ndarray:
    """[T, NUM_FEATURES] int32 in 1 to buckets - 1, and 0 where there is no such feature."""
    plain = [re.sub(r"\d", "0", text.casefold()) for text in words.texts]
    shapes = [shape(text.upper()) for text in words.texts]  # receipts are often labelled in capitals
    rows = _rows(words)
    counts = Counter(words.texts)
    ranks = _ranks(words.texts)
    found = np.zeros((len(words), NUM_FEATURES), np.int32)
    for number, row in enumerate(rows):
        above, below = rows[number - 1] if number else [], rows[number + 1] if number + 1 < len(rows) else []
        for place, word in enumerate(row):
            text = plain[word]
            left = [plain[other] for other in reversed(row[max(0, place - _LEFT) : place])]
            right = [plain[other] for other in row[place + 1 : place + 3]]
            up, down = _facing(words, word, above), _facing(words, word, below)
            names = [
                f"w {text}",
                *(f"p {text[:n]}" for n in (1, 2, 3)),
                *(f"s {text[-n:]}" for n in (1, 2, 3, 4)),
                f"k {shapes[word]}",
                f"n {min(len(text), 12)}",
                f"l1 {left[0] if left else ''}",
                f"l2 {' '.join(left[:2])}",
                f"r1 {right[0] if right else ''}",
                f"r2 {' '.join(right)}",
                f"kl {shapes[row[place - 1]] if place else ''}",
                f"kr {shapes[row[place + 1]] if place + 1 < len(row) else ''}",
                f"u {plain[up] if up is not None else ''}",
                f"uk {shapes[up] if up is not None else ''}",
                f"d {plain[down] if down is not None else ''}",
                f"dk {shapes[down] if down is not None else ''}",
                f"f {plain[row[0]]}",
                f"fu {plain[above[0]] if above else ''}",
                f"fd {plain[below[0]] if below else ''}",
                f"c {min(counts[words.texts[word]], 4)} {ranks[word]}",
                f"a {ranks[word]}",
                f"y {min(number, 15)}",
                f"z {min(len(rows) - number, 15)}",
                f"x {min(place, 5)} {min(len(row) - place, 3)}",
                *(f"L {other}" for other in left),
            ]
            found[word, : len(names)] = [
                zlib.crc32(name.encode("utf-8", "surrogatepass")) % (buckets - 1) + 1 for name in names
            ]
    return found


def word_places(words: PageWords) -> np.ndarray:
    """[T, NUM_PLACES] float32, about -1 to 4: the box (4), the height (1), the row's middle, width and gaps to the rows
    above and below (4), and how far the row and the word are in the order (5). Lengths are shares of what all words
    cover; heights and gaps are counted in usual heights of words."""
    if not len(words):
        return np.zeros((0, NUM_PLACES), np.float32)
    left, top, right, bottom = words.extent
    size = np.array([max(right - left, 1.0), max(bottom - top, 1.0)] * 2, np.float32)
    boxes = (words.boxes - np.array([left, top, left, top], np.float32)) / size
    heights = words.boxes[:, 3] - words.boxes[:, 1]
    usual = max(float(np.median(heights)), 1.0)
    found = np.zeros((len(words), NUM_PLACES), np.float32)
    found[:, :4] = boxes
    found[:, 4] = np.clip(heights / usual, 0, 4) - 1
    rows = _rows(words)
    bounds = np.array(
        [[boxes[row, :2].min(axis=0), boxes[row, 2:].max(axis=0)] for row in rows], np.float32
    ).reshape(-1, 4)
    for number, row in enumerate(rows):
        low, high = bounds[number, :2], bounds[number, 2:]
        gaps = [
            (bounds[number, 1] - bounds[number - 1, 3]) if number else 0.1,
            (bounds[number + 1, 1] - bounds[number, 3]) if number + 1 < len(rows) else 0.1,
        ]
        found[row, 5] = (low[0] + high[0]) / 2 - 0.5
        found[row, 6] = high[0] - low[0]
        found[row, 7:9] = np.clip(np.array(gaps) * size[1] / usual, -1, 4)
        found[row, 9] = number / max(len(rows) - 1, 1)
        found[row, 10] = min(len(row), 12) / 12
        found[row, 11] = np.arange(len(row)) / 12
        found[row, 12] = np.exp(-number / 3.0)
        found[row, 13] = np.exp(-(len(rows) - 1 - number) / 3.0)
    return found


def _rows(words: PageWords) -> list[list[int]]:
    rows: list[list[int]] = []
    for place, row in enumerate(words.rows.tolist()):
        if place and row == words.rows[place - 1]:
            rows[-1].append(place)
        else:
            rows.append([place])
    return rows


def _facing(words: PageWords, word: int, row: list[int]) -> int | None:
    """The word of another row that stands over or under most of this one."""
    box = words.boxes[word]
    best, most = None, 0.0
    for other in row:
        at = words.boxes[other]
        overlap = min(box[2], at[2]) - max(box[0], at[0])
        if overlap > most:
            best, most = other, float(overlap)
    return best


def _ranks(texts: tuple[str, ...]) -> list[str]:
    """For each word that is an amount its rank among the page's, the largest first, up to 4; "" for others."""
    values: list[float | None] = []
    for text in texts:
        match = _NUMBER.fullmatch(text)
        digits = "" if match is None else re.sub(r"\D", "", match[1])
        values.append(float(digits) if digits and len(digits) < 16 else None)
    order = sorted({value for value in values if value is not None}, reverse=True)
    return ["" if value is None else str(min(order.index(value), 4)) for value in values]
