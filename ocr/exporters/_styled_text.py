"""Text of blocks and cells with what is raised, lowered, struck out or a link, in the markup of a format."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from urllib.parse import quote

from ocr.results.spans import Span, mark_spans, replace_marks

_SAFE = re.compile(r"(https?|ftp|mailto|tel):", re.IGNORECASE)
_TAGS = {"superscript": "sup", "subscript": "sub", "strike": "s"}


def is_address(target: str) -> bool:
    """Whether a link's address is one that a reader may follow: no script and no file."""
    return bool(_SAFE.match(target))


def styled_markdown(text: str, spans: Sequence[Span], escape: Callable[[str], str]) -> str:
    """Markdown of a text; `escape` is for it without its spans, and may change white space."""
    if not spans:
        return escape(text)
    marked, events = mark_spans(text, _followed(spans))
    return replace_marks(escape(marked), events, lambda span, begins: _markdown_mark(text, span, begins))


def _markdown_mark(text: str, span: Span, begins: bool) -> str:
    if span.style == "strike":
        return "~~"
    if span.style == "link":
        return "[" if begins else f"]({_address(span.target)})"
    return f"<{'' if begins else '/'}{_TAGS[span.style]}>"


def _address(target: str) -> str:
    return quote(target, safe="%/:?#@!$&'*+,;=~[]-._").replace("(", "%28").replace(")", "%29")


def styled_html(text: str, spans: Sequence[Span], escape: Callable[[str], str]) -> str:
    """HTML of a text; `escape` is for it without its spans."""
    if not spans:
        return escape(text)
    marked, events = mark_spans(text, _followed(spans))
    return replace_marks(escape(marked), events, _html_mark)


def _html_mark(span: Span, begins: bool) -> str:
    if span.style == "link":
        return f'<a href="{html.escape(span.target, quote=True)}">' if begins else "</a>"
    return f"<{'' if begins else '/'}{_TAGS[span.style]}>"


def styled_runs(text: str, spans: Sequence[Span]) -> list[tuple[str, frozenset[str], str]]:
    """A text in runs of one look: (text, its styles, the address behind it or "")."""
    edges = sorted(
        {0, len(text), *(edge for span in spans for edge in (span.start, min(span.end, len(text))))}
    )
    runs: list[tuple[str, frozenset[str], str]] = []
    for start, end in pairwise(edges):
        over = [span for span in _followed(spans) if span.start <= start and end <= span.end]
        target = next((span.target for span in over if span.style == "link"), "")
        runs.append((text[start:end], frozenset(span.style for span in over if span.style != "link"), target))
    return runs


def _followed(spans: Sequence[Span]) -> list[Span]:
    return [span for span in spans if span.style != "link" or is_address(span.target)]
