"""Run one exported image model: images in, typed results out, in batches and from several threads.

A domain says how an image is prepared (the transforms in the artifact) and what the program's outputs mean
(`interpret`); everything else is here: sources, batches of one shape, the next batch prepared while one runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import numpy as np

from framework.core.errors import InputError
from framework.inference.engine import Engine
from framework.inference.prepared import prepared
from framework.vision import image as vision_image
from framework.vision.sample import Sample

R = TypeVar("R")
Interpret = Callable[[dict[str, np.ndarray], Sample, np.ndarray], R]


class ImagePredictor(Generic[R]):
    """Calls: a path, bytes, a file, an array or a PIL image gives one result; a list of them gives a list.

    Args:
        interpret: Of the outputs of one image, the sample as the program saw it and the image as it was read.
        transforms: What is done to an image before the program.
        batch_size: Images of one shape that run together.

    Raises:
        InputError: `batch_size` is below 1.
    """

    def __init__(
        self, engine: Engine, transforms: Sequence[Any], interpret: Interpret[R], batch_size: int = 8
    ) -> None:
        if batch_size < 1:
            raise InputError(
                "a batch needs an image", where="batch_size", received=batch_size, allowed="1 or more"
            )
        self.engine, self.transforms, self.interpret = engine, tuple(transforms), interpret
        self.batch_size = batch_size
        # One thread for all calls, not one for each: starting threads takes time and memory.
        self._device = ThreadPoolExecutor(1, "oar-predict")

    def __call__(self, source: Any) -> Any:
        if isinstance(source, (list, tuple)):
            return list(self.results(self.read(item) for item in source))
        return next(self.results(iter([self.read(source)])))

    @staticmethod
    def read(source: Any) -> tuple[np.ndarray, str]:
        """(image [H, W, 3] uint8 RGB, its path if it has one). Raises: InputError when it cannot be read."""
        label = str(source) if isinstance(source, (str, os.PathLike)) else ""
        return vision_image.read(source), label

    def pages(self, items: Iterable[tuple[np.ndarray, str, int]]) -> Iterator[R]:
        """One result for each (image, source, number), in order: what `framework.inference.runner` asks for."""
        return self.results((image, source) for image, source, _ in items)

    def results(self, images: Iterable[tuple[np.ndarray, str]]) -> Iterator[R]:
        """One result for each (image [H, W, 3] uint8 RGB, source), in order. Memory does not grow with their number."""
        return self.of_samples(
            Sample(image, source_size=image.shape[:2], id=source) for image, source in images
        )

    def of_samples(self, samples: Iterable[Sample]) -> Iterator[R]:
        """`results` of samples, for transforms that ask for more than an image, such as the object to cut out."""
        waiting: list[tuple[list[tuple[Sample, np.ndarray]], Future]] = []
        for group in self._groups(samples):
            waiting.append((group, self._device.submit(self._run, [sample for sample, _ in group])))
            if len(waiting) > 1:
                yield from self._interpreted(*waiting.pop(0))
        for group, future in waiting:
            yield from self._interpreted(group, future)

    def _groups(self, samples: Iterable[Sample]) -> Iterator[list[tuple[Sample, np.ndarray]]]:
        group: list[tuple[Sample, np.ndarray]] = []
        for sample in samples:
            image = sample.image
            sample = prepared(sample, self.transforms)
            if group and (len(group) == self.batch_size or group[0][0].image.shape != sample.image.shape):
                yield group
                group = []
            group.append((sample, image))
            if self.batch_size == 1:
                yield group
                group = []
        if group:
            yield group

    def _run(self, samples: list[Sample]) -> dict[str, np.ndarray]:
        """Full batches and, where the program takes any number, single images are the shapes compiled for a size."""
        images = np.stack([sample.image for sample in samples])
        one = len(images) == 1 and not isinstance(self.engine.inputs["image"].shape[0], int)
        if len(images) < self.batch_size and not one:
            images = np.concatenate([images, np.repeat(images[-1:], self.batch_size - len(images), axis=0)])
        return self.engine({"image": images})

    def _interpreted(self, group: list[tuple[Sample, np.ndarray]], future: Future) -> Iterator[R]:
        outputs = future.result()
        for number, (sample, image) in enumerate(group):
            yield self.interpret({name: value[number] for name, value in outputs.items()}, sample, image)
