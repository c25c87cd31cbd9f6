"""Word files (extra `office`): headings, paragraphs, lists, tables merged by their grid, figures, captions.

Tables are written as the grid that the cells lie on: a cell's `gridSpan` is its columns, and `vMerge` runs over its
rows (ECMA-376, part 1, 17.4.17 and 17.4.84). So no order of HTML has to be guessed and every span comes out.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from framework.core.disk import whole_file
from framework.core.errors import MissingExtraError
from ocr.exporters._block_markdown import CHECK_BOXES
from ocr.exporters._figures import figure_png
from ocr.exporters._joined_blocks import joined_blocks, list_marker
from ocr.exporters._styled_text import styled_runs
from ocr.exporters._xml import xml_text
from ocr.results.bidi import starts_right
from ocr.results.blocks import Block, Cell, Formula, Table
from ocr.results.spans import Span, spans_in

if TYPE_CHECKING:
    from ocr.results.pages import Document, Page

MOST_COLUMNS = 63  # Word opens no wider table
MONO = "Courier New"
BULLET_STYLES = 3  # that Word has: "List Bullet", "List Bullet 2", "List Bullet 3"
LIST_INDENT = 18.0  # points a level of a numbered list, beyond that of its style
_NAMESPACE = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
_LONGEST_SIDE = 1584.0  # points: Word's largest paper


def write_docx(document: Document, path: str | Path, folder: str | Path | None = None) -> None:
    """Writes the document; the file appears whole or not at all.

    Args:
        folder: Where the paths of figures start from whose images are not held.

    Raises: MissingExtraError without python-docx. DiskError.
    """
    write_docx_pages(document.pages, path, document.source, None if folder is None else Path(folder))


def import_docx() -> Any:
    """The module python-docx. Raises: MissingExtraError."""
    try:
        import docx
    except ImportError as error:
        raise MissingExtraError("python-docx", "office", "writing Word files") from error
    return docx


def write_docx_pages(
    pages: Iterable[Page], path: str | Path, source: str = "", folder: Path | None = None
) -> None:
    """As `write_docx`, from pages that come one by one; the Word file itself is held until it is written."""
    docx = import_docx()
    word = docx.Document()
    word.core_properties.title = xml_text(Path(source).stem)[:255]
    word.core_properties.author = ""
    writer = _Writer(word, folder)
    for block in joined_blocks(writer.watch(pages)):
        writer.add(block)
    with whole_file(path) as temporary:
        word.save(str(temporary))


class _Writer:
    """Adds blocks to a Word document. The paper is that of the first page."""

    def __init__(self, word: Any, folder: Path | None) -> None:
        self._word, self._folder = word, folder
        self._page_width = 0

    def watch(self, pages: Iterable[Page]) -> Iterable[Page]:
        """The pages; the first that is whole gives the paper's size, and each its width for the figures."""
        from docx.shared import Pt

        section, first = self._word.sections[0], True
        for page in pages:
            if page.width and page.height:
                self._page_width = page.width
                if first:
                    width, height = _paper(page)
                    section.page_width, section.page_height = Pt(width), Pt(height)
                    for side in ("left_margin", "right_margin", "top_margin", "bottom_margin"):
                        setattr(section, side, Pt(min(72.0, width / 8, height / 8)))
                    first = False
            yield page

    def add(self, block: Block) -> None:
        """One block with its captions."""
        captions = [child.text for child in block.children]
        if isinstance(block.content, Table):
            for caption in captions:
                self._paragraph(caption, "Caption")
            self._table(block.content)
        elif isinstance(block.content, Formula):
            self._paragraph(block.content.latex, "Normal", italic=True)
        elif block.label == "algorithm":
            for row in block.text.split("\n"):
                self._paragraph(row or " ", "No Spacing", font=MONO)
        elif (image := figure_png(block, self._folder)) is not None:
            self._figure(image, block)
            self._paragraph(block.text, "Normal")
            for caption in captions:
                self._paragraph(caption, "Caption")
        elif block.label in ("doc_title", "paragraph_title"):
            text = " ".join(block.text.split())
            heading = self._word.add_heading("", level=min(max(block.level, 1), 9))
            self._add_runs(heading, text, spans_in(text, block.lines))
        elif block.label == "list_item":
            marker, number, body = list_marker(block.text)
            level = max(block.level, 1)
            if marker and number is None and marker not in CHECK_BOXES:
                style = "List Bullet" + (f" {min(level, BULLET_STYLES)}" if level > 1 else "")
                self._paragraph(body, style, spans_in(body, block.lines))
            else:  # Word would count on from the list before: a number is written as it stands
                self._paragraph(block.text, "List Paragraph", block.spans, indent=LIST_INDENT * (level - 1))
        else:
            style = "Caption" if block.label in ("table_title", "figure_title", "chart_title") else "Normal"
            self._paragraph(block.text, style, block.spans, size=8.0 if block.label == "footnote" else None)
            for caption in captions:
                self._paragraph(caption, "Caption")

    def _paragraph(
        self,
        text: str,
        style: str,
        spans: Sequence[Span] = (),
        *,
        italic: bool = False,
        size: float | None = None,
        font: str | None = None,
        indent: float = 0.0,
    ) -> None:
        from docx.shared import Pt

        if not text.strip() and font is None:
            return
        paragraph = self._word.add_paragraph(style=style)
        if indent:
            paragraph.paragraph_format.left_indent = Pt(indent)
        self._add_runs(paragraph, text, spans)
        for run in paragraph.runs:
            run.italic = italic or None
            if size is not None:
                run.font.size = Pt(size)
            if font is not None:
                run.font.name = font

    def _add_runs(self, paragraph: Any, text: str, spans: Sequence[Span]) -> None:
        """Text with its spans; a paragraph that runs from right to left says so."""
        from docx.oxml import parse_xml

        if starts_right(text):
            facts = paragraph._p.get_or_add_pPr()
            facts.append(parse_xml(f"<w:bidi {_NAMESPACE}/>"))
        if not spans:
            paragraph.add_run(xml_text(text))
            return
        for element in parse_xml(f"<w:p {_NAMESPACE}>{runs_xml(text, spans, self._relate)}</w:p>"):
            paragraph._p.append(element)

    def _relate(self, target: str) -> str:
        """The number of the document's relation to an address."""
        from docx.opc.constants import RELATIONSHIP_TYPE

        return self._word.part.relate_to(xml_text(target), RELATIONSHIP_TYPE.HYPERLINK, is_external=True)

    def _figure(self, image: bytes, block: Block) -> None:
        from docx.shared import Emu

        section = self._word.sections[0]
        inside = section.page_width - section.left_margin - section.right_margin
        tall = section.page_height - section.top_margin - section.bottom_margin
        wide, high = block.bbox[2] - block.bbox[0], max(block.bbox[3] - block.bbox[1], 1.0)
        share = wide / self._page_width if self._page_width else 1.0
        width = min(share * section.page_width, inside, 0.95 * tall * wide / high)
        run = self._word.add_paragraph().add_run()
        inline = run.part.new_pic_inline(io.BytesIO(image), width=Emu(max(int(width), 12700)), height=None)
        run._r.add_drawing(inline)

    def _table(self, table: Table) -> None:
        from docx.oxml import parse_xml

        if table.columns > MOST_COLUMNS or not table.rows:
            for line in filter(str.strip, table.text.split("\n")):
                self._paragraph(line, "Normal")
            return
        section = self._word.sections[0]
        inside = section.page_width - section.left_margin - section.right_margin
        element = parse_xml(table_xml(table, int(inside / 635), self._relate))  # twentieths of a point
        body = self._word.element.body
        body.insert(len(body) - 1, element)  # the section's own element stays the last one
        self._word.add_paragraph()  # two tables that touch are one table to Word


