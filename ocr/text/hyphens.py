"""Hyphens at the ends of lines: those that belong to a word stay, those that only break it go."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

HYPHENS = "\u00ad\u2010-"
_ENDS = (*HYPHENS, "–")
_END = re.compile(rf"([^\s{HYPHENS}]*(?:[-\u2010][^\s{HYPHENS}]+)*)[{HYPHENS}]$")
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)+|[^\W\d_]+")
_FIRST = re.compile(r"[^\W_]+")
_RANGE = re.compile(r"\d\s?–$")

# First parts of compounds that English writes with a hyphen.
_FIRST_PART_WORDS = """
well self non all vice half quasi semi cross long short high low mid post full part so first second third one two
three four five six seven eight nine ten twenty thirty forty fifty sixty seventy eighty ninety hundred open large small
good bad best old new early late right left free fast slow hard soft north south east west anglo franco afro euro
"""
# What only ends a word: "low-er" is no compound.
_ENDING_WORDS = """
er ers est en ens ened ening ly ness ing ings ed dle ier iest ish ism ist ment ments ful less able ible tion tions sion
sions al ally ous ity ties ry ty nal ual ance ence ant ent
"""
# Words before which a hyphen stands for what two compounds share: "Haupt- und Nebensatz", "pre- and post-war".
_SHARED_WORDS = "und oder bzw bis and or"
_LITTLE_WORDS = "of the to in on and or at by for up de la le du au sur en a off out"
_FIRST_PARTS, _ENDINGS, _SHARED, _LITTLE = (
    frozenset(words.split()) for words in (_FIRST_PART_WORDS, _ENDING_WORDS, _SHARED_WORDS, _LITTLE_WORDS)
)


@dataclass(frozen=True)
class WordList:
    """The words of some lines, without the ones that their ends break. Read when it is first asked."""

    texts: Iterable[str] = field(default=(), repr=False)

    @cached_property
    def words(self) -> frozenset[str]:
        """In small letters; compounds with "-"."""
        found: set[str] = set()
        for text in self.texts:
            text = text.rstrip()
            body = text.rsplit(None, 1)[0] if text[-1:] in _ENDS else text
            found.update(word.casefold().replace("\u2010", "-") for word in _WORD.findall(body))
        return frozenset(found)


NO_WORDS = WordList()


def join_at_hyphen(text: str, following: str, words: WordList = NO_WORDS) -> str | None:
    """A text that goes on in `following`, if it ends with a hyphen or a dash between numbers; None where it does not.

    A hyphen belongs to a word where the lines write it with one elsewhere, where it has another hyphen, after a number
    or a single letter, after first parts such as "well" and "self", between two equal vowels ("re-elect"), and before a
    capital. Else it only breaks the word, before a small letter, and goes.
    """
    if not following or text[-1:] not in _ENDS:
        return None
    if _RANGE.search(text[-3:]) and following[0].isdigit():
        return text + following
    end = _END.search(text.rsplit(None, 1)[-1])
    if end is None or not end[1] or not end[1][-1].isalnum() or not following[0].isalnum():
        return None
    match = _FIRST.match(following)
    second = match[0].casefold() if match else following.casefold()
    if second in _SHARED:
        return f"{text} {following}"
    if text[-1] == "\u00ad" or not _belongs(end[1], second, following, words):
        return text[:-1] + following
    return text + following


def _belongs(first: str, second: str, following: str, words: WordList) -> bool:
    last = re.split(r"\W", first)[-1]  # behind quotes, brackets and hyphens
    first = re.sub(r"^.*[^\w\u2010-]", "", first)
    if not following[0].islower():
        # Words in capitals are broken as others are.
        return not (last.isupper() and len(last) > 1 and following[:2].isupper())
    if not last.isalpha() or len(last) == 1:
        return True
    if re.match(r"[^\W_]+[-\u2010]\w", following):  # "state-" and "of-the-art"
        return True
    known = words.words
    plain = first.casefold().replace("\u2010", "-")
    if f"{plain}-{second}" in known:
        return True
    if plain + second in known:
        return False
    if last != first:  # another hyphen
        return last.casefold() in _LITTLE or second in known or last.casefold() in known or len(second) < 4
    if second in _ENDINGS:
        return False
    twice = plain in ("re", "pre", "co", "de", "anti", "semi") and plain[-1] == second[0]
    return plain in _FIRST_PARTS or twice
