"""paddle.base.reader: batches of generators, `DataLoader.from_generator` and `PyReader`, from before `paddle.io`."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, cast

import numpy as np

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.base.core import EOFException
from framework.paddle.base.data_feeder import DataFeeder
from framework.paddle.base.lod_tensor import LoDTensor
from framework.paddle.io import batch as _batches_of
from framework.paddle.static.program import Variable, default_main_program, in_dynamic_mode

Field: TypeAlias = np.ndarray | LoDTensor
Fields: TypeAlias = list[LoDTensor] | dict[str, LoDTensor]
Batch: TypeAlias = list[Tensor] | list[Fields]
"""The fields of a batch in dynamic mode; of a static program those of a batch for each place."""
Sample: TypeAlias = Sequence[object]
Generator: TypeAlias = Callable[[], Iterable[Iterable[object]]]
log = logging.getLogger("oar")


class DataLoaderBase:
    """What all of these loaders have."""

    def __call__(self) -> DataLoaderBase:
        return self

    def __iter__(self) -> Iterator[Batch]:
        raise NotImplementedError()

    def __next__(self) -> Batch:
        raise NotImplementedError()

    @classmethod
    def _check_input_array(cls, item: object) -> np.ndarray:
        """The array of a field. Raises: TypeError: its lists have different lengths."""
        try:
            array = np.asarray(item)
        except ValueError:
            array = np.empty((), np.object_)
        if array.dtype == np.object_:
            raise TypeError(
                "a field of a batch is no regular array: its nested lists have different lengths. Pad them to one "
                "length, or give a paddle.base.create_lod_tensor"
            )
        return array


class _Loader(DataLoaderBase):
    """Reads batches that a generator makes.

    Args:
        capacity: How many batches may be made ahead; must be given, as in Paddle.
        iterable: False: the program reads them itself, between `start()` and `reset()`.
    """

    def __init__(self, capacity: int | None, iterable: bool) -> None:
        if not capacity:
            raise ValueError("Please give value to capacity.")
        self._capacity, self._iterable = capacity, iterable
        self._source: Generator | None = None
        self._batches: Iterator[list[Field]] | None = None

    @property
    def iterable(self) -> bool:
        """Whether Python's loops read it."""
        return self._iterable

    @property
    def queue(self) -> object:
        """The batches that are being read; None before."""
        return self._batches

    def _read(self) -> Iterator[list[Field]]:
        """The fields of each batch. Raises: SystemError: the generator raised an error."""
        assert self._source is not None, "Data source of DataLoader has not set yet"
        try:
            for fields in self._source():
                yield [
                    field if isinstance(field, LoDTensor) else self._check_input_array(field)
                    for field in fields
                ]
        except Exception as error:
            log.warning("Your reader has raised an exception!")
            raise SystemError(
                f"(Fatal) Blocking queue is killed because the data reader raises an exception: {error}"
            ) from error

    def set_sample_generator(
        self,
        reader: Callable[[], Iterable[Sample]],
        batch_size: int,
        drop_last: bool = True,
        places: object = None,
    ) -> _Loader:
        """Read from a generator of samples; returns itself."""
        assert batch_size > 0, f"batch_size must be larger than 0, received {batch_size}"
        return self.set_sample_list_generator(_batches_of(reader, batch_size, drop_last), places)

    def set_sample_list_generator(
        self, reader: Callable[[], Iterable[Sequence[Sample]]], places: object = None
    ) -> _Loader:
        """Read from a generator of lists of samples; returns itself."""
        return self.set_batch_generator(lambda: map(self._stack, reader()), places)

    def set_batch_generator(self, reader: Generator, places: object = None) -> _Loader:
        """Read from a generator of batches, each a list of its fields; returns itself."""
        self._source = reader
        return self

    def _stack(self, samples: Sequence[Sample]) -> Sequence[object]:
        return [list(column) for column in zip(*samples, strict=True)]


class DygraphGeneratorLoader(_Loader):
    """Gives batches as lists of Tensors."""

    def __init__(
        self,
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = True,
        use_multiprocess: bool = False,
    ) -> None:
        super().__init__(capacity, True)
        for is_set, text in (
            (iterable, "supports iterable mode"),
            (return_list, "supports returning as list"),
        ):
            if not is_set:
                warnings.warn(f"Please NOTE: DygraphGeneratorLoader {text} only.", stacklevel=3)

    def set_batch_generator(self, reader: Generator, places: object = None) -> _Loader:
        """Read from a generator of batches, each a list of its fields; returns itself."""
        assert len(_as_list(places)) == 1, "Number of places must be 1 in imperative mode"
        return super().set_batch_generator(reader, places)

    def __iter__(self) -> Iterator[list[Tensor]]:
        assert self._source is not None, "Data source of DataLoader has not set yet"
        self._batches = self._read()
        return self

    def __next__(self) -> list[Tensor]:
        if self._batches is None:
            raise StopIteration
        return [wrap(as_array(np.asarray(field))) for field in next(self._batches)]


