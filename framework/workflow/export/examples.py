"""Inputs of a program from the data of its configuration: what ranges are calibrated and ONNX files compared with."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import InputError
from framework.engine.experiment import Experiment
from framework.export import Artifact
from framework.export.formats.onnx.check import NamedArrays
from framework.inference import Runtime
from framework.inference.engine import Engine
from framework.io.dataset import IterableDataset, Subset
from framework.text.lines import read_lines
from framework.vision import image as vision_image
from framework.workflow.domain.domain import find_domain
from framework.workflow.domain.options import make_options
from framework.workflow.domain.predictor import LanguagePredictor
from framework.workflow.train.loaders import make_loader

Example = TypeVar("Example")


def example_inputs(experiment: Experiment, names: Iterable[str], count: int) -> Iterator[NamedArrays]:
    """Inputs of the program from the training data, prepared as images and texts are that the model will see; from
    the evaluation's where there are none to train on."""
    config = experiment.data.train or experiment.data.eval
    if config is None or experiment.task is None:
        raise InputError(
            "there is nothing to calibrate with",
            where="data",
            received="a configuration without data",
            fix="--data FOLDER, with images as those that the model will read",
        )
    if isinstance(config.dataset, IterableDataset):  # which has no index: its first samples
        first = list(itertools.islice(config.dataset, count))
        examples = Subset(first, range(len(first)))
    else:
        total = len(config.dataset)
        spread = np.linspace(0, total - 1, min(count, total)).round().astype(int)
        examples = Subset(config.dataset, spread.tolist())
    config = dataclasses.replace(
        config,
        dataset=examples,
        transforms=experiment.predict.transforms or (),
        batch_size=min(8, len(examples)),
        buckets=experiment.predict.buckets,
        sampler=None,
        num_workers=0,
    )
    names = list(names)
    for batch in make_loader(config, experiment.task, 0, train=False).batches(epoch=0):
        keep = batch.data["valid"]
        yield {name: batch.data[name][keep] for name in names}


def programs_of(artifact: Artifact) -> dict[str, Artifact]:
    """The artifacts with a program: the stages by name, or the artifact itself under ""."""
    return dict(artifact.stages) if artifact.stages else {"": artifact}


def example_files(data: Path, count: int) -> list[Path | str]:
    """The images of a folder, spread over it, or the lines of a text file."""
    if data.is_dir():
        files: list[Path | str] = list(vision_image.list_images(data, recursive=True))
    elif data.is_file():
        files = [data] if data.suffix.lower() in vision_image.SUFFIXES else list(read_lines(data))
    else:
        raise InputError("there is no such folder or file", where=data, fix="check --data")
    if not files:
        raise InputError(
            "there is nothing to calibrate with",
            where=data,
            received="no image, no line",
            allowed="a folder of images, or a file with a text a line",
        )
    return spread(files, count)


def spread(examples: Sequence[Example], most: int) -> list[Example]:
    """At most so many of them, from the first to the last."""
    indices = np.linspace(0, len(examples) - 1, min(most, len(examples))).round().astype(int)
    return [examples[index] for index in indices]


class _RecordingEngine:
    """An engine that keeps what it is called with."""

    def __init__(self, engine: Engine, calls: list[NamedArrays]) -> None:
        self._engine, self._calls = engine, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def __call__(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        self._keep(inputs)
        return self._engine(inputs)

    def start(self, inputs: Mapping[str, ArrayLike]) -> Mapping[str, ArrayLike]:
        self._keep(inputs)
        return self._engine.start(inputs)

    def _keep(self, inputs: Mapping[str, ArrayLike]) -> None:
        self._calls.append({name: np.array(array) for name, array in inputs.items()})


@dataclass(frozen=True)
class _RecordingRuntime(Runtime):
    calls: dict[int, list[NamedArrays]] = dataclasses.field(default_factory=dict)

    def open(self, artifact: Artifact) -> Any:
        return _RecordingEngine(super().open(artifact), self.calls.setdefault(id(artifact), []))


def record_inputs(
    artifact: Artifact, sources: Iterable[Path | str], engine: str = "xla"
) -> dict[str, list[NamedArrays]]:
    """What each program of an artifact is called with when its predictor reads images or texts, by stage.

    Args:
        engine: What runs the programs: one that the artifact has a file for. XLA compiles each shape of the inputs.
    """
    domain = find_domain(str(artifact.config["domain"]))
    runtime = _RecordingRuntime(precision="float32", engine=engine)
    predictor = domain.open(artifact, make_options(domain.options, {}, "quantize"), runtime)
    for source in sources:
        if isinstance(predictor, LanguagePredictor):
            first, _, second = str(source).partition("\t")
            predictor.predict((first, second) if predictor.pairs else str(source))
        else:
            predictor.predict(source)
    return {name: runtime.calls.get(id(one), []) for name, one in programs_of(artifact).items()}
