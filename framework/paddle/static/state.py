"""What is recorded into: the programs of this moment, and what static mode needs of the file above."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

from framework.paddle._kernel.errors import Deferral
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.static.program import Program


class State:
    """The programs that are recorded into; static/program.py, which stands above this file, makes the first two."""

    defer: Deferral  # static/deferred.py puts it here
    main: Program
    startup: Program

    def __init__(self) -> None:
        self.on = False
        self.programs: list[weakref.ref[Program]] = []  # all that are there, the oldest first
        self.notes: dict[str, object] = {
            "op_namescope": "/",
            "op_device": "",
        }  # of the operations recorded next
        self.changes = 0  # of attributes of operators that were recorded before: programs are compiled anew
        self.names: tuple[unique_name.Counters | None, set[str] | None] = (None, None)  # those of static mode


state = State()


def recent_programs() -> Iterator[Program]:
    """The program that is recorded into, then the others, the newest first."""
    yield state.main
    yield from filter(None, [reference() for reference in reversed(state.programs)])


def defer_by(defer: Deferral) -> None:
    """Let `defer` record the calls that need the value of a variable."""
    state.defer = defer
