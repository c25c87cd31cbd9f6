"""The check of a configuration's data before it is trained on, for every domain."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np

from framework.config import Kind, bind
from framework.config.bind import packages_of
from framework.config.tree import Tree
from framework.core.errors import ConfigError, HubError, OarError
from framework.engine.experiment import Data, LoaderConfig
from framework.engine.task import Task
from framework.io.data_check import Report, print_reports
from framework.io.dataset import Dataset, IterableDataset
from framework.io.recipe import END, Job, Recipe
from framework.text.sample import TextSample
from framework.vision.dataset_files import hash_image
from framework.vision.sample import Sample
from framework.workflow.domain.config_file import ConfigFile, open_config
from framework.workflow.domain.domain import find_domain

PARTS = ("train", "eval")
_TRIED, _TRIED_IMAGES = 100_000, 64
"""Samples of a part that go through its transforms."""
_log = logging.getLogger("oar")


def check_data(
    config: str | Path | ConfigFile, overrides: Sequence[str] = (), part: str | None = None
) -> int:
    """Reads all samples of `data.train` and `data.eval` and prints what is wrong with them.

    These are samples that cannot be read, labels that are no class, what else the domain looks for, samples that are in
    both parts, texts that the task cannot learn, numbers of classes that do not fit the model, and samples that a
    transform or the task refuses.

    Args:
        part: "train" or "eval" alone.

    Returns:
        The exit status of a command: 0 where nothing is wrong, 1 where something is, 2 where data or configuration
        cannot be read.
    """
    return print_reports(make_reports(config, overrides, part))


def make_reports(
    config: str | Path | ConfigFile, overrides: Sequence[str] = (), part: str | None = None
) -> Iterator[tuple[str, Report]]:
    """(title, report) of each part, then of both together. Raises: OarError, where they cannot be read at all."""
    config = open_config(config, overrides)
    loaders = _find_loaders(config.tree)
    if part is not None:
        loaders = {name: loader for name, loader in loaders.items() if name == part}
    datasets = {name: loader.dataset for name, loader in loaders.items()}
    if not datasets:
        raise ConfigError(
            "the configuration has no such data",
            where=config.path,
            received=part or "neither data.train nor data.eval",
            allowed="data.train, data.eval",
        )
    domain = find_domain(config.domain)
    notes = {name: _Notes() for name in datasets}
    for name, dataset in datasets.items():
        yield f"data.{name}", domain.check_dataset(dataset, notes[name].add)
    yield "together", _compare(loaders, notes, config.tree)


def _find_loaders(tree: Tree) -> dict[str, LoaderConfig]:
    """The loaders of a file by their part; of its other sections none is read but `imports`."""
    data = tree.value.get("data")
    if data is None:
        return {}
    bound = bind(data, Data, packages_of(tree))
    loaders = {"train": bound.train, "eval": bound.eval}
    return {name: loader for name, loader in loaders.items() if loader is not None}


@dataclass(frozen=True)
class ComparedParts(Report):
    """What a check finds by looking at training and evaluation data together."""

    counts: Mapping[str, int]
    shared: tuple[str, ...]
    misfits: tuple[str, ...]
    """Numbers and names of classes, how many objects there is room for, and samples that are refused."""
    notes: tuple[str, ...] = ()
    """What differs and may: classes without a sample in data.eval."""

    def summary(self) -> list[str]:
        counts = ", ".join(f"{count} different samples in data.{name}" for name, count in self.counts.items())
        return [*([counts] if counts else []), *self.notes]

    def faults(self) -> Mapping[str, Sequence[str]]:
        both = (
            {"samples of data.eval that are in data.train too": self.shared} if len(self.counts) > 1 else {}
        )
        return {**both, "settings that do not fit the data": self.misfits}


@dataclass
class _Notes:
    """What is kept of the samples of a part, to compare it with the other one and with the settings."""

    places: dict[bytes, str] = field(default_factory=dict)
    """The id of the first sample of a content."""
    most_objects: int = 0
    is_compared: bool = True
    """Not the rows of a table, which may well be equal."""

    def add(self, sample: object) -> None:
        if isinstance(sample, Sample):
            self.places.setdefault(hash_image(sample.image), str(sample.id))
            self.most_objects = max(self.most_objects, 0 if sample.boxes is None else len(sample.boxes))
        elif isinstance(sample, TextSample):
            texts = (sample.text, sample.pair, sample.target)
            content = hashlib.blake2b(repr(texts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
            self.places.setdefault(content, str(sample.id))
        else:
            self.is_compared = False


def _read_class_names(dataset: Dataset) -> tuple[str, ...]:
    """None of a data set that has none, or that cannot be read as a whole, which its own report says."""
    try:
        return tuple(getattr(dataset, "class_names", ()))
    except OarError:
        return ()


def _compare(loaders: Mapping[str, LoaderConfig], notes: Mapping[str, _Notes], tree: Tree) -> ComparedParts:
    train, held_out = (notes[name].places if name in notes else {} for name in PARTS)
    shared = tuple(f"{held_out[key]}, as {train[key]}" for key in held_out if key in train)
    names = {name: _read_class_names(loader.dataset) for name, loader in loaders.items()}
    task = _find_task(tree)
    misfits = [
        *_compare_with_model(names, tree),
        *_compare_classes(names),
        *_compare_with_task(loaders, notes, task),
    ] or list(_find_refused(loaders, task))
    counts = {name: len(found.places) for name, found in notes.items() if found.is_compared}
    return ComparedParts(counts, shared, tuple(misfits), tuple(_lacking_classes(names)))


def _compare_with_model(names: Mapping[str, tuple[str, ...]], tree: Tree) -> Iterator[str]:
    model = tree.value.get("model")
    stated = model.value.get("num_classes") if model is not None and isinstance(model.value, dict) else None
    for name, classes in names.items():
        if name != PARTS[0] and names.get(PARTS[0]):
            continue  # the classes are those of the training
        if classes and stated is not None and stated.value != len(classes):
            yield (
                f"model.num_classes is {stated.value} ({stated.where}), data.{name} has {len(classes)}: "
                f"-o model.num_classes={len(classes)}"
            )


def _compare_classes(names: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Classes of data.eval that data.train has not: nothing learns them."""
    train, held_out = (names.get(part, ()) for part in PARTS)
    if train and (alone := sorted(set(held_out) - set(train))):
        yield f"data.eval has {', '.join(alone[:5])} alone: no sample to train on"


