"""The tables that `paddle.flops` prints."""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle._kernel.modules import complete as _complete


class Table:
    """A table as text."""

    def __init__(self, table_heads: Sequence[str]) -> None:
        self.table_heads, self.col_num = table_heads, len(table_heads)
        self.table_len = [len(head) for head in table_heads]
        self.data: list[Sequence[object]] = []

    def add_row(self, row_str: Sequence[object]) -> None:
        """Add a row of as many cells as there are heads. Raises: ValueError: there are more or fewer."""
        if len(row_str) != self.col_num:
            raise ValueError(f"Table.add_row: {self.col_num} cells, received {len(row_str)}")
        self.table_len = [
            max(width, len(str(cell))) for width, cell in zip(self.table_len, row_str, strict=True)
        ]
        self.data.append(row_str)

    def print_row(self, row: Sequence[object]) -> None:
        """Print the cells between bars."""
        cells = [str(cell).center(width + 2) for cell, width in zip(row, self.table_len, strict=True)]
        print("|" + "|".join(cells) + "|")

    def print_shelf(self) -> None:
        """Print a line."""
        print("+" + "+".join("-" * (width + 2) for width in self.table_len) + "+")

    def print_table(self) -> None:
        """Print all of it."""
        self.print_shelf()
        self.print_row(self.table_heads)
        self.print_shelf()
        for row in self.data:
            self.print_row(row)
        self.print_shelf()


_complete(__name__)
