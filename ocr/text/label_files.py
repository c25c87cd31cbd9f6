"""Label files, a label a line: reading them, and those of lines of text with their images (`image<tab>text`).

What cannot be read is an error with file and line, or is counted and left out.
Source: PaddleOCR doc/doc_en/dataset
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from framework.core.errors import FormatError
from framework.text.lines import read_lines

log = logging.getLogger("oar")
BadLines = Literal["error", "skip"]
_SHOWN = 5
_L = TypeVar("_L")


@dataclass(frozen=True)
class LineLabel:
    """An image of one line and its text; `place` is "file:line"."""

    image: str
    text: str
    place: str


def read_line_labels(path: Path, bad_lines: BadLines = "error") -> list[LineLabel]:
    """`image<tab>text` a line. The image may be a list as JSON, of which each has the text.

    Raises:
        FormatError: a line has no tab, no image or no text, with "error"; or nothing is left.
    """

    def parse(line: str, place: str) -> list[LineLabel]:
        image, tab, text = line.partition("\t")
        if not tab or not image or not text.strip():
            raise bad_line(place, line, "image<tab>text, and neither is empty")
        return [LineLabel(name, text, place) for name in _images(image, place)]

    return read_labels(path, parse, bad_lines)


def _images(field: str, place: str) -> Sequence[str]:
    if not field.startswith("["):
        return (field,)
    try:
        listed = json.loads(field)
    except (ValueError, RecursionError):
        return (field,)
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise bad_line(place, field, "a name, or a list of names as JSON, before the tab")
    return listed


def bad_line(place: str, line: str, allowed: str) -> FormatError:
    """The error of a line that is no label, with what one is."""
    return FormatError(
        "this line is no label",
        where=place,
        received=repr(line[:100]),
        allowed=allowed,
        fix="correct the line, or leave such lines out: bad_lines: skip",
    )


def read_labels(path: Path, parse: Callable[[str, str], list[_L]], bad_lines: BadLines) -> list[_L]:
    """What `parse` makes of each line and its place, "file:line". Raises: FormatError, see `read_line_labels`."""
    found: list[_L] = []
    wrong: list[FormatError] = []
    for line, place in _numbered(path):
        try:
            found += parse(line, place)
        except FormatError as error:
            if bad_lines == "error":
                raise
            wrong.append(error)
    if wrong:
        shown = ", ".join(f"{error.where} {error.received}" for error in wrong[:_SHOWN])
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        log.warning("%s: %d lines are no labels and are left out: %s%s", path, len(wrong), shown, more)
    if not found and wrong:
        raise wrong[0]
    return found


def _numbered(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        if line:
            yield line, f"{path}:{number}"
