"""One self-contained HTML page: headings, paragraphs, lists, tables with spans, figures as data URIs.

Elements say what they are (HTML Living Standard, 4.3 to 4.9): h1 to h6, p, ul and ol, table with caption, thead and
tbody, figure with figcaption. LaTeX of formulas stands as text, in elements of class "formula". Blocks have the
ids b1, b2, … in their order.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ocr.exporters._block_markdown import CHECK_BOXES
from ocr.exporters._figures import figure_png
from ocr.exporters._joined_blocks import joined_blocks, list_marker
from ocr.exporters._styled_text import styled_html
from ocr.exporters._xml import xml_text
from ocr.results.bidi import starts_right
from ocr.results.blocks import Block, Cell, Formula, Table
from ocr.results.spans import MARK

if TYPE_CHECKING:
    from ocr.results.pages import Document, Page

STYLE = """
body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em;overflow-wrap:break-word}
table{border-collapse:collapse;margin:1em 0}
td,th{border:1px solid #888;padding:.2em .5em;vertical-align:top;text-align:left}
thead{background:#eee}caption,figcaption,.caption{font-size:.9em;color:#444;text-align:left}
figure{margin:1em 0}img{max-width:100%}.footnote{font-size:.85em;border-top:1px solid #ccc}
""".strip()


def to_html(document: Document, folder: str | Path | None = None) -> str:
    """The document as one page.

    Args:
        folder: Where the paths of figures start from whose images are not held.
    """
    return "".join(iterate_html(document.pages, document.source, None if folder is None else Path(folder)))


def iterate_html(pages: Iterable[Page], source: str = "", folder: Path | None = None) -> Iterator[str]:
    """The page in pieces, from pages that come one by one."""
    title = _escape(Path(source).stem or "document")
    yield (
        f'<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n<article>\n"
    )
    open_lists: list[str] = []
    for number, block in enumerate(joined_blocks(pages), 1):
        if block.label != "list_item":
            yield from _close_lists(open_lists, 0)
            yield _block(block, number, folder)
            continue
        marker, place, _ = list_marker(block.text)
        tag, depth = "ul" if place is None else "ol", max(block.level, 1)
        yield from _close_lists(open_lists, depth)
        if len(open_lists) == depth:
            yield "</li>\n"
            if open_lists[-1] != tag:
                yield f"</{open_lists.pop()}>\n"
        while len(open_lists) < depth:
            # A list without an item above it needs one to stand in.
            yield f"<{tag}>\n" + ("<li>" if len(open_lists) < depth - 1 else "")
            open_lists.append(tag)
        value = "" if place is None else f' value="{place}"'
        yield f'<li id="b{number}"{value}{_direction(block.text)}>{_item(block, marker)}'
    yield from _close_lists(open_lists, 0)
    yield "</article>\n</body>\n</html>\n"


def _close_lists(open_lists: list[str], depth: int) -> Iterator[str]:
    """The ends of the lists deeper than `depth`, and of their last items."""
    while len(open_lists) > depth:
        yield f"</li>\n</{open_lists.pop()}>\n"


def _block(block: Block, number: int, folder: Path | None) -> str:
    at = f' id="b{number}"'
    captions = [styled_html(child.text, child.spans, _escape) for child in block.children]
    if block.label == "algorithm" and block.text:
        return f"<pre{at}><code>{html.escape(xml_text(block.text), quote=False)}</code></pre>\n"
    at += _direction(block.text)
    if isinstance(block.content, Table):
        return table_html(block.content, captions, at) + "\n"
    if isinstance(block.content, Formula):
        tag = "span" if block.content.inline else "div"
        return f'<{tag}{at} class="formula">{_escape(block.content.latex)}</{tag}>\n'
    image = figure_png(block, folder)
    if image is not None or block.label in ("image", "chart", "seal"):
        data = "" if image is None else base64.b64encode(image).decode("ascii")
        alt = html.escape(" ".join(xml_text(child.text) for child in block.children), quote=True)
        shown = f'<img src="data:image/png;base64,{data}" alt="{alt}">' if data else ""
        said = "".join(f"<figcaption>{caption}</figcaption>" for caption in captions)
        if block.text:
            said += f"<p>{_escape(block.text)}</p>"
        return f"<figure{at}>{shown}{said}</figure>\n" if shown or said else ""
    if block.label in ("doc_title", "paragraph_title"):
        level = min(max(block.level, 1), 6)
        said = styled_html(block.text, block.spans, lambda text: _escape(" ".join(text.split())))
        return f"<h{level}{at}>{said}</h{level}>\n"
    kind = {
        "footnote": ' class="footnote"',
        "table_title": ' class="caption"',
        "figure_title": ' class="caption"',
    }
    said = f"<p{at}{kind.get(block.label, '')}>{styled_html(block.text, block.spans, _escape)}</p>\n"
    return said + "".join(f'<p class="caption">{caption}</p>\n' for caption in captions)


def _item(block: Block, marker: str) -> str:
    """An item of a list without its marker; a check box is one."""

    def escape(text: str) -> str:
        return _escape(" ".join(text.split()).removeprefix(marker).lstrip() if marker else text)

    box = f'<input type="checkbox" disabled{" checked" * (marker != "☐")}> ' if marker in CHECK_BOXES else ""
    return box + styled_html(block.text, block.spans, escape)


def _direction(text: str) -> str:
    return ' dir="rtl"' if starts_right(text) else ""


def table_html(table: Table, captions: Iterable[str] = (), attributes: str = "") -> str:
    """A table with `th` in its head and captions that are HTML. (`Table.to_html` has `td` alone, as TEDS wants it.)"""
    places = table.grid()
    head = 0
    while head < table.rows and all(cell is not None and cell.header for cell in places[head]):
        head += 1
    caption = "<br>".join(captions)
    parts = [f"<table{attributes}>", f"<caption>{caption}</caption>" if caption else ""]
    for tag, first, last in (("thead", 0, head), ("tbody", head, table.rows)):
        if first < last:
            rows = "\n".join(_row(places[row], row, tag == "thead") for row in range(first, last))
            parts.append(f"<{tag}>\n{rows}\n</{tag}>")
    return "\n".join([part for part in parts if part] + ["</table>"])


def _row(places: Iterable[Cell | None], row: int, head: bool) -> str:
    parts = []
    for column, cell in enumerate(places):
        if cell is None:
            parts.append("<td></td>")
        elif (cell.row, cell.column) == (row, column):
            tag = "th" if head or cell.header else "td"
            sizes = (("rowspan", cell.rowspan), ("colspan", cell.colspan))
            spans = "".join(f' {name}="{size}"' for name, size in sizes if size > 1)
            parts.append(f"<{tag}{spans}>{styled_html(cell.text, cell.spans, _escape)}</{tag}>")
    return f"<tr>{''.join(parts)}</tr>"


def _escape(text: str) -> str:
    # What spans put in stays: XML could not hold it, and it is replaced.
    parts = (html.escape(xml_text(part), quote=False) for part in text.split(MARK))
    return MARK.join(parts).replace("\n", "<br>\n")
