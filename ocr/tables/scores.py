"""Scores of table recognition in evaluation: structure accuracy and TEDS-S."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ocr.tables.grid import read_grid
from ocr.tables.html import read_structure, read_table
from ocr.tables.stage import read_tokens
from ocr.tables.structure import split_cells, structure_html, structure_tokens
from ocr.tables.teds import tree_similarity

_HEAD = ("<thead>", "</thead>", "<tbody>", "</tbody>")
Arrays = Mapping[str, np.ndarray]


class StructureScores:
    """`teds_structure`, the mean TEDS-S by elements, and `acc`, the share of tables whose tokens are all
    right, with `score_head` those of thead and tbody too."""

    higher_is_better = True

    def __init__(self, score_head: bool = True) -> None:
        self.score_head = score_head
        self._sums = np.zeros(2)
        self._count = 0

    def add(self, tokens: Sequence[str], html: str) -> None:
        """Take in one table: the tokens that were found, and the HTML of the right one."""
        wanted = read_structure(html)
        one, other = read_table(structure_html(tokens)), read_table(structure_html(wanted))
        assert one is not None and other is not None
        right = self._counted(tokens) == self._counted(wanted)
        self._sums += tree_similarity(one, other, structure_only=True), right
        self._count += 1

    def _counted(self, tokens: Sequence[str]) -> list[str]:
        return [token for token in tokens if self.score_head or token not in _HEAD]

    def result(self) -> dict[str, float]:
        score, right = (self._sums / max(self._count, 1)).tolist()
        return {"teds_structure": score, "acc": right}


class GridScores(StructureScores):
    """Of the outputs of `TableGrid`; a batch has "size" [N, 2] and "html" [N]."""

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        for number, html in enumerate(batch["html"].tolist()):
            height, width = (int(side) for side in batch["size"][number])
            found = read_grid({name: value[number] for name, value in outputs.items()}, (height, width))
            self.add(structure_tokens(found.cells, found.rows), html)


class TokenScores(StructureScores):
    """Of the outputs of `TableStructure`, with the tokens by their numbers; a batch has "html" [N]."""

    def __init__(self, tokens: tuple[str, ...], score_head: bool = True) -> None:
        super().__init__(score_head)
        self.tokens = tokens

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        for number, html in enumerate(batch["html"].tolist()):
            found, _, _ = read_tokens({name: value[number] for name, value in outputs.items()}, self.tokens)
            self.add(split_cells(found), html)
