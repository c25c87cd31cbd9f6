"""What a server answers on the routes of PaddleX's pipelines of classes of images.

Source: PaddleX 3.x, inference/serving/schemas/image_classification.py and image_multilabel_classification.py, whose
paths and keys are public interface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from framework.core.types import JSON
from framework.workflow.domain.paddlex import EncodeImage, PaddleXRoute, PaddleXRoutes
from framework.workflow.domain.result import Result
from zoo.classification.results import MULTI_LABEL, Classification


def _write_categories(
    results: Sequence[Result], fields: Mapping[str, JSON], encode: EncodeImage | None
) -> Mapping[str, JSON]:
    (result,) = cast("Sequence[Classification]", results)
    categories: list[JSON] = [
        {"id": one.category_id, "name": one.label, "score": one.score} for one in result.classes
    ]
    drawing = {} if encode is None else {"image": encode(result.draw())}
    return {"categories": categories, **drawing}


ROUTES = PaddleXRoutes(
    (
        PaddleXRoute(
            "/image-classification",
            "image",
            lambda artifact: MULTI_LABEL not in artifact.config,
            _write_categories,
        ),
        PaddleXRoute(
            "/multilabel-image-classification",
            "image",
            lambda artifact: MULTI_LABEL in artifact.config,
            _write_categories,
        ),
    )
)
