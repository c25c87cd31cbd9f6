"""How a loader makes one batch: what every worker, thread or process, holds a copy of. Imports no jax."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from framework.core.errors import ConfigError, InputError, OarError
from framework.core.host_rng import host_rng_scope
from framework.core.transform import MixTransform, Transform
from framework.core.types import PyTree
from framework.io.collate import PadToBucket, default_collate
from framework.io.dataset import Indexed, IterableDataset
from framework.io.skipped import UNREADABLE, SkippedSample, describe_skipped

_REPLACEMENTS = 10  # samples that are tried in place of one that cannot be read
_FRAMEWORK = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch and where it stands in its epoch.

    `ids` names the samples: their attribute `id` where they have one, else their index. The rows that `pad_last` adds
    repeat the last id. `skipped` are the samples that were left out on the way. `more` are the other samples, one a
    batch, where those of an evaluation have different shapes, and this batch is the first one alone.
    """

    index: int
    ids: tuple[str | int, ...]
    data: PyTree
    skipped: tuple[SkippedSample, ...] = ()
    more: tuple[Batch, ...] = ()


@dataclass(frozen=True)
class Job:
    """One batch to be made: its place in the epoch and the indices (running numbers for a stream) of its samples.

    `length` is the bucket to which they are padded; None: the one that they need themselves.
    """

    index: int
    epoch: int
    samples: Sequence[int]
    length: int | None = None


@dataclass(frozen=True)
class PreparedSample:
    """One sample that is ready to be collated; with `skipped` where another was meant, or a part of it."""

    id: str | int
    data: object
    skipped: tuple[SkippedSample, ...] = ()
    is_replacement: bool = False


Source = Callable[[int], object]
"""Gives the raw sample of an index; `END` beyond the end of a stream."""

END = object()