class GeneratorLoader(_Loader):
    """Feeds a static program: gives what an Executor is fed with, or is read by the program when it runs."""

    def __init__(
        self,
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        drop_last: bool = True,
    ) -> None:
        super().__init__(capacity, iterable)
        if not feed_list:
            raise ValueError("Feed list must be given under static graph mode.")
        self._feeder = DataFeeder(feed_list, None)
        self._return_list, self._drop_last, self._places = return_list, drop_last, 1
        if not iterable:
            default_main_program().readers.append(self.read)

    def set_batch_generator(self, reader: Generator, places: object = None) -> _Loader:
        """Read from a generator of batches, each a list of its fields; returns itself."""
        if self._iterable:
            assert places is not None, "Places cannot be None when DataLoader is iterable"
            self._places = len(_as_list(places))
        return super().set_batch_generator(reader, places)

    def _stack(self, samples: Sequence[Sample]) -> Sequence[object]:
        return list(self._feeder.feed(samples).values())

    def __iter__(self) -> Iterator[list[Fields]]:
        assert self._iterable, "DataLoader is not iterable"
        self._batches = self._read()
        return self

    def __next__(self) -> list[Fields]:
        """A batch for each place: its fields as a list, or by the names of their variables."""
        batches = self._batches
        group = [fields for _, fields in zip(range(self._places), batches or (), strict=False)]
        if not group or (self._drop_last and len(group) < self._places):
            raise StopIteration
        named = [
            {name: _lod_tensor(field) for name, field in zip(self._feeder.feed_names, fields, strict=True)}
            for fields in group
        ]
        return [list(fields.values()) if self._return_list else fields for fields in named]

    def start(self) -> None:
        """Begin to read from the first batch; the program reads one each time that it runs."""
        assert not self._iterable, "start() cannot be called when DataLoader is iterable"
        self._batches = self._read()

    def reset(self) -> None:
        """Stop reading, so that `start` can begin again."""
        assert not self._iterable, "reset() cannot be called when DataLoader is iterable"
        self._batches = None

    def read(self) -> dict[str, Field]:
        """The next batch by the names of its variables. Raises: EOFException: there is none."""
        fields = None if self._batches is None else next(self._batches, None)
        if fields is None:
            raise EOFException("There is no next data: reset() the loader, and start() it again")
        return dict(zip(self._feeder.feed_names, fields, strict=True))


def _lod_tensor(field: object) -> LoDTensor:
    if isinstance(field, LoDTensor):
        return field
    result = LoDTensor()
    result.set(np.asarray(field), None)
    return result


def _as_list(places: object) -> list[object]:
    return list(places) if isinstance(places, list | tuple) else [places]


class DataLoader:
    """Makes loaders."""

    @staticmethod
    def from_generator(
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        use_multiprocess: bool = False,
        drop_last: bool = True,
    ) -> DygraphGeneratorLoader | GeneratorLoader:
        """A loader of what a generator gives, which is set by one of its `set_…_generator`.

        Args:
            feed_list: The variables of a static program, in the order of a sample's fields.
            capacity: How many batches may be made ahead.
            iterable: False: the program reads the batches itself, between `start()` and `reset()`.
            return_list: Give lists of fields, not dicts by the names of variables.
            drop_last: Leave out the last batches where there is not one for each place.
            use_double_buffer, use_multiprocess: change nothing.
        """
        if in_dynamic_mode():
            return DygraphGeneratorLoader(
                feed_list, capacity, use_double_buffer, iterable, return_list, use_multiprocess
            )
        return GeneratorLoader(feed_list, capacity, use_double_buffer, iterable, return_list, drop_last)


class PyReader(DataLoaderBase):
    """A loader by its older names."""

    def __init__(
        self,
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
    ) -> None:
        self._loader = DataLoader.from_generator(
            feed_list, capacity, use_double_buffer, iterable, return_list
        )

    @property
    def queue(self) -> object:
        """The batches that are being read; None before."""
        return self._loader.queue

    @property
    def iterable(self) -> bool:
        """Whether Python's loops read it."""
        return self._loader.iterable

    def __iter__(self) -> Iterator[Batch]:
        return self._loader.__iter__()

    def __next__(self) -> Batch:
        return self._loader.__next__()

    def start(self) -> None:
        """Begin to read from the first batch."""
        cast("GeneratorLoader", self._loader).start()  # the other kind has none: AttributeError

    def reset(self) -> None:
        """Stop reading, so that `start` can begin again."""
        cast("GeneratorLoader", self._loader).reset()

    def decorate_sample_generator(
        self,
        sample_generator: Callable[[], Iterable[Sample]],
        batch_size: int,
        drop_last: bool = True,
        places: object = None,
    ) -> None:
        """Read from a generator of samples."""
        self._loader.set_sample_generator(sample_generator, batch_size, drop_last, places)

    def decorate_sample_list_generator(
        self, reader: Callable[[], Iterable[Sequence[Sample]]], places: object = None
    ) -> None:
        """Read from a generator of lists of samples."""
        self._loader.set_sample_list_generator(reader, places)

    def decorate_batch_generator(self, reader: Generator, places: object = None) -> None:
        """Read from a generator of batches, each a list of its fields."""
        self._loader.set_batch_generator(reader, places)


_settings: dict[str, bool | None] = {"order": True, "pinned": None}


def _setting(name: str, values: tuple[bool, ...]) -> bool | None:
    if not values:
        return _settings[name]
    assert len(values) == 1 and isinstance(values[0], bool), f"takes one bool, received {values}"
    (_settings[name],) = values
    return None


def keep_data_loader_order(*args: bool) -> bool | None:
    """Whether batches come in the order of the generator, which they always do here; with an argument, record it."""
    return _setting("order", args)


def use_pinned_memory(*args: bool) -> bool | None:
    """Whether batches lie in pinned memory; with an argument, record it: jax decides on memory."""
    return _setting("pinned", args)


_complete(__name__)
