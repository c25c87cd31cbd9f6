"""What processes of a run must find alike: an error of one of them is an error of all, and none waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax

from framework.core.errors import InputError, OarError
from framework.distributed.collectives import all_gather_object

T = TypeVar("T")


def agree(run: Callable[[], T], what: str) -> T:
    """The result of `run`, where it succeeds in all processes. All call it.

    Args:
        run: What may fail in one process alone, such as reading a file; it uses no collective.
        what: Names it in the error of the others, such as "reading a checkpoint".

    Raises:
        OarError: that of this process; InputError: another process has one, which is quoted.
    """
    if jax.process_count() == 1:
        return run()
    result, error = None, None
    try:
        result = run()
    except OarError as caught:
        error = caught
    errors = all_gather_object(None if error is None else str(error))
    if error is not None:
        raise error
    failed = [(rank, text) for rank, text in enumerate(errors) if text is not None]
    if failed:
        rank, text = failed[0]
        raise InputError(f"another process cannot go on: {what}", where=f"process {rank}", received=text)
    return result  # type: ignore[return-value]  # as `run` has given it
