"""Recommendation as a domain: what an artifact of it gives, and its predictor."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from framework.core.errors import FormatError, InputError, OarError
from framework.core.transform import Transform
from framework.core.types import JSON
from framework.export import Artifact
from framework.inference import Runtime
from framework.io.data_check import Observe, Report
from framework.io.dataset import Dataset
from framework.workflow import Domain, RowPredictor, option
from framework.workflow.domain.capabilities import ResultReader
from framework.workflow.domain.predictor import Row
from framework.workflow.domain.samples import apply_transforms
from framework.workflow.open.predict import make_predictor_function
from framework.workflow.runners.batches import Batches
from framework.workflow.runners.image_runner import load_transforms
from zoo.recommendation.data.features import EncodeFeatures
from zoo.recommendation.data.formats import RowFormat
from zoo.recommendation.data.interactions import EncodeHistory, EncodeUser
from zoo.recommendation.results import Item, Recommendations, RowScores, result_from_dict
from zoo.recommendation.retrieval import best_items
from zoo.recommendation.sample import RowSample, Value

if TYPE_CHECKING:
    from framework.engine.experiment import Experiment
    from framework.nn.layer import Layer

USERS = "users"
"""In the config of an artifact whose users are rows of a table: their names."""
TASKS = "score_names"
"""In the config of an artifact that gives probabilities: what each is of."""


@dataclass(frozen=True)
class RecommendationOptions:
    """Options of `zoo.recommendation.predictor`. Raises: InputError, where one is out of range."""

    top: int = option(10, "items that are recommended", aliases=("topk",))
    exclude_seen: bool = option(True, "leave out items of the user's history")
    batch_size: int | None = option(None, "how many run together", request=False)

    def __post_init__(self) -> None:
        for name, value in (("top", self.top), ("batch_size", self.batch_size)):
            if value is not None and value < 1:
                raise InputError(f"{name} is out of range", where=name, received=value, allowed="1 or more")


class Recommender(RowPredictor[RowScores | Recommendations]):
    """Scores raw rows, or recommends items to the users of raw rows; made by `predictor`."""

    def __init__(
        self,
        batches: Batches,
        transforms: Sequence[Transform[RowSample]],
        tasks: tuple[str, ...],
        items: tuple[str, ...],
        options: RecommendationOptions,
        columns: RowFormat,
    ) -> None:
        self.batches, self.transforms, self.tasks, self.items = batches, tuple(transforms), tasks, items
        self.options, self.row_format = options, columns

    def read_file(self, path: Path) -> Iterator[Row | OarError]:
        encoders = [one for one in self.transforms if isinstance(one, EncodeFeatures)]
        for where, row in self.row_format.read_attempts(path):
            if not isinstance(row, OarError) and self.row_format.has_all_columns(path):
                for encoder in encoders:
                    encoder.check_columns(row, where)
            yield row

    def predict_stream(self, items: Iterable[Row]) -> Iterator[RowScores | Recommendations]:
        for attempt in self.predict_attempts(items):
            if isinstance(attempt, OarError):
                raise attempt
            yield attempt

    def predict_attempts(
        self, rows: Iterable[Row | OarError]
    ) -> Iterator[RowScores | Recommendations | OarError]:
        waiting = iter(rows)
        while group := list(itertools.islice(waiting, 16 * self.batches.size)):
            encoded = [self._encode(row) for row in group]
            samples = [one for one in encoded if not isinstance(one, OarError)]
            pairs = self.batches.stream(samples, self._inputs)
            results = iter([self._result(sample, outputs) for sample, outputs in pairs])
            yield from (one if isinstance(one, OarError) else next(results) for one in encoded)

    def _encode(self, row: Row | OarError) -> RowSample | OarError:
        if isinstance(row, OarError):
            return row
        try:
            return apply_transforms(RowSample(values=cast("Mapping[str, Value]", row)), self.transforms)
        except OarError as error:
            return error

    def _inputs(self, sample: RowSample) -> Mapping[str, np.ndarray]:
        return {name: sample.arrays[name] for name in self.batches.engine.inputs}

    def _result(self, sample: RowSample, outputs: Mapping[str, np.ndarray]) -> RowScores | Recommendations:
        if self.tasks:
            scores = np.atleast_1d(outputs["score"]).astype(float).tolist()
            return RowScores(dict(zip(self.tasks, scores)), warnings=sample.warnings)
        rows, scores = best_items(outputs["scores"], self.options.top, self._seen_items(sample, outputs))
        items = tuple(Item(self.items[row], score) for row, score in zip(rows, scores))
        return Recommendations(items, warnings=sample.warnings)

    def _seen_items(self, sample: RowSample, outputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Rows of items that are left out: those of the history, and those of which the model says so."""
        if not self.options.exclude_seen:
            return None
        history = sample.arrays.get("history", np.zeros(0, np.int32))
        return np.union1d(history, np.flatnonzero(outputs["seen"])) if "seen" in outputs else history


