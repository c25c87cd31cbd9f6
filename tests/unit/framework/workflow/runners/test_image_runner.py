"""The predictor of one exported model: batches of one shape, results in order, whatever comes in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.export import TensorSpec, lower_program
from framework.inference import XLAEngine
from framework.vision import image
from framework.vision.sample import Sample
from framework.vision.sample_transforms import CropToObject, Resize
from framework.workflow import ImageItem, VisionPredictor
from framework.workflow.runners.image_runner import ImageRunner


@pytest.fixture(scope="module")
def engine() -> XLAEngine:
    def fn(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        return {"mean": inputs["image"].astype("float32").mean(axis=(1, 2, 3)) + weights["zero"]}

    program = lower_program(
        fn, {"zero": np.float32(0)}, {"image": TensorSpec(("n", "h", "w", 3), "uint8")}, platforms=("cpu",)
    )
    return XLAEngine(program, {"zero": np.float32(0)})


def mean_of(
    outputs: dict[str, np.ndarray], sample: Any, source_image: np.ndarray
) -> tuple[float, str, tuple[int, ...]]:
    return float(outputs["mean"]), sample.id, source_image.shape


def flat(value: int, height: int = 4, width: int = 6) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


class Means(VisionPredictor):
    def __init__(self, runner: ImageRunner) -> None:
        self.runner = runner

    def predict_stream(self, items: Iterable[ImageItem]) -> Iterator[Any]:
        return self.runner.predict(items)


def test_one_image_and_a_list(engine: XLAEngine, tmp_path: Path) -> None:
    predict = Means(ImageRunner(engine, [Resize((8, 8))], mean_of))
    assert predict(flat(7)) == (7.0, "", (4, 6, 3))
    path = tmp_path / "a.png"
    image.write(path, flat(9))
    assert predict([path, flat(3)]) == [(9.0, str(path), (4, 6, 3)), (3.0, "", (4, 6, 3))]
    assert predict([]) == []
    with pytest.raises(InputError, match="nowhere"):
        predict(tmp_path / "nowhere.png")


def test_batches_hold_one_shape_and_few_programs_are_compiled(engine: XLAEngine) -> None:
    predict = ImageRunner(engine, [], mean_of, batch_size=4)
    before = engine.compile_count
    shapes = [(4, 6)] * 6 + [(5, 5)] + [(4, 6)] * 3
    found = list(predict.predict(ImageItem(flat(number, *shape)) for number, shape in enumerate(shapes)))
    assert [value for value, *_ in found] == list(range(10))
    assert engine.compile_count - before == 2  # four 4x6 at once, and one 5x5; what is fewer is filled up


def test_results_come_while_images_go_in(engine: XLAEngine) -> None:
    predict = ImageRunner(engine, [], mean_of, batch_size=1)
    taken = []

    def items():
        for number in range(5):
            taken.append(number)
            yield ImageItem(flat(number), f"p{number}")

    results = predict.predict(items())
    assert next(results)[1] == "p0" and len(taken) < 5
    assert [source for _, source, _ in results] == ["p1", "p2", "p3", "p4"]


def test_samples_with_what_transforms_ask_for(engine: XLAEngine) -> None:
    predict = ImageRunner(engine, [CropToObject((8, 8), padding=1.0)], mean_of)
    source_image = flat(10)
    source_image[:, 3:] = 90
    sides = [np.array([[x, 0, x + 3, 4]], np.float32) for x in (0, 3)]
    samples = [Sample(source_image, boxes=box, id=f"{n}", source_size=(4, 6)) for n, box in enumerate(sides)]
    found = list(predict.predict_samples(samples))
    assert [one[1:] for one in found] == [("0", (4, 6, 3)), ("1", (4, 6, 3))]
    assert found[0][0] < 40 < 60 < found[1][0]
    assert list(predict.predict_samples(iter([]))) == []
