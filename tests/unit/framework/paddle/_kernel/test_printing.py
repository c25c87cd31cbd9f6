"""How Tensors of framework.paddle print."""

from __future__ import annotations

import pytest

from framework import paddle
from framework.paddle._kernel import printing
from framework.paddle._kernel.tensor import Tensor


@pytest.fixture(autouse=True)
def usual_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "options", printing.PrintSettings())


def numbers(x: Tensor) -> str:
    head, _, text = repr(x).partition(",\n       ")
    assert head.startswith("Tensor(shape=[") and text.endswith(")")
    return text[:-1]


def test_the_head_says_what_the_tensor_is() -> None:
    x = Tensor([1, 2], stop_gradient=False)
    assert str(x) == "Tensor(shape=[2], dtype=int64, place=Place(cpu), stop_gradient=False,\n       [1, 2])"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (3.0, "3."),
        (float("nan"), "nan"),
        ([], "[]"),
        ([True, False], "[True , False]"),
        ([-1, 10, 200], "[-1 ,  10, 200]"),
        ([1.5, -2.25, 1e10], "[ 1.50000000 , -2.25000000 , 10000000000.]"),
        ([1.0, float("inf"), float("-inf")], "[ 1.  ,  inf., -inf.]"),
        ([1 + 2j, 0j], "[(1+2j), 0j    ]"),
        ([[1.0], [20.0]], "[[1. ],\n        [20.]]"),
        ([[[1]], [[2]]], "[[[1]],\n\n        [[2]]]"),
    ],
)
def test_numbers_are_aligned(value: object, text: str) -> None:
    assert numbers(Tensor(value)) == text


def test_long_tensors_are_summarised_and_lines_are_broken() -> None:
    assert numbers(paddle.arange(2000)) == "[0   , 1   , 2   , ..., 1997, 1998, 1999]"
    lines = numbers(paddle.arange(40)).split("\n")
    assert [line.count(",") for line in lines] == [18, 18, 3] and lines[1].startswith("        18, 19")
    assert numbers(paddle.ones([1200, 2])).split("\n")[3] == "        ...,"


def test_printoptions() -> None:
    paddle.set_printoptions(precision=2, threshold=4, edgeitems=1)
    assert numbers(Tensor([0.125, 0.25])) == "[0.12, 0.25]"
    assert numbers(Tensor([0.5, 1.5, 2.5, 3.5, 4.5])) == "[0.50, ..., 4.50]"
    paddle.set_printoptions(sci_mode=True)
    assert numbers(Tensor([150.0])) == "[1.50e+02]"


def test_bfloat16_prints_as_float() -> None:
    assert numbers(Tensor([0.5, 2.0], "bfloat16")) == "[0.50000000, 2.        ]"


def test_lines_and_negative_zeros_are_laid_out_as_paddles():
    """What Paddle 2.6.2 prints for these."""
    assert str(paddle.zeros([1, 20])).endswith("\n       [[" + "0., " * 17 + "0.,\n         0., 0.]])")
    assert str(paddle.to_tensor([-0.0, 1.5, -1.25])).endswith("[ -0.       ,  1.50000000, -1.25000000])")
