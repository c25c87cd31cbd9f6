"""Fonts of a text layer whose letters make no words of any language: their Unicode maps may be wrong.

A map that is wrong but there gives letters like any other, so only what they say can tell. A font is doubted where it
sets enough words of Latin letters, none of which is one of the little words that every text of its language holds, and
vowels and consonants do not take turns as they do in languages, or the frequent letters are others; OCR then decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from ocr.results.lines import Line

LEAST_WORDS, LEAST_LETTERS = 5, 24  # of a font that can be judged
# The share of one language's little words from which on a text is of it, by how many different ones at least.
LITTLE_WORDS = {1: 0.12, 3: 0.04}
VOWELS = (0.27, 0.6)  # of the letters, in any language
CLUSTERS = 0.10  # of the words: those with LONG_CLUSTER consonants or VOWEL_RUN vowels in a row, at most
LONG_CLUSTER, VOWEL_RUN = 5, 4
VOWELLESS = 0.08  # of the words, at most, are without a vowel
COMMON = 0.42  # of the letters, at least, are those that are frequent in all languages
SAMPLE, FEW_VOWELS = 15, 0.22  # words that can be judged by these; the vowels of fewer words

# A line a language or some that are akin: English, German, Dutch, the Scandinavian, Romance and Slavic languages,
# Hungarian, Finnish, Estonian, Turkish, Latvian, Lithuanian, Welsh, Irish, Vietnamese, Indonesian, Swahili, Filipino
# and Latin.
_LITTLE_WORDS_LIST = """
the of and to in is that for it was on are with as be at by this not or from an
der die das und ist von zu den mit nicht auf ein eine für im dem des sich
de het een van en niet zijn dat voor op met te er aan
och att det som på är av för en den til og på med ikke er af jeg et
le la les des et du une est pas que qui dans pour sur au par ce
el los las y en un una es no se por con para su del al lo
o a os as e do da em um uma não com para dos
il di che è per gli non sono della con alla nel
și în la cu din este pe nu care sau i amb per els
w z na się do nie jest że to i są od po
v a se je že na s do pro by jsou ale ve sa nie
u je i da se na za su od koji in za ki so
az és hogy nem egy van is meg ezt volt
ja on ei että se oli joka mutta kun ovat tai olla
ning see mis või kui ka oli
ve bir bu için ile da de olarak çok var olan
un ir kas uz ar par no ir kad su į iš yra bei
y yn yr ei mae gan ac ar i'r na bod
an na ag is agus ar go
và của là có các một được cho trong không
yang dan di untuk dengan ini itu dari pada ke
ya na wa kwa ni katika za la
ang ng sa mga at ay
et in est non ad cum qui ut sed
"""
_LITTLE = tuple(frozenset(words.split()) for words in _LITTLE_WORDS_LIST.strip().splitlines())
_WORD = re.compile(r"[^\W\d_]+")
_ADDRESS = re.compile(r"\S*(?:://|www\.|@)\S*|\S*[/_\\]\S*|\S*\d\S*")  # and what holds digits
_COMMON = frozenset("eainrtso")
_VOWEL_LETTERS = "aeiouyæøœıwаеиоуыэюя"
_VOWELS = frozenset(_VOWEL_LETTERS)
_ODD_CLUSTER = re.compile(rf"[^{_VOWEL_LETTERS}]{{{LONG_CLUSTER}}}|[{_VOWEL_LETTERS}]{{{VOWEL_RUN}}}")


def doubtful_fonts(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """The lines, the longest first, of each font that may say something else than it shows."""
    by_font: dict[str, list[Line]] = {}
    for line in lines:
        # Program text is of no language.
        if line.style is not None and not line.style.mono and line.orientation == 0 and not line.vertical:
            by_font.setdefault(line.style.font, []).append(line)
    found: dict[str, list[Line]] = {}
    for font, members in by_font.items():
        if is_doubtful([line.text for line in members]):
            found[font] = sorted(members, key=lambda line: -len(line.text))
    return found


def is_doubtful(texts: Sequence[str]) -> bool:
    """Whether texts of one font make no words of any language. Texts of other scripts are not judged."""
    words = [word for text in texts for word in _WORD.findall(_ADDRESS.sub(" ", text)) if _is_latin(word)]
    # Names of things in capitals, and single letters, say nothing about a language.
    plain = [word.casefold() for word in words if not (word.isupper() and len(word) > 1)]
    long = [word for word in plain if len(word) > 1]
    letters = sum(map(len, long))
    if len(long) < LEAST_WORDS or letters < LEAST_LETTERS:
        return False
    if any(_speaks(plain, language) for language in _LITTLE):
        return False
    bare = [word if word.isascii() else _without_accents(word) for word in long]
    joined = "".join(bare)
    vowels = sum(map(_VOWELS.__contains__, joined)) / max(len(joined), 1)
    odd = sum(_ODD_CLUSTER.search(word) is not None for word in bare) / len(bare)
    mute = sum(map(_VOWELS.isdisjoint, bare)) / len(bare)
    if len(long) < SAMPLE:  # few words say little
        return vowels < FEW_VOWELS and mute > VOWELLESS
    common = sum(map(_COMMON.__contains__, joined)) / max(len(joined), 1)
    return not VOWELS[0] <= vowels <= VOWELS[1] or odd > CLUSTERS or mute > VOWELLESS or common < COMMON


def _speaks(words: Sequence[str], language: frozenset[str]) -> bool:
    """Whether words are of a language, by its little ones among them."""
    little = [word for word in words if word in language]
    distinct = len(set(little))
    return any(
        distinct >= least and len(little) > share * len(words) for least, share in LITTLE_WORDS.items()
    )


def _is_latin(word: str) -> bool:
    return all(char < "\u0250" or "\u1e00" <= char < "\u1f00" for char in word)


def _without_accents(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
