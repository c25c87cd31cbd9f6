"""Whether two detections of one image are the same: boxes within a pixel, scores within a thousandth."""

from __future__ import annotations

import numpy as np

from detection.results import DetectionResult
from framework.vision import boxes as vision_boxes
from framework.workflow.domain.comparison import Comparison

PIXELS, SCORE = 1.0, 1e-3
_OVERLAP = 0.5  # of boxes whose difference is told


def compare_detections(reference: DetectionResult, other: DetectionResult) -> Comparison:
    """Boxes of one class that lie within `PIXELS` of each other with scores within `SCORE` are equal, each once."""
    free = list(range(len(other.boxes)))
    equal, pixels, scores = 0, 0.0, 0.0
    for box in reference.boxes:
        rivals = [index for index in free if other.boxes[index].category_id == box.category_id]
        if not rivals:
            continue
        corners = np.array([other.boxes[index].bbox for index in rivals])
        overlaps = vision_boxes.iou(np.array([box.bbox]), corners)[0]
        best = int(overlaps.argmax())
        if overlaps[best] < _OVERLAP:
            continue
        free.remove(rivals[best])
        apart = float(np.abs(corners[best] - box.bbox).max())
        score = abs(other.boxes[rivals[best]].score - box.score)
        pixels, scores = max(pixels, apart), max(scores, score)
        equal += apart <= PIXELS and score <= SCORE
    total = max(len(reference.boxes), len(other.boxes))
    return Comparison(equal, total, {"px": pixels, "score": scores})
