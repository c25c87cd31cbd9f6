"""What Paddle refuses of an equation of einsum: its kind of error, AssertionError, and its words."""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor


def check_equation(equation: str, operands: Sequence[Tensor]) -> None:
    """That the labels of an equation without blanks are letters and fit the operands.

    Raises:
        AssertionError: they do not. ShapeError: a label stands twice in a term, at axes of two sizes.
    """
    assert operands, "At least one operand is expected."
    inputs, *outputs = equation.split("->")
    _require(len(outputs) < 2, "multiple `->` were found")
    terms = inputs.split(",")
    _require(
        len(terms) == len(operands),
        f"the number of operands is {len(operands)}, but found {len(terms)} segments in the label equation",
    )
    sizes: dict[str, int] = {}
    for term, operand in zip(terms, operands, strict=True):
        _check_term(term, operand.ndim)
        _check_sizes(term, list(operand.shape), sizes)
    if outputs:
        _check_output(outputs[0], inputs)


def _require(holds: bool, problem: str) -> None:
    assert holds, f"Invalid equation: {problem}."


def _check_letters(term: str) -> str:
    """The labels of a term, its ellipsis aside."""
    labels = term.replace("...", "", 1)
    _require("." not in labels, "`.` is found outside of an ellipsis")
    for label in labels:
        _require(label.isalpha(), f"{label} is not a valid label, which should be letters")
    return labels


def _check_term(term: str, ndim: int) -> None:
    labels = _check_letters(term)
    fits = len(labels) <= ndim if "..." in term else len(labels) == ndim
    _require(fits, f"the label string '{term}' misses dimensions")


def _check_sizes(term: str, shape: list[int], sizes: dict[str, int]) -> None:
    before, _, after = term.partition("...")
    ends = [*zip(before, shape, strict=False), *zip(reversed(after), reversed(shape), strict=False)]
    in_term: dict[str, int] = {}
    for label, size in ends:
        first = in_term.setdefault(label, size)
        if -1 not in (size, first) and size != first:  # a diagonal: nothing is broadcast
            raise ShapeError(
                "a label that stands twice in a term is of axes of one size",
                where="paddle.einsum",
                received=f"{term} for the shape {shape}",
            )
    for label, size in ends:
        other = sizes.setdefault(label, size)
        if other in (1, -1):
            sizes[label] = size
        assert size in (other, 1, -1) or other in (1, -1), (
            f"Invalid operands: label {label} corresponds to non-broadcastable dimensions."
        )


def _check_output(output: str, inputs: str) -> None:
    labels = _check_letters(output)
    _require("..." in output or "..." not in inputs, "missing ellipsis in output labels")
    _require(len(set(labels)) == len(labels), "duplicate output labels are found")
