"""What a program computes of its weights alone is computed once, with the same values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.inference.weight_folding import FoldedFunction
from framework.nn import functional as F
from framework.nn.functional.lowering import folding_scope, platform_scope

RNG = np.random.default_rng(4)


def draw(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.standard_normal(shape), jnp.float32)


def body(folded: FoldedFunction, **inputs: jax.Array) -> str:
    return folded.lower(inputs).as_text()


def test_what_weights_alone_give_is_computed_once() -> None:
    w = {"a": draw(6, 5), "b": draw(5)}

    @jax.jit
    def combine(a: jax.Array) -> jax.Array:
        return jnp.tanh(a) * jnp.eye(6)[0, 0]  # with a constant that is computed

    def run(w: dict, inputs: dict) -> dict:
        y = inputs["x"] @ combine(w["a"]) + jnp.exp(w["b"])
        return {"y": y, "weights": jnp.cos(w["b"]), "same": w["b"]}

    folded = FoldedFunction(run, (w,))
    for rows in (2, 7):
        x = draw(rows, 6)
        got, want = folded({"x": x}), run(w, {"x": x})
        for name, expected in want.items():
            np.testing.assert_allclose(got[name], expected, rtol=1e-6, atol=1e-6)
        text = body(folded, x=x)
        assert not [word for word in ("tanh", "exponential", "cosine") if word in text]
    assert len(folded._held) == 3  # not twice for two shapes


def test_what_depends_on_inputs_stays() -> None:
    w = draw(4, 4)
    folded = FoldedFunction(lambda w, inputs: jnp.tanh(w + inputs["x"]), (w,))
    x = draw(4, 4)
    np.testing.assert_allclose(folded({"x": x}), np.tanh(w + x), rtol=1e-5)
    np.testing.assert_allclose(folded({"x": 2 * x}), np.tanh(w + 2 * x), rtol=1e-5)
    assert not folded._held and "tanh" in body(folded, x=x)


def test_transpositions_that_cancel_hold_nothing() -> None:
    w = draw(3, 3, 40, 48)

    def run(w: jax.Array, inputs: dict) -> jax.Array:
        kernel = w.transpose(3, 2, 0, 1).transpose(2, 3, 1, 0)
        return lax.conv_general_dilated(
            inputs["x"], kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    folded, x = FoldedFunction(run, (w,)), draw(1, 5, 5, 40)
    np.testing.assert_allclose(folded({"x": x}), run(w, {"x": x}), atol=1e-4)
    (program,) = folded._programs.values()
    assert not folded._held and program.held[0] is w and "transpose" not in body(folded, x=x)


def test_what_grows_and_what_is_a_view_is_left_to_calls() -> None:
    w, table = draw(8), draw(12, 8)

    def run(w: jax.Array, table: jax.Array, inputs: dict) -> jax.Array:
        large = jnp.tanh(jnp.broadcast_to(w, (512, 512, 8)))  # 32,768 times as many values
        return inputs["x"] * large[:3, :3] + table[2].reshape(1, 8)

    folded, x = FoldedFunction(run, (w, table)), draw(3, 3, 8)
    np.testing.assert_allclose(folded({"x": x}), run(w, table, {"x": x}), rtol=1e-5, atol=1e-6)
    (program,) = folded._programs.values()
    assert sum(array.size for array in program.held) <= 3 * 3 * 8 + 12 * 8


def test_values_of_64_bits() -> None:
    w = jnp.asarray([3, 5, 7], jnp.int32)

    def run(w: jax.Array, inputs: dict) -> jax.Array:
        with jax.enable_x64(True):
            wide = w.astype(jnp.int64) * 1_000_000_007
            return wide * inputs["x"].astype(jnp.int64) + 1

    folded, x = FoldedFunction(run, (w,)), jnp.asarray([1, 2, -3], jnp.int32)
    want = np.array([3, 5, 7], np.int64) * 1_000_000_007 * np.array([1, 2, -3]) + 1
    assert np.asarray(folded({"x": x})).tolist() == want.tolist()


def test_control_flow_and_custom_derivatives() -> None:
    w = draw(4)

    def run(w: jax.Array, inputs: dict) -> jax.Array:
        def step(total: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
            return total + row * jnp.sin(w), total

        total, rows = lax.scan(step, jax.nn.relu(w), inputs["x"])
        return lax.cond(rows.sum() > 0, lambda t: jax.nn.relu(t), lambda t: -t, total)

    folded = FoldedFunction(run, (w,))
    for factor in (1.0, -1.0):
        x = factor * draw(5, 4)
        np.testing.assert_allclose(folded({"x": x}), run(w, {"x": x}), rtol=1e-5, atol=1e-6)


def test_combined_kernels_are_held() -> None:
    w, small = draw(64, 64, 3, 3) / 24, draw(48, 12, 3, 3) / 10

    def run(w: jax.Array, small: jax.Array, inputs: dict) -> jax.Array:
        with platform_scope("cpu"), folding_scope():
            y = F.conv2d(inputs["x"], w, None, 1, 1)
            return F.conv2d(y[..., :48], small, None, 1, 1, 1, 4)  # blocks with zeros

    folded, x = FoldedFunction(run, (w, small)), draw(1, 24, 24, 64)
    np.testing.assert_allclose(folded({"x": x}), run(w, small, {"x": x}), atol=1e-4)
    (program,) = folded._programs.values()
    assert (6, 64, 192) in {array.shape for array in program.held}


def test_keys_of_random_numbers_are_values_too() -> None:
    """A node with a seed makes its key while it is traced, and one without takes a key that is there."""
    w, x, ready = draw(3), draw(3), jax.random.key(2)

    def run(w: jax.Array, inputs: dict) -> jax.Array:
        return (
            inputs["x"]
            + w * jax.random.uniform(jax.random.key(1), (3,))
            + w * jax.random.uniform(ready, (3,))
        )

    np.testing.assert_allclose(FoldedFunction(run, (w,))({"x": x}), run(w, {"x": x}), rtol=1e-5, atol=1e-6)
