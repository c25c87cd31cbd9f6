"""The words of a page in order, each with its box: what taggers of key information read.

A word is a run of characters without white space, or one Chinese, Japanese or Korean character; a name with its colon
and a currency are apart from what follows. Its box is the share of its line's box that its characters have, so words of
recognised lines and of labelled ones are made alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_WORD = re.compile(
    rf"[{_CJK}]"
    r"|[^\W\d_][^\s:：]*[:：](?=\S)"  # "Date:" of "Date:20-06-2018": recognisers leave spaces out
    r"|(?:RM|USD|EUR|MYR|SGD)(?=\d)"
    rf"|[^\s{_CJK}]+"
)
SAME_ROW = 0.5  # share of the lower one's height by which two lines of a row overlap
TB_YX_STEP = 20.0  # pixels of height within which TB-YX sorts by x


@dataclass(frozen=True, eq=False)
class PageWords:
    """T words of a page, row by row from top to bottom, each row from left to right.

    Attributes:
        texts: What each says.
        boxes: [T, 4] float32 xyxy, in pixels of the page.
        lines: [T] int32: the line that each is of, by its place among those that were given.
        spans: [T, 2] int32: first character and the one after the last, in the text of its line.
        rows: [T] int32: the row that each stands in, from 0.
    """

    texts: tuple[str, ...]
    boxes: np.ndarray
    lines: np.ndarray
    spans: np.ndarray
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def extent(self) -> tuple[float, float, float, float]:
        """The bounds of all words."""
        if not len(self):
            return 0.0, 0.0, 1.0, 1.0
        low, high = self.boxes[:, :2].min(axis=0), self.boxes[:, 2:].max(axis=0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    def first(self, count: int) -> PageWords:
        """The first `count` words."""
        return PageWords(
            self.texts[:count], self.boxes[:count], self.lines[:count], self.spans[:count], self.rows[:count]
        )


def split_page(texts: Sequence[str], boxes: np.ndarray) -> PageWords:
    """The words of lines that stand upright.

    Args:
        texts: What each of the K lines says.
        boxes: [K, 4] xyxy.
    """
    boxes = np.asarray(boxes, np.float32).reshape(-1, 4)
    found: list[tuple[str, np.ndarray, int, tuple[int, int], int]] = []
    for row, members in enumerate(rows_of_boxes(boxes)):
        for line in members:
            text, box = texts[line], boxes[line]
            for match in _WORD.finditer(text):
                share = np.array([match.start(), match.end()], np.float32) / len(text)
                left, right = box[0] + share * (box[2] - box[0])
                at = np.array([left, box[1], right, box[3]], np.float32)
                found.append((match[0], at, line, match.span(), row))
    return PageWords(
        tuple(word for word, *_ in found),
        np.array([at for _, at, *_ in found], np.float32).reshape(-1, 4),
        np.array([line for *_, line, _, _ in found], np.int32),
        np.array([span for *_, span, _ in found], np.int32).reshape(-1, 2),
        np.array([row for *_, row in found], np.int32),
    )


def rows_of_boxes(boxes: np.ndarray) -> list[list[int]]:
    """The places of boxes [K, 4] that stand on one height together, from left to right; rows from top to bottom."""
    rows: list[list[int]] = []
    for place in np.argsort(boxes[:, 1] + boxes[:, 3], kind="stable").tolist():
        if rows:
            one, last = boxes[place], boxes[rows[-1][-1]]
            overlap = min(one[3], last[3]) - max(one[1], last[1])
            if overlap > SAME_ROW * min(one[3] - one[1], last[3] - last[1]):
                rows[-1].append(place)
                continue
        rows.append([place])
    return [sorted(row, key=lambda place: float(boxes[place, 0])) for row in rows]


def tb_yx_order(boxes: np.ndarray) -> list[int]:
    """The places of boxes [K, 4] as TB-YX reads them: by their tops and left sides, and of neighbours whose tops are
    less than 20 pixels apart the left one first; the first two are never changed.

    Paper: VI-LayoutXLM, https://arxiv.org/abs/2210.05391, section 3.2
    Source: PaddleOCR ppocr/data/imaug/vqa/augment.py, `order_by_tbyx`, whose exception of the first two the published
    weights were trained with
    """
    order = sorted(range(len(boxes)), key=lambda place: (boxes[place][1], boxes[place][0]))
    for last in range(len(order) - 1):
        for place in range(last, 0, -1):
            one, other = boxes[order[place]], boxes[order[place + 1]]
            if abs(other[1] - one[1]) >= TB_YX_STEP or other[0] >= one[0]:
                break
            order[place], order[place + 1] = order[place + 1], order[place]
    return order


def text_of(words: PageWords, texts: Sequence[str], places: Sequence[int]) -> str:
    """What the words at these places say: characters of one line as they stand there, lines joined by spaces."""
    parts: list[tuple[int, int, int]] = []
    for place in places:
        line, (start, end) = int(words.lines[place]), words.spans[place].tolist()
        if parts and parts[-1][0] == line:
            parts[-1] = (line, min(parts[-1][1], start), max(parts[-1][2], end))
        else:
            parts.append((line, start, end))
    return " ".join(texts[line][start:end] for line, start, end in parts)
