"""Programs of Paddle with control flow and with suppression of boxes, against the outputs of Paddle's own executor.

The fixtures are made by tools/golden/paddle_control.py.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework import jit
from framework.core.errors import TraceError
from framework.inference import Config, create_predictor
from framework.interop.graph import paddle
from framework.workflow.convert.graph import convert_graph

DATA = Path(__file__).parent / "data"
ENDINGS = {"pdmodel": "model.pdmodel", "pir": "model.json"}
NAMES = ["branches", "decoder", "greedy", "dense", "yolo", "matrix", "boxes", "segmenter"]
ROWS = {"dense": (0,), "yolo": (0, 2), "matrix": (0, 1)}
"""The outputs that a compiled program fills up with rows of -1."""
Call = tuple[dict[str, np.ndarray], list[np.ndarray]]


def unpack(name: str, kind: str, folder: Path) -> tuple[Path, list[Call]]:
    """The program's file, with its parameters beside it, and inputs with Paddle's outputs."""
    with np.load(DATA / f"paddle_control_{name}_{kind}.npz") as stored:
        arrays = dict(stored)
    path = folder / ENDINGS[kind]
    path.write_bytes(arrays.pop("program").tobytes())
    path.with_suffix(".pdiparams").write_bytes(arrays.pop("params").tobytes())
    calls: list[Call] = []
    while any(key.startswith(f"in{len(calls)}.") for key in arrays):
        mark = f"in{len(calls)}."
        inputs = {key.removeprefix(mark): value for key, value in arrays.items() if key.startswith(mark)}
        outputs = [arrays[key] for key in sorted(arrays) if key.startswith(f"out{len(calls)}.")]
        calls.append((inputs, outputs))
    return path, calls


def compare(got: Any, wanted: list[np.ndarray]) -> None:
    arrays = got if isinstance(got, list | tuple) else (got,)
    assert [np.shape(array) for array in arrays] == [array.shape for array in wanted]
    for one, other in zip(arrays, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["pdmodel", "pir"])
@pytest.mark.parametrize("name", NAMES)
def test_programs_equal_paddles_results(name: str, kind: str, tmp_path: Path) -> None:
    """Eagerly, and through paddle.inference's interface: the same rows in the same order."""
    path, calls = unpack(name, kind, tmp_path)
    layer = paddle.load(path)
    predictor = create_predictor(Config(path, path.with_suffix(".pdiparams")))
    assert set(predictor.get_input_names()) == set(calls[0][0])
    for inputs, wanted in calls:
        compare(layer(**inputs), wanted)
        for key in predictor.get_input_names():
            predictor.get_input_handle(key).copy_from_cpu(inputs[key])
        predictor.run()
        names = predictor.get_output_names()
        compare([predictor.get_output_handle(key).copy_to_cpu() for key in names], wanted)


@pytest.mark.parametrize("kind", ["pdmodel", "pir"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "boxes"])
def test_compiled_programs(name: str, kind: str, tmp_path: Path) -> None:
    """Conditions and loops are operations of the compiled program; rows that suppression left are -1 and come last."""
    path, calls = unpack(name, kind, tmp_path)
    fast = jit.to_static(paddle.load(path))
    for inputs, wanted in calls:
        got = fast(**inputs)
        found = [np.asarray(array) for array in (got if isinstance(got, tuple) else (got,))]
        for at in ROWS.get(name, ()):
            rows = len(wanted[at])
            if name != "matrix" or at == 0:
                assert (found[at][rows:] == -1).all()
            found[at] = found[at][:rows]
        compare(found, wanted)


def test_branches_of_different_shapes_do_not_compile(tmp_path: Path) -> None:
    path, ((inputs, _), *_) = unpack("boxes", "pdmodel", tmp_path)
    with pytest.raises(
        TraceError, match=r"must be known before the program runs(.|\n)*run the layer eagerly"
    ):
        jit.to_static(paddle.load(path))(**inputs)


@pytest.mark.parametrize("name", ["dense", "decoder", "greedy"])
def test_they_become_artifacts(name: str, tmp_path: Path) -> None:
    path, ((inputs, wanted), *_) = unpack(name, "pir", tmp_path)
    made = convert_graph(path, tmp_path / "artifact")
    assert made.difference < 1e-5
    assert made.inputs[next(iter(made.inputs))].shape[0] == "n"
    predictor = create_predictor(Config(tmp_path / "artifact"))
    got: Any = predictor.run([inputs[key] for key in predictor.get_input_names()])
    by_name = dict(zip(predictor.get_output_names(), got))
    first = by_name[paddle.load(path).outputs[0].name]
    np.testing.assert_allclose(first[: len(wanted[0])], wanted[0], rtol=1e-5, atol=1e-5)
