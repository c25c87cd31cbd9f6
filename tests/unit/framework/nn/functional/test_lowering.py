from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.functional import lowering, transposition
from framework.nn.functional.channel_sums import channel_sums, channels_first_sums
from framework.nn.functional.windows import spatial_padding


def test_the_platform_is_the_backend_or_the_scope():
    assert lowering.platform() == ("cpu" if jax.default_backend() == "cpu" else "other")
    with lowering.platform_scope("any"):
        assert lowering.platform() == "any"
        with lowering.platform_scope("other"):
            assert lowering.platform() == "other"
        assert lowering.platform() == "any"


def test_choose_runs_the_form_for_the_platform():
    forms = (lambda x: x + 1, lambda x: x + 2)
    x = jnp.zeros(())
    assert float(lowering.choose("cpu", *forms, x)) == 1 and float(lowering.choose("other", *forms, x)) == 2
    here = 1 if jax.default_backend() == "cpu" else 2
    assert float(jax.jit(lambda x: lowering.choose("any", *forms, x))(x)) == here


def test_a_program_for_several_platforms_keeps_the_forms_of_both():
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((1, 4, 4, 3), (3, 1, 3, 3))]

    for scope, grouped in (("any", True), ("cpu", False), ("other", True)):

        def depthwise(x, w):  # a function of its own each time: jit's cache does not know the scope
            return F.conv2d(x, w, padding=1, groups=3)

        with lowering.platform_scope(scope):
            text = export.export(jax.jit(depthwise), platforms=["cpu", "cuda"])(*shapes).mlir_module()
        assert ("stablehlo.convolution" in text) == grouped, scope
        assert ("optimization_barrier" in text) == (scope != "other"), scope


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_axes_move_behind_what_was_computed(dtype):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 8, 9, 40)), dtype)
    x = x.at[0, 0, 0, 0].set(jnp.nan).at[1, 2, 3, 4].set(jnp.inf)

    def run(x):
        return transposition.move_axes(jnp.tanh(x) + x, (0, 3, 1, 2))

    def plain(x):
        return (jnp.tanh(x) + x).transpose(0, 3, 1, 2)

    with lowering.platform_scope("cpu"):
        np.testing.assert_array_equal(*(np.asarray(jax.jit(f)(x), np.float32) for f in (run, plain)))
        slopes = [jax.jit(jax.grad(lambda x: (f(x) ** 2).sum()))(x[1:, 3:]) for f in (run, plain)]  # noqa: B023
        np.testing.assert_array_equal(*(np.asarray(slope, np.float32) for slope in slopes))
        text = jax.jit(lambda x: run(x)).lower(x).compile().as_text()
    # XLA would join the sum with the transposition, and compute it number by number.
    assert " while(" in text


def test_axes_of_one_and_few_numbers_move_as_they_are():
    def count_loops(shape, axes, dtype=jnp.float32, scope="cpu"):
        with lowering.platform_scope(scope):
            closed = jax.make_jaxpr(lambda x: transposition.move_axes(x, axes))(jnp.zeros(shape, dtype))
        return str(closed).count("while[")

    assert count_loops((64, 3, 80), (0, 2, 1)) == 1
    assert count_loops((64, 3, 80), (0, 2, 1), scope="other") == 0
    assert count_loops((64, 3, 80), (0, 2, 1), jnp.int32) == 0
    assert count_loops((64, 80, 3), (0, 2, 1)) == 0
    assert count_loops((64, 1, 80), (0, 2, 1)) == 0
    assert count_loops((8, 8, 3), (0, 2, 1)) == 0


def test_plans_of_plain_cases():
    plan = lowering.conv_plan
    assert plan(8, (3, 3), 8, 8, (1, 1), (1, 1)) == "depthwise"
    assert plan(8, (3, 3), 8, 16, (1, 1), (1, 1)) == "groups"  # two outputs a channel
    assert plan(8, (1, 1), 1, 16, (2, 2), (1, 1)) == "pointwise"
    assert plan(64, (3, 3), 1, 64, (1, 1), (1, 1)) == "winograd"
    assert plan(64, (3, 3), 1, 64, (1, 1), (2, 2)) == "winograd"
    assert plan(64, (3, 3), 1, 64, (2, 2), (2, 2)) == "plain"


