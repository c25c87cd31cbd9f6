from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.inference.image_predictor import ImagePredictor


class Means:
    """An engine that keeps the shapes it ran and gives the mean of each picture."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.shapes.append(inputs["image"].shape)
        return {"mean": inputs["image"].mean(axis=(1, 2, 3))}


def predictor(batch_size: int) -> tuple[ImagePredictor[Any], Means]:
    engine = Means()
    interpret = lambda outputs, sample, picture: (sample.id, float(outputs["mean"]), picture.shape)  # noqa: E731
    return ImagePredictor(engine, (), interpret, batch_size), engine  # type: ignore[arg-type]


def picture(value: int, side: int = 2) -> np.ndarray:
    return np.full((side, side, 3), value, np.uint8)


def test_batches_of_one_shape_in_order():
    predict, engine = predictor(3)
    pictures = [picture(n) for n in range(4)] + [picture(9, 5)]
    found = list(predict.pages((image, f"{n}.png", n) for n, image in enumerate(pictures)))
    assert [(name, mean) for name, mean, _ in found] == [
        ("0.png", 0.0), ("1.png", 1.0), ("2.png", 2.0), ("3.png", 3.0), ("4.png", 9.0),
    ]  # fmt: skip
    assert found[4][2] == (5, 5, 3)
    # Three, one alone, one of another shape: full batches and single pictures are all that is compiled.
    assert engine.shapes == [(3, 2, 2, 3), (1, 2, 2, 3), (1, 5, 5, 3)]


def test_one_and_several():
    predict, engine = predictor(4)
    assert predict(picture(3)) == ("", 3.0, (2, 2, 3))
    assert [mean for _, mean, _ in predict([picture(1), picture(2)])] == [1.0, 2.0]
    assert engine.shapes == [(1, 2, 2, 3), (4, 2, 2, 3)] and predict([]) == []


def test_no_batch_of_nothing():
    with pytest.raises(
        InputError, match=r"batch_size: a batch needs a picture\n  received: 0\n  allowed: 1 or more"
    ):
        predictor(0)
