"""Errors of Oar: each says where, what was received, what is allowed and what to do.

Every error a user can cause is an `OarError`; its class also inherits the closest builtin, so `except ValueError`
keeps working. Compose the message from the four parts instead of writing free text:

    raise InputError(
        "the image could not be decoded",
        where="scan_07.jpg",
        received="a JPEG that ends after 1,024 of 48,112 bytes",
        allowed="a complete JPEG, PNG, BMP, TIFF or WebP file",
        fix="copy the file again, or open it in a viewer and save it anew",
    )
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class OarError(Exception):
    """Base of all errors that a user can cause. `str(error)` lists the parts, one a line."""

    kind: ClassVar[str] = ""  # what stands before the problem

    def __init__(
        self,
        problem: str,
        *,
        where: object = None,
        received: object = None,
        allowed: object = None,
        fix: str | None = None,
    ) -> None:
        self.problem, self.where = problem, where
        self.received, self.allowed, self.fix = received, allowed, fix
        text = self.kind + problem
        lines = [f"{where}: {text}" if where is not None else text]
        for label, value in (("received", received), ("allowed", allowed), ("what to do", fix)):
            if value is not None:
                lines.append(f"  {label}: {value}")
        # A file name may hold bytes that are no text; Python cannot print them as they are.
        super().__init__("\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8"))

    def __reduce__(self) -> tuple[object, ...]:
        """Another process gets the error as it is here: its message is not made anew of `args`."""
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[OarError], args: tuple[object, ...], facts: dict[str, object]) -> OarError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class ConfigError(OarError, ValueError):
    """A YAML file or a command-line override says something that cannot be bound."""


class SettingTypeError(ConfigError, TypeError):
    """A setting is of another type than it may be, whatever its value."""


class FormatError(OarError, ValueError):
    """A file is not what its name or its header promises: truncated, hostile, of another format or version."""


class WeightError(OarError, ValueError):
    """Weights do not fit the model: missing, unexpected or mismatched entries."""


class InputError(OarError, ValueError):
    """An image, a video, a document or a text that the user handed in cannot be used."""


class ShapeError(OarError, ValueError):
    """An array has a shape or a dtype that the operation does not take."""


class AxisError(ShapeError, IndexError):
    """An axis is out of range."""


class ForeignNameError(OarError, AttributeError):
    """A name of Paddle or torch that the core has not; `fix` is the line to write. See core/foreign_names.txt."""


class DeviceError(OarError, RuntimeError):
    """A device was asked for that is not there."""


class HubError(OarError, RuntimeError):
    """Weights could not be found, fetched or verified."""


class TraceError(OarError, RuntimeError):
    """Python did something under a trace (jit, grad, export) that cannot be compiled."""


class UnknownValueError(TraceError, TypeError):
    """Python asked for a value that is only known when the program runs."""


class MissingExtraError(OarError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, needed_for: str) -> None:
        super().__init__(
            f"the package {package!r} is not installed; it is needed for {needed_for}",
            fix=f'pip install "oar-toolkit[{extra}]"',
        )


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice closest to `name`, or None when nothing is close: for 'did you mean' lines."""
    matches = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, choices: Iterable[str]) -> str | None:
    """The `fix` of a message about an unknown name, if something known is close to it."""
    near = nearest(name, choices)
    return f"did you mean {near!r}?" if near else None