def _paper(page: Page) -> tuple[float, float]:
    """Width and height of the paper in points: the PDF page's own, else an image's sides on 11 inches."""
    width, height = float(page.width), float(page.height)
    if page.to_points is not None:
        a, b, c, d, _, _ = page.to_points
        width, height = width * math.hypot(a, b), height * math.hypot(c, d)
    else:
        scale = 792.0 / max(width, height)
        width, height = width * scale, height * scale
    shrink = min(1.0, _LONGEST_SIDE / max(width, height))
    return max(width * shrink, 72.0), max(height * shrink, 72.0)


def table_xml(table: Table, width: int, relate: Callable[[str], str] | None = None) -> str:
    """The `w:tbl` element of a table that is `width` twentieths of a point wide; columns after their longest words.

    Args:
        relate: Gives the number of the document's relation to an address; without it links are text.
    """
    places = table.grid()
    columns = _column_widths(table, width)
    parts = [
        f'<w:tbl {_NAMESPACE}><w:tblPr><w:tblStyle w:val="TableGrid"/><w:tblW w:w="{sum(columns)}" w:type="dxa"/>'
        '<w:tblLook w:val="04A0"/></w:tblPr><w:tblGrid>',
        *(f'<w:gridCol w:w="{column}"/>' for column in columns),
        "</w:tblGrid>",
    ]
    for row in range(table.rows):
        head = all(cell is not None and cell.header for cell in places[row])
        parts.append("<w:tr>" + ("<w:trPr><w:tblHeader/></w:trPr>" if head else ""))
        column = 0
        while column < table.columns:
            cell = places[row][column]
            span = 1 if cell is None else cell.colspan
            facts = f'<w:tcW w:w="{sum(columns[column : column + span])}" w:type="dxa"/>'
            if span > 1:
                facts += f'<w:gridSpan w:val="{span}"/>'
            if cell is not None and cell.rowspan > 1:
                facts += '<w:vMerge w:val="restart"/>' if cell.row == row else "<w:vMerge/>"
            said = cell if cell is not None and cell.row == row else None
            parts.append(f"<w:tc><w:tcPr>{facts}</w:tcPr>{_cell_xml(said, head, relate)}</w:tc>")
            column += span
        parts.append("</w:tr>")
    return "".join([*parts, "</w:tbl>"])


