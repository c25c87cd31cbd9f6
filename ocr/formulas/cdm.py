r"""How near two formulas are as they look: their symbols, drawn without TeX, are matched by what and where they are.

`x^2` and `x^{2}` look alike and score 1, where edits of LaTeX tell them apart. matplotlib's mathtext draws: it knows a
large part of LaTeX's mathematics, but no environments (`aligned`, `array`), so some formulas cannot be compared.

Source: Wang et al. 2024, "CDM", https://arxiv.org/abs/2409.03643, section 3: symbols are matched one to one at the
least cost of name, place and order; pairs of other names or out of place are taken out; the score is F1. Differs:
the paper draws by TeX, and takes out by an affine transformation what does not move with the rest; here heights of one
baseline and the order of the symbols decide, which a wide symbol more does not move. Scores are near the paper's own
and not equal.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from framework.core.errors import MissingExtraError
from ocr.formulas.latex import split_latex

_SIZE = 10.0  # points; places are in parts of it
_LONGEST = 4000  # characters of a formula that is drawn
_RULE = "rule"  # bars of fractions, roots and overlines
_NO_GLYPH = "\u00a4"  # what mathtext draws for all characters that its font lacks, such as Chinese ones
_HEIGHT = 0.2  # by which the height of a symbol above the baseline may differ
_SCALE = 1.25  # by which its size may: scripts are 0.7 of what they stand at
_PLACE, _ORDER = 0.25, 0.25  # shares of place and order in the cost of a pair; another name costs 1
# What mathtext lacks and what looks the same, or nearly: styles make no other symbol.
_SAME = {
    r"\ge": r"\geq",
    r"\le": r"\leq",
    r"\ne": r"\neq",
    r"\to": r"\rightarrow",
    r"\gets": r"\leftarrow",
    r"\land": r"\wedge",
    r"\lor": r"\vee",
    r"\lbrace": r"\{",
    r"\rbrace": r"\}",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\lVert": r"\|",
    r"\rVert": r"\|",
    r"\tfrac": r"\frac",
    r"\cfrac": r"\frac",
    r"\dfrac": r"\frac",
    r"\mbox": r"\text",
    r"\textrm": r"\text",
    r"\textbf": r"\text",
    r"\textit": r"\text",
    r"\stackrel": r"\overset",
    r"\boldsymbol": r"\mathbf",
    r"\bm": r"\mathbf",
    r"\pmb": r"\mathbf",
    "~": r"\ ",
    "$": "",
}
_SAME |= dict.fromkeys(
    (r"\displaystyle", r"\textstyle", r"\scriptstyle", r"\limits", r"\nolimits", r"\nonumber", r"\notag"), ""
)
_SAME |= {rf"\{size}{side}": "" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m")}
_INVISIBLE = (r"\tag", r"\label", r"\hspace", r"\vspace")  # with what stands in their braces
_BRACED = {r"\frac": 2, r"\binom": 2, r"\sqrt": 1}  # arguments, for which mathtext wants braces


class Symbol(NamedTuple):
    """A drawn symbol: a character or "rule", its left and baseline, and its size, in parts of the font's size."""

    name: str
    x: float
    y: float
    size: float


def can_draw() -> bool:
    """Whether matplotlib, which draws, is installed."""
    return importlib.util.find_spec("matplotlib") is not None


