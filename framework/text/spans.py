"""Tags of a sentence into the spans that they mark."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

Span = tuple[int, int, str]
"""(first word, the word after the last, label)"""

_OPENS, _CLOSES = "BSUW", "ESLUW"
# B-ORG as in CoNLL, B_ORG, and ORG-B as in PaddleNLP's lexical analysis.
_TAG = re.compile(r"(?P<letter>[BIMESLUW])(?:[-_](?P<label>.*))?|(?P<before>.+)[-_](?P<behind>[BIMESLUW])")


@functools.lru_cache(maxsize=4096)
def split_tag(tag: str) -> tuple[str, str] | None:
    """(letter, label) of a tag that marks a part of a span: of B-ORG, B_ORG and ORG-B ("B", "ORG"), of a bare B
    ("B", ""). None of "O" and of the tag of a single word.
    """
    match = _TAG.fullmatch(tag)
    if match is None:
        return None
    return match["letter"] or match["behind"], match["label"] or match["before"] or ""


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans of tags such as B-ORG, in order; "O" is outside of all.

    B begins a span, I and M are inside, E and L end one; S, U and W are a span of one word. A span also begins where
    the label changes and after "O" or the end of a span, whatever the letter says, as seqeval's default and conlleval
    count. A tag without a letter is a label whose neighbours of the same label belong to the span.
    """
    result: list[Span] = []
    start, before = 0, ("O", "")
    for index, tag in enumerate([*tags, "O"]):
        letter, label = ("O", "") if tag == "O" else split_tag(tag) or ("I", tag)
        inside, was_inside = letter != "O", before[0] != "O"
        breaks = letter in _OPENS or before[0] in _CLOSES or label != before[1]
        if was_inside and (not inside or breaks):
            result.append((start, index, before[1]))
        if inside and (not was_inside or breaks):
            start = index
        before = (letter, label)
    return result
