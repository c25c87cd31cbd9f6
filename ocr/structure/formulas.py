"""Formulas of a page, read by a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ocr.blocks import Block, Formula
from ocr.formula_stage import FormulaText


class FormulaReader(Protocol):
    """What gives the LaTeX of an image of one formula, such as `ocr.formula_stage.FormulaRecognizer`."""

    def __call__(self, image: np.ndarray) -> FormulaText: ...


def read_formulas(
    blocks: Sequence[Block], image: np.ndarray, open_reader: Callable[[], FormulaReader]
) -> list[Block]:
    """Blocks in which each formula has its LaTeX as content and text, and its score.

    One of which the network says nothing, or which has no pixels on the page, stays as it was.

    Args:
        image: The page, [H, W, 3] uint8 RGB. open_reader: Is called where there is a formula.
    """
    height, width = image.shape[:2]
    found = []
    for block in blocks:
        left, top = (max(0, int(value)) for value in block.bbox[:2])
        right, bottom = min(width, round(block.bbox[2])), min(height, round(block.bbox[3]))
        if block.label == "formula" and left < right and top < bottom:
            latex, score = open_reader()(np.ascontiguousarray(image[top:bottom, left:right]))
            if latex:
                block = replace(block, text=latex, score=score, content=Formula(latex))
        found.append(block)
    return found