@pytest.mark.parametrize(
    ("in_channels", "kernel_hw", "groups", "out_channels", "stride", "dilation", "plan"),
    [
        (3, (3, 3), 1, 16, (2, 2), (1, 1), "space_to_depth"),
        (4, (7, 7), 1, 64, (4, 4), (1, 1), "space_to_depth"),
        (1, (3, 3), 1, 1, (2, 1), (1, 1), "space_to_depth"),  # one channel is no depthwise convolution
        (5, (3, 3), 1, 16, (2, 2), (1, 1), "plain"),  # too many channels
        (3, (3, 3), 1, 16, (1, 1), (1, 1), "winograd"),
        (3, (3, 5), 1, 16, (1, 1), (1, 1), "plain"),
        (64, (3, 3), 1, 64, (2, 2), (1, 1), "plain"),
        (3, (3, 3), 1, 16, (2, 2), (2, 2), "plain"),
        (3, (1, 1), 1, 16, (2, 2), (1, 1), "pointwise"),
        (48, (3, 3), 48, 48, (2, 2), (1, 1), "depthwise"),
        (48, (5, 5), 48, 48, (1, 1), (2, 2), "depthwise"),
        (48, (1, 1), 48, 48, (1, 1), (1, 1), "depthwise"),
        (48, (3, 3), 4, 48, (1, 1), (1, 1), "groups"),
        (48, (1, 1), 4, 48, (1, 1), (1, 1), "groups"),
    ],
)
def test_the_table_of_plans(in_channels, kernel_hw, groups, out_channels, stride, dilation, plan):
    assert lowering.conv_plan(in_channels, kernel_hw, groups, out_channels, stride, dilation) == plan


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        (1, ((1, 1), (1, 1))),
        ([1, 2], ((1, 1), (2, 2))),
        ([1, 2, 3, 4], ((1, 2), (3, 4))),
        ([[1, 2], [3, 4]], ((1, 2), (3, 4))),
        ("VALID", ((0, 0), (0, 0))),
        ("same", ((1, 1), (1, 2))),  # 7 rows by 2: 4 rows; 8 columns by 3 with 4 taps: 3 columns
    ],
)
def test_paddings(padding, expected):
    assert spatial_padding(padding, (3, 5), (2, 3), (7, 8)) == expected


def test_same_padding_of_a_symbolic_size():
    h, multiple = export.symbolic_shape("h, 32*m")
    assert spatial_padding("SAME", (3, 4), (1, 1), (h, h), (1, 2)) == ((1, 1), (3, 3))
    assert spatial_padding("SAME", (3, 5), (2, 4), (multiple, multiple)) == ((0, 1), (0, 1))
    assert spatial_padding("SAME", (3, 5), (2, 4), (64, 96)) == ((0, 1), (0, 1))
    with pytest.raises(ShapeError, match="SAME padding with a stride depends on the size"):
        spatial_padding("SAME", (3, 3), (2, 2), (h, h))


