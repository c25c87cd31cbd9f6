"""Segmentation as a domain: the class of every pixel of images and videos."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from framework.config import plain
from framework.core.errors import ConfigError, FormatError, OarError
from framework.core.types import JSON
from framework.export import Artifact
from framework.export.artifact import WEIGHTS, program_file
from framework.inference import Runtime
from framework.io.data_check import Observe, Report
from framework.io.dataset import Dataset
from framework.vision.sample import Sample
from framework.vision.sample_transforms.pad import Pad, PadToMultiple, PadToSize
from framework.workflow import Domain, option
from framework.workflow.domain.capabilities import ExportExtras, WebExport
from framework.workflow.domain.comparison import ResultComparison
from framework.workflow.domain.options import (
    check_range,
    choose_value_range,
    select_classes,
    value_range_option,
)
from framework.workflow.open.predict import make_predictor_function
from framework.workflow.runners.image_runner import open_runner
from segmentation import palettes
from segmentation.background import Background, background_class, read_background
from segmentation.comparison import compare_segmentations
from segmentation.label_maps import FORMATS, READER
from segmentation.paddlex_routes import ROUTES
from segmentation.restore import resize_to_source
from segmentation.results import OPACITY, Segmentation
from segmentation.segmenter import Appearance, Segmenter, WindowSegmenter
from segmentation.test_time_augmentation import TestTimeAugmentation

if TYPE_CHECKING:
    from framework.engine.experiment import Experiment
    from framework.nn.layer import Layer
    from segmentation.tasks import SemanticSegmentation

_Palette = tuple[tuple[int, int, int], ...]
_ONLY_FILL = (Pad, PadToMultiple, PadToSize)


@dataclass(frozen=True)
class SegmentationOptions:
    """How results are drawn, and what runs together. Raises: InputError, where a value is out of range."""

    opacity: float = option(OPACITY, "of the classes' colours on drawings, 0 to 1")
    background: str | Background | None = option(
        None, "drawings show the foreground on it: blur, a colour or an image", request=False
    )
    classes: tuple[str, ...] | None = option(None, "names of the classes that are kept; default: all")
    batch_size: int | None = option(None, "how many images, or windows of them, run together", request=False)
    value_range: tuple[float, float] | None = value_range_option()

    def __post_init__(self) -> None:
        check_range(self.opacity, "opacity", 0, 1)


def _palette(experiment: Experiment, classes: int) -> np.ndarray:
    """The colours of the data set where it has one for each class, else VOC's."""
    data = experiment.data
    for dataset in (loader.dataset for loader in (data.eval, data.train) if loader is not None):
        with contextlib.suppress(OarError):  # the data need not be on the machine that exports
            colours = getattr(dataset, "palette", None)
            if colours is not None and len(colours) >= classes:
                return np.asarray(colours, np.uint8)
    return palettes.of_classes(classes)


def prepare_export(experiment: Experiment) -> Experiment:
    """The experiment as its program is made, which follows from the transforms and the inference options.

    * With a slide the program gives the scores of windows: images of any size run through one compiled program.
    * Where the transforms fill images up and do nothing else, the program gives labels, which are cut to size.
    * Where they also scale or cut, it gives scores, which are brought back to the image before a class is chosen.

    Raises:
        ConfigError: the program's input is no image.
    """
    task, spec = _segmentation_task(experiment), experiment.export.inputs.get("image")
    if spec is None or len(spec.shape) != 4:
        raise ConfigError(
            "the program of a segmentation model takes images",
            where="export.inputs",
            received={name: list(one.shape) for name, one in experiment.export.inputs.items()},
            allowed="such as {image: {shape: [n, 32*h, 32*w, 3], dtype: uint8}}",
        )
    inference = task.inference
    if inference.slide is not None:
        scaled = inference.scales != (1.0,)  # pixels of a scaled image are no whole numbers
        window = ("n", *inference.slide.crop_hw, spec.shape[3])
        inputs = {"image": replace(spec, shape=window, dtype="float32" if scaled else spec.dtype)}
        experiment = replace(experiment, export=replace(experiment.export, inputs=inputs))
        return replace(experiment, task=replace(task, inference=TestTimeAugmentation(output="scores")))
    transforms = experiment.predict.transforms or ()
    fill_only = all(isinstance(transform, _ONLY_FILL) for transform in transforms)
    output = replace(inference, output="labels" if fill_only else "scores")
    return replace(experiment, task=replace(task, inference=output))


def companion_files(config: Mapping[str, Any]) -> Mapping[str, bytes]:
    """deploy.yaml, PaddleSeg's; `oar infer --config <folder>/deploy.yaml` runs the artifact."""
    count, height, width, channels = (
        side if isinstance(side, int) else None for side in config["inputs"]["image"][0]
    )
    deploy = {
        "model": program_file("float32"),
        "params": WEIGHTS,
        "transforms": config["transforms"],
        "input_shape": [count, channels, height, width],
        "output_op": "argmax" if config["task"]["inference"]["output"] == "labels" else "none",
        "output_dtype": "int32",
    }
    return {"deploy.yaml": yaml.safe_dump({"Deploy": deploy}, sort_keys=False).encode()}


