"""Right-to-left text from its order on the page; what stands there follows from the rules of UAX 9."""

from __future__ import annotations

import pytest

from ocr.results.bidi import logical_order, mirror, starts_right

A, B, C = "\u05d0\u05d1", "\u05d2\u05d3", "\u05d4\u05d5"  # words of Hebrew
X, Y = "\u0645\u0646", "\u0641\u064a"  # words of Arabic


def back(word: str) -> str:
    return word[::-1]


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (f"{back(B)} {back(A)}", f"{A} {B}"),
        (f"{back(B)} 2024 {back(A)}", f"{A} 2024 {B}"),
        (f"{back(B)} 3,500.25 {back(A)}", f"{A} 3,500.25 {B}"),
        (f"{back(B)} Excel 2016 {back(A)}", f"{A} Excel 2016 {B}"),
        (f"{back(B)} 50% {back(A)}", f"{A} 50% {B}"),
        (f"{back(Y)} 50% {back(X)}", f"{X} 50% {Y}"),
        (f"{back(Y)} %50 {back(X)}", f"{X} 50% {Y}"),  # as rule W2 draws it
        (f"{back(Y)} 2015-2010 {back(X)}", f"{X} 2010-2015 {Y}"),  # rule W4 joins no Arabic numbers by "-"
        (f"{back(B)} 2010-2015 {back(A)}", f"{A} 2010-2015 {B}"),
        (f"{back(C)} ({back(B)}) {back(A)}", f"{A} ({B}) {C}"),  # the glyphs' characters
        (f"{back(C)} ){back(B)}( {back(A)}", f"{A} ({B}) {C}"),  # or those that are meant
        (f"{back(B)} (Home) {back(A)}", f"{A} (Home) {B}"),
        (f"The words {back(B)} {back(A)}, once", f"The words {A} {B}, once"),
        (f"{back(A)} .1", f"1. {A}"),
        ("only Latin (2) words", "only Latin (2) words"),
        ("", ""),
    ],
)
def test_logical_order(shown, said):
    order, turned = logical_order(shown)
    assert sorted(order) == list(range(len(shown)))
    assert "".join(mirror(shown[at]) if at in turned else shown[at] for at in order) == said


def test_starts_right():
    assert starts_right(f"{A} {B} of 12") and not starts_right(f"the word {A}") and not starts_right("12 %")
