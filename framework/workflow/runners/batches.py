"""Batches for a program: what images, texts and plain arrays share on their way through an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from framework.inference.engine import Engine

T = TypeVar("T")
Arrays = Mapping[str, np.ndarray]
"""The inputs of a program for one sample, or its outputs, by name."""


def stack(samples: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """One array a name, with a first axis for the samples."""
    return {name: np.stack([sample[name] for sample in samples]) for name in samples[0]}


class Batches:
    """Runs samples through an engine, together where they have the same shapes. Safe to call from several threads.

    Full batches and, where the program takes any number, single samples are the two sizes that are compiled.

    Args:
        size: Samples that run together, 1 or more.
        collate: Makes one batch of the inputs of several samples.
    """

    def __init__(
        self,
        engine: Engine,
        size: int,
        collate: Callable[[Sequence[Arrays]], Mapping[str, np.ndarray]] = stack,
    ) -> None:
        self.engine, self.size, self.collate = engine, size, collate
        self._is_free = not any(
            isinstance(spec.shape[0], int) for spec in engine.inputs.values() if spec.shape
        )
        # One thread for all calls, not one for each: starting threads takes time and memory.
        self._device = ThreadPoolExecutor(1, "oar-predict")

    def run(self, samples: Sequence[Arrays]) -> list[dict[str, np.ndarray]]:
        """The outputs of each sample of one batch."""
        count = len(samples)
        if count < self.size and not (count == 1 and self._is_free):
            samples = [*samples, *[samples[-1]] * (self.size - count)]
        outputs = self.engine(self.collate(samples))
        return [{name: value[number] for name, value in outputs.items()} for number in range(count)]

    def stream(
        self, items: Iterable[T], inputs: Callable[[T], Arrays]
    ) -> Iterator[tuple[T, dict[str, np.ndarray]]]:
        """Each item with its outputs, in order; the next batch is made while one runs. Memory does not grow.

        Args:
            inputs: Of an item.
        """
        waiting: list[tuple[list[T], Future[list[dict[str, np.ndarray]]]]] = []
        for group in self._groups((item, inputs(item)) for item in items):
            waiting.append(
                ([item for item, _ in group], self._device.submit(self.run, [one for _, one in group]))
            )
            if len(waiting) > 1:
                group_items, future = waiting.pop(0)
                yield from zip(group_items, future.result())
        for group_items, future in waiting:
            yield from zip(group_items, future.result())

    def _groups(self, pairs: Iterable[tuple[T, Arrays]]) -> Iterator[list[tuple[T, Arrays]]]:
        """Neighbours of one shape, up to a batch."""
        group: list[tuple[T, Arrays]] = []
        shapes: dict[str, tuple[int, ...]] = {}
        for item, arrays in pairs:
            item_shapes = {name: array.shape for name, array in arrays.items()}
            if group and item_shapes != shapes:
                yield group
                group = []
            shapes = item_shapes
            group.append((item, arrays))
            if len(group) == self.size:
                yield group
                group = []
        if group:
            yield group
