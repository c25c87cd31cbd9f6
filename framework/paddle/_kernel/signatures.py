"""In which order Paddle's tests hand the inputs and settings of an operator to the function of Python that stands for
it: signatures.txt, read of Paddle 2.6.2."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Signature:
    """Names of an operator's inputs, settings and outputs.

    Attributes:
        settings: For each the attribute, and the inputs that take its role where they are given.
    """

    inputs: tuple[str, ...]
    settings: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]


@functools.cache
def signatures() -> dict[str, Signature]:
    """All operators that have a kernel, by name."""
    lines = Path(__file__).with_name("signatures.txt").read_text(encoding="utf-8").splitlines()
    rows = ([column.strip() for column in line.split("|")] for line in lines if not line.startswith("#"))
    return {
        name: Signature(
            tuple(inputs.split()),
            tuple(tuple(setting.split("/")) for setting in settings.split()),
            tuple(outputs.split()),
        )
        for name, inputs, settings, outputs in rows
    }


def find_signature(op_type: str) -> Signature | None:
    """The signature of an operator; None where Paddle 2.6.2 has no kernel of it."""
    return signatures().get(op_type)
