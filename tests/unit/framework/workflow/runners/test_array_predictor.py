"""A program on plain arrays by name: batches of one shape, results in order."""

from typing import Any

import numpy as np
import pytest

from framework.core.errors import InputError, ShapeError
from framework.export import TensorSpec, lower_program
from framework.inference import XLAEngine
from framework.workflow.runners.array_predictor import ArrayPredictor


def engine(count: str | int = "n") -> XLAEngine:
    def fn(weights: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        return {"sum": inputs["x"].sum(1) + inputs["bias"], "first": inputs["x"][:, 0] * weights["one"]}

    one = {"one": np.float32(1)}
    specs = {"x": TensorSpec((count, "t")), "bias": TensorSpec((count,))}
    return XLAEngine(lower_program(fn, one, specs, platforms=("cpu",)), one)


def sample(number: int, length: int = 3) -> dict[str, Any]:
    return {"x": [float(number)] * length, "bias": 0.5}


def test_one_sample_and_a_list() -> None:
    predict = ArrayPredictor(engine(), batch_size=4)
    found = predict(sample(2))
    assert found.keys() == {"sum", "first"} and found["sum"] == 6.5 and found["first"].shape == ()
    lengths = [3] * 6 + [5] + [3] * 3
    many = predict.predict([sample(number, length) for number, length in enumerate(lengths)])
    assert [float(one["first"]) for one in many] == list(range(10))
    assert [float(one["sum"]) for one in many] == [n * length + 0.5 for n, length in enumerate(lengths)]
    assert predict([]) == []


def test_programs_of_a_fixed_batch_are_filled_up() -> None:
    predict = ArrayPredictor(engine(4), batch_size=4)
    assert [float(one["sum"]) for one in predict([sample(1)] * 5)] == [3.5] * 5


def test_inputs_that_do_not_fit() -> None:
    predict = ArrayPredictor(engine())
    with pytest.raises(ShapeError, match="takes other inputs\n  received: x"):
        predict({"x": [1.0]})
    with pytest.raises(ShapeError, match=r"bias: an input has the wrong number of axes\n  received: \[1\]"):
        predict({"x": [1.0], "bias": [1.0]})
    with pytest.raises(InputError, match="batch_size is too small"):
        ArrayPredictor(engine(), batch_size=0)
