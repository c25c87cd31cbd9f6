"""The shipped classifier of turned pages on the 16 pages of PubLayNet, each in four directions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework.vision import image
from framework.workflow import ImageItem, open_predictor

LEAST = 62  # of 64; 64 when it was shipped


@pytest.mark.slow
def test_turned_pages_of_publaynet(shared: Path) -> None:
    find = open_predictor("PP-LCNet_x0_25_doc_ori")
    pages = [
        image.rotate90(image.read(path), turns)
        for path in sorted((shared / "data" / "publaynet_samples" / "images").glob("*.jpg"))
        for turns in range(4)
    ]
    assert len(pages) == 64
    found = [page.angle for page in find.predict_stream(map(ImageItem, pages))]  # type: ignore[union-attr]
    right = np.array(found) == np.tile([0, 90, 180, 270], 16)
    assert right.sum() >= LEAST