class RecommendationDomain(Domain[RecommendationOptions]):
    """Clicks and items."""

    name = "recommendation"
    options = RecommendationOptions
    suite = "paddlerec"
    capabilities = (ResultReader(result_from_dict),)

    def describe(self, experiment: Experiment, model: Layer, labels: tuple[str, ...]) -> Mapping[str, JSON]:
        """The names of what is scored, and how files of rows are read."""
        from zoo.recommendation.graph_task import CollaborativeFiltering
        from zoo.recommendation.tasks import ClickPrediction, MultiTaskPrediction

        task, loader = experiment.task, experiment.data.eval or experiment.data.train
        dataset = None if loader is None else loader.dataset
        columns = getattr(dataset, "columns", None)
        about: dict[str, JSON] = {
            "rows": {
                "format": getattr(dataset, "format", "auto"),
                "columns": None if columns is None else list(columns),
                "separator": getattr(dataset, "separator", None),
            }
        }
        if isinstance(task, ClickPrediction):
            about[TASKS] = ["click"]
        elif isinstance(task, MultiTaskPrediction):
            about[TASKS] = list(task.names)
        elif isinstance(task, CollaborativeFiltering):
            about[USERS] = list(task.user_names(dataset))
        return about

    def check_dataset(self, dataset: Dataset, observe: Observe) -> Report:
        from zoo.recommendation.check import validate  # what runs artifacts loads no data sets

        return validate(dataset, observe)

    def open(self, artifact: Artifact, options: RecommendationOptions, runtime: Runtime) -> Recommender:
        engine = runtime.open(artifact)
        tasks = artifact.setting(TASKS, tuple[str, ...], ())
        items = artifact.setting("labels")
        needed = "score" if tasks else "scores"
        if needed not in engine.outputs or not (tasks or items):
            raise FormatError(
                "the artifact does not hold a model of rows",
                where=artifact.source,
                received="outputs " + ", ".join(engine.outputs),
                allowed=f"an output `{needed}`, and names of items where items are recommended",
                fix="export it again, from a configuration of configs/recommendation",
            )
        size = artifact.setting("batch_size", int, 256) if options.batch_size is None else options.batch_size
        users = artifact.setting(USERS, tuple[str, ...], ())
        transforms = [_with_names(one, users, items) for one in load_transforms(artifact, self.packages)]
        return Recommender(
            Batches(engine, size),
            transforms,
            tasks,
            items,
            options,
            artifact.setting("rows", RowFormat, RowFormat()),
        )


def _with_names(
    transform: Transform[RowSample], users: tuple[str, ...], items: tuple[str, ...]
) -> Transform[RowSample]:
    """A transform with the names that the model knows, where it is one that reads names."""
    if isinstance(transform, EncodeHistory):
        return transform.with_items(items)
    return transform.with_names(users, items) if isinstance(transform, EncodeUser) else transform


DOMAIN = RecommendationDomain()
predictor = make_predictor_function(DOMAIN.name, RecommendationOptions, Recommender)
