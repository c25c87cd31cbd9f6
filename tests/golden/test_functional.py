"""Parity of framework.nn with Paddle 2.6.2: values and gradients of the cases in tools/golden/functional.yml."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.nn import functional as F
from framework.nn.functional import lowering
from tools.golden.cases import Case, derived, functional_cases

CASES = functional_cases()
DATA = Path(__file__).parent / "data" / "functional"
_QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0}  # these programs run once: compile them fast
# Forms that keep the platform open until compilation; the others are covered by the two forms themselves.
_OPEN = {
    "conv/plain_s1",
    "conv/stem_s2",
    "conv/depthwise_5_s2_odd",
    "pool/max_s1",
    "pool/avg_k2",
    "norm/batch_train_4d",
}
_BFLOAT16 = [
    "conv/plain_s2_odd",
    "conv/stem_s2",
    "conv/pointwise_s2",
    "conv/grouped",
    "conv/depthwise_s1",
    "conv/depthwise_5_s2_odd",
    "conv/transpose_k4_s2",
    "pool/max_57_ceil1",
    "pool/avg_57_ceil1",
    "norm/batch_train_4d",
    "norm/batch_eval_4d",
    "norm/layer",
    "norm/group_2",
    "sampling/bilinear_up_corners0_mode0",
    "sampling/grid_bilinear_zeros_1",
]


@functools.cache
def reference(group: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{group}.npz") as stored:
        return dict(stored)


def build_layer(case: Case) -> nn.Layer:
    *wrappers, name = case.op.split(":")[1:]
    layer = getattr(nn, name)(**case.options)
    for wrapper in wrappers:
        layer = getattr(nn.utils, wrapper)(layer)
    state = {key: derived(case.name, key, shape, 0.5) for key, shape in layer.state_shapes().items()}
    for key, value in state.items():
        if key.endswith(("_variance", "weight_g")):
            value[...] = np.abs(value) + 0.5
    layer.set_state_dict(state)
    return layer


def run_layer(case: Case, layer: nn.Layer, arrays: dict[str, Any]) -> list[jax.Array]:
    graphdef, params, buffers = nn.split(layer)
    arrays = dict(arrays)
    first = arrays.pop("x")
    order = [arrays.pop(k) for k in ("key", "value", "memory", "tgt") if k in arrays]
    out, buffers = nn.apply(graphdef, params, buffers, None, first, *order, **arrays)
    if case.op.endswith("BatchNorm2D"):
        return [out, buffers["_mean"], buffers["_variance"]]
    return jax.tree.leaves(out)


def run(case: Case, arrays: dict[str, Any]) -> list[jax.Array]:
    function = getattr(F, case.op)
    positional = [arrays[k] for k in ("x", "x1", "x2", "theta") if k in arrays]
    named = {k: v for k, v in arrays.items() if k not in ("x", "x1", "x2", "theta")}
    out = function(*positional, **named, **case.options)
    return list(out) if isinstance(out, tuple) else [out]


def values_and_gradients(case: Case, dtype: Any = jnp.float32) -> dict[str, np.ndarray]:
    """Everything that the reference stores for a case, computed by ours in one compiled call."""
    layer = build_layer(case) if case.op.startswith("layer:") else None
    inputs = {}
    for name, value in case.inputs().items():
        array = jnp.asarray(value)
        inputs[name] = array.astype(dtype) if case.arrays[name].grad else array

    def outputs(trained: dict[str, Any], fixed: dict[str, Any]) -> list[jax.Array]:
        arrays = {name: (trained | fixed)[name] for name in inputs}
        return run_layer(case, layer, arrays) if layer is not None else run(case, arrays)

    trained = {name: inputs[name] for name in case.differentiated}
    fixed = {name: value for name, value in inputs.items() if name not in trained}

    @jax.jit
    def both(trained: dict[str, Any], fixed: dict[str, Any]) -> Any:
        outs, pull = jax.vjp(lambda t: outputs(t, fixed), trained)
        cotangents = [
            jnp.asarray(case.cotangent(i, out.shape), out.dtype)
            if jnp.issubdtype(out.dtype, jnp.floating)
            else np.zeros(out.shape, jax.dtypes.float0)
            for i, out in enumerate(outs)
        ]
        if case.op in ("batch_norm", "layer:BatchNorm2D"):  # the new statistics carry no gradient
            cotangents[1:] = [jnp.zeros_like(c) for c in cotangents[1:]]
        return outs, pull(cotangents)[0] if trained else {}

    outs, gradients = both.lower(trained, fixed).compile(compiler_options=_QUICK)(trained, fixed)
    found = {f"{case.name}/out{i}": np.asarray(out, np.float32) for i, out in enumerate(outs)}
    return found | {f"{case.name}/grad/{k}": np.asarray(v, np.float32) for k, v in gradients.items()}


def assert_close(found: dict[str, np.ndarray], case: Case, tolerance: float) -> None:
    wanted = {key: value for key, value in reference(case.group).items() if key.startswith(f"{case.name}/")}
    assert wanted and set(found) == set(wanted)
    for key, value in wanted.items():
        assert found[key].shape == value.shape, key
        error = np.abs(found[key] - value).max(initial=0)
        assert error <= tolerance * max(1e-3, np.abs(value).max(initial=0)), f"{key}: off by {error}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_values_and_gradients_are_paddles(case: Case) -> None:
    platforms = ("cpu", "other") if case.platforms else ("cpu",)
    for platform in (*platforms, "any") if case.name in _OPEN else platforms:
        with lowering.platform_scope(platform):
            assert_close(values_and_gradients(case), case, case.tolerance)


@pytest.mark.parametrize("name", _BFLOAT16)
@pytest.mark.parametrize("platform", ["cpu", "other"])
def test_bfloat16_stays_near_the_float32_reference(name: str, platform: lowering.Platform) -> None:
    case = next(case for case in CASES if case.name == name)
    with lowering.platform_scope(platform):
        assert_close(values_and_gradients(case, jnp.bfloat16), case, tolerance=3e-2)


def test_every_stored_case_is_run() -> None:
    stored = {
        key.rsplit("/out", 1)[0]
        for path in DATA.glob("*.npz")
        for key in reference(path.stem)
        if "/out" in key
    }
    assert stored == {case.name for case in CASES}
