"""Run one exported image model: images in, typed results out, in batches and from several threads.

A domain says how an image is prepared (the transforms in the artifact) and what the program's outputs mean
(`interpret`); everything else is here: sources, batches of one shape, the next batch prepared while one runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import numpy as np

from framework.config import Kind, from_plain
from framework.config.imports import import_components
from framework.core.errors import FormatError, InputError
from framework.core.transform import Transform
from framework.export import Artifact
from framework.export.artifact import load_assets
from framework.inference.engine import Engine
from framework.inference.runtime import Runtime
from framework.vision import boxes as vision_boxes
from framework.vision.sample import Sample
from framework.workflow.domain.predictor import ImageItem
from framework.workflow.domain.samples import apply_transforms
from framework.workflow.runners.batches import Batches

R = TypeVar("R")
Interpret = Callable[[dict[str, np.ndarray], Sample, np.ndarray], R]


class ImageRunner(Generic[R]):
    """Runs the program of an artifact on images: a result of each, whatever `interpret` makes of the outputs.

    Args:
        interpret: Of the outputs of one image, the sample as the program saw it and the image as it was read.
        transforms: What is done to an image before the program.
        batch_size: Images of one shape that run together.

    Raises:
        InputError: `batch_size` is below 1.
    """

    def __init__(
        self,
        engine: Engine,
        transforms: Sequence[Transform[Sample]],
        interpret: Interpret[R],
        batch_size: int = 8,
    ) -> None:
        if batch_size < 1:
            raise InputError(
                "a batch needs an image", where="batch_size", received=batch_size, allowed="1 or more"
            )
        self.engine, self.transforms, self.interpret = engine, tuple(transforms), interpret
        self.batch_size, self._batches = batch_size, Batches(engine, batch_size)

    def predict(self, items: Iterable[ImageItem]) -> Iterator[R]:
        """One result for each item, in order. Memory does not grow with their number."""
        return self.predict_samples(
            Sample(item.image, source_size=item.image.shape[:2], id=item.source) for item in items
        )

    def predict_samples(self, samples: Iterable[Sample]) -> Iterator[R]:
        """`predict` of samples, for transforms that ask for more than an image, such as the object to cut out."""
        prepared = ((apply_transforms(sample, self.transforms), sample.image) for sample in samples)
        for (sample, image), outputs in self._batches.stream(prepared, lambda pair: {"image": pair[0].image}):
            yield self.interpret(outputs, sample, image)


class SourceBoxes(NamedTuple):
    """What a detector found on one image, in pixels of the image as it was read, best first."""

    boxes: np.ndarray
    """[K, 4] float64 xyxy, inside the image and with an area"""
    scores: np.ndarray
    """[K] float64"""
    labels: np.ndarray
    """[K] indices of classes"""


def read_boxes(outputs: dict[str, np.ndarray], sample: Sample, threshold: float = 0.0) -> SourceBoxes:
    """The boxes of a detector's program, brought back to the source.

    Args:
        outputs: "boxes" [K, 4] xyxy in pixels of the sample's image, "scores" [K], "labels" [K].
        threshold: Boxes with a lower score are left out, as are those with a score of 0, which is padding.

    Raises:
        FormatError: the program has other outputs.
    """
    missing = {"boxes", "scores", "labels"} - outputs.keys()
    if missing:
        raise FormatError(
            "this program does not detect objects",
            received=f"outputs {', '.join(sorted(outputs))}",
            allowed="boxes, scores, labels",
        )
    scores = np.asarray(outputs["scores"], np.float64)
    boxes = np.asarray(outputs["boxes"], np.float64)
    if sample.warp is not None:
        boxes = sample.warp.inverse().boxes(boxes)
    boxes = vision_boxes.clip(boxes, sample.source_size or sample.size_hw)
    valid = (scores >= threshold) & (scores > 0) & (vision_boxes.area(boxes) > 0)
    return SourceBoxes(boxes[valid], scores[valid], np.asarray(outputs["labels"])[valid])


def open_runner(
    artifact: Artifact,
    interpret: Interpret[R],
    runtime: Runtime,
    packages: Sequence[str],
    batch_size: int | None = None,
) -> ImageRunner[R]:
    """The runner of an artifact of one model, whose transforms are looked up in `packages`."""
    transforms = load_transforms(artifact, packages)
    size = artifact.setting("batch_size", int) if batch_size is None else batch_size
    return ImageRunner(runtime.open(artifact), transforms, interpret, size)


def load_transforms(artifact: Artifact, packages: Sequence[str]) -> tuple[Transform[Any], ...]:
    """The transforms of an artifact with the files that they need.

    Code that the artifact names is imported where it is trusted; where not, its components are unknown.
    """
    hint = tuple[Annotated[Transform[Any], Kind("transform")], ...]
    if artifact.trusted:
        imports = {"imports": list(artifact.setting("imports", default=()))}
        packages = (*packages, *import_components(from_plain(imports, artifact.source), announced=True))
    return load_assets(artifact.setting("transforms", hint, packages=packages), artifact.files)
