"""paddle.pir_utils: switches of Paddle's second representation of programs, which programs here do not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.static.program import disable_static, enable_static, in_dynamic_mode

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


class IrGuard:
    """Static mode for a block; its programs are recorded as outside of it."""

    def __init__(self) -> None:
        self.in_dygraph_outside = False

    def __enter__(self) -> None:
        self.in_dygraph_outside = in_dynamic_mode()
        enable_static()

    def __exit__(self, *error: object) -> None:
        if self.in_dygraph_outside:
            disable_static()


def test_with_pir_api(func: Callable[P, ResultT]) -> Callable[P, ResultT]:
    """The test itself: with one representation there is no second run."""
    return func


test_with_pir_api.__test__ = False  # type: ignore[attr-defined]  # pytest takes its name for a test's

_complete(__name__)
