"""The errors of operations, worded so that programs recognise Paddle's kind in them."""

from __future__ import annotations

from framework.core import errors


class ShapeError(errors.ShapeError):
    """An operation does not take an argument. Its text begins with "(InvalidArgument)", as that of Paddle's error of
    this kind, which is a ValueError too."""

    def __init__(
        self,
        problem: str,
        *,
        where: object = None,
        received: object = None,
        allowed: object = None,
        fix: str | None = None,
    ) -> None:
        super().__init__(
            f"(InvalidArgument) {problem}", where=where, received=received, allowed=allowed, fix=fix
        )
