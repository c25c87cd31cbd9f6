"""What seals and stamps say: their text runs along rings, which an OCR of outlines reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from framework.vision.warp import Warp
from framework.workflow import ImageItem
from ocr.pages.preparation import PreparedImage
from ocr.pipeline.predictor import OCRPredictor
from ocr.results.blocks import Block
from ocr.results.crops import cut_box


def read_seals(
    blocks: Iterable[Block], image: np.ndarray, open_seals: Callable[[], OCRPredictor]
) -> list[Block]:
    """The blocks of a page, and of each "seal" the text and the lines that this predictor finds within its box.

    Args:
        image: The page, [H, W, 3] uint8 RGB; boxes are in its pixels.
        open_seals: Gives the predictor; called where there is a seal.
    """
    return [_read(block, image, open_seals()) if block.label == "seal" else block for block in blocks]


def _read(block: Block, image: np.ndarray, seals: OCRPredictor) -> Block:
    crop, box = cut_box(image, block.bbox)
    if not crop.size:
        return block
    page, _ = seals.predict_prepared(ImageItem(crop))
    place = PreparedImage(crop, Warp.crop((image.shape[0], image.shape[1]), box), None, None, 0.0)
    lines = place.restore(page, image).lines
    return replace(block, text="\n".join(line.text for line in lines), lines=lines)
