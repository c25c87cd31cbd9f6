"""The forms of convolutions in groups, of dilated kernels and of three axes on a CPU, against XLA's own convolution."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from framework.nn import functional as F
from framework.nn.functional import conv, conv_groups
from framework.nn.functional.lowering import platform_scope


def draw(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def plain(x, w, stride, pads, dilation, groups=1):
    letters = "DHW"[-len(stride) :]
    kernel = jnp.moveaxis(jnp.asarray(w), (1, 0), (-2, -1))
    layout = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    return lax.conv_general_dilated(
        jnp.asarray(x),
        kernel,
        stride,
        pads,
        rhs_dilation=dilation,
        dimension_numbers=layout,
        feature_group_count=groups,
    )


@pytest.mark.parametrize(
    ("channels", "outputs", "groups", "kernel", "stride", "dilation"),
    [
        (8, 12, 4, (3, 3), (1, 1), (1, 1)),  # sums
        (6, 12, 6, (3, 5), (2, 1), (1, 1)),  # sums, two outputs a channel
        (8, 8, 4, (3, 3), (1, 2), (2, 3)),
        (40, 20, 5, (5, 3), (2, 2), (1, 1)),  # one group a block
        (48, 24, 12, (5, 5), (1, 1), (1, 2)),  # four groups a block
        (34, 34, 2, (3, 3), (1, 1), (1, 1)),
        (16, 32, 4, (1, 1), (2, 2), (1, 1)),
    ],
)
def test_groups_are_those_of_the_plain_convolution(channels, outputs, groups, kernel, stride, dilation):
    x, w = draw(2, 11, 13, channels), draw(outputs, channels // groups, *kernel)
    pads = ((1, 2), (0, 3))
    with jax.enable_x64(True):
        expected = plain(x, w, stride, pads, dilation, groups)
        for form in (conv._group_sums, conv._group_blocks):
            result = form(jnp.asarray(x), jnp.asarray(w), stride, pads, dilation, groups)
            np.testing.assert_allclose(result, expected, atol=1e-11)
    with platform_scope("cpu"):
        single = F.conv2d(
            jnp.asarray(x, jnp.float32), jnp.asarray(w, jnp.float32), None, stride, pads, dilation, groups
        )
    np.testing.assert_allclose(single, expected, atol=2e-4)


def test_blocks_are_few_and_narrow():
    assert conv_groups.groups_of_block(32, 2) == 8
    assert conv_groups.groups_of_block(32, 16) == 1
    assert conv_groups.groups_of_block(19, 8) == 1
    assert conv_groups.groups_of_block(64, 8) == 2
    assert conv_groups.groups_of_block(128, 4) == 4
    assert conv_groups.groups_of_block(127, 16) == 0  # 127 blocks, or one of 2032 channels
    with platform_scope("cpu"):
        x, w = jnp.asarray(draw(1, 4, 4, 127 * 2)), jnp.asarray(draw(127, 2, 3, 3))
        text = jax.jit(lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 127)).lower(
            x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)
        )
    assert text.as_text().count("stablehlo.convolution") == 1


def test_groups_keep_derivatives_and_bfloat16():
    x, w = jnp.asarray(draw(2, 6, 6, 8), jnp.float32), jnp.asarray(draw(8, 2, 3, 3), jnp.float32)
    geometry = ((1, 1), ((1, 1), (1, 1)), (1, 1), 4)
    with platform_scope("cpu"):
        slopes = jax.grad(lambda x, w: (F.conv2d(x, w, None, 1, 1, 1, 4) ** 2).mean(), (0, 1))(x, w)
        low = F.conv2d(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), None, 1, 1, 1, 4)
    expected = jax.grad(lambda x, w: (plain(x, w, *geometry) ** 2).mean(), (0, 1))(x, w)
    for ours, theirs in zip(slopes, expected):
        np.testing.assert_allclose(ours, theirs, atol=2e-6)
    assert low.dtype == jnp.bfloat16
    np.testing.assert_allclose(low.astype(jnp.float32), plain(x, w, *geometry), atol=0.2)


@pytest.mark.parametrize(
    ("size", "dilation", "pads", "stride", "taps"),
    [
        ((8, 8), (12, 12), ((12, 12), (12, 12)), (1, 1), 1),
        ((8, 8), (6, 6), ((6, 6), (6, 6)), (1, 1), 9),
        ((8, 20), (9, 9), ((9, 9), (9, 9)), (1, 1), 3),
        ((7, 7), (7, 8), ((14, 0), (2, 16)), (2, 1), 2),  # above and left of the middle
    ],
)
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_taps_that_meet_only_padding_are_left_out(size, dilation, pads, stride, taps, groups):
    x, w = draw(2, *size, 8), draw(8, 8 // groups, 3, 3)
    (rows, columns), _ = conv._used_taps(size, (3, 3), stride, pads, dilation)
    assert (rows.stop - rows.start) * (columns.stop - columns.start) == taps
    arrays = jnp.asarray(x, jnp.float32), jnp.asarray(w, jnp.float32)

    def loss(form):
        return lambda x, w: (form(x, w) ** 2).mean()

    def ours(x, w):
        return F.conv2d(x, w, None, stride, pads, dilation, groups)

    def theirs(x, w):
        return plain(x, w, stride, pads, dilation, groups)

    with platform_scope("cpu"):
        np.testing.assert_allclose(ours(*arrays), theirs(*arrays), atol=2e-5)
        slopes = jax.grad(loss(ours), (0, 1))(*arrays)
    for slope, expected in zip(slopes, jax.grad(loss(theirs), (0, 1))(*arrays)):
        np.testing.assert_allclose(slope, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("channels", "outputs", "groups", "kernel", "stride", "pads", "dilation"),
    [
        (3, 8, 1, (3, 7, 7), (1, 2, 2), ((1, 1), (3, 3), (3, 3)), (1, 1, 1)),
        (6, 4, 1, (3, 3, 3), (2, 2, 1), ((0, 2), (1, 1), (2, 0)), (1, 1, 1)),
        (6, 4, 1, (1, 3, 3), (1, 1, 1), ((0, 0), (1, 1), (1, 1)), (1, 1, 1)),
        (6, 4, 1, (3, 1, 1), (1, 1, 1), ((1, 1), (0, 0), (0, 0)), (1, 1, 1)),
        (6, 4, 1, (1, 1, 1), (2, 2, 2), ((0, 0), (0, 0), (0, 0)), (1, 1, 1)),
        (6, 4, 1, (2, 3, 2), (1, 1, 2), ((2, 1), (2, 2), (0, 1)), (2, 1, 3)),
        (6, 6, 6, (3, 3, 3), (1, 2, 2), ((1, 1), (1, 1), (1, 1)), (1, 1, 1)),
        (6, 12, 2, (3, 3, 3), (1, 1, 1), ((1, 1), (1, 1), (1, 1)), (1, 1, 1)),
    ],
)
@pytest.mark.parametrize("most", [1 << 25, 0])  # side by side, or one after the other
def test_three_axes_are_convolved_by_frames(
    channels, outputs, groups, kernel, stride, pads, dilation, most, monkeypatch
):
    monkeypatch.setattr("framework.nn.functional.conv_nd._MOST_SIDE_BY_SIDE", most)
    jax.clear_caches()
    x = jnp.asarray(draw(2, 6, 8, 9, channels), jnp.float32)
    w = jnp.asarray(draw(outputs, channels // groups, *kernel), jnp.float32)
    flat = [edge for pair in pads for edge in pair]

    def ours(x, w):
        return F.conv3d(x, w, None, stride, flat, dilation, groups)

    def theirs(x, w):
        return plain(x, w, stride, pads, dilation, groups)

    with platform_scope("cpu"):
        result = ours(x, w)
        slopes = jax.grad(lambda x, w: (ours(x, w) ** 2).mean(), (0, 1))(x, w)
    np.testing.assert_allclose(result, theirs(x, w), atol=1e-4)
    expected = jax.grad(lambda x, w: (theirs(x, w) ** 2).mean(), (0, 1))(x, w)
    for slope, other in zip(slopes, expected):
        np.testing.assert_allclose(slope, other, atol=1e-4)


def test_programs_of_any_platform_have_both_forms():
    (n,) = export.symbolic_shape("n")
    w = jnp.asarray(draw(8, 8, 3, 3, 3), jnp.float32)
    with platform_scope("any"):
        made = jax.jit(lambda x: F.conv3d(x, w, None, 1, 1))
        fixed = export.export(made, platforms=["cpu", "cuda"])(
            jax.ShapeDtypeStruct((1, 4, 6, 6, 8), "float32")
        )
        open_batch = export.export(made, platforms=["cpu", "cuda"])(
            jax.ShapeDtypeStruct((n, 4, 6, 6, 8), "float32")
        )
    x = jnp.asarray(draw(1, 4, 6, 6, 8), jnp.float32)
    expected = plain(x, w, (1, 1, 1), ((1, 1),) * 3, (1, 1, 1))
    text = fixed.mlir_module()
    assert "[b, 0, 1, f]" in text and "[b, 0, 1, 2, f]" in text  # by frames, and over three axes
    for program in (fixed, open_batch):
        np.testing.assert_allclose(program.call(x), expected, atol=1e-4)
