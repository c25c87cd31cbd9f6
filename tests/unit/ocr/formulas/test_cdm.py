"""Formulas compared as they look, by hand."""

import sys

import pytest

from framework.core.errors import MissingExtraError
from ocr.formulas import cdm as formula_cdm
from ocr.formulas.cdm import CDMScores, Symbol, cdm, draw_symbols, match_symbols, simplify
from ocr.text.scores import edit_distance

drawn = pytest.mark.skipif(
    not formula_cdm.can_draw(), reason="matplotlib is not installed: the extra formulas"
)


@drawn
@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (r"\frac{a+b}{c} = \sqrt[3]{x_1^2}", r"\frac{a+b}{c} = \sqrt[3]{x_1^2}"),
        ("x^2", "x^{2}"),
        ("x_1^2", "x^{2}_{1}"),
        (r"\frac12", r"\dfrac{1}{2}"),
        (r"\displaystyle \sum\limits_{i=1}^n x_i \tag{3}", r"\sum_{i = 1}^{n}x_{i}"),
        (r"a \le b \to \mathrm{d} x", r"a\leq b\rightarrow dx"),
        (r"\left( \boldsymbol{v} \right)", r"\left(\mathbf{v}\right)"),
        ("", " "),
    ],
)
def test_what_looks_alike_scores_1(found, wanted):
    assert cdm(found, wanted) == cdm(wanted, found) == 1.0
    assert found == wanted or edit_distance(found, wanted) > 0


@drawn
@pytest.mark.parametrize(
    ("found", "wanted", "score"),
    [
        ("a+b+d", "a+b+c", 4 / 5),  # one of five symbols
        (r"a+\beta", r"a+\gamma", 2 / 3),
        ("ba", "ab", 1 / 2),  # one of the two stays in order
        ("b+a", "a+b", 1 / 3),
        ("x_2", "x^2", 1 / 2),  # the script is elsewhere
        ("x2", "x_2", 1 / 2),
        ("a+b", "a+b+c", 6 / 8),  # two are missing
        (r"\frac{a}{b}", r"\frac{b}{a}", 1 / 3),  # the bar alone
        ("abcdef", "xabcdef", 12 / 13),  # all others move to the side
        (r"\frac{a}", "a", 0.0),  # is no LaTeX
        (r"\begin{aligned} a \end{aligned}", "a", 0.0),  # mathtext has no environments
        ("", "a", 0.0),
        ("a", r"\begin{array}{c} a \end{array}", None),
        ("x", r"\text{若} x", None),  # the font has no Chinese: all its characters would look alike
        (r"\text{文}", "x", 0.0),
    ],
)
def test_differences(found, wanted, score):
    assert cdm(found, wanted) == (None if score is None else pytest.approx(score))


@drawn
def test_scores_of_a_set():
    scores = CDMScores()
    assert scores.result() == {}
    scores.add("x^2", "x^{2}")
    scores.add("x_2", "x^2")
    scores.add(r"\nothing", "x")
    scores.add("x", r"\begin{array}{c} x \end{array}")
    scores.add(None, r"\begin{array}{c} x \end{array}")
    scores.add(None, "x")
    scores.add("x", None)
    assert scores.result() == pytest.approx(
        {"cdm": 1.5 / 5, "cdm_exp_rate": 1 / 5, "cdm_truths_not_drawn": 2, "cdm_found_not_drawn": 1}
    )


@drawn
def test_a_set_of_which_no_truth_can_be_drawn_has_no_mean():
    scores = CDMScores()
    scores.add("x", r"\begin{array}{c} x \end{array}")
    assert scores.result() == {"cdm_truths_not_drawn": 1, "cdm_found_not_drawn": 0}


@drawn
def test_symbols_have_places():
    symbols = draw_symbols("x^2")
    assert symbols is not None and len(symbols) == 2
    base, script = symbols
    assert (base.name, base.size, script.name, script.size) == ("x", 1.0, "2", pytest.approx(0.7))
    assert script.x > base.x and script.y > base.y + 0.3
    assert [symbol.name for symbol in draw_symbols(r"\frac{a}{b}") or ()] == ["a", "b", "rule"]
    assert draw_symbols("x" * 5000) is None and draw_symbols("{x") is None


def test_symbols_are_matched_by_hand():
    row = [Symbol(name, float(place), 0.0, 1.0) for place, name in enumerate("abca")]
    assert match_symbols(row, row) == 4 and match_symbols(row, []) == 0
    lifted = [symbol._replace(y=0.5) for symbol in row]
    assert match_symbols(lifted, row) == 4  # all of them: another baseline
    assert match_symbols([*row[:3], lifted[3]], row) == 3
    assert match_symbols([symbol._replace(size=0.7) for symbol in row], row) == 0
    assert match_symbols(row[::-1], row) == 3  # b or c between the outer ones


def test_latex_becomes_mathtexts():
    assert simplify(r"\big( \tfrac 1 {2\bm x} \Bigr) \tag*{3}") == r"(\frac{1}{2\mathbf x})"
    assert simplify(r"\sqrt [3] x \hspace{1em} \ge y") == r"\sqrt[3]{x}\geq y"
    assert simplify(r"\alpha\displaystyle x\cdot\big y") == r"\alpha x\cdot y"
    assert simplify(r"\frac[{]} + \sqrt]") == r"\frac{[}{]}+\sqrt{]}"
    assert simplify("{a") is None


def test_without_matplotlib(monkeypatch):
    formula_cdm._parser.cache_clear()
    draw_symbols.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib.mathtext", None)
    with pytest.raises(MissingExtraError, match="formulas"):
        cdm("x", "x")
