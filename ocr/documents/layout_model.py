"""The layout stage: a detector's artifact, opened by name, gives the regions of pages.

Any model that detects objects and knows some of the classes of layout analysis will do: a config of
configs/detection/layout, a run's folder, an artifact. No code of the domain that trained it takes part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.core.errors import FormatError
from framework.inference import Runtime
from framework.vision.sample import Sample
from framework.workflow import ImageItem, find_artifact
from framework.workflow.domain.domain import Model
from framework.workflow.runners.image_runner import ImageRunner, open_runner, read_boxes
from ocr.documents.layout_regions import (
    BLOCK_OF_CLASS,
    LayoutRules,
    Region,
    clean_regions,
    with_labels,
)

DOMAIN = "detection"  # that trains layout models; it is found by its name, as a user's domain is


class LayoutDetector:
    """The regions of pages. Safe to call from several threads; made by `open_layout`."""

    def __init__(self, runner: ImageRunner[list[Region]], rules: LayoutRules) -> None:
        self.runner, self.rules = runner, rules

    def __call__(self, image: np.ndarray) -> tuple[Region, ...]:
        """image [H, W, 3] uint8 RGB -> its regions, best first, in its pixels."""
        (found,) = self.runner.predict([ImageItem(image, "", 1)])
        return clean_regions(found, (image.shape[0], image.shape[1]), self.rules)


def open_layout(
    model: Model,
    *,
    rules: LayoutRules | None = None,
    runtime: Runtime | None = None,
    overrides: Sequence[str] = (),
) -> LayoutDetector:
    """The layout stage of a model.

    Args:
        model: The name of a config ("PP-DocLayout-S"), a config file, or an artifact's folder.
        rules: What becomes of its boxes; None: PP-StructureV3's rules.
        runtime: Device, precision, engine.
        overrides: Settings of the config, as `-o` of the commands.

    Raises:
        InputError: no such model. HubError: its weights are neither here nor reachable.
        FormatError: it is of another domain, or none of its classes is a block of a page.
    """
    runtime = runtime or Runtime()
    found = find_artifact(model, overrides, DOMAIN, runtime)
    names = found.artifact.setting("labels", tuple[str, ...], ())
    if not any(BLOCK_OF_CLASS.get(name) for name in names):
        raise FormatError(
            "this model does not find the blocks of pages",
            where=str(model),
            received=f"classes {', '.join(names[:8])}" if names else "no classes",
            allowed="a detector with classes such as text, title, table, figure",
            fix="name a model of configs/detection/layout",
        )

    def interpret(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> list[Region]:
        boxes, scores, classes = read_boxes(outputs, sample)
        return with_labels(boxes, scores, classes, names)

    runner = open_runner(found.artifact, interpret, runtime, found.domain.packages, 1)
    return LayoutDetector(runner, rules or LayoutRules())
