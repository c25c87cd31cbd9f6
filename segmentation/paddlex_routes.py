"""What a server answers on the route of PaddleX's pipeline of semantic segmentation.

Source: PaddleX 3.x, inference/serving/schemas/semantic_segmentation.py, whose path and keys are public interface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from framework.core.types import JSON
from framework.workflow.domain.paddlex import EncodeImage, PaddleXRoute, PaddleXRoutes
from framework.workflow.domain.result import Result
from segmentation.results import Segmentation


def _write_labels(
    results: Sequence[Result], fields: Mapping[str, JSON], encode: EncodeImage | None
) -> Mapping[str, JSON]:
    """`labelMap` has the class of every pixel row by row, `size` is [height, width]."""
    (result,) = cast("Sequence[Segmentation]", results)
    drawing = {} if encode is None else {"image": encode(result.overlay())}
    labels = cast("list[JSON]", result.labels.ravel().tolist())
    return {"labelMap": labels, "size": list(result.labels.shape), **drawing}


ROUTES = PaddleXRoutes(
    (PaddleXRoute("/semantic-segmentation", "image", lambda artifact: True, _write_labels),)
)
