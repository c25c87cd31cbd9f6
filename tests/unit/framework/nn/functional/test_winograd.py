from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from framework.nn import functional as F
from framework.nn.functional import conv, winograd
from framework.nn.functional.lowering import folding_scope, platform_scope

PADS = ((1, 1), (1, 1))


def arrays(shape, outputs, dtype=np.float32):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    return x, (rng.standard_normal((outputs, shape[3], 3, 3)) / np.sqrt(9 * shape[3])).astype(dtype)


def plain(x, w, pads=PADS):
    return conv._plain(jnp.asarray(x), jnp.asarray(w), (1, 1), pads, (1, 1), 1)


def test_the_matrices_give_the_four_sums():
    columns, kernel, results = winograd.matrices()
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(6), rng.standard_normal(3)
    np.testing.assert_allclose(
        results @ ((kernel @ w) * (columns @ x)), np.correlate(x, w, "valid"), atol=1e-13
    )


@pytest.mark.parametrize(
    ("shape", "at_once", "pads"),
    [
        ((1, 8, 16, 5), 1, PADS),
        ((2, 7, 13, 5), 2, PADS),  # the last block of a row is not full
        ((6, 4, 6, 3), 2, PADS),  # three groups
        ((2, 9, 3, 4), 1, ((0, 0), (0, 0))),  # one column
        ((1, 5, 9, 4), 1, ((0, 3), (2, 1))),
    ],
)
def test_it_is_the_plain_convolution(shape, at_once, pads):
    # In float64, where a wrong factor could not pass for rounding.
    with jax.enable_x64(True):
        x, w = arrays(shape, 7, np.float64)
        found = conv._winograd(jnp.asarray(x), jnp.asarray(w), pads, (1, 1), at_once)
        expected = plain(x, w, pads)
        assert found.dtype == jnp.float64
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "dilation", "at_once", "pads"),
    [
        ((1, 12, 16, 5), (2, 2), 2, ((2, 2), (2, 2))),
        ((2, 7, 13, 5), (3, 2), 6, ((3, 3), (2, 2))),  # rows and columns that fill no whole blocks
        ((2, 9, 11, 3), (4, 1), 1, ((0, 0), (1, 1))),
        ((1, 6, 17, 4), (1, 5), 1, ((0, 2), (3, 7))),
        ((1, 14, 14, 4), (2, 2), 1, ((-1, 2), (2, -1))),  # cut, not padded
    ],
)
def test_dilated_kernels(shape, dilation, at_once, pads):
    with jax.enable_x64(True):
        x, w = map(jnp.asarray, arrays(shape, 7, np.float64))
        found = conv._winograd(x, w, pads, dilation, at_once)
        expected = conv._plain(x, w, (1, 1), pads, dilation, 1)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("size", "dilation", "folds", "is_plain"),
    [
        ((48, 64), 2, False, False),
        ((48, 64), 4, False, False),
        ((48, 60), 20, False, True),  # a block would be 80 columns
        ((24, 24), 1, False, True),
        ((24, 24), 1, True, False),  # where the kernel is combined once
        ((12, 12), 1, True, True),
    ],
)
def test_which_sizes_are_combined(size, dilation, folds, is_plain):
    x, w = map(jnp.asarray, arrays((1, *size, 64), 64))
    scope = folding_scope() if folds else contextlib.nullcontext()
    with platform_scope("cpu"), scope:
        run = jax.jit(lambda x, w: F.conv2d(x, w, None, 1, dilation, dilation))
        text = run.lower(x, w).as_text()
    assert ("stablehlo.convolution" in text) == is_plain
    edge = (dilation, dilation)
    expected = conv._plain(x, w, (1, 1), (edge, edge), edge, 1)
    np.testing.assert_allclose(run(x, w), expected, atol=3e-5)


def test_the_error_in_float32():
    x, w = arrays((1, 40, 40, 256), 64)
    assert winograd.images_at_once(1, 1600, 256, 64) == 1
    with jax.enable_x64(True):
        exact = np.asarray(plain(x.astype(np.float64), w.astype(np.float64)))
    with platform_scope("cpu"):
        found = np.asarray(F.conv2d(jnp.asarray(x), jnp.asarray(w), padding=1))
    worst, plainly = np.abs(found - exact).max(), np.abs(np.asarray(plain(x, w)) - exact).max()
    assert worst < 1e-5 and worst != plainly  # outputs have a deviation of 1


