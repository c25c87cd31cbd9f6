"""LaTeX of formulas: its tokens, how it is written without needless spaces, and how near two formulas are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[^\s\\]|\\$", re.DOTALL)
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_WORDS = ("\\operatorname", "\\mathrm", "\\text", "\\mathbf")  # what stands in their braces is read as words
_ORDER = 4  # of BLEU


def split_latex(latex: str) -> list[str]:
    r"""The tokens of LaTeX: commands such as `\frac` and `\,`, and single characters."""
    return _TOKEN.findall(latex)


def tidy_latex(latex: str) -> str:
    r"""LaTeX without the spaces that tokens leave between them.

    A space stays between a command and a letter, and between two letters but in the braces of `\operatorname`,
    `\mathrm`, `\text` and `\mathbf`, whose letters are one word. Source: `normalize` of PaddleOCR's UniMERNetDecode,
    which, other than here, joins a command with the letter behind it in these braces.
    """
    found: list[str] = []
    depth, word = 0, 0  # braces that are open; how many there were where a word began, 0: none
    last, end, named = "", 0, False
    for match in _TOKEN.finditer(latex):
        token, spaced = match[0], match.start() > end
        letter = token.isascii() and token.isalpha()
        if letter and (
            _COMMAND.fullmatch(last) or (spaced and not word and last.isascii() and last.isalpha())
        ):
            found.append(" ")
        if token == "{":
            depth += 1
            if named and not word:
                word = depth
        elif token == "}":
            if depth == word:
                word = 0
            depth = max(depth - 1, 0)
        named = token in _WORDS or (named and token == "*")
        found.append(token)
        last, end = token, match.end()
    return "".join(found)


def bleu(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> float:
    """BLEU of (found, wanted) token sequences, 0 to 1: runs of one to four tokens over all pairs, and the penalty for
    being short.

    Source: Papineni et al. 2002, https://aclanthology.org/P02-1040
    """
    hits, counts = [0] * _ORDER, [0] * _ORDER
    for found, wanted in pairs:
        for n in range(1, _ORDER + 1):
            ours, theirs = _runs(found, n), _runs(wanted, n)
            hits[n - 1] += (ours & theirs).total()
            counts[n - 1] += ours.total()
    ours, theirs = sum(len(found) for found, _ in pairs), sum(len(wanted) for _, wanted in pairs)
    orders = [n for n in range(_ORDER) if counts[n]]  # sets of short formulas have no longer runs
    if not orders or not all(hits[n] for n in orders):
        return 0.0
    mean = sum(math.log(hits[n] / counts[n]) for n in orders) / len(orders)
    return math.exp(mean + min(0.0, 1.0 - theirs / ours))


def _runs(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
