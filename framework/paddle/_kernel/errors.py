"""The errors of operations, worded so that programs recognise Paddle's kind in them."""

from __future__ import annotations

from framework.core import errors


class ShapeError(errors.ShapeError):
    """An operation does not take an argument. Its text begins with "(InvalidArgument)", as that of Paddle's error of
    this kind, which is a ValueError too."""

    kind = "(InvalidArgument) "