@dataclass(frozen=True, eq=False)
class Recipe:
    """Dataset, transforms, packing and collating with the seed: everything that decides what a batch holds."""

    dataset: Indexed[object] | IterableDataset
    transforms: tuple[Callable[..., object], ...]
    pack: Callable[[Any], PyTree] | None
    collate: Callable[[Sequence[Any]], PyTree]
    seed: int
    drop_last: bool
    pad_to: int | None
    skip_bad_samples: bool = False

    def open(self, epoch: int, first: int) -> Source:
        """The source of raw samples; a stream is read from its running number `first` on."""
        if isinstance(self.dataset, IterableDataset):
            return Reader(self.dataset, epoch, first)
        return self.dataset.__getitem__

    def prepare(self, source: Source, job: Job, index: int) -> PreparedSample | None:
        """One sample of a batch, transformed and packed; None beyond the end of a stream.

        Raises:
            OarError: the dataset, a transform or `pack` raised; `where` names the sample and the step.
        """
        state = _Step((self.seed, job.epoch, job.index))
        try:
            with host_rng_scope((self.seed, job.epoch, index)):
                sample = self.read(source, index, state)
                if sample is END:
                    return None
                is_replacement = bool(state.skipped)
                named = getattr(sample, "id", None)
                state.id = named if isinstance(named, (str, int)) else None
                sample = self._transform(
                    sample, np.random.default_rng((self.seed, job.epoch, index)), None, state
                )
                if self.pack is not None:
                    state.step = "pack"
                    sample = self.pack(sample)
        except Exception as error:
            name = f"sample {index}" if state.id is None else f"sample {state.id!r} (index {index})"
            where = f"{name} of {type(self.dataset).__name__}" + (f", {state.step}" if state.step else "")
            described = describe_error(error, where, "a sample could not be made")
            raise (self._name_key(described, state) if state.is_unreadable else described) from error
        name = index if state.id is None else state.id
        return PreparedSample(name, sample, tuple(state.skipped), is_replacement)

    def read(self, source: Source, index: int, state: _Step) -> object:
        """The raw sample of an index; with `skip_bad_samples`, where it cannot be read, another one.

        The others are drawn by (seed, epoch, index), so that they do not depend on workers or on where a run was
        resumed.
        """
        try:
            return source(index)
        except UNREADABLE as error:
            state.is_unreadable = not isinstance(self.dataset, IterableDataset)
            if not self.skip_bad_samples or isinstance(self.dataset, IterableDataset):
                raise
            state.skipped.append(describe_skipped(error, index, self.dataset))
            seed = np.random.SeedSequence((*state.batch[:2], index), spawn_key=(2,))
            for other in np.random.default_rng(seed).integers(len(self.dataset), size=_REPLACEMENTS).tolist():
                try:
                    sample = source(other)
                    state.is_unreadable = False
                    return sample
                except UNREADABLE as again:
                    state.skipped.append(describe_skipped(again, other, self.dataset))
            raise

    def _name_key(self, described: OarError, state: _Step) -> OarError:
        """With the setting that lets a run go on without a sample that cannot be read."""
        fix = (
            f"{len(state.skipped)} samples could not be read, this one and those drawn in its place: check the data set"
            if self.skip_bad_samples
            else "`skip_bad_samples: true` beside the data set leaves such samples out and lists them"
        )
        fields = (described.problem, described.where, described.received, described.allowed)
        return rebuild_error(type(described), *fields, f"{described.fix}; {fix}" if described.fix else fix)

    def _transform(self, sample: object, rng: np.random.Generator, count: int | None, state: _Step) -> object:
        for number, transform in enumerate(self.transforms[:count]):
            state.step = type(transform).__name__
            if isinstance(transform, MixTransform):
                sample = transform(sample, rng, _Others(self, number, rng, transform.extra, state))
            elif isinstance(transform, Transform) and transform.per_batch:
                sample = transform(sample, _batch_rng(state.batch, number))
            else:
                sample = transform(sample, rng)
        return sample

    def batch(self, job: Job, prepared: Sequence[PreparedSample | None]) -> Batch | None:
        """The parts collated and, with `pad_to`, filled up; None where a stream has ended before the batch.

        With `pad_to` arrays of different shapes make a batch of each sample: an evaluation takes images as they are,
        and one sample a batch compiles one program a shape.

        Raises:
            OarError: collating raised; `where` names the batch and its samples.
        """
        there = [part for part in prepared if part is not None]
        if not there or (self.drop_last and len(there) < len(prepared)):
            return None
        skipped = tuple(sample for part in there for sample in part.skipped)
        if self.pad_to is not None and self.collate is default_collate and _differ_in_shape(there):
            one_each = replace(self, pad_to=1)
            batches = [one_each.batch(job, [replace(sample, skipped=())]) for sample in there]
            first, *more = (batch for batch in batches if batch is not None)
            return replace(first, skipped=skipped, more=tuple(more))
        count = len(there)
        if self.pad_to is not None:  # where every sample counts once, none stands for another
            there.sort(key=lambda part: part.is_replacement)
            count = sum(not part.is_replacement for part in there)
            there += there[-1:] * (self.pad_to - len(there))
        ids = tuple(part.id for part in there)
        try:
            samples: list[PyTree] = [part.data for part in there]
            collate = self.collate
            if job.length is not None and isinstance(self.collate, PadToBucket):
                collate = self.collate.for_length(job.length)
            data = collate(samples)
            if self.pad_to is not None:
                data = _with_valid(data, np.arange(self.pad_to) < count)
        except Exception as error:
            listed = ", ".join(map(repr, ids[:8])) + (", ..." if len(ids) > 8 else "")
            where = f"batch {job.index} of {type(self.dataset).__name__} (samples {listed})"
            raise describe_error(error, where, "a batch could not be made") from error
        return Batch(job.index, ids, data, skipped)

    def make(self, source: Source, job: Job) -> Batch | None:
        """A whole batch, one sample after another."""
        return self.batch(job, [self.prepare(source, job, index) for index in job.samples])


class Reader:
    """The one reader of a stream: a call for sample n reads up to it and keeps the others for later calls."""

    def __init__(self, dataset: IterableDataset, epoch: int, first: int) -> None:
        self._dataset, self._epoch, self._first = dataset, epoch, first
        self._lock = threading.Lock()
        self._iterator: Iterator[object] | None = None
        self._read: dict[int, object] = {}
        self._next = 0
        self._failed: BaseException | None = None

    def __call__(self, number: int) -> object:
        with self._lock:
            if self._iterator is None:
                self._dataset.set_epoch(self._epoch)
                self._iterator = iter(self._dataset)
            while self._next <= number and self._failed is None:
                try:
                    sample = next(self._iterator, END)
                except Exception as error:  # a stream cannot be read on behind an error
                    self._failed = error
                    break
                if sample is END:
                    break
                if self._next >= self._first:
                    self._read[self._next] = sample
                self._next += 1
            if number in self._read:
                return self._read.pop(number)
            if self._failed is not None:
                raise self._failed
            return END