def _lacking_classes(names: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    train, held_out = (names.get(part, ()) for part in PARTS)
    if held_out and (lacking := [name for name in train if name not in held_out]):
        yield (
            f"data.eval has no class {', '.join(lacking[:5])}{' …' * (len(lacking) > 5)}: training goes on, and scores "
            "say nothing of it"
        )


def _compare_with_task(
    loaders: Mapping[str, LoaderConfig], notes: Mapping[str, _Notes], task: Task | None
) -> Iterator[str]:
    """What the task says of the data. Tasks with boxes have room for so many objects of an image; an evaluation with
    more would stop."""
    if task is None:
        return
    for name, loader in loaders.items():
        try:
            yield from (f"data.{name}: {line}" for line in task.misfits(loader.dataset))
        except HubError as error:
            _log.warning("data.%s is not compared with the task: %s", name, error.problem)
        except OarError as error:
            yield f"data.{name}: {error.problem}" + (f" ({error.received})" if error.received else "")
    room = getattr(task, "max_objects", None)
    for name, notes_of in notes.items():
        if room is not None and notes_of.most_objects > room:
            yield (
                f"task.max_objects is {room}, data.{name} has up to {notes_of.most_objects} objects on an image: "
                f"-o task.max_objects={notes_of.most_objects}"
            )


def _find_task(tree: Tree) -> Task | None:
    return (
        bind(tree.value["task"], Annotated[Task, Kind("task")], packages_of(tree))
        if "task" in tree.value
        else None
    )


def _find_refused(loaders: Mapping[str, LoaderConfig], task: Task | None) -> Iterator[str]:
    """What the transforms and the task say of some samples of each part, each thing once."""
    for name, loader in loaders.items():
        problems: set[str] = set()
        for error in _try_samples(loader, task):
            if isinstance(error, HubError):
                _log.warning("data.%s does not go through its transforms: %s", name, error.problem)
                break
            if error.problem not in problems:
                problems.add(error.problem)
                received = "" if error.received is None else f", received {error.received}"
                allowed = "" if error.allowed is None else f", allowed {error.allowed}"
                fix = "" if error.fix is None else f"; {error.fix}"
                yield f"data.{name}: {error.where}: {error.problem}{received}{allowed}{fix}"


def _try_samples(loader: LoaderConfig, task: Task | None) -> Iterator[OarError]:
    """The errors of samples that can be read, from all over the data set, or at the beginning of a stream."""
    pack = None if task is None else task.pack
    recipe = Recipe(loader.dataset, loader.transforms, pack, list, 0, drop_last=False, pad_to=None)
    source = recipe.open(0, 0)
    try:
        count = _TRIED if isinstance(loader.dataset, IterableDataset) else len(loader.dataset)
        tried = min(count, _TRIED_IMAGES if isinstance(source(0), Sample) else _TRIED)
    except OarError:
        return  # its own report says so
    source = recipe.open(0, 0)
    for index in np.unique(np.linspace(0, count - 1, tried).astype(int)).tolist():
        try:
            sample = source(index)
        except OarError:
            continue
        if sample is END:
            return
        try:
            recipe.prepare(lambda _, sample=sample: sample, Job(0, 0, [index]), index)
        except OarError as error:
            yield error
