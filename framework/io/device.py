"""Batches onto the device ahead of the step that takes them."""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeVar, runtime_checkable

import jax
import numpy as np

from framework.core.dtypes import narrow
from framework.core.types import PyTree
from framework.io.recipe import Batch
from framework.io.sampler import check_integer

Target = jax.Device | jax.sharding.Sharding | None
ArrayT = TypeVar("ArrayT", bound=np.ndarray | jax.Array)
"""Where arrays go; None is jax's default device."""


@runtime_checkable
class Closeable(Protocol):
    """An iterator that holds something, such as a generator."""

    def close(self) -> None: ...


def prefetch_to_device(
    batches: Iterable[PyTree], sharding_or_device: Target = None, size: int = 2
) -> DevicePrefetcher:
    """Iterates `batches` with their arrays on the device; a thread keeps up to `size` of them there ahead.

    Takes what a DataLoader gives: collated data, or `Batch`es, whose `data` is moved. Arrays of numbers in dicts, lists
    and tuples are moved, with 64-bit ones narrowed as `framework.core.dtypes.narrow` does; the rest stays as it is.
    The thread and the loader under it stop when this iterator is exhausted, closed or dropped.

    Args:
        sharding_or_device: a jax device, or a sharding; with a sharding over several processes the arrays are this
            process' part of the global ones. None is jax's default device.

    Raises:
        ConfigError: `size` is smaller than 1.
        ShapeError: an integer does not fit into 32 bits. This and what `batches` raises comes at the batch concerned.
    """
    check_integer("prefetch_to_device.size", size, at_least=1)
    return DevicePrefetcher(batches, sharding_or_device, size)


def without_texts(batch: Mapping[str, ArrayT]) -> dict[str, ArrayT]:
    """What of a batch a program takes: arrays of texts, which a task packs for its metrics, are left out."""
    return {name: value for name, value in batch.items() if np.dtype(value.dtype).kind not in "SU"}


class DevicePrefetcher(Iterator[PyTree]):
    """What `prefetch_to_device` gives.

    `waited` is the time in seconds that the consumer has spent waiting for batches so far: compared with the time of
    the steps it tells whether loading is the bottleneck.
    """

    def __init__(self, batches: Iterable[PyTree], sharding_or_device: Target, size: int) -> None:
        self.waited = 0.0
        self._buffer = _Buffer(size)
        # The thread knows the buffer and not this object, so dropping this object ends it.
        self._thread = threading.Thread(
            target=self._buffer.run, args=(batches, sharding_or_device), name="oar-to-device", daemon=True
        )
        self._thread.start()

    def __next__(self) -> PyTree:
        if self._buffer.stopped:
            raise StopIteration
        started = time.perf_counter()
        kind, item = self._buffer.ready.get()
        self.waited += time.perf_counter() - started
        self._buffer.room.release()
        if kind == "batch":
            return item
        self.close()
        if kind == "error":
            raise item
        raise StopIteration

    def close(self) -> None:
        """Stop the thread and what it reads from; batches not taken are dropped."""
        self._buffer.stop()
        self._thread.join()

    def __del__(self) -> None:
        self._buffer.stop()


class _Buffer:
    """What the thread and its consumer share."""

    def __init__(self, size: int) -> None:
        self.ready: queue.SimpleQueue[tuple[str, PyTree]] = queue.SimpleQueue()
        self.room = threading.Semaphore(size)
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True
        self.room.release()

    def run(self, batches: Iterable[PyTree], target: Target) -> None:
        try:
            iterator = iter(batches)
            try:
                while self.room.acquire() and not self.stopped:
                    batch = next(iterator, self)
                    if batch is self:
                        break
                    if isinstance(batch, Batch):
                        data = _put(batch.data, target, f"batch {batch.index}")
                        batch = dataclasses.replace(batch, data=data)
                    else:
                        batch = _put(batch, target, "batch")
                    self.ready.put(("batch", batch))
            finally:
                if isinstance(iterator, Closeable):
                    iterator.close()
            self.ready.put(("end", None))
        except BaseException as error:
            self.ready.put(("error", error))


def _put(data: object, target: Target, where: str) -> object:
    if isinstance(data, dict):
        return {key: _put(value, target, f"{where}.{key}") for key, value in data.items()}
    if type(data) is list or type(data) is tuple:
        values = [_put(value, target, f"{where}.{place}") for place, value in enumerate(data)]
        return values if type(data) is list else tuple(values)
    if not isinstance(data, (np.ndarray, np.generic)) or data.dtype.kind not in "biufc":
        return data
    array = narrow(np.asarray(data), where)
    if isinstance(target, jax.sharding.Sharding):
        return jax.make_array_from_process_local_data(target, array)
    return jax.device_put(array, target)
