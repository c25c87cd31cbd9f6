"""What jax raises when Python asks a placeholder for its value, told in the user's terms: with the line that asked."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path

import jax

from framework.core.errors import TraceError, UnknownValueError

_OURS = (Path(__file__).resolve().parents[1], Path(jax.__file__).resolve().parent)  # framework/ and jax/
_ASKED_FOR_A_VALUE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


@contextlib.contextmanager
def explain_trace_errors() -> Iterator[None]:
    """Turn the errors of a trace inside the block into a TraceError that names the user's line.

    Raises:
        UnknownValueError: Python needed a value.
        TraceError: Python needed the answer to a question about a symbolic size.
    """
    try:
        yield
    except _ASKED_FOR_A_VALUE as error:
        raise UnknownValueError(
            "Python asked for a value that is only known when the program runs",
            where=user_line(error),
            received=str(error).splitlines()[0],
            allowed="branches on shapes, on plain attributes and on `self.training`",
            fix="framework.jit.cond(pred, true_fn, false_fn, …) or framework.jit.while_loop(…); jnp.where for elements",
        ) from error
    except jax.errors.InconclusiveDimensionOperation as error:
        raise TraceError(
            "Python asked about a size that is not the same for all inputs",
            where=user_line(error),
            received=str(error).splitlines()[0],
            allowed="questions that have one answer for every size",
            fix="give that size as a number in the input's shape, or write the model without the question",
        ) from error


def user_line(error: BaseException) -> str:
    """file:line and text of the last frame outside of jax and the framework."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename).resolve()
        if not any(folder in path.parents for folder in _OURS) and path.exists():
            return f"{frame.filename}:{frame.lineno}: {frame.line}"
    return next(iter(getattr(error, "__notes__", ())), "an unknown line")  # of a graph: the node
