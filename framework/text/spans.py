"""Tags of a sentence into the spans that they mark."""

from __future__ import annotations

from collections.abc import Sequence

Span = tuple[int, int, str]
"""(first word, the word after the last, label)"""

_OPENS, _CLOSES = "BS", "ESL"


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans of tags such as B-ORG, in order; "O" is outside of all.

    B begins a span, I and M are inside, E and L end one, S is a span of one word. A span also begins where the label
    changes and after "O" or the end of a span, whatever the letter says, as seqeval's default and conlleval count.
    """
    result: list[Span] = []
    start, before = 0, ("O", "")
    for index, tag in enumerate([*tags, "O"]):
        letter, _, label = tag.partition("-")
        inside, was_inside = letter != "O", before[0] != "O"
        breaks = letter in _OPENS or before[0] in _CLOSES or label != before[1]
        if was_inside and (not inside or breaks):
            result.append((start, index, before[1]))
        if inside and (not was_inside or breaks):
            start = index
        before = (letter, label)
    return result
