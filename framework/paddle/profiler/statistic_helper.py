"""paddle.profiler.statistic_helper: times as ranges (start, end), and what several of them cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Range = tuple[int, int]


def sum_ranges(ranges: Iterable[Range]) -> int:
    """How long all ranges are together."""
    return sum(end - start for start, end in ranges)


def merge_self_ranges(src_ranges: Sequence[Range], is_sorted: bool = False) -> list[Range]:
    """What these ranges cover, in order; ranges that touch are one."""
    merged: list[Range] = []
    for start, end in src_ranges if is_sorted else sorted(src_ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def merge_ranges(
    range_list1: Sequence[Range], range_list2: Sequence[Range], is_sorted: bool = False
) -> list[Range]:
    """What one or the other list covers."""
    return merge_self_ranges([*range_list1, *range_list2])


def intersection_ranges(
    range_list1: Sequence[Range], range_list2: Sequence[Range], is_sorted: bool = False
) -> list[Range]:
    """What both lists cover."""
    first, second = merge_self_ranges(range_list1), merge_self_ranges(range_list2)
    pairs = [(max(a, c), min(b, d)) for a, b in first for c, d in second]
    return sorted((start, end) for start, end in pairs if start < end)


def subtract_ranges(
    range_list1: Sequence[Range], range_list2: Sequence[Range], is_sorted: bool = False
) -> list[Range]:
    """What the first list covers and the second does not."""
    left: list[Range] = []
    second = merge_self_ranges(range_list2)
    for start, end in merge_self_ranges(range_list1):
        for low, high in second:
            if high <= start or low >= end:
                continue
            if low > start:
                left.append((start, low))
            start = max(start, high)
        if start < end:
            left.append((start, end))
    return left