@pytest.mark.parametrize(
    "shape",
    [
        (2, 3, 5, 4),  # by rows
        (16, 12, 20, 3),  # by images, in several passes
        (1, 31, 37, 2),  # no small divisor
        (13, 1, 1, 5),
        (0, 4, 4, 3),
    ],
)
def test_channel_sums_adds_over_everything_but_channels(shape):
    x = jnp.asarray(np.random.default_rng(0).standard_normal(shape), jnp.float32)
    one, squares = channel_sums([x, x * x])
    exact = np.asarray(x, np.float64)
    np.testing.assert_allclose(one, exact.sum((0, 1, 2)), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(squares, np.square(exact).sum((0, 1, 2)), rtol=1e-5)


def test_sums_of_many_rows_that_no_small_number_divides_keep_their_digits():
    rows = 200_003  # a prime: one after another, sums were 3e-6 away
    x = np.random.default_rng(0).standard_normal((rows, 1, 1, 2)).astype(np.float32) + 4
    exact = np.asarray(x, np.float64)
    exact = np.stack([exact.sum((0, 1, 2)), np.square(exact).sum((0, 1, 2))])
    np.testing.assert_allclose(channel_sums([x, x * x]), exact, rtol=1e-6)
    first = x.reshape(1, rows, 2).transpose(0, 2, 1)
    np.testing.assert_allclose(channels_first_sums([first, first * first]), exact, rtol=1e-6)


def test_channel_sums_of_symbolic_sizes():
    (n,) = export.symbolic_shape("n")
    program = export.export(jax.jit(lambda x: channel_sums([x])))(
        jax.ShapeDtypeStruct((n, 4, 4, 2), jnp.float32)
    )
    x = np.arange(96, dtype=np.float32).reshape(3, 4, 4, 2)
    np.testing.assert_array_equal(program.call(x)[0], x.sum((0, 1, 2)))


# Rows, in and out: few rows, whose gradient is made by transposing slopes; many of few inputs, jax's own form.
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(12, 16, 24), (1200, 3, 24)])
@pytest.mark.parametrize("stride", [1, 2])
def test_derivatives_of_a_1x1_convolution(rows, inputs, outputs, stride):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((2, rows // 6 * stride, 3 * stride, inputs)), jnp.float32)
    w = jnp.asarray(rng.standard_normal((outputs, inputs, 1, 1)), jnp.float32)

    def conv(x, w):
        return F.conv2d(x, w, stride=stride)

    dy = jnp.asarray(rng.standard_normal(conv(x, w).shape), jnp.float32)
    with lowering.platform_scope("other"):
        plain, forward = jax.jvp(lambda x, w: conv(x, w), (x, w), (x + 1, w - 1))
    np.testing.assert_allclose(conv(x, w), plain, atol=1e-4)
    for ours, expected in zip(jax.jvp(conv, (x, w), (x + 1, w - 1)), (plain, forward)):
        np.testing.assert_allclose(ours, expected, atol=1e-4)
    for ours, expected in zip(_gradients(conv, (x, w), dy, "cpu"), _gradients(conv, (x, w), dy, "other")):
        np.testing.assert_allclose(ours, expected, atol=1e-3 if rows > 100 else 1e-4)

    def loss(w):  # of the second degree, for a second derivative
        return jnp.square(conv(x, w)).sum()

    change = jax.jvp(jax.grad(loss), (w,), (w,))[1]
    np.testing.assert_allclose(change, jax.grad(loss)(w), rtol=1e-4, atol=1e-2)


def _gradients(function, arrays, dy, scope):
    """Gradients by the forms of a platform; a function of its own each time: jit's cache does not know the scope."""
    with lowering.platform_scope(scope):
        return jax.vjp(lambda *a: function(*a), *arrays)[1](dy)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation"),
    [
        ((7, 8), 3, 1, 1, 1),
        ((7, 9), 3, 2, 1, 1),
        ((8, 7), 5, 2, 2, 1),
        ((9, 10), 3, (2, 3), (0, 2), 1),
        ((9, 9), 3, 2, 2, 2),
        ((5, 5), 2, 3, 0, 1),  # pixels that no window meets
        ((20, 17), 3, 1, 1, 1),
        ((31, 30), 5, 2, 2, 1),
    ],
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float32, 1e-5), (jnp.bfloat16, 3e-2)])
def test_gradients_of_a_depthwise_convolution(size, kernel, stride, padding, dilation, dtype, tolerance):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((2, *size, 6)), dtype)
    w = jnp.asarray(rng.standard_normal((6, 1, kernel, kernel)), dtype)

    def conv(x, w):
        return F.conv2d(x, w, stride=stride, padding=padding, dilation=dilation, groups=6)

    dy = jnp.asarray(rng.standard_normal(conv(x, w).shape), dtype)
    found = _gradients(conv, (x, w), dy, "cpu")
    exact = _gradients(conv, [a.astype(jnp.float32) for a in (x, w)], dy.astype(jnp.float32), "other")
    for ours, expected in zip(found, exact):
        assert ours.dtype == dtype
        scale = float(jnp.abs(expected).max())
        np.testing.assert_allclose(np.asarray(ours, np.float32), expected, atol=tolerance * scale, rtol=0)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "ceil_mode", "pad_value"),
    [
        ((13, 12), 3, 2, 1, False, -np.inf),
        ((13, 12), 3, 2, 1, False, 0.0),
        ((14, 11), 3, 2, 0, True, -np.inf),
        ((9, 10), 5, 1, 2, False, -np.inf),
        ((10, 9), 2, 2, 0, False, -np.inf),
        ((11, 9), (1, 3), (2, 3), 0, False, -np.inf),
        ((7, 9), 2, 3, 0, False, -np.inf),  # pixels in no window
        ((1, 1), 1, 1, 0, False, -np.inf),
    ],
)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_max_pooling_and_its_gradient_where_many_are_equal(
    size, kernel, stride, padding, ceil_mode, pad_value, dtype
):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.integers(-2, 3, (2, *size, 5)), dtype)

    def pool(x):
        return F.max_pool2d(x, kernel, stride, padding, ceil_mode=ceil_mode, pad_value=pad_value)

    with lowering.platform_scope("other"):
        plain = jax.jit(lambda x: pool(x))(x)
    np.testing.assert_array_equal(pool(x), plain)
    dy = jnp.asarray(rng.integers(-3, 4, plain.shape), dtype)  # sums of small integers are exact in bfloat16
    (found,) = _gradients(pool, (x,), dy, "cpu")
    (expected,) = _gradients(pool, (x,), dy, "other")
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.asarray(found, np.float32), np.asarray(expected, np.float32))