@dataclass
class _Step:
    """How far a sample has come: in which batch (seed, epoch, number), and for messages in which step."""

    batch: tuple[int, int, int]
    id: str | int | None = None
    step: str = ""
    skipped: list[SkippedSample] = field(default_factory=list)
    is_unreadable: bool = False


class _Others(Sequence[object]):
    """The other samples that a mixing transform takes, each through the transforms that come before it.

    Their indices and generators are drawn at once, so that nothing depends on which are used; each is loaded
    when it is first used: a mosaic that is not applied costs no reading.
    """

    def __init__(self, recipe: Recipe, index: int, rng: np.random.Generator, extra: int, step: _Step) -> None:
        assert not isinstance(recipe.dataset, IterableDataset), (
            "the loader refuses to mix samples of a stream"
        )
        self._recipe, self._dataset, self._index, self._step = recipe, recipe.dataset, index, step
        self._indices = rng.integers(len(self._dataset), size=extra).tolist()
        self._rngs = rng.spawn(extra)
        self._loaded: dict[int, object] = {}

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return [self[place] for place in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        if number not in self._loaded:
            index, step = self._indices[number], self._step.step
            self._step.step = f"{step}, its other sample {index}"
            sample = self._recipe.read(self._dataset.__getitem__, index, self._step)
            self._loaded[number] = self._recipe._transform(
                sample, self._rngs[number], self._index, self._step
            )
            self._step.step = step
        return self._loaded[number]


def _batch_rng(batch: tuple[int, int, int], index: int) -> np.random.Generator:
    """A new generator at each call, so that all samples draw the same; the spawn key sets it apart from theirs."""
    return np.random.default_rng(np.random.SeedSequence(batch, spawn_key=(1, index)))


def describe_error(error: Exception, where: str, problem: str) -> OarError:
    """`error` as an OarError that says where: one of ours keeps its class and problem, others become InputErrors."""
    if isinstance(error, OarError):
        fields = (error.received, error.allowed, error.fix)
        return rebuild_error(
            type(error), error.problem, where if error.where is None else f"{where}: {error.where}", *fields
        )
    lines = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in lines if _FRAMEWORK not in Path(frame.filename).resolve().parents]
    at = f" (at {theirs[-1].filename}:{theirs[-1].lineno}: {theirs[-1].line})" if theirs else ""
    return InputError(problem, where=where, received=f"{type(error).__name__}: {error}{at}")


def rebuild_error(
    kind: type[OarError], problem: str, where: object, received: object, allowed: object, fix: str | None
) -> OarError:
    """An error of any of our classes from its parts: some classes have a constructor of their own."""
    error = kind.__new__(kind)
    OarError.__init__(error, problem, where=where, received=received, allowed=allowed, fix=fix)
    return error


def _differ_in_shape(samples: Sequence[PreparedSample]) -> bool:
    """Whether arrays of one name have several shapes in the samples of a batch."""
    shapes: dict[object, tuple[int, ...]] = {}
    return any(
        shapes.setdefault(name, array.shape) != array.shape
        for sample in samples
        if isinstance(sample.data, dict)
        for name, array in sample.data.items()
        if isinstance(array, np.ndarray)
    )


def _with_valid(data: object, valid: np.ndarray) -> dict[object, object]:
    if not isinstance(data, dict) or "valid" in data:
        raise ConfigError(
            "pad_last marks the true samples under the key 'valid'",
            where="DataLoader.pad_last",
            received=f"a dict with the keys {', '.join(map(str, data))}"
            if isinstance(data, dict)
            else f"a batch that is a {type(data).__name__}",
            allowed="batches that are dicts without this key",
        )
    return {**data, "valid": valid}
