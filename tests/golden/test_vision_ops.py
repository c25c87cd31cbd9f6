"""Parity with paddle.vision.ops of Paddle 2.6.2: values and gradients of tools/golden/vision_ops_cases.py."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.vision import ops
from tools.golden.vision_ops_cases import CASES, Case

TOLERANCE = 1e-6  # of the largest magnitude in the reference, and of each value
BY_NAME = {case.name: case for case in CASES}
_QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0}  # these programs run once: compile them fast
RAGGED = ("nms", "matrix_nms", "distribute_fpn_proposals", "generate_proposals")


@functools.cache
def reference() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "data" / "vision_ops.npz") as stored:
        return dict(stored)


def run(case: Case, arrays: dict[str, Any], **extra: Any) -> list[Any]:
    options = {key: value for key, value in case.options.items() if key != "return_rois_num"} | extra
    return jax.tree.leaves(getattr(ops, case.op)(**arrays, **options))


def values_and_gradients(case: Case) -> dict[str, np.ndarray]:
    """Everything that the reference stores; in one program, but for what has results of any length."""
    inputs = {key: jnp.asarray(value) for key, value in case.inputs().items()}
    if case.op in RAGGED:
        outs, gradients = run(case, inputs), {}
    else:
        trained = {key: inputs[key] for key in case.differentiated if key in inputs}

        def both(trained: dict[str, Any], inputs: dict[str, Any]) -> Any:
            outs, pull = jax.vjp(lambda t: run(case, inputs | t), trained)
            return outs, pull([jnp.asarray(case.cotangent(out.shape)) for out in outs])[0]

        outs, gradients = jax.jit(both).lower(trained, inputs).compile(_QUICK)(trained, inputs)
    found = {f"{case.name}/{place}": np.asarray(out) for place, out in enumerate(outs)}
    return found | {f"{case.name}/grad/{key}": np.asarray(value) for key, value in gradients.items()}


@pytest.mark.parametrize("name", BY_NAME)
def test_equals_paddle(name: str) -> None:
    expected = {key: value for key, value in reference().items() if key.startswith(f"{name}/")}
    found = values_and_gradients(BY_NAME[name])
    assert found.keys() == expected.keys()
    for key, value in found.items():
        assert value.shape == expected[key].shape, key
        limit = TOLERANCE * max(1.0, float(np.abs(expected[key]).max(initial=0)))
        np.testing.assert_allclose(value, expected[key], rtol=TOLERANCE, atol=limit, err_msg=key)
