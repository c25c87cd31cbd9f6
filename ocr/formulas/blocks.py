"""Formulas of a page, read by a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ocr.formulas.stage import FormulaText
from ocr.results.blocks import Block, Formula
from ocr.results.crops import cut_box


class FormulaReader(Protocol):
    """What gives the LaTeX of an image of one formula, such as `ocr.formulas.stage.FormulaRecognizer`."""

    def __call__(self, image: np.ndarray) -> FormulaText: ...


def read_formulas(
    blocks: Sequence[Block], image: np.ndarray, open_reader: Callable[[], FormulaReader]
) -> list[Block]:
    """Blocks in which each formula has its LaTeX as content and text, and its score.

    One of which the network says nothing, or which has no pixels on the page, stays as it was.

    Args:
        image: The page, [H, W, 3] uint8 RGB. open_reader: Is called where there is a formula.
    """
    return [_read(block, image, open_reader) if block.label == "formula" else block for block in blocks]


def _read(block: Block, image: np.ndarray, open_reader: Callable[[], FormulaReader]) -> Block:
    crop, _ = cut_box(image, block.bbox, least=0)
    if not crop.size:
        return block
    latex, score = open_reader()(crop)
    return replace(block, text=latex, score=score, content=Formula(latex)) if latex else block
