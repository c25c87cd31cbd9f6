"""Each rule of the ONNX exporter: small functions through ONNX Runtime, with known and with symbolic sizes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from framework.export import TensorSpec
from framework.export.formats.onnx import export_onnx
from tests.unit.framework.export.onnx_cases import CASES, Case

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

TOLERANCE = 1e-5


def specs_of(case: Case, symbolic: bool) -> dict[str, TensorSpec]:
    specs = {}
    for i, array in enumerate(case.arrays):
        shape: tuple[int | str, ...] = array.shape
        if symbolic:
            assert case.symbolic is not None
            sizes = case.symbolic[i].split(",") if case.symbolic[i] else []
            shape = tuple(int(size) if size.isdigit() else size for size in sizes)
        specs[f"x{i}"] = TensorSpec(shape, array.dtype.name)
    return specs


def named_outputs(case: Case) -> Any:
    """The case as a function of weights and inputs, whose outputs have names whatever tree they are."""

    def fn(_: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        out = case.fn(*(inputs[f"x{i}"] for i in range(len(case.arrays))))
        tree = out if isinstance(out, dict) else {"out": out}
        leaves = [(name, leaf) for name, value in tree.items() for leaf in jax.tree.leaves(value)]
        return {f"{name}.{i}": leaf for i, (name, leaf) in enumerate(leaves)}

    return fn


def check(case: Case, symbolic: bool) -> None:
    fn = named_outputs(case)
    constraints = case.constraints if symbolic else ()
    model = export_onnx(fn, {}, specs_of(case, symbolic), constraints=constraints)
    onnx.checker.check_model(model, full_check=True)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {f"x{i}": array for i, array in enumerate(case.arrays)}
    wanted = jax.jit(fn)({}, feed)
    names = [one.name for one in session.get_outputs()]
    got = dict(zip(names, session.run(None, {one.name: feed[one.name] for one in session.get_inputs()})))
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        want = np.asarray(array)
        assert (got[name].shape, got[name].dtype) == (want.shape, want.dtype), name
        largest = float(np.abs(want[np.isfinite(want)]).max(initial=1.0))
        np.testing.assert_allclose(got[name], want, rtol=0, atol=TOLERANCE * largest, err_msg=name)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_the_program(case: Case) -> None:
    """With symbolic sizes where the case has them, which is the harder way."""
    check(case, symbolic=case.symbolic is not None)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case.symbolic is not None], ids=str)
def test_equals_the_program_of_known_sizes(case: Case) -> None:
    check(case, symbolic=False)


def nodes_of(name: str) -> list[Any]:
    case = next(case for case in CASES if case.name == name)
    return list(export_onnx(named_outputs(case), {}, specs_of(case, True)).graph.node)


def test_boxes_are_suppressed_by_the_operator() -> None:
    """A loop over the matrix of all pairs takes OpenVINO as long as a small detector."""
    kinds = [node.op_type for node in nodes_of("suppression_by_labels")]
    assert kinds.count("NonMaxSuppression") == 3 and "Loop" not in kinds


def test_shuffled_channels_stay_in_front() -> None:
    """Runtimes know a shuffle by this order, and the maps around it need no other."""
    moves = [
        list(node.attribute[0].ints) for node in nodes_of("shuffled_channels") if node.op_type == "Transpose"
    ]
    assert moves == [[0, 3, 1, 2], [0, 2, 1, 3, 4], [0, 2, 3, 1]]