def _segmentation_task(experiment: Experiment) -> SemanticSegmentation:
    from segmentation.tasks import SemanticSegmentation

    if not isinstance(experiment.task, SemanticSegmentation):
        raise ConfigError(
            "the program of a segmentation model is that of SemanticSegmentation",
            where="task",
            received=type(experiment.task).__name__,
            allowed="SemanticSegmentation, or a task that extends it",
        )
    return experiment.task


def describe_page(artifact: Artifact) -> Mapping[str, JSON]:
    """What a page in a browser needs to show the class of every pixel.

    Raises: ConfigError, where the model sees windows of an image, or results cannot be brought back to it there.
    """
    from framework.workflow.export.web.pages import page_transforms

    inference = artifact.setting("inference", TestTimeAugmentation, packages=DOMAIN.packages)
    if inference.slide is not None:
        raise ConfigError(
            "the page shows an image to the model as a whole",
            where=artifact.source,
            received="inference.slide",
            fix="-o task.inference.slide=null",
        )
    transforms = page_transforms(artifact, DOMAIN.packages)
    if any(isinstance(one, dict) and one["type"] == "CenterCrop" for one in transforms):
        raise ConfigError(
            "the page gives every pixel a class", where=artifact.source, received="the transform CenterCrop"
        )
    labels = artifact.setting("labels")
    return {
        "transforms": transforms,
        "labels": list(labels),
        "palette": [list(color) for color in artifact.setting("palette", _Palette)],
        "opacity": OPACITY,
        "background": background_class(labels),
    }


class SegmentationDomain(Domain[SegmentationOptions]):
    """Classes of pixels."""

    name = "segmentation"
    options = SegmentationOptions
    suite = "paddleseg"
    capabilities = (
        ExportExtras(prepare_export, companion_files),
        WebExport("masks", describe_page),
        ResultComparison("pixels", 0.999, compare_segmentations),
        READER,
        FORMATS,
        ROUTES,
    )

    def open(
        self, artifact: Artifact, options: SegmentationOptions, runtime: Runtime
    ) -> Segmenter | WindowSegmenter:
        if "inference" not in artifact.config:
            raise FormatError(
                "this artifact does not segment images",
                where=str(artifact.config.get("name")),
                received="no `inference` in its config",
                allowed="one that `oar export` wrote from a configuration of configs/segmentation",
            )
        background = options.background
        if isinstance(background, str):
            background = read_background(background)
        inference = artifact.setting("inference", TestTimeAugmentation, packages=self.packages)
        palette = np.array(artifact.setting("palette", _Palette), np.uint8).reshape(-1, 3)
        labels = artifact.setting("labels")
        selected = select_classes(options.classes, labels, str(artifact.config.get("name")))
        appearance = Appearance(labels, palette, options.opacity, background, selected)

        def segmented(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> Segmentation:
            return appearance.result(resize_to_source(outputs, sample), str(sample.id), image)

        def scored(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> np.ndarray:
            return outputs["scores"]

        value_range = choose_value_range(options.value_range, artifact)
        if inference.slide is None:
            segmenter = Segmenter(
                open_runner(artifact, segmented, runtime, self.packages, options.batch_size)
            )
            segmenter.value_range = value_range
            return segmenter
        runner = open_runner(artifact, scored, runtime, self.packages, options.batch_size)
        transforms, runner.transforms = runner.transforms, ()
        by_windows = WindowSegmenter(runner, inference, transforms, appearance)
        by_windows.value_range = value_range
        by_windows.reads_windows = all(isinstance(one, _ONLY_FILL) for one in transforms)
        return by_windows

    def check_dataset(self, dataset: Dataset, observe: Observe) -> Report:
        from segmentation.data.check import validate  # what runs artifacts loads no data sets
        from segmentation.data.records import SegmentationDataset

        is_ours = isinstance(dataset, SegmentationDataset)
        return validate(dataset, observe) if is_ours else super().check_dataset(dataset, observe)

    def describe(self, experiment: Experiment, model: Layer, labels: tuple[str, ...]) -> Mapping[str, JSON]:
        """How an image is shown to the program, and the colours of the classes."""
        classes = max(len(labels), getattr(experiment.model, "num_classes", 0))
        palette = _palette(experiment, classes).tolist()
        return {"inference": plain(_segmentation_task(experiment).inference), "palette": palette}


DOMAIN = SegmentationDomain()
predictor = make_predictor_function(DOMAIN.name, SegmentationOptions, Segmenter)
