"""Memory that a plan reckons with besides the arrays of a program: copies that compilers make of them."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest

from framework.distributed.mesh import AXES
from framework.distributed.planning.estimate import estimate
from framework.distributed.planning.spread import Bits, Spread, Spreader
from framework.distributed.planning.trace import Trace, flatten

DATA, TENSOR = (1 << AXES.index(axis) for axis in ("data", "tensor"))
COUNTS = tuple({"data": 2, "tensor": 4}.get(axis, 1) for axis in AXES)
Divided = tuple[tuple[int, ...], Bits]


def trace(function: Callable[..., object], *arguments: Divided) -> tuple[Trace, list[Bits]]:
    """The program of a function of arrays of these shapes, and their divisions."""
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape, _ in arguments]
    return flatten(jax.make_jaxpr(function)(*shapes)), [bits for _, bits in arguments]


def spread_of(function: Callable[..., object], *arguments: Divided) -> tuple[Trace, Spread]:
    program, bits = trace(function, *arguments)
    return program, Spreader(COUNTS).spread(program, [*[None] * program.constants, *bits])


def working(function: Callable[..., object], *arguments: Divided, combined: bool = True) -> int:
    """Bytes of intermediate arrays on a device."""
    program, bits = trace(function, *arguments)
    return estimate(program, bits, COUNTS, combined=combined).working


def test_halves_of_features_keep_their_division() -> None:
    """As rotary positions take them."""
    heads = ((8, 16, 4, 32), (DATA, 0, TENSOR, 0))
    program, spread = spread_of(lambda x: jnp.concatenate(jnp.split(x, 2, axis=-1)[::-1], axis=-1), heads)
    assert program.outputs[0] is not None and spread.divisions[program.outputs[0]] == heads[1]


@pytest.mark.parametrize("columns", [True, False])
def test_the_gradient_of_a_weight_is_divided_as_the_weight(columns: bool) -> None:
    """Of a weight divided by columns the input is gathered, once for the product and once for the gradient; of one
    that is divided by rows the gradient of the output."""
    weight = ((64, 32), (0, TENSOR) if columns else (TENSOR, 0))

    def gradient(x: jax.Array, w: jax.Array, scale: jax.Array) -> jax.Array:
        return jax.grad(lambda w: (jnp.tanh(x @ w) * scale).sum())(w)

    scale = ((16, 32), (DATA, 0 if columns else TENSOR))
    program, spread = spread_of(gradient, ((16, 64), (DATA, TENSOR)), weight, scale)
    assert program.outputs[0] is not None and spread.divisions[program.outputs[0]] == weight[1]
    (last,) = max(spread.copies.items())[1]
    assert last[1] == 4 * (16 // 2) * (64 if columns else 32)
    assert [operand for copies in spread.copies.values() for operand, _ in copies].count(
        program.inputs[0]
    ) <= 2


def test_a_cpu_gathers_inputs_for_the_backward_pass_in_the_forward_pass() -> None:
    layers, rows, width = 6, 4096, 64

    def gradients(x: jax.Array, *weights: jax.Array) -> object:
        def loss(weights: tuple[jax.Array, ...]) -> jax.Array:
            y = x
            for weight in weights:
                y = jnp.tanh(y @ weight)
            return y.sum()

        return jax.grad(loss)(weights)

    arguments = [((rows, width), (DATA, TENSOR)), *[((width, width), (0, TENSOR))] * layers]
    late, early = (working(gradients, *arguments, combined=on) for on in (False, True))
    gathered = 4 * rows * width // 2
    assert early - late == pytest.approx((layers - 1) * gathered, rel=0.1)


@pytest.mark.parametrize("order", ["OIHW", "HWIO"])
def test_a_cpu_turns_the_kernels_of_all_convolutions_at_the_start(order: str) -> None:
    shape = (128, 128, 3, 3) if order == "OIHW" else (3, 3, 128, 128)

    def convolve(x: jax.Array, *kernels: jax.Array) -> jax.Array:
        for kernel in kernels:
            x = jax.lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", order, "NHWC")
            )
        return x

    needed = working(convolve, ((2, 4, 4, 128), (DATA, 0, 0, 0)), *[(shape, (0, 0, 0, 0))] * 3)
    kernels = 3 * 4 * 128 * 128 * 9
    assert needed > kernels if order == "OIHW" else needed < 0.1 * kernels


def test_the_gradient_before_a_checkpoint_is_made_for_its_bias_and_for_its_product() -> None:
    """So that what is costly in it is kept, where one computation alone would do it as it goes."""

    def layer(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
        return x @ w + b

    def gradients(checkpoint: bool) -> Callable[..., object]:
        run = jax.checkpoint(layer) if checkpoint else layer

        def loss(w: jax.Array, b: jax.Array, x: jax.Array) -> jax.Array:
            return jax.nn.gelu(run(x, w, b), approximate=False).sum()

        return jax.grad(loss, (0, 1))

    arguments: list[Divided] = [((64, 256), (0, 0)), ((256,), (0,)), ((64, 32, 64), (DATA, 0, 0))]
    plain, again = (working(gradients(on), *arguments, combined=False) for on in (False, True))
    assert again > plain + 4 * 64 // 2 * 32 * 256
