"""Standard output and errors that are closed, full, broken, or of an encoding that lacks a sign."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys

_SPELLINGS = {
    "…": "...",
    "–": "-",
    "—": "-",
    "×": "x",
    "·": "*",
    "“": '"',
    "”": '"',
    "’": "'",
    "≤": "<=",
    "≥": ">=",
}
_HANDLER = "oar_spell"


def _spell(error: UnicodeError) -> tuple[str | bytes, int]:
    """What stands for signs that an encoding lacks: "..." for "…", else their number."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    spelt = "".join(
        _SPELLINGS.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in text
    )
    return spelt, error.end


def prepare() -> None:
    """Have streams that take every text. What was closed (`>&-`) leads nowhere, so that no file gets its number."""
    codecs.register_error(_HANDLER, _spell)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
        mode = "r" if name == "stdin" else "w"
        setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors=_HANDLER)  # type: ignore[union-attr]


def flush() -> OSError | None:
    """Write what was printed; where that cannot be done, the error, and the rest leads nowhere."""
    try:
        sys.stdout.flush()
    except OSError as error:
        silence()
        return error
    return None


def silence() -> None:
    """Let standard output lead nowhere, so that the end of Python does not try to write it once more."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def report(text: str) -> None:
    """One message on standard error, which may be closed or full itself."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)
