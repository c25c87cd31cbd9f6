"""Program text of a PDF's own text: lines of a font whose letters are all of one width, with their indentation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ocr.results.blocks import Block
from ocr.results.geometry import bounding_box, line_box, rows_of_boxes
from ocr.results.lines import Line

LEAST_ROWS = 2
GAP = 2.6  # of the distance of rows, the widest white within a block: two blank lines
SIGNS = 0.3  # of the rows, which must look like a program's
ALL_SIGNS = 0.4  # where the whole page is set in such a font
WIDE_GAP = 3  # columns, between the cells of a table
TABLE_ROWS = 0.5  # of the rows, with such gaps: a table
_SIGN = re.compile(
    r"[{};]\s*$|^\s*[})\]]|[=!<>+*/&|-]=|=>|->|::|\w\(.*\)|^\s*(#|//|/\*|\*/|<!--|--\s)|</?\w+[^>]*>|^\s*[$>%]\s\w"
    r"|^\s*(def|class|for|if|elif|else|while|return|import|from|try|except|with|fi|done|do|then|case|end|function|var|"
    r"let|const|public|private|static|void|int|print|echo|select|insert|update|SELECT|FROM|WHERE)\b.*[:({;]?\s*"
    r"|^\s*-?\s*[\w.\"'-]+:(\s+\S.*)?$|\w+\s=\s\S|^\s*\w+=\S"
)


def find_code(lines: Sequence[Line]) -> tuple[list[Block], list[Line]]:
    """(blocks "algorithm" with program text, one row of it a line of their text, the other lines)"""
    level = [line for line in lines if line.orientation == 0 and not line.vertical]
    mono = [line for line in level if line.style is not None and line.style.mono]
    if len(mono) < LEAST_ROWS:
        return [], list(lines)
    letters = sum(len(line.text) for line in level)
    all_mono = sum(len(line.text) for line in mono) > 0.7 * letters
    blocks: list[Block] = []
    taken: set[int] = set()
    for rows in _groups(mono, level):
        text, is_table = _program(rows)
        said = [row for row in text.split("\n") if row.strip()]
        signs = sum(bool(_SIGN.search(row)) for row in said) / len(said)
        indented = any(row.startswith("  ") for row in said) and not all_mono
        if is_table or not (signs >= (ALL_SIGNS if all_mono else SIGNS) or (indented and signs > 0)):
            continue
        members = tuple(line for row in rows for line in row)
        taken |= {id(line) for line in members}
        blocks.append(Block("algorithm", bounding_box(map(line_box, members)), text, members))
    return blocks, [line for line in lines if id(line) not in taken]


def _groups(mono: Sequence[Line], level: Sequence[Line]) -> list[list[list[Line]]]:
    """Rows of such lines that stand below one another, with nothing else beside or between them."""
    others = [line_box(line) for line in level if line.style is None or not line.style.mono]
    rows = [[mono[i] for i in row] for row in rows_of_boxes([line_box(line) for line in mono])]
    boxes = [bounding_box(map(line_box, row)) for row in rows]
    free = []
    for row, box in zip(rows, boxes, strict=True):
        middle = (box[1] + box[3]) / 2
        beside = any(other[1] < middle < other[3] for other in others)
        free += [] if beside else [(row, box)]
    groups: list[list[list[Line]]] = []
    for number, (row, box) in enumerate(free):
        if number:
            above = free[number - 1][1]
            size = box[3] - box[1]
            between = any(above[3] < (other[1] + other[3]) / 2 < box[1] for other in others)
            sizes = [_size(free[number - 1][0][0]), _size(row[0])]
            if box[1] - above[3] < GAP * size and not between and max(sizes) < 1.15 * min(sizes):
                groups[-1].append(row)
                continue
        groups.append([row])
    return [group for group in groups if len(group) >= LEAST_ROWS]


def _size(line: Line) -> float:
    return line.style.size if line.style is not None else 1.0


def _program(rows: Sequence[Sequence[Line]]) -> tuple[str, bool]:
    """The text of rows, each character in its column, and whether it is a table."""
    chars = [
        [(line_box(char), char.text) for line in row for word in line.words for char in word.chars]
        for row in rows
    ]
    steps = [
        after[0][0] - before[0][0]
        for row in rows
        for line in row
        for word in line.words
        for before, after in pairwise([(line_box(char),) for char in word.chars])
    ]
    width = float(np.median(steps)) if steps else 0.6 * _size(rows[0][0])
    left = min(box[0] for row in chars for box, _ in row)
    boxes = [bounding_box(box for box, _ in row) for row in chars]
    distances = [after[1] - before[1] for before, after in pairwise(boxes)]
    usual = float(np.median(distances)) if distances else 1.0
    nearest = min([distance for distance in distances if distance > 0.5 * usual], default=usual)
    said: list[str] = []
    tabular = 0
    for number, row in enumerate(chars):
        text = ""
        for box, char in sorted(row, key=lambda item: item[0][0]):
            column = round((box[0] - left) / max(width, 0.1))
            text += " " * (column - len(text)) + char
        if number and distances[number - 1] > 1.6 * nearest:
            said += [""] * min(round(distances[number - 1] / nearest) - 1, 2)
        said.append(text)
        body = text.strip()
        tabular += bool(re.search(r"\S" + " " * WIDE_GAP + r"+\S", body)) and not re.search(
            r"\s(#|//|--)\s", body
        )
    return "\n".join(said), tabular > TABLE_ROWS * len(rows)