@functools.lru_cache(maxsize=4096)
def draw_symbols(latex: str) -> tuple[Symbol, ...] | None:
    """The symbols of a formula in the order in which they are drawn, rules last; None where it cannot be drawn.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    parser, font = _parser()
    try:
        text = simplify(latex) if len(latex) <= _LONGEST else None
        if not text:
            return None if text is None else ()
        drawn = parser.parse(f"${text}$", 72, font)
    except (ValueError, RuntimeError):  # no part of LaTeX that it knows, or too many braces in braces
        return None
    symbols = []
    for _, size, code, *_, x, y in drawn.glyphs:
        name = unicodedata.normalize("NFKC", chr(code))
        if name == _NO_GLYPH:
            return None
        symbols.append(Symbol(name, x / _SIZE, (y - drawn.depth) / _SIZE, size / _SIZE))
    for x, y, _, _ in drawn.rects:
        symbols.append(Symbol(_RULE, x / _SIZE, (y - drawn.depth) / _SIZE, 1.0))
    return tuple(symbols)


def simplify(latex: str) -> str | None:
    """LaTeX in the words that mathtext knows, as far as there are such; None where braces do not pair."""
    tokens = split_latex(latex)
    found: list[str] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token in _INVISIBLE:
            place = _end_of_group(tokens, place + (tokens[place : place + 1] == ["*"]))
            continue
        token = _SAME.get(token, token)
        if not token:
            continue
        found.append(token)
        for _ in range(_BRACED.get(token, 0)):
            if token == r"\sqrt" and tokens[place : place + 1] == ["["] and "]" in tokens[place:]:
                end = tokens.index("]", place) + 1
                found += tokens[place:end]
                place = end
            end = _end_of_group(tokens, place)
            if tokens[place : place + 1] == ["{"]:
                inner = simplify(_join(tokens[place + 1 : end - 1]))
            else:
                inner = simplify(_join(tokens[place:end]))
            if inner is None:
                return None
            found.append("{" + inner + "}")
            place = end
    if found.count("{") != found.count("}"):
        return None
    return _join(found)


def _join(tokens: Sequence[str]) -> str:
    """Tokens as text: a space ends a command in front of a letter."""
    return re.sub(r"(\\[a-zA-Z]+)\0(?=[a-zA-Z])", r"\1 ", "\0".join(tokens)).replace("\0", "")


def _end_of_group(tokens: Sequence[str], place: int) -> int:
    """Behind the token at `place`, or behind the group that begins there."""
    depth = 0
    for end in range(place, len(tokens)):
        depth += (tokens[end] == "{") - (tokens[end] == "}")
        if depth <= 0:
            return end + 1
    return len(tokens)


def match_symbols(found: Sequence[Symbol], wanted: Sequence[Symbol]) -> int:
    """How many symbols of one formula are those of the other: of the same name, height, size and order."""
    if not found or not wanted:
        return 0
    one, other = _table(found), _table(wanted)
    names = np.array([s.name for s in found])[:, None] != np.array([s.name for s in wanted])
    places = np.abs(one[:, None, :2] - other[None, :, :2])
    places /= np.maximum(places.max(axis=(0, 1)), 1.0)
    order = np.abs(np.linspace(0, 1, len(one))[:, None] - np.linspace(0, 1, len(other))[None])
    rows, columns = linear_sum_assignment(names + _PLACE * places.mean(axis=2) + _ORDER * order)
    pairs = [(int(i), int(j)) for i, j in zip(rows, columns) if not names[i, j]]
    ratios = [one[i, 2] / other[j, 2] for i, j in pairs]
    pairs = [pair for pair, ratio in zip(pairs, ratios) if 1 / _SCALE < ratio < _SCALE]
    if not pairs:
        return 0
    # Of one baseline is what most symbols have in common, and of equally many the least move.
    moves = np.array([one[i, 1] - other[j, 1] for i, j in pairs])
    near = np.abs(moves[:, None] - moves[None]) <= _HEIGHT
    best = int(np.lexsort((np.abs(moves), -near.sum(axis=1)))[0])
    kept = [pair for pair, stays in zip(pairs, near[best]) if stays]
    glyphs = [j for i, j in sorted(kept) if found[i].name != _RULE]
    return _longest_rise(glyphs) + len(kept) - len(glyphs)


def _table(symbols: Sequence[Symbol]) -> np.ndarray:
    """[K, 3]: x, y, size."""
    return np.array([symbol[1:] for symbol in symbols], np.float64)


def _longest_rise(values: Sequence[int]) -> int:
    """The length of the longest part of a sequence, gaps allowed, that rises."""
    ends: list[int] = []
    for value in values:
        place = int(np.searchsorted(ends, value))
        ends[place : place + 1] = [value]
    return len(ends)


def cdm(found: str, wanted: str) -> float | None:
    """F1 of the symbols of two formulas in LaTeX, 0 to 1; 0 where `found`, None where `wanted` cannot be drawn.

    Raises: MissingExtraError, as `draw_symbols`.
    """
    truth = draw_symbols(wanted)
    if truth is None:
        return None
    seen = draw_symbols(found)
    if seen is None:
        return 0.0
    if not seen and not truth:
        return 1.0
    return 2 * match_symbols(seen, truth) / (len(seen) + len(truth))


class CDMScores:
    """`cdm`, the mean over the formulas whose truth can be drawn, and `cdm_exp_rate`, the share of these that score 1,
    both missing where there is none; how many truths were left out and how many others could not be drawn:
    `cdm_truths_not_drawn`, `cdm_found_not_drawn`, which count as 0."""

    def __init__(self) -> None:
        self._scores: list[float] = []
        self._truths, self._found = 0, 0

    def add(self, found: str | None, wanted: str | None) -> None:
        """Take in one formula; None where there is none on that side, which counts as 0."""
        if wanted is not None and draw_symbols(wanted) is None:
            self._truths += 1
            return
        score = 0.0 if found is None or wanted is None else cdm(found, wanted)
        self._found += found is not None and draw_symbols(found) is None
        self._scores.append(score or 0.0)

    def result(self) -> dict[str, float]:
        """Empty where no formula was taken in."""
        if not self._scores and not self._truths:
            return {}
        counts: dict[str, float] = {"cdm_truths_not_drawn": self._truths, "cdm_found_not_drawn": self._found}
        if not self._scores:
            return counts
        return {
            "cdm": sum(self._scores) / len(self._scores),
            "cdm_exp_rate": sum(score == 1 for score in self._scores) / len(self._scores),
            **counts,
        }


@functools.cache
def _parser() -> tuple[Any, Any]:
    try:
        from matplotlib.font_manager import FontProperties
        from matplotlib.mathtext import MathTextParser
    except ImportError as error:
        raise MissingExtraError("matplotlib", "formulas", "drawing formulas") from error
    # Of each character that it has no glyph for; `draw_symbols` says so by None.
    logging.getLogger("matplotlib.mathtext").setLevel(logging.ERROR)
    return MathTextParser("path"), FontProperties(size=_SIZE, math_fontfamily="stix")
