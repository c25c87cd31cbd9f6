"""Object detection and tracking.

from detection import predictor

detect = predictor("picodet_s_320_coco")
for box in detect("street.jpg").boxes:
    print(box.label, box.score, box.bbox)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detection.api import predictor as predictor


def __getattr__(name: str) -> Any:
    if name == "predictor":
        from detection.api import predictor

        return predictor
    raise AttributeError(f"module 'detection' has no attribute {name!r}")
