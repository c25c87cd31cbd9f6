"""paddle.reader: functions that give generators of samples, and decorators of them (before paddle.io)."""

from __future__ import annotations

import itertools
import queue
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_U = TypeVar("_U")
Reader = Callable[[], Iterator[_T]]


class ComposeNotAligned(ValueError):
    """Readers that are read beside each other have different lengths."""


def cache(reader: Reader[_T]) -> Reader[_T]:
    """Read once, and give the samples from memory."""
    samples = tuple(reader())
    return lambda: iter(samples)


def map_readers(func: Callable[..., _U], *readers: Reader[object]) -> Reader[_U]:
    """The results of a function of one sample of each reader."""
    return lambda: map(func, *[reader() for reader in readers])


def shuffle(reader: Reader[_T], buf_size: int) -> Reader[_T]:
    """Samples in a random order within each `buf_size` of them."""

    def read() -> Iterator[_T]:
        samples = reader()
        while block := list(itertools.islice(samples, max(buf_size, 1))):
            random.shuffle(block)
            yield from block

    return read


def chain(*readers: Reader[_T]) -> Reader[_T]:
    """The samples of all readers, one reader after the other."""
    return lambda: itertools.chain.from_iterable(reader() for reader in readers)


def compose(*readers: Reader[object], check_alignment: bool = True) -> Reader[tuple[object, ...]]:
    """One tuple of the samples of all readers; tuples among them are joined.

    Raises:
        ComposeNotAligned: while reading, where a reader ends before the others and `check_alignment` is set.
    """
    end = object()

    def read() -> Iterator[tuple[object, ...]]:
        for samples in itertools.zip_longest(*[reader() for reader in readers], fillvalue=end):
            if any(sample is end for sample in samples):
                if check_alignment:
                    raise ComposeNotAligned("outputs of readers are not aligned: one has fewer samples")
                return
            values = [sample if isinstance(sample, tuple) else (sample,) for sample in samples]
            yield tuple(itertools.chain.from_iterable(values))

    return read


def firstn(reader: Reader[_T], n: int) -> Reader[_T]:
    """The first `n` samples."""
    return lambda: itertools.islice(reader(), n)


def buffered(reader: Reader[_T], size: int) -> Reader[_T]:
    """Read ahead by up to `size` samples in a thread; an error of the reader comes where its sample would."""

    def read() -> Iterator[_T]:
        samples: queue.Queue[tuple[str, object]] = queue.Queue(maxsize=size)

        def fill() -> None:
            try:
                for sample in reader():
                    samples.put(("sample", sample))
                samples.put(("end", None))
            except BaseException as error:
                samples.put(("error", error))

        threading.Thread(target=fill, daemon=True).start()
        while (entry := samples.get())[0] == "sample":
            yield entry[1]  # type: ignore[misc]
        if isinstance(entry[1], BaseException):
            raise entry[1]

    return read


def xmap_readers(
    mapper: Callable[[_T], _U], reader: Reader[_T], process_num: int, buffer_size: int, order: bool = False
) -> Reader[_U]:
    """The results of a function of each sample, computed in `process_num` threads, `buffer_size` samples ahead. They
    come in the order of the samples, whatever `order` says."""

    def read() -> Iterator[_U]:
        with ThreadPoolExecutor(process_num) as pool:
            samples = reader()
            pending = [
                pool.submit(mapper, sample) for sample in itertools.islice(samples, max(buffer_size, 1))
            ]
            while pending:
                yield pending.pop(0).result()
                pending += [pool.submit(mapper, sample) for sample in itertools.islice(samples, 1)]

    return read


def multiprocess_reader(
    readers: list[Reader[_T]], use_pipe: bool = True, queue_size: int = 1000
) -> Reader[_T]:
    """The samples of all readers as they come, each reader in a thread of its own."""

    def read() -> Iterator[_T]:
        samples = [buffered(reader, queue_size)() for reader in readers]
        while samples:
            for source in list(samples):
                try:
                    yield next(source)
                except StopIteration:
                    samples.remove(source)

    return read
