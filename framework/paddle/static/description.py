"""`Variable.desc`: what Paddle's programs ask of the description of a variable."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from framework.paddle._kernel.dtypes import dtype
    from framework.paddle.static.program import Variable


class VariableDescription:
    """Name, shape and type of a variable, as functions."""

    def __init__(self, variable: Variable) -> None:
        self._variable = variable

    def name(self) -> str:
        """The variable's name."""
        return self._variable.name

    def shape(self) -> list[int]:
        """Its sizes; -1 where one is known when the program runs."""
        return list(self._variable.shape)

    def dtype(self) -> dtype:
        """The type of its elements."""
        return self._variable.dtype

    def persistable(self) -> bool:
        """Whether it stays between runs."""
        return bool(self._variable.persistable)

    def need_check_feed(self) -> bool:
        """False: an Executor takes what is fed, and warns where the shape differs."""
        return False

    def set_need_check_feed(self, need: bool) -> None:
        """Accepted: see `need_check_feed`."""
