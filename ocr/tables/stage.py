"""The table network at run time: the image of a table becomes cells with their places and boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from framework.core.errors import InputError
from framework.inference import Engine
from framework.vision.image import resize
from framework.vision.normalize import Normalize
from ocr.results.blocks import Table
from ocr.tables.grid import read_grid
from ocr.tables.structure import (
    END,
    PADDING,
    START,
    UNKNOWN,
    make_table,
    starts_cell,
    structure_tokens,
    unmark_empty,
)

BoxScale = Literal["content", "padded", "none"]
BoxForm = Literal["corners", "center"]


@dataclass(frozen=True)
class TableOptions:
    """How a network sees a table, and what it gives.

    Attributes:
        normalize: What the program does to the pixels; the padding becomes 0 after it.
        size_hw: Of the input; a table is resized to fit into it, small ones are enlarged, and put at its top left.
        reads: "tokens", one after the other, as SLANet does, or a "grid" of rows and columns.
        tokens: By their numbers, of those that read tokens.
        box_scale: What boxes are shares of: the table's own width and height, or those of the padded input; "none"
            where they were not trained: cells have no boxes.
        box_form: What the numbers of a box are: two or four corners, or the center's x and y, width and height.
    """

    normalize: Normalize
    size_hw: tuple[int, int] = (488, 488)
    reads: Literal["tokens", "grid"] = "tokens"
    tokens: tuple[str, ...] = ()
    box_scale: BoxScale = "content"
    box_form: BoxForm = "corners"


class TableRecognizer:
    """The structure of images of one table each."""

    buckets = 1

    def __init__(self, engine: Engine, options: TableOptions) -> None:
        self.engine, self.options = engine, options

    def __call__(self, image: np.ndarray) -> Table:
        """image [H, W, 3] uint8 RGB -> cells without text; boxes in the image's pixels, in 0 to 1 the cells' scores.

        Raises:
            InputError: the image has no pixels.
        """
        height, width = image.shape[:2]
        if not height or not width:
            raise InputError("the image of a table is empty", received=f"{width} x {height} pixels")
        rows, columns = self.options.size_hw
        scale = min(rows / height, columns / width)
        size = max(1, min(rows, round(height * scale))), max(1, min(columns, round(width * scale)))
        batch = np.zeros((1, rows, columns, 3), np.uint8)
        batch[0, : size[0], : size[1]] = resize(image, size)
        found = self.engine({"image": batch, "size": np.array([size], np.int32)})
        one = {name: np.asarray(value)[0] for name, value in found.items()}
        back = np.array([width / size[1], height / size[0]] * 2, np.float32)
        if self.options.reads == "grid":
            grid = read_grid(one, size)
            boxes = [tuple((box * back).tolist()) for box in grid.boxes]
            return make_table(structure_tokens(grid.cells, grid.rows), boxes, grid.scores.tolist())
        tokens, boxes, scores = read_tokens(one, self.options.tokens, self.options.box_form)
        if self.options.box_scale == "none":
            return make_table(tokens, (), scores)
        if self.options.box_scale == "content":
            back = np.array([width, height] * 2, np.float32)
        else:
            back = back * np.array([columns, rows] * 2, np.float32)
        scaled = [None if box is None else tuple((box * back).tolist()) for box in boxes]
        return make_table(tokens, scaled, scores)


def read_tokens(
    outputs: Mapping[str, np.ndarray], dictionary: tuple[str, ...], form: BoxForm = "corners"
) -> tuple[list[str], list[np.ndarray | None], list[float]]:
    """Structure tokens, and for each of its cells the bounds [4] of its box, None where it is said to be empty, and the
    probability of its token.

    Args:
        outputs: "tokens" and "probabilities" [T], "boxes" [T, 4 or 8], of one table.
        dictionary: The tokens by their numbers; "eos" ends the table.
        form: What the numbers of a box are.
    """
    said = [dictionary[number] if 0 <= number < len(dictionary) else "" for number in outputs["tokens"]]
    said = said[: said.index(END)] if END in said else said
    kept = [place for place, token in enumerate(said) if token not in (START, UNKNOWN, PADDING, "")]
    tokens, empty = unmark_empty([said[place] for place in kept])
    boxes: list[np.ndarray | None] = []
    scores = []
    for place, token, is_empty in zip(kept, tokens, empty):
        if starts_cell(token):
            boxes.append(None if is_empty else _bounds(np.asarray(outputs["boxes"][place], np.float32), form))
            scores.append(float(outputs["probabilities"][place]))
    return tokens, boxes, scores


def _bounds(box: np.ndarray, form: BoxForm) -> np.ndarray:
    """Left, top, right, bottom in 0 to 1."""
    if form == "center":
        box = np.concatenate([box[:2] - box[2:] / 2, box[:2] + box[2:] / 2])
    corners = np.clip(box, 0, 1).reshape(-1, 2)
    return np.concatenate([corners.min(axis=0), corners.max(axis=0)])
