"""The HTML of a table as a tree: table, thead, tbody, tr and td, whose own inside is a list of tokens.

Read as browsers do where tags are left open: a row ends the cell before it, a group of rows the row before it. Damaged
text never fails; what is no table gives None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

MOST_NODES = 4000  # of a tree that is read; what follows is left out
_MOST_DEPTH = 32
_MOST_SPAN = 1000  # browsers' limit for columns
_GROUPS = ("thead", "tbody", "tfoot")
_VOID = ("br", "img", "hr", "col", "input", "wbr", "meta", "link")


@dataclass
class Node:
    """An element of a table's tree, in document order.

    Attributes:
        tag: Its name in small letters; `th` is read as td.
        colspan, rowspan: Of a cell; 1 where they are not given or no numbers.
        tokens: What is in a cell: characters, and inline elements as "<b>" and "</b>".
        children: None below a cell.
    """

    tag: str
    colspan: int = 1
    rowspan: int = 1
    tokens: list[str] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The characters of a cell without its inline elements."""
        return "".join(token for token in self.tokens if len(token) == 1)


@dataclass
class TableTree:
    """A table and how many elements are below it, those within cells among them, which are no nodes of the tree."""

    root: Node
    elements: int


def read_table(html: str) -> TableTree | None:
    """The first table of an HTML text; None where there is none."""
    reader = _TableReader()
    reader.feed(html)
    reader.close()
    return None if reader.root is None else TableTree(reader.root, reader.elements)


def _span(text: str | None) -> int:
    digits = (text or "").strip()
    return min(max(int(digits), 1), _MOST_SPAN) if digits.isdecimal() and len(digits) < 6 else 1


class _TableReader(HTMLParser):
    """Builds the tree of the first table as tags come."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root: Node | None = None
        self.elements = 0
        self._open: list[Node] = []  # from the table down
        self._inline: list[str] = []  # open within the cell
        self._done = False
        self._nodes = 0

    @property
    def _cell(self) -> Node | None:
        return self._open[-1] if self._open and self._open[-1].tag == "td" else None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        tag = "td" if tag == "th" else tag
        if self._done:
            return
        if self.root is None:
            if tag == "table":
                self.root = Node("table")
                self._open = [self.root]
            return
        if self._cell is not None and "table" not in self._inline and tag in ("td", "tr", *_GROUPS):
            self._close_to(("tr", *_GROUPS, "table") if tag == "td" else (*_GROUPS, "table"))
        if self._cell is not None:
            self._start_inline(tag)
            return
        if tag == "tr":
            self._close_to((*_GROUPS, "table"))
        elif tag in _GROUPS:
            self._close_to(("table",))
        if self._nodes >= MOST_NODES:
            return
        self._nodes += 1
        self.elements += 1
        values = dict(attrs)
        node = Node(tag, _span(values.get("colspan")), _span(values.get("rowspan")))
        self._open[-1].children.append(node)
        if tag not in _VOID and len(self._open) < _MOST_DEPTH:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        tag = "td" if tag == "th" else tag
        if self.root is None or self._done:
            return
        cell = self._cell
        if cell is not None and tag in self._inline:
            while self._inline:
                last = self._inline.pop()
                cell.tokens.append(f"</{last}>")
                if last == tag:
                    return
        if tag not in ("td", "tr", "table", *_GROUPS) and cell is not None:
            return
        if any(node.tag == tag for node in self._open):
            while self._open:
                self._end_inline()
                if self._open.pop().tag == tag:
                    break
        self._done = not self._open

    def handle_data(self, data: str) -> None:
        if not self._done and self._cell is not None:
            self._cell.tokens += data

    def _start_inline(self, tag: str) -> None:
        cell = self._cell
        assert cell is not None
        self.elements += 1
        cell.tokens.append(f"<{tag}>")
        if tag in _VOID or len(self._inline) >= _MOST_DEPTH:
            cell.tokens.append(f"</{tag}>")
        else:
            self._inline.append(tag)

    def _end_inline(self) -> None:
        if self._open and self._open[-1].tag == "td":
            self._open[-1].tokens += [f"</{tag}>" for tag in reversed(self._inline)]
        self._inline = []

    def _close_to(self, tags: tuple[str, ...]) -> None:
        """Closes what is open until an element of `tags` is the last one."""
        while self._open[-1].tag not in tags and len(self._open) > 1:
            self._end_inline()
            self._open.pop()


def read_structure(html: str) -> list[str]:
    """The tokens of PubTabNet of the first table of an HTML text, without what its cells say; empty without a table."""
    tree = read_table(html)
    return [] if tree is None else [token for child in tree.root.children for token in _tokens(child)]


def read_contents(html: str) -> list[list[str]]:
    """The tokens in each cell of the first table, in order."""
    tree = read_table(html)
    found: list[list[str]] = []

    def visit(node: Node) -> None:
        if node.tag == "td":
            found.append(node.tokens)
        for child in node.children:
            visit(child)

    if tree is not None:
        visit(tree.root)
    return found


def _tokens(node: Node) -> list[str]:
    if node.tag == "td":
        spans = [
            f' {name}="{n}"' for name, n in (("rowspan", node.rowspan), ("colspan", node.colspan)) if n > 1
        ]
        return ["<td", *spans, ">", "</td>"] if spans else ["<td>", "</td>"]
    if node.tag not in ("tr", *_GROUPS):
        return []
    below = [token for child in node.children for token in _tokens(child)]
    return [f"<{node.tag}>", *below, f"</{node.tag}>"]
