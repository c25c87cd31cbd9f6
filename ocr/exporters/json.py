"""Results as plain data and JSON, and back.

A page is `{"input", "page", "size": [width, height], "lines": [...], "seconds": {stage: seconds}}`, a line
`{"text", "score", "polygon", "words"}`, a word `{"text", "score", "polygon", "chars"}` and a character
`{"text", "score", "polygon"}`. Scores have 4 decimals, coordinates 1, seconds 4. A line's orientation is not written:
the polygon starts at the text's own top-left corner and so tells it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from framework.core.errors import FormatError, OarError
from ocr.results import Char, Document, Line, Page, Polygon, Word


def page_to_dict(page: Page) -> dict[str, Any]:
    """The page as the module's docstring says, without its image."""
    return {
        "input": page.input,
        "page": page.page,
        "size": list(page.size),
        "lines": [_piece(line) | {"words": [_word(word) for word in line.words]} for line in page.lines],
        "seconds": {name: round(value, 4) for name, value in page.seconds.items()},
    }


def to_json(document: Document, *, indent: int | None = None) -> str:
    """`Document.to_dict` as JSON text, not escaped beyond what JSON asks for."""
    text = json.dumps(document.to_dict(), ensure_ascii=False, indent=indent, allow_nan=False)
    # A lone surrogate cannot be written as UTF-8; JSON can still say it as an escape.
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def page_from_dict(data: Mapping[str, Any]) -> Page:
    """Raises: FormatError when a key is missing or a value does not fit."""
    return _read(data, _page, "a page: input, page, size [width, height], lines, seconds")


def document_from_dict(data: Mapping[str, Any]) -> Document:
    """Raises: FormatError when a key is missing or a value does not fit."""
    return _read(
        data, lambda d: Document(tuple(map(_page, d["pages"])), d["input"]), "a document: input, pages"
    )


def _read(data: Any, make: Any, allowed: str) -> Any:
    try:
        return make(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"no key {error}" if isinstance(error, KeyError) else error
        if isinstance(error, OarError):
            what = f"{error.problem}: {error.received}"
        raise FormatError(
            "this is no OCR result",
            where="from_dict",
            received=what,
            allowed=allowed,
            fix="pass what to_dict() or json.loads(to_json()) gave",
        ) from error


def _piece(piece: Line | Word | Char) -> dict[str, Any]:
    polygon = [[round(x, 1), round(y, 1)] for x, y in piece.polygon]
    return {"text": piece.text, "score": round(piece.score, 4), "polygon": polygon}


def _word(word: Word) -> dict[str, Any]:
    return _piece(word) | {"chars": [_piece(char) for char in word.chars]}


def _parts(data: Mapping[str, Any]) -> tuple[str, float, Polygon]:
    if not isinstance(data["text"], str):
        raise TypeError(f"text is {data['text']!r}")
    return data["text"], data["score"], data["polygon"]


def _page(data: Mapping[str, Any]) -> Page:
    lines = (
        Line(
            *_parts(line),
            words=tuple(
                Word(*_parts(word), chars=tuple(Char(*_parts(char)) for char in word.get("chars", ())))
                for word in line["words"]
            ),
        )
        for line in data["lines"]
    )
    return Page(tuple(lines), data["size"], data["input"], data["page"], data["seconds"])
