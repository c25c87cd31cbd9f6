"""What a server answers on the routes of PaddleX's pipelines of objects and people.

Source: PaddleX 3.x, inference/serving/schemas/object_detection.py, small_object_detection.py and
human_keypoint_detection.py, whose paths and keys are public interface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from detection.pose_predictor import POSE
from detection.results import Box, DetectionResult
from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.workflow.domain.paddlex import EncodeImage, PaddleXRoute, PaddleXRoutes
from framework.workflow.domain.result import Result

_OTHERS = 0.5  # PaddleX's threshold of classes of which a request says none


def _read_thresholds(thresholds: Mapping[str, JSON]) -> dict[int, float]:
    """By class. Raises: ConfigError."""
    least: dict[int, float] = {}
    for name, value in thresholds.items():
        if not (name.isdecimal() and isinstance(value, int | float) and not isinstance(value, bool)):
            raise ConfigError(
                "this is no threshold of a class",
                where="threshold",
                received=f"{name!r}: {value!r}"[:100],
                allowed='{"0": 0.5, "2": 0.3}: numbers of classes and scores',
            )
        least[int(name)] = float(value)
    return least


def _lowest_threshold(value: JSON) -> JSON:
    return min([_OTHERS, *_read_thresholds(value).values()]) if isinstance(value, dict) else value


def _write_objects(
    results: Sequence[Result], fields: Mapping[str, JSON], encode: EncodeImage | None
) -> Mapping[str, JSON]:
    """Of `threshold` by class what it says; the predictor ran with the lowest."""
    (result,) = cast("Sequence[DetectionResult]", results)
    thresholds = fields.get("threshold")
    if isinstance(thresholds, dict):
        least = _read_thresholds(thresholds)
        boxes = [box for box in result.boxes if box.score > least.get(box.category_id, _OTHERS)]
        result = replace(result, boxes=tuple(boxes))
    objects: list[JSON] = [
        {
            "bbox": list(box.bbox),
            "categoryId": box.category_id,
            "categoryName": box.label,
            "score": box.score,
        }
        for box in result.boxes
    ]
    drawing = {} if encode is None else {"image": encode(result.draw())}
    return {"detectedObjects": objects, **drawing}


def _write_people(
    results: Sequence[Result], fields: Mapping[str, JSON], encode: EncodeImage | None
) -> Mapping[str, JSON]:
    (result,) = cast("Sequence[DetectionResult]", results)
    drawing = {} if encode is None else {"image": encode(result.draw())}
    return {"persons": [_person(box) for box in result.boxes], **drawing}


def _person(box: Box) -> Mapping[str, JSON]:
    """`detScore` is of the person, `kptScore` the mean of the keypoints'."""
    points = box.keypoints or ()
    return {
        "bbox": list(box.bbox),
        "kpts": [list(point) for point in points],
        "detScore": box.score,
        "kptScore": sum(score for _, _, score in points) / max(1, len(points)),
    }


ROUTES = PaddleXRoutes(
    (
        *(
            PaddleXRoute(
                path,
                "image",
                lambda artifact: POSE not in artifact.config,
                _write_objects,
                convert={"threshold": _lowest_threshold},
            )
            for path in ("/object-detection", "/small-object-detection")
        ),
        PaddleXRoute(
            "/human-keypoint-detection",
            "image",
            lambda artifact: POSE in artifact.config,
            _write_people,
            {"detThreshold": "det_threshold"},
        ),
    )
)
