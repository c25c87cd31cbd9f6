"""The whole pipeline against RapidOCR with the same preprocessing: the same lines say the same.

RapidOCR's rules: no side below 736, mean and deviation 0.5, lines in batches of six padded to the widest. Each new
shape is compiled, so the full set is slow.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from framework.vision import image as vision_image

pytest.importorskip("onnxruntime", reason="RapidOCR runs on onnxruntime, which is no dependency of ours")
rapidocr = pytest.importorskip("rapidocr", reason="the reference is the rapidocr wheel")

MATCHED = (
    "pipeline.detector.options.normalize={mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}",
    "pipeline.detector.options.size={limit_side: 736, limit_type: min}",
    "pipeline.detector.options.sides=[]",
    "pipeline.detector.options.max_aspect=100",
    "pipeline.detector.options.postprocess="
    "{thresh: 0.3, box_thresh: 0.5, unclip_ratio: 1.6, use_dilation: true, max_candidates: 1000}",
    "pipeline.recognizer.options.widths=[]",
    "pipeline.recognizer.options.batch=6",
    "pipeline.options.orient=false",
    "pipeline.options.rotate_ratio=1.5",
)


def shared_lines(files: list[Path]) -> tuple[int, int]:
    """(RapidOCR's lines that we have too, RapidOCR's lines) over all files, as multisets of each file."""
    from ocr import predictor

    read = predictor("pp_ocrv6_small", precision="float32", overrides=MATCHED)
    other = rapidocr.RapidOCR(params={"Global.use_cls": False})
    same = total = 0
    for file in files:
        image = vision_image.read(file)
        theirs = Counter(other(np.ascontiguousarray(image[..., ::-1])).txts or ())
        ours = Counter(line.text for line in read(image).pages[0].lines)
        same += (ours & theirs).total()
        total += theirs.total()
    return same, total


def receipts(shared: Path) -> list[Path]:
    files = sorted((shared / "data" / "sroie" / "test" / "img").glob("*.jpg"))
    if not files:
        pytest.skip("the receipts of shared/data/sroie are not here")
    return files


@pytest.mark.slow
def test_transcripts_of_all_receipts(shared: Path) -> None:
    same, total = shared_lines(receipts(shared))
    print(f"{same} of {total} lines equal")
    assert same >= 0.99 * total
