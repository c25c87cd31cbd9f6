"""Object detection and tracking.

from detection import predictor

detect = predictor("picodet_s_320_coco")
for box in detect("street.jpg").boxes:
    print(box.label, box.score, box.bbox)
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detection.detector import ObjectDetector

    predictor: Callable[..., ObjectDetector]


def __getattr__(name: str) -> object:
    if name == "predictor":
        from detection.domain import predictor

        return predictor
    raise AttributeError(f"module 'detection' has no attribute {name!r}")