def test_the_gradient_of_max_pooling_goes_to_the_first_maximum_row_by_row():
    x = jnp.asarray([[0.0, 5.0], [5.0, 5.0]]).reshape(1, 2, 2, 1)
    with lowering.platform_scope("cpu"):
        (dx,) = jax.vjp(lambda x: F.max_pool2d(x, 2), x)[1](jnp.full((1, 1, 1, 1), 3.0))
    np.testing.assert_array_equal(dx[0, :, :, 0], [[0, 3], [0, 0]])


@pytest.mark.parametrize(
    ("shape", "kernel", "settings"),
    [
        ((1, 2, 3, 4), (5, 4, 3, 3), {"padding": 1}),
        ((2, 2, 2, 4), (5, 4, 3, 3), {"padding": 1, "stride": 2}),
        ((1, 1, 4, 8), (8, 2, 1, 5), {"padding": (0, 2), "groups": 4}),
        ((1, 3, 3, 4), (5, 4, 5, 5), {"padding": 2}),
    ],
)
def test_an_image_smaller_than_the_kernel_stays_the_image(shape, kernel, settings):
    """XLA's CPU backend swaps the two, and Eigen has no form for what comes out: ten times as slow."""
    rng = np.random.default_rng(0)
    x, w = (jnp.asarray(rng.normal(size=size), jnp.float32) for size in (shape, kernel))

    def run(x, w):
        return F.conv2d(x, w, **settings)

    with lowering.platform_scope("cpu"):
        compiled = jax.jit(run).lower(x, w).compile()
    assert "rhs_reversal" not in str(compiled.as_text())
    with lowering.platform_scope("other"):
        np.testing.assert_allclose(compiled(x, w), F.conv2d(x, w, **settings), rtol=1e-5, atol=1e-5)
