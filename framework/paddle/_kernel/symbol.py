"""Symbol: stands in a Tensor for an array of a static program, which has a shape and a type but no values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from framework.paddle.static.program import Variable


class Symbol:
    """Shape and type of a variable. Sizes that are only known when the program runs have a number here that stands for
    them, and another one in `other`, by which they are told apart."""

    __slots__ = ("dtype", "other", "shape", "variable")
    weak_type = False

    def __init__(
        self,
        shape: tuple[int, ...],
        other: tuple[int, ...],
        dtype: DTypeLike,
        variable: Variable,
    ) -> None:
        self.shape, self.other, self.dtype = shape, other, np.dtype(dtype)
        self.variable = variable

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def known(self) -> list[int]:
        """The shape with -1 for what is not known."""
        return [a if a == b else -1 for a, b in zip(self.shape, self.other, strict=True)]
