"""COCO's statistics of detections on `coco_mini`, by the package that scores as pycocotools does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

Found = tuple[int, np.ndarray, np.ndarray, np.ndarray]  # image, boxes [D, 4] xyxy, scores [D], labels [D]


def coco_statistics(truth: dict[str, Any], found: Iterable[Found]) -> np.ndarray:
    """AP, AP50, … of what was found; detections of score 0 are none. Skips where the package is not installed."""
    evaluation = pytest.importorskip("faster_coco_eval")
    categories = sorted(category["id"] for category in truth["categories"])
    results = []
    for image, boxes, scores, labels in found:
        boxes = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
        results += [
            {
                "image_id": image,
                "category_id": categories[label],
                "bbox": box.tolist(),
                "score": float(score),
            }
            for box, score, label in zip(boxes, scores, labels, strict=True)
            if score > 0
        ]
    assert len(truth["images"]) == 103
    known = evaluation.COCO(truth)
    scorer = evaluation.COCOeval_faster(known, known.loadRes(results), "bbox")
    scorer.evaluate()
    scorer.accumulate()
    scorer.summarize()
    return scorer.stats
