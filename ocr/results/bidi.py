"""Right-to-left text in the order in which it is read and typed, from the order in which it stands on the page.

The reverse of the Unicode Bidirectional Algorithm (UAX 9) for one line: letters of Arabic and Hebrew run from right to
left; words of other scripts and numbers within them from left to right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_BLOCKS = re.compile(
    "[\u0590-\u08ff\u200f\u202b\u202e\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_RIGHT = ("R", "AL", "RLE", "RLO")
_NUMBER = ("EN", "AN", "ES", "ET", "CS")  # digits, signs and separators of numbers
_MIRRORED = str.maketrans("()[]{}<>«»‹›", ")(][}{><»«›‹")
_OPENING, _CLOSING = "([{", ")]}"


def is_right_to_left(char: str) -> bool:
    """Whether a character's script runs from right to left."""
    return char >= "\u0590" and any(unicodedata.bidirectional(one) in _RIGHT for one in char)


def may_run_right(text: str) -> bool:
    """Whether a text holds characters of the blocks of such scripts: what is asked of every line is asked fast."""
    return _BLOCKS.search(text) is not None


def starts_right(text: str) -> bool:
    """Whether a text as a whole runs from right to left: most of its letters do."""
    if not may_run_right(text):
        return False
    right = sum(is_right_to_left(char) for char in text)
    return right > 0 and 2 * right > sum(char.isalpha() for char in text)


def logical_order(chars: Sequence[str]) -> tuple[list[int], list[int]]:
    """The order in which characters are read that stand from left to right on the page, spaces among them.

    A line runs from right to left where such letters stand at both ends, or at one end and are most of them.

    Returns:
        (their numbers in that order, the numbers of brackets that show the other way round than they are meant)
    """
    kinds = [_kind(char) for char in chars]
    strong = [kind for kind in kinds if kind in ("R", "L")]
    ends = {strong[0], strong[-1]} if strong else set()
    rightward = ends == {"R"} or ("R" in ends and starts_right("".join(chars)))
    arabic = any(unicodedata.bidirectional(char[:1]) == "AL" for char in chars if char)
    if arabic:
        # Beside Arabic letters digits are Arabic numbers (rule W2), which signs do not join (W4, W5). A percent sign is
        # read behind its number on whichever side it stands.
        kinds = [
            "N" if kind in ("ES", "ET") and char not in "%٪‰" else kind
            for kind, char in zip(kinds, chars, strict=True)
        ]
    order = list(range(len(chars)))
    if rightward:
        order.reverse()
        read = [chars[at] for at in order]
        runs = _left_runs([kinds[at] for at in order], arabic)
        runs = [_with_bracket(read, first, end) for first, end in runs]
    else:
        runs = _right_runs(kinds)
    right = [rightward] * len(chars)  # whether each, as it is read, stands among right-to-left ones
    for first, end in runs:
        order[first:end] = reversed(order[first:end])
        right[first:end] = [not rightward] * (end - first)
    return order, _turned_brackets([chars[at] for at in order], order, right)


def mirror(char: str) -> str:
    """A bracket as it is written in the other direction."""
    return char.translate(_MIRRORED)


def _kind(char: str) -> str:
    """ "R", "L", a number's kind, or "N" of what is neutral."""
    kind = unicodedata.bidirectional(char[:1]) if char else "ON"
    if kind in _RIGHT:
        return "R"
    if kind == "L":
        return "L"
    return kind if kind in _NUMBER else "M" if kind == "NSM" else "N"


def _left_runs(kinds: Sequence[str], arabic: bool) -> list[tuple[int, int]]:
    """Where (from, to) words of other scripts and numbers stand in kinds that are read from right to left, and are
    still backwards.

    The words of a phrase are one run with the spaces and numbers between them. A number begins no phrase by itself:
    what is read after it stands on its left.
    """
    runs: list[tuple[int, int]] = []
    at = 0
    while at < len(kinds):
        if kinds[at] not in ("L", "EN", "AN"):
            at += 1
            continue
        end, last = at, at
        while end < len(kinds) and kinds[end] != "R":
            if kinds[end] in ("L", "EN", "AN"):
                last = end
            end += 1
        if "L" in kinds[at : last + 1]:
            runs.append((at, last + 1))
        else:
            runs += _numbers(kinds, at, last + 1, arabic)
        at = last + 1
    return runs


def _with_bracket(chars: Sequence[str], first: int, end: int) -> tuple[int, int]:
    """A run of words that are still backwards, with the bracket at its side whose partner is in it (rule N0)."""
    for opening, closing in zip(_OPENING, _CLOSING, strict=True):
        missing = sum((char == opening) - (char == closing) for char in chars[first:end])
        if missing == 1 and first and chars[first - 1] == closing:
            first -= 1
        elif missing == -1 and end < len(chars) and chars[end] == opening:
            end += 1
    return first, end


def _numbers(kinds: Sequence[str], first: int, end: int, arabic: bool) -> list[tuple[int, int]]:
    """The single numbers of a run without letters, with the separators and signs in them."""
    runs: list[tuple[int, int]] = []
    at = first
    while at < end:
        if kinds[at] not in _NUMBER:
            at += 1
            continue
        stop = at
        while stop < end and kinds[stop] in _NUMBER and not (arabic and kinds[stop] == "ET"):
            stop += 1
        stop = max(stop, at + 1)
        start = at
        # A sign that touches a number belongs to it: a currency, a percent sign.
        while start > 0 and kinds[start - 1] == "ET":
            start -= 1
        while not arabic and stop < len(kinds) and kinds[stop] == "ET":
            stop += 1
        runs.append((start, stop))
        at = stop
    return runs


def _right_runs(kinds: Sequence[str]) -> list[tuple[int, int]]:
    """Where (from, to) right-to-left words stand in a line of another script, with the numbers between them."""
    runs: list[tuple[int, int]] = []
    at = 0
    while at < len(kinds):
        if kinds[at] != "R":
            at += 1
            continue
        end, last = at, at
        while end < len(kinds) and kinds[end] != "L":
            if kinds[end] == "R":
                last = end
            end += 1
        runs.append((at, last + 1))
        at = last + 1
    return runs


def _turned_brackets(chars: Sequence[str], order: Sequence[int], right: Sequence[bool]) -> list[int]:
    """Brackets among right-to-left text, where reading them as they are closes before it opens."""
    turned: list[int] = []
    opened = ""  # the bracket that is open, as it is meant
    for place, char in enumerate(chars):
        if not right[place] or char not in _OPENING + _CLOSING:
            continue
        rest = [other for n, other in enumerate(chars) if n > place and right[n]]
        if opened:
            # The next one of its kind closes, however it is drawn, unless its partner is still to come.
            if char == mirror(opened):
                opened = ""
            elif char == opened and mirror(opened) not in rest:
                turned.append(order[place])
                opened = ""
        elif char in _OPENING:
            opened = char
        elif char in rest or mirror(char) in rest:
            turned.append(order[place])
            opened = mirror(char)
    return turned