def _cell_xml(cell: Cell | None, bold: bool, relate: Callable[[str], str] | None) -> str:
    if cell is None or not cell.text:
        return "<w:p/>"
    return f"<w:p>{runs_xml(cell.text, cell.spans, relate, bold=bold)}</w:p>"


def runs_xml(
    text: str, spans: Sequence[Span], relate: Callable[[str], str] | None, *, bold: bool = False
) -> str:
    """The `w:r` and `w:hyperlink` elements of a text; `relate` as in `table_xml`."""
    parts: list[str] = []
    for said, styles, target in styled_runs(text, spans):
        facts = "<w:b/>" if bold else ""
        facts += "<w:strike/>" if "strike" in styles else ""
        linked = bool(target) and relate is not None
        facts += '<w:color w:val="0563C1"/><w:u w:val="single"/>' if linked else ""
        raised = [name for name in ("superscript", "subscript") if name in styles]
        facts += f'<w:vertAlign w:val="{raised[0]}"/>' if raised else ""
        lines = escape(xml_text(said)).split("\n")
        body = "<w:br/>".join(f'<w:t xml:space="preserve">{line}</w:t>' if line else "" for line in lines)
        run = f"<w:r>{f'<w:rPr>{facts}</w:rPr>' if facts else ''}{body}</w:r>"
        parts.append(
            f'<w:hyperlink r:id="{relate(target)}">{run}</w:hyperlink>' if linked and relate else run
        )
    return "".join(parts)


def _column_widths(table: Table, width: int) -> list[int]:
    wanted = [3] * table.columns
    for cell in table.cells:
        if cell.colspan == 1:
            longest = max(map(len, cell.text.split("\n")), default=0)
            wanted[cell.column] = max(wanted[cell.column], min(longest, 40))
    return [max(1, width * chars // sum(wanted)) for chars in wanted]