def test_derivatives_are_those_of_the_plain_form():
    x, w = (jnp.asarray(a) for a in arrays((2, 32, 32, 128), 128))
    assert winograd.images_at_once(2, 1024, 128, 128) == 2

    def loss(form):
        return lambda x, w: (form(x, w) ** 2).mean()

    with platform_scope("cpu"):
        found = jax.grad(loss(lambda x, w: F.conv2d(x, w, padding=1)), (0, 1))(x, w)
        value, tangent = jax.jvp(lambda x, w: F.conv2d(x, w, padding=1), (x, w), (w[0, 0, 0, 0] * x, w))
    expected = jax.grad(loss(plain), (0, 1))(x, w)
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, atol=1e-6 * float(jnp.abs(theirs).max()))
    np.testing.assert_allclose(value, plain(x, w), atol=2e-5)
    np.testing.assert_allclose(tangent, (1 + w[0, 0, 0, 0]) * value, atol=2e-5)


def test_mapped_over_an_axis():
    x, w = arrays((3, 16, 32, 32), 64)
    with platform_scope("cpu"):
        found = jax.vmap(lambda image: conv._winograd(image[None], jnp.asarray(w), PADS, (1, 1), 1)[0])(
            jnp.asarray(x)
        )
    np.testing.assert_allclose(found, plain(x, w), atol=2e-5)


@pytest.mark.parametrize(
    ("images", "pixels", "channels", "outputs", "at_once"),
    [
        (1, 64 * 128, 256, 64, 1),
        (1, 32 * 32, 512, 512, 0),  # few pixels
        (1, 64 * 64, 256, 19, 0),  # few outputs
        (1, 40 * 40, 64, 64, 0),  # few products
        (8, 28 * 28, 128, 128, 8),
        (32, 56 * 56, 64, 64, 2),  # in a loop
        (3, 128 * 256, 64, 64, 0),  # one image is too large
        (7, 100 * 100, 96, 96, 1),  # a prime number of images that do not fit together
    ],
)
def test_how_many_images_go_at_once(images, pixels, channels, outputs, at_once):
    assert winograd.images_at_once(images, pixels, channels, outputs) == at_once
    least, most = winograd.worthwhile(channels, outputs)
    assert (least <= pixels <= most) == (at_once == images) or images > 1


def lowered(shape, platforms):
    """A 3x3 convolution of [*, 64] to 64 channels, of a shape that may be symbolic."""

    def function(x, w):  # one of its own each time: jit's cache does not know the scope
        return F.conv2d(x, w, padding=1)

    x = jax.ShapeDtypeStruct(export.symbolic_shape(",".join(shape)), jnp.float32)
    w = jax.ShapeDtypeStruct((64, 64, 3, 3), jnp.float32)
    with platform_scope("any" if len(platforms) > 1 else "cpu"):
        return export.export(jax.jit(function), platforms=platforms)(x, w)


def test_a_program_for_several_platforms_has_both_forms():
    text = lowered(("1", "64", "64", "64"), ["cpu", "cuda"]).mlir_module()
    assert "stablehlo.convolution" in text and "stablehlo.dot_general" in text


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the form of a CPU")
@pytest.mark.parametrize("shape", [("n", "h", "w", "64"), ("1", "8*h", "4*w + 2", "64")])
def test_a_program_of_many_sizes_takes_its_form_when_it_is_compiled(shape):
    program = jax.jit(lowered(shape, ["cpu", "cuda"]).call)
    for size, halved in ((8, False), (40, False), (56, True), (256, False)):
        x, w = arrays((1, size, size + 2, 64), 64)
        compiled = program.lower(x, w).compile()
        text = compiled.as_text()
        assert (" convolution(" not in text) == halved and " conditional(" not in text, size
        np.testing.assert_allclose(compiled(x, w), plain(x, w), atol=2e-5)


def test_16_bits_stay_plain():
    x, w = (jnp.asarray(a, jnp.bfloat16) for a in arrays((1, 64, 64, 64), 64))
    with platform_scope("cpu"):
        np.testing.assert_array_equal(F.conv2d(x, w, padding=1), jax.jit(plain)(x, w))
