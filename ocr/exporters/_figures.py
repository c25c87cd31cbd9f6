"""Images of figures: as files beside a document, or within it."""

from __future__ import annotations

import io
from pathlib import Path

from PIL import Image

from ocr.results.blocks import Block, Figure


def figure_png(block: Block, folder: Path | None) -> bytes | None:
    """The block's image as PNG; None where it has none.

    Args:
        folder: Where `Figure.path` starts from, for figures whose image was written there and is held no more.
    """
    figure = block.content
    if not isinstance(figure, Figure):
        return None
    if figure.image is not None and figure.image.size:
        buffer = io.BytesIO()
        Image.fromarray(figure.image).save(buffer, "PNG")
        return buffer.getvalue()
    path = None if folder is None or not figure.path else folder / figure.path
    return path.read_bytes() if path is not None and path.is_file() else None
