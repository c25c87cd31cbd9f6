"""Attention as one kernel of a GPU: where it stands in a program, and that it is asked for what the formula says."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.distributed.scope import StepScope
from framework.nn import functional as F
from framework.nn.functional import fused_attention
from framework.nn.functional.lowering import platform_scope
from framework.nn.mesh_scope import mesh_scope

# jax.nn's own formula in the place of the kernel, which runs on GPUs alone.
PLAIN = jax.nn.dot_product_attention


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arrays: jax.Array, implementation: str, **settings: object) -> jax.Array:
        assert implementation == "cudnn"
        with jax.named_scope("the_kernel"), jax.numpy_dtype_promotion("standard"):
            return PLAIN(*arrays, implementation="xla", **settings)

    monkeypatch.setattr(fused_attention, "_is_there", lambda: True)
    monkeypatch.setattr(jax.nn, "dot_product_attention", run)


def draw(queries: int, keys: int, heads: int, groups: int, depth: int = 64, dtype: str = "bfloat16") -> list:
    rng = np.random.default_rng(0)
    shapes = ((2, queries, heads, depth), (2, keys, groups, depth), (2, keys, groups, depth))
    return [jnp.asarray(rng.normal(size=shape), dtype) for shape in shapes]


def fuses(platform: str, *arrays: jax.Array, **settings: Any) -> bool:
    """Whether the program for a platform has the kernel."""

    def run(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        with platform_scope("other"):
            return F.scaled_dot_product_attention(q, k, v, **settings)

    program = jax.jit(run).trace(*arrays).lower(lowering_platforms=(platform,))
    return "the_kernel" in program.as_text(debug_info=True)


@pytest.mark.parametrize("mask", ["none", "causal", "padding", "segments", "numbers"])
def test_the_kernel_is_asked_for_the_formula(mask: str) -> None:
    q, k, v = draw(128, 128, 4, 2)
    segments = jnp.repeat(jnp.asarray([[0, 0, 1, 2], [0, 1, 1, 1]]), 32, axis=1)
    masks = {
        "padding": (jnp.arange(128) < jnp.asarray([[100], [7]]))[:, None, None],
        "segments": (segments[:, :, None] == segments[:, None])[:, None],
        "numbers": (segments[:, :, None] == segments[:, None])[:, None].astype(jnp.int32),
    }
    given, causal = masks.get(mask), mask in ("causal", "segments")
    assert fused_attention.may_fuse(q, k, v, given, causal)
    fused = fused_attention.fused_attention(q, k, v, given, causal, 0.1)
    plain = F.scaled_dot_product_attention(q, k, v, given, is_causal=causal, scale=0.1)
    assert fused.dtype == plain.dtype == jnp.bfloat16
    np.testing.assert_allclose(fused.astype("float32"), plain.astype("float32"), atol=2e-2)


def test_it_stands_in_programs_for_gpus_alone() -> None:
    arrays = draw(128, 128, 4, 2)
    assert fuses("cuda", *arrays, is_causal=True)
    assert not fuses("tpu", *arrays, is_causal=True)
    assert not fuses("cpu", *arrays, is_causal=True)


@pytest.mark.parametrize(
    "arrays, settings",
    [
        (draw(128, 128, 4, 2, dtype="float32"), {}),  # the kernel has 16 bits
        (draw(1, 128, 4, 2), {}),  # a step of generation
        (draw(128, 128, 4, 2, depth=20), {}),
        (draw(128, 128, 4, 2, depth=256), {}),
        (draw(128, 160, 4, 2), {"is_causal": True}),
        (draw(128, 128, 4, 2), {"softcap": 30.0}),
        (draw(128, 128, 4, 2), {"attn_mask": jnp.zeros((1, 4, 128, 128))}),  # its gradient may be asked for
        (draw(129, 129, 4, 2), {"attn_mask": jnp.ones((1, 1, 129, 129), bool)}),
    ],
)
def test_what_it_does_not_compute(arrays: list, settings: dict) -> None:
    assert not fuses("cuda", *arrays, **settings)


def test_heads_that_devices_have_in_halves() -> None:
    arrays = draw(128, 128, 8, 4)
    for devices, whole in ((1, True), (2, True), (4, True), (8, False)):
        with mesh_scope(StepScope(None, None, None, None, tensor=devices)):
            assert fuses("cuda", *arrays, is_causal=True) == whole


def test_gradients_flow() -> None:
    q, k, v = draw(128, 128, 4, 2)

    def loss(platform: str, q: jax.Array) -> jax.Array:
        with platform_scope(platform):  # type: ignore[arg-type]
            return F.scaled_dot_product_attention(q, k, v, is_causal=True).astype(jnp.float32).sum()

    plain, chosen = (jax.grad(functools.partial(loss, on))(q) for on in ("cpu", "other"))
    np.testing.assert_allclose(chosen.astype("float32"), plain.astype("float32"), atol=2e-2)
