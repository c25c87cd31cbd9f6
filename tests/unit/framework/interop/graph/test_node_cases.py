"""ONNX's own node tests, which the onnx package makes: every case of every operator that the importer has.

Each runs twice: with known arrays as inputs, so that what the importer computes before a program runs is computed so,
and as a layer that is called eagerly. One case for each operator runs by default, all of them with `-m slow`.
"""

from __future__ import annotations

import fnmatch
import importlib
import pkgutil
import warnings
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
import onnx
import pytest
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.case.test_case import TestCase as Case

from framework.core.rng import rng_scope
from framework.interop.graph.layer import Run
from framework.interop.graph.onnx import OPERATORS
from framework.interop.graph.values import Value
from framework.interop.programs.onnx import load
from framework.interop.source import Source

# The cases that do not pass, and why.
DIFFERENT = {
    "test_bernoulli*": "random numbers: the reference draws others",
    "test_training_dropout*": "random numbers: the case fixes numpy's seed",
    "test_cast_e8m0_*_to_FLOAT8E8M0": "0 is no value of this type: it becomes NaN, not the smallest power of two",
    "test_resize_downsample_scales_*_align_corners": "corners of 2.4 pixels: torch, Paddle, onnxruntime align 2",
    "test_dynamicquantizelinear_expanded": "as the next",
    "test_dynamicquantizelinear": "a tie: -2.5 / scale is 127.5 up to the last digit of a division",
}
# As a layer only: inputs come in as arrays of jax.
DIFFERENT_AS_LAYER = {
    "test_bitcast_*64*": "64 bits, which have 32 here",
    "test_bitshift_*_uint64*": "64 bits, which have 32 here",
}
# Making the expected values of these takes 50 seconds, or nothing here runs them: they are made with all cases only.
SLOW_TO_MAKE = (
    *("averagepool", "lppool", "maxpool", "image_decoder", "flexattention", "linear_attention"),
    *("causal_conv_with_state", "adagrad", "adam", "momentum"),
)
NARROW = {
    "int64": ("int32",),
    "uint64": ("uint32", "int32"),
    "float64": ("float32",),
    "complex128": ("complex64",),
}


def collect(without: Iterable[str] = ()) -> list[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, about the overflows that the cases are about
        for module in pkgutil.iter_modules(node_cases.__path__):
            if module.name not in without:
                importlib.import_module(f"{node_cases.__name__}.{module.name}")
    made = {case.name: case for case in node_cases._NodeTestCases}
    return [made[name] for name in sorted(made)]


def operators_of(graph: onnx.GraphProto) -> set[str]:
    found = set()
    for node in graph.node:
        found.add(node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}")
        for attribute in node.attribute:
            found |= operators_of(attribute.g) if attribute.HasField("g") else set()
    return found - {"Constant"}


def reason(name: str, table: dict[str, str] = DIFFERENT) -> str | None:
    return next((why for pattern, why in table.items() if fnmatch.fnmatch(name, pattern)), None)


def known(item: Any) -> Any:
    if isinstance(item, onnx.TensorProto):
        return text(onnx.numpy_helper.to_array(item))
    if isinstance(item, np.ndarray):
        return text(item)
    return [known(one) for one in item] if isinstance(item, list) else item


def text(array: np.ndarray) -> np.ndarray:
    return array.astype(np.str_) if array.dtype == object else array


def check(got: Any, want: Any, case: Case) -> None:
    if isinstance(want, list):
        assert len(got) == len(want)
        for one, other in zip(got, want):
            check(one, other, case)
        return
    if want is None:
        assert got is None
        return
    array, want = np.asarray(got.logical() if isinstance(got, Value) else got), np.asarray(want)
    assert array.shape == want.shape
    if want.dtype.kind == "U":
        assert array.tolist() == want.tolist()
        return
    assert array.dtype == want.dtype or array.dtype.name in NARROW.get(want.dtype.name, ()), (
        array.dtype,
        want.dtype,
    )
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(array, want)
        return
    # Values of 16 bits are rounded once more or less on the way.
    rtol = {"bfloat16": 2e-2, "float16": 2e-3}.get(want.dtype.name, case.rtol)
    wide = np.complex64 if want.dtype.kind == "c" else np.float32
    np.testing.assert_allclose(array.astype(wide), want.astype(wide), rtol=rtol, atol=max(case.atol, 1e-5))


def run(case: Case, as_layer: bool) -> None:
    layer = load(Source(case.name, memoryview(case.model.SerializeToString())))
    assert case.data_sets is not None
    for inputs, outputs in case.data_sets:
        arrays = [known(item) for item in inputs]
        with rng_scope(jax.random.key(0)):
            if as_layer:
                out = layer(*arrays)
                got = out if isinstance(out, tuple) else (out,)
            else:
                names = [spec.name for spec in layer.inputs]
                fixed = [np.asarray(a) if isinstance(a, np.generic | float | int) else a for a in arrays]
                got = Run(layer).outputs(dict(zip(names, fixed, strict=True)))
        check(got, [known(item) for item in outputs], case)


def run_all(cases: list[Case], as_layer: bool) -> None:
    failures = []
    for number, case in enumerate(cases):
        try:
            run(case, as_layer)
        except Exception as error:
            failures.append(f"{case.name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        if number % 200 == 199:
            jax.clear_caches()
    print(
        f"{len(cases) - len(failures)} of {len(cases)} cases pass {'as layers' if as_layer else 'with known inputs'}"
    )
    assert not failures, "\n".join(failures)


def claimed(cases: list[Case]) -> list[Case]:
    return [c for c in cases if operators_of(c.model.graph) <= OPERATORS.keys() and reason(c.name) is None]


def test_one_case_of_each_operator() -> None:
    chosen: dict[str, Case] = {}
    for case in claimed(collect(SLOW_TO_MAKE)):
        operators = operators_of(case.model.graph)
        if len(operators) == 1:
            chosen.setdefault(operators.pop(), case)
    assert len(chosen) > 170
    run_all(list(chosen.values()), as_layer=False)
    # The others have run with arrays of jax already.
    folding = [case for name, case in chosen.items() if OPERATORS[name].folds]
    run_all([case for case in folding if reason(case.name, DIFFERENT_AS_LAYER) is None], as_layer=True)


@pytest.mark.slow
@pytest.mark.parametrize("as_layer", [False, True])
def test_all_cases(as_layer: bool) -> None:
    cases = collect()
    listed = [
        case for case in cases if reason(case.name) and operators_of(case.model.graph) <= OPERATORS.keys()
    ]
    chosen = claimed(cases)
    covered = set().union(*(operators_of(case.model.graph) for case in chosen))
    print(
        f"{len(chosen)} cases of {len(covered)} operators, {len(listed)} more with a reason, of {len(cases)}"
    )
    run_all([c for c in chosen if not (as_layer and reason(c.name, DIFFERENT_AS_LAYER))], as_layer)
