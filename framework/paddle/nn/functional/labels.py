"""The check of labels that Paddle's kernels make while they run."""

from __future__ import annotations

from framework.nn.functional.losses import LabelError
from framework.paddle._kernel.visible import visible_integers


def check_labels(where: str, label: object, classes: int, ignored: int | None = None) -> None:
    """Raises: LabelError for labels that are neither a class nor `ignored`, where looking costs nothing. One that is
    not looked at gives NaN."""
    numbers = visible_integers(label)
    if numbers is None or (numbers.max() < classes and numbers.min() >= 0):
        return
    wrong = (numbers < 0) | (numbers >= classes)
    if ignored is not None:
        wrong &= numbers != ignored
    if wrong.any():
        raise LabelError(where, numbers, wrong, classes, ignored)
