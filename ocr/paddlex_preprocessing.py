"""What a server answers on the route of PaddleX's pipeline that prepares pages: makes them upright and flat.

Source: PaddleX 3.x, inference/serving/schemas/doc_preprocessor.py, whose path and keys are public interface.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.export import Artifact
from framework.vision import image as vision_image
from framework.workflow.domain.paddlex import EncodeImage, PaddleXRoute
from framework.workflow.domain.predictor import AnyPredictor
from framework.workflow.domain.result import ImageResult, Result
from ocr.pages.preparation import PagePreparation
from ocr.pipeline.options import OCROptions
from ocr.pipeline.predictor import OCRPredictor
from ocr.pipeline.settings import PAGE_STAGES
from ocr.pipeline.single_stage import PageAngles
from ocr.pipeline.text_pipeline import OCRPipeline

_NOT_LOOKED_AT = -1  # PaddleX's angle of a page of which nobody looked how it is turned


@dataclass(frozen=True)
class PreparedPage(ImageResult):
    """A page made upright and flat.

    Attributes:
        angle: By how many degrees it was found turned; None where nobody looked.
        unwarps: Whether it was made flat.
        prepared: [H, W, 3] uint8 RGB.
    """

    angle: int | None
    unwarps: bool
    prepared: np.ndarray = field(repr=False, compare=False)

    def _content(self) -> Mapping[str, JSON]:
        settings = {
            "use_doc_orientation_classify": self.angle is not None,
            "use_doc_unwarping": self.unwarps,
        }
        angle = _NOT_LOOKED_AT if self.angle is None else self.angle
        return {"model_settings": cast(JSON, settings), "angle": angle}

    def overlay(self) -> np.ndarray:
        """The page as it came, and beside it as it is now, [H, W, 3] uint8 RGB."""
        height = max(self.pixels.shape[0], self.prepared.shape[0])
        sides = [
            np.pad(one, ((0, height - one.shape[0]), (0, 0), (0, 0)), constant_values=255)
            for one in (self.pixels, self.prepared)
        ]
        return np.concatenate(sides, axis=1)


def _prepares(artifact: Artifact) -> bool:
    return bool(set(PAGE_STAGES) & set(artifact.stages)) or artifact.config.get("kind") == PAGE_STAGES[0]


def _choose_stages(predictor: AnyPredictor, options: Mapping[str, object]) -> PagePreparation:
    """Raises: ConfigError, where a stage is asked for that the model does not have."""
    pipeline = predictor.pipeline if isinstance(predictor, OCRPredictor) else None
    preparation = pipeline.preparation if isinstance(pipeline, OCRPipeline) else None
    if isinstance(pipeline, PageAngles):
        preparation = PagePreparation(pipeline.stage, None)
    stages = {
        "document_orientation": None if preparation is None else preparation.orientation,
        "unwarp": None if preparation is None else preparation.unwarper,
    }
    for name, stage in stages.items():
        if options.get(name) and stage is None:
            raise ConfigError(
                "this model has no such stage",
                where=name,
                received="true",
                allowed=", ".join(one for one in stages if stages[one] is not None) or "none of both",
                fix=f"export it again with -o pipeline.{name}.enabled=true",
            )
    return PagePreparation(
        None if options.get("document_orientation") is False else stages["document_orientation"],
        None if options.get("unwarp") is False else stages["unwarp"],
    )


def read_pages(predictor: AnyPredictor, data: bytes, options: Mapping[str, object]) -> Sequence[PreparedPage]:
    """The pages of a file. Raises: OarError, where it cannot be read or a stage is not there."""
    prepare = _choose_stages(predictor, options)
    pages = []
    for item in cast(OCRPredictor, predictor).read_items(data, ""):
        height, width = item.image.shape[:2]
        done = prepare(item.image)
        pages.append(
            PreparedPage(
                width=width,
                height=height,
                image=item.image,
                angle=done.angle,
                unwarps=done.grid is not None,
                prepared=done.image,
            )
        )
    return pages


def write_pages(
    results: Sequence[Result], fields: Mapping[str, JSON], encode: EncodeImage | None
) -> Mapping[str, JSON]:
    """`outputImage` is a PNG, the others, which a request may do without, as drawings are."""
    entries: list[JSON] = []
    for page in cast("Sequence[PreparedPage]", results):
        output = base64.b64encode(vision_image.encode(page.prepared, ".png")).decode("ascii")
        pruned = {key: value for key, value in page.to_dict().items() if key in ("model_settings", "angle")}
        entry: dict[str, JSON] = {"outputImage": output, "prunedResult": cast(JSON, pruned)}
        if encode is not None:
            entry |= {"docPreprocessingImage": encode(page.overlay()), "inputImage": encode(page.pixels)}
        entries.append(entry)
    return {"docPreprocessingResults": entries}


ROUTE = PaddleXRoute(
    "/document-preprocessing", "file", _prepares, write_pages, read=read_pages, options=OCROptions
)
