"""Image classification as a domain: what an artifact of it gives, and its predictor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from framework.core.errors import ConfigError, FormatError, InputError
from framework.core.types import JSON
from framework.export import Artifact
from framework.inference import Runtime
from framework.io.data_check import Observe, Report
from framework.io.dataset import Dataset
from framework.io.weighting import LabelledDataset
from framework.vision.sample import Sample
from framework.workflow import Domain, ImageItem, VisionPredictor, option
from framework.workflow.domain.capabilities import ResultReader, WebExport
from framework.workflow.domain.comparison import ResultComparison
from framework.workflow.domain.options import (
    check_range,
    choose_value_range,
    select_classes,
    value_range_option,
)
from framework.workflow.open.predict import make_predictor_function
from framework.workflow.runners.image_runner import ImageRunner, open_runner
from zoo.classification.comparison import compare_classifications
from zoo.classification.paddlex_routes import ROUTES
from zoo.classification.results import MULTI_LABEL, Classification, best_classes, classes_from

if TYPE_CHECKING:
    from framework.engine.experiment import Experiment
    from framework.nn.layer import Layer


@dataclass(frozen=True)
class ClassificationOptions:
    """Options of `zoo.classification.predictor`. Raises: InputError, where one is out of range."""

    top: int = option(5, "classes that a result holds", aliases=("topk",))
    batch_size: int | None = option(None, "how many run together", request=False)
    threshold: float | None = option(
        None,
        "of a model of several classes an image: the least score of a class, default: that of the training",
    )
    classes: tuple[str, ...] | None = option(None, "names of the classes that are kept; default: all")
    value_range: tuple[float, float] | None = value_range_option()

    def __post_init__(self) -> None:
        if self.top < 1:
            raise InputError("a result holds a class", where="top", received=self.top, allowed="1 or more")
        check_range(self.threshold, "threshold", 0, 1)


class ImageClassifier(VisionPredictor[Classification]):
    """Says what an image shows; made by `predictor`."""

    def __init__(self, runner: ImageRunner[Classification]) -> None:
        self.runner = runner

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Classification]:
        return self.runner.predict(items)


def describe_page(artifact: Artifact) -> Mapping[str, JSON]:
    """What a page in a browser needs to classify images."""
    from framework.workflow.export.web.pages import page_transforms

    return {
        "transforms": page_transforms(artifact, DOMAIN.packages),
        "labels": list(artifact.setting("labels")),
        "top": ClassificationOptions.top,
        "threshold": artifact.setting(MULTI_LABEL, float | None, None),
    }


class ClassificationDomain(Domain[ClassificationOptions]):
    """Classes of images."""

    name = "classification"
    options = ClassificationOptions
    suite = "paddleclas"
    capabilities = (
        WebExport("classes", describe_page),
        ResultComparison("labels", 1.0, compare_classifications),
        ResultReader(Classification.from_dict),
        ROUTES,
    )

    def describe(self, experiment: Experiment, model: Layer, labels: tuple[str, ...]) -> Mapping[str, JSON]:
        """Of a model of several classes an image the threshold."""
        from zoo.classification.multi_label import MultiLabelClassification

        task = experiment.task
        return {MULTI_LABEL: task.threshold} if isinstance(task, MultiLabelClassification) else {}

    def check_dataset(self, dataset: Dataset, observe: Observe) -> Report:
        from zoo.classification.check import validate  # what runs artifacts loads no data sets

        known = isinstance(dataset, LabelledDataset)
        return validate(dataset, observe) if known else super().check_dataset(dataset, observe)

    def open(self, artifact: Artifact, options: ClassificationOptions, runtime: Runtime) -> ImageClassifier:
        labels = artifact.setting("labels")
        selected = select_classes(options.classes, labels, artifact.source)

        least = artifact.setting(MULTI_LABEL, float | None, None)
        if least is None and options.threshold is not None:
            raise ConfigError(
                "this model has one class an image, and no threshold",
                where=artifact.source,
                received=f"threshold {options.threshold}",
                fix="leave it out; --top says how many classes a result holds",
            )
        least = least if options.threshold is None else options.threshold

        def interpret(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> Classification:
            return Classification(
                best_classes(outputs["scores"], labels, options.top, selected)
                if least is None
                else classes_from(outputs["scores"], labels, least, selected),
                source=str(sample.id),
                width=image.shape[1],
                height=image.shape[0],
                image=image,
            )

        runner = open_runner(artifact, interpret, runtime, self.packages, options.batch_size)
        scores = runner.engine.outputs.get("scores")
        if scores is None or (labels and scores.shape[-1] != len(labels)):
            raise FormatError(
                "the labels are not those of the program"
                if scores is not None
                else "this program does not classify",
                where=artifact.source,
                received=f"{len(labels)} labels, outputs "
                + ", ".join(f"{name} {list(shape.shape)}" for name, shape in runner.engine.outputs.items()),
                allowed="an output `scores` with a column for each label",
                fix="take labels and program from one artifact, or export it again",
            )
        classifier = ImageClassifier(runner)
        classifier.value_range = choose_value_range(options.value_range, artifact)
        return classifier


DOMAIN = ClassificationDomain()
predictor = make_predictor_function(DOMAIN.name, ClassificationOptions, ImageClassifier)
