"""Which lines a recogniser reads together: batches of declared sizes, with little padding and of few sizes.

Each size that a page needs is a program, compiled once in the life of an installation: three seconds of a CPU. Narrow
lines that go with a wider batch cost columns on every page instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Columns of a recogniser's input for one of its output; widths are multiples of it, from LEAST times on.
STEP, LEAST = 8, 6
FINE = 5  # bits of a width: 16 sizes from one power of two to the next
SIZE_COST = 384
"""Columns that a page may cost more if it then needs one size less. Over the 25 receipts of SROIE's test part, against
batches that are each as wide as their widest line: 5.4 sizes a page instead of 7.0, and as many columns."""


@dataclass(frozen=True)
class Batch:
    """Lines that are read together: padded to `width` columns, in a batch of `rows`, which may be more than lines."""

    width: int
    rows: int
    lines: tuple[int, ...]


@dataclass(frozen=True)
class _Step:
    """The cheapest way to a state of the plan: its cost, the state before it, and the rows of its last batch."""

    cost: int
    before: tuple[int, int]
    rows: int


def plan_batches(wanted: Sequence[float], widths: Sequence[int], columns: int, most: int) -> list[Batch]:
    """Batches for lines of these widths, the widest first; what they are depends on nothing else.

    A width has two numbers of rows: as many as fit into `columns`, and one for a single line that is left. Cheapest is
    the plan with the fewest columns in all, `SIZE_COST` added for each size.

    Args:
        wanted: Width of each line at the height of the input; those wider than the last of `widths` are squeezed.
        widths: Columns that lines are padded to, ascending.
        columns: Of a batch, about.
        most: Lines of a batch.
    """
    order = sorted(range(len(wanted)), key=lambda line: -wanted[line])
    count = len(order)
    full = {width: max(1, min(most, columns // width)) for width in widths}
    # Lines come narrower and narrower, so a plan's state is how many lines are done and the width used last: a batch
    # is of that width again, or of the first one that holds its widest line. Of equal plans the one found first stays.
    steps: list[dict[int, _Step]] = [{0: _Step(0, (0, 0), 0)}, *({} for _ in order)]
    for done, line in enumerate(order):
        fitting = next((width for width in widths if width >= wanted[line]), widths[-1])
        for last, step in steps[done].items():
            for width in {fitting: None, last or fitting: None}:
                for rows in {full[width]: None, (1 if count - done == 1 else full[width]): None}:
                    cost = (
                        step.cost
                        + width * rows
                        + (0 if (width, rows) == (last, full[last or width]) else SIZE_COST)
                    )
                    reached = steps[min(count, done + rows)]
                    if width not in reached or cost < reached[width].cost:
                        reached[width] = _Step(cost, (done, last), rows)
    batches: list[Batch] = []
    done, width = count, min(steps[count], key=lambda last: steps[count][last].cost)
    while done:
        step = steps[done][width]
        start, last = step.before
        batches.append(Batch(width, step.rows, tuple(order[start:done])))
        done, width = start, last
    return batches[::-1]


def fit_batches(wanted: Sequence[float], widest: int, columns: int, most: int) -> list[Batch]:
    """Batches for engines that take any shape: about as wide as their widest line, without empty rows, widest first.

    Widths are rounded up a little: OpenVINO prepares its operations for each shape anew and keeps them.

    Args:
        wanted, columns, most: See `plan_batches`, whose buckets make 18 % more columns of a receipt's lines.
        widest: Lines that are wider are squeezed into so many columns.
    """
    order = sorted(range(len(wanted)), key=lambda line: -wanted[line])
    batches: list[Batch] = []
    while order:
        width = min(max(_rounded(wanted[order[0]]), LEAST * STEP), widest)
        rows = min(max(1, min(most, columns // width)), len(order))
        batches.append(Batch(width, rows, tuple(order[:rows])))
        order = order[rows:]
    return batches


def _rounded(width: float) -> int:
    """The width or up to a sixteenth more: a multiple of STEP that has few bits."""
    columns = math.ceil(width)
    step = max(STEP, 1 << max(columns.bit_length() - FINE, 0))
    return math.ceil(columns / step) * step
