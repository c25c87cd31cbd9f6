"""Excel files (extra `office`): a sheet for each table, its cells merged as they span, numbers as numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.core.disk import whole_file
from framework.core.errors import InputError, MissingExtraError
from ocr.exporters._joined_blocks import joined_blocks
from ocr.exporters._numbers import parse_number, uses_decimal_comma
from ocr.exporters._xml import xml_text
from ocr.results.blocks import Block, Table

if TYPE_CHECKING:
    from ocr.results.pages import Document, Page

MOST_ROWS, MOST_COLUMNS, LONGEST_TEXT, LONGEST_TITLE = 1_048_576, 16_384, 32_767, 31  # Excel's limits
RESERVED_TITLE = "history"  # Excel takes a book with such a sheet for damaged
_WIDEST = 60  # characters of a column


def write_xlsx(document: Document, path: str | Path) -> None:
    """Writes the document's tables; the file appears whole or not at all. Without tables its one sheet says so.

    Raises: MissingExtraError without openpyxl. InputError, where a table is larger than a sheet. DiskError.
    """
    write_xlsx_pages(document.pages, path)


def import_openpyxl() -> Any:
    """The module openpyxl. Raises: MissingExtraError."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("openpyxl", "office", "writing Excel files") from error
    return openpyxl


def write_xlsx_pages(pages: Iterable[Page], path: str | Path) -> None:
    """As `write_xlsx`, from pages that come one by one; the tables are held until they are written."""
    openpyxl = import_openpyxl()
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    titles = {RESERVED_TITLE}
    for top in joined_blocks(pages):
        for block in top.walk():
            if isinstance(block.content, Table):
                sheet = book.create_sheet(_title(block, titles))
                _write_table(sheet, block.content)
    if not book.worksheets:
        book.create_sheet("No tables").append(["The document has no tables."])
    with whole_file(path) as temporary:
        book.save(temporary)


def _title(block: Block, taken: set[str]) -> str:
    """The caption without what no title may hold, or "Table 2"; no two alike."""
    caption = next((child.text for child in block.children if child.label == "table_title"), "")
    text = re.sub(r"[\\/*?:\[\]]", " ", xml_text(caption))
    text = " ".join(text.split()).strip("'")[:LONGEST_TITLE].strip() or f"Table {len(taken)}"
    name, number = text, 2
    while name.casefold() in taken:
        end = f" ({number})"
        name, number = text[: LONGEST_TITLE - len(end)] + end, number + 1
    taken.add(name.casefold())
    return name


def _write_table(sheet: Any, table: Table) -> None:
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    if table.rows > MOST_ROWS or table.columns > MOST_COLUMNS:
        raise InputError(
            "the table is larger than a sheet",
            where=f"the sheet {sheet.title!r}",
            received=f"{table.rows} rows, {table.columns} columns",
            allowed=f"{MOST_ROWS:,} rows, {MOST_COLUMNS:,} columns",
        )
    comma = uses_decimal_comma([cell.text for cell in table.cells])
    widths = [6] * table.columns
    for cell in table.cells:
        place = sheet.cell(cell.row + 1, cell.column + 1)
        number = None if cell.header else parse_number(cell.text, decimal_comma=comma)
        if number is not None:
            place.value, place.number_format = number
        elif cell.text:
            place.value = xml_text(cell.text)[:LONGEST_TEXT]
            place.data_type = "s"  # text that begins with "=" is no formula of ours
        if cell.header:
            place.font = Font(bold=True)
        if "\n" in cell.text:
            place.alignment = Alignment(wrap_text=True, vertical="top")
        if cell.rowspan > 1 or cell.colspan > 1:
            sheet.merge_cells(
                start_row=cell.row + 1,
                start_column=cell.column + 1,
                end_row=cell.row + cell.rowspan,
                end_column=cell.column + cell.colspan,
            )
        if cell.colspan == 1:
            longest = max(map(len, cell.text.split("\n")))
            widths[cell.column] = max(widths[cell.column], min(longest + 2, _WIDEST))
    for column, width in enumerate(widths, 1):
        sheet.column_dimensions[get_column_letter(column)].width = width
