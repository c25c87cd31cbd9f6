"""Run one exported model on plain arrays by name: features of tables, of speech, of a user's own code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import InputError, ShapeError
from framework.export import Artifact
from framework.inference.engine import Engine, describe
from framework.inference.runtime import Runtime
from framework.workflow.domain.predictor import Predictor
from framework.workflow.runners.batches import Arrays, Batches


class ArrayPredictor(Predictor[Mapping[str, ArrayLike], Arrays, dict[str, np.ndarray]]):
    """The outputs by name of a program for inputs by name, each of one sample: without the axis of the batch.

    Args:
        batch_size: Samples of the same shapes that run together.

    Raises:
        InputError: `batch_size` is below 1.
    """

    def __init__(self, engine: Engine, batch_size: int = 8) -> None:
        if batch_size < 1:
            raise InputError(
                "batch_size is too small", where="batch_size", received=batch_size, allowed="1 or more"
            )
        self._batches = Batches(engine, batch_size)

    __call__ = Predictor.predict

    def read(self, source: Mapping[str, ArrayLike]) -> Arrays:
        """The inputs as arrays. Raises: ShapeError, where they are not those of the program by name or axes."""
        inputs = self._batches.engine.inputs
        if set(source) != set(inputs):
            raise ShapeError(
                "the program takes other inputs", received=", ".join(sorted(source)), allowed=describe(inputs)
            )
        arrays = {name: np.asarray(source[name], spec.dtype) for name, spec in inputs.items()}
        for name, array in arrays.items():
            if array.ndim != len(inputs[name].shape) - 1:
                raise ShapeError(
                    "an input has the wrong number of axes",
                    where=name,
                    received=list(array.shape),
                    allowed=f"{inputs[name]}, without its first axis",
                )
        return arrays

    def predict_stream(self, items: Iterable[Arrays]) -> Iterator[dict[str, np.ndarray]]:
        return (outputs for _, outputs in self._batches.stream(items, lambda arrays: arrays))


def open_array_predictor(
    artifact: Artifact, runtime: Runtime, batch_size: int | None = None
) -> ArrayPredictor:
    """The predictor of an artifact of one model, in its own batch size where none is given."""
    size = artifact.setting("batch_size", int, 8) if batch_size is None else batch_size
    return ArrayPredictor(runtime.open(artifact), size)
