"""What a server answers on the routes of PaddleX's pipelines of objects and people.

Source: PaddleX 3.x, inference/serving/schemas/object_detection.py, small_object_detection.py and
human_keypoint_detection.py, whose paths and keys are public interface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from detection.pose_predictor import POSE
from detection.results import Box, DetectionResult
from framework.core.types import JSON
from framework.workflow.domain.paddlex import EncodeImage, PaddleXRoute, PaddleXRoutes
from framework.workflow.domain.result import Result


def _write_objects(
    results: Sequence[Result], fields: Mapping[str, JSON], encode: EncodeImage | None
) -> Mapping[str, JSON]:
    (result,) = cast("Sequence[DetectionResult]", results)
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
            PaddleXRoute(path, "image", lambda artifact: POSE not in artifact.config, _write_objects)
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
