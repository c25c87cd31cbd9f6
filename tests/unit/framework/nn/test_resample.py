from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from framework import nn
from framework.core.errors import ShapeError
from framework.nn import functional as F

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.standard_normal((2, 4, 6, 3)), jnp.float32)
LINE = jnp.array([0.0, 1.0, 2.0, 3.0])[None, :, None]


def test_resizing_a_line_by_hand():
    def line(**options):
        return F.interpolate(LINE, **options)[0, :, 0].tolist()

    assert line(size=2) == [0, 2]
    assert line(scale_factor=2) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert line(size=[8], mode="linear") == [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]
    assert line(size=[8], mode="linear", align_mode=1) == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3]
    assert line(size=[7], mode="linear", align_corners=True) == pytest.approx([0, 0.5, 1, 1.5, 2, 2.5, 3])
    assert line(size=[2], mode="linear") == [0.5, 2.5]  # two neighbours only: no antialias
    assert line(size=[1], mode="linear") == [0]


def test_layers():
    assert nn.Upsample(scale_factor=2)(X).shape == (2, 8, 12, 3)
    np.testing.assert_array_equal(nn.UpsamplingNearest2D(scale_factor=2)(X)[:, ::2, 1::2], X)
    corners = nn.UpsamplingBilinear2D(size=(7, 11))(X)
    np.testing.assert_allclose(corners[:, ::2, ::2], X, atol=1e-6)
    assert nn.Pad2D([1, 2, 3, 4])(X).shape == (2, 11, 9, 3)
    assert nn.ZeroPad2D(1)(X)[0, 0, 0].tolist() == [0.0] * 3
    assert nn.Pad1D(1, mode="replicate")(LINE)[0, :, 0].tolist() == [0, 0, 1, 2, 3, 3]
    assert nn.Pad3D([1, 0, 0, 0, 0, 2])(jnp.ones((1, 2, 2, 2, 1))).shape == (1, 4, 2, 3, 1)
    np.testing.assert_array_equal(
        nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(X[..., :1].repeat(4, -1))).shape, (2, 4, 6, 4)
    )
    np.testing.assert_array_equal(nn.ChannelShuffle(3)(X), X)
    assert nn.Unfold(2)(X).shape == (2, 15, 12)
    assert nn.CosineSimilarity(axis=-1)(X, X).shape == (2, 4, 6)
    assert "scale_factor=2" in repr(nn.Upsample(scale_factor=2)) and "padding=[1, 2, 3, 4]" in repr(
        nn.Pad2D([1, 2, 3, 4])
    )


def test_fold_undoes_unfold_without_overlap():
    blocks = nn.Unfold(2, strides=2)(X)
    np.testing.assert_array_equal(nn.Fold((4, 6), 2, strides=2)(blocks), X)


def test_pixel_shuffle_order():
    x = jnp.arange(4.0).reshape(1, 1, 1, 4)
    assert F.pixel_shuffle(x, 2)[0, :, :, 0].tolist() == [[0, 1], [2, 3]]
    np.testing.assert_array_equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x)


def test_integers_and_bfloat16_keep_their_type():
    masks = jnp.array([[[[1], [255]]]], jnp.uint8)
    assert F.interpolate(masks, size=(1, 3)).dtype == jnp.uint8
    assert F.interpolate(masks, scale_factor=2)[0, 1, :, 0].tolist() == [1, 1, 255, 255]
    low = F.interpolate(X.astype(jnp.bfloat16), size=(5, 5), mode="bilinear")
    assert (
        low.dtype == jnp.bfloat16
        and F.grid_sample(X.astype(jnp.bfloat16), jnp.zeros((2, 1, 1, 2))).dtype == low.dtype
    )


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(9, 5), (2, 13), (64, 3), (4, 12)])
def test_the_gradient_is_the_transpose(mode, size):
    dy = jnp.asarray(RNG.standard_normal((2, *size, 3)), jnp.float32)
    y, pull = jax.vjp(lambda x: F.interpolate(x, size, mode=mode), X)
    assert float((y * dy).sum()) == pytest.approx(float((X * pull(dy)[0]).sum()), rel=1e-4, abs=1e-3)


def test_the_gradient_of_a_large_factor_is_a_dot():
    dy = jnp.ones((1, 128, 4, 1))
    grad = jax.grad(lambda x: (F.interpolate(x, (128, 4), mode="bilinear") * dy).sum())(
        jnp.ones((1, 4, 4, 1))
    )
    np.testing.assert_allclose(grad[0, :, 0, 0], [32.0] * 4, rtol=1e-5)


@pytest.mark.parametrize(("mode", "corners"), [("nearest", False), ("bilinear", False), ("bilinear", True)])
def test_resizing_to_another_arrays_shape_exports_with_symbolic_sizes(mode, corners):
    h, w, oh, ow = export.symbolic_shape("h, w, oh, ow")

    def fit(x, skip):
        return F.interpolate(x, skip.shape[1:3], mode=mode, align_corners=corners)

    shapes = [jax.ShapeDtypeStruct((1, *hw, 2), jnp.float32) for hw in ((h, w), (oh, ow))]
    program = export.export(jax.jit(fit))(*shapes)
    for out in ((7, 3), (1, 9), (3, 4)):
        x, skip = jnp.asarray(RNG.standard_normal((1, 3, 4, 2)), jnp.float32), jnp.zeros((1, *out, 2))
        np.testing.assert_allclose(program.call(x, skip), fit(x, skip), atol=1e-5)


def test_whole_and_broken_factors_of_symbolic_sizes():
    (h,) = export.symbolic_shape("h")
    shape = jax.ShapeDtypeStruct((1, 2 * h, 4, 1), jnp.float32)
    x = jnp.arange(16.0).reshape(1, 4, 4, 1)
    for scale in (2, 0.5):
        program = export.export(jax.jit(lambda x, s=scale: F.interpolate(x, scale_factor=s)))(shape)
        np.testing.assert_array_equal(program.call(x), F.interpolate(x, scale_factor=scale))
    with pytest.raises(ShapeError, match=r"a symbolic size takes whole scales(.|\n)*\* 1.5"):
        export.export(jax.jit(lambda x: F.interpolate(x, scale_factor=1.5)))(shape)


def test_nearest_by_a_whole_factor_does_not_gather():
    text = str(jax.make_jaxpr(lambda x: F.interpolate(x, scale_factor=2))(X))
    assert "gather" not in text and "broadcast_in_dim" in text


def test_grid_sample_reads_pixels_at_their_centres():
    x = jnp.arange(4.0).reshape(1, 2, 2, 1)
    corners = jnp.array([[[[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0], [3.0, 0.0]]]])
    assert F.grid_sample(x, corners)[0, 0, :, 0].tolist() == [0, 3, 1.5, 0]
    assert F.grid_sample(x, corners, padding_mode="border")[0, 0, :, 0].tolist() == [0, 3, 1.5, 2]
    assert F.grid_sample(x, corners, align_corners=False)[0, 0, 0, 0] == 0.0  # a quarter of pixel 0
    assert F.grid_sample(x[:, :1, :1], corners, padding_mode="reflection")[0, 0, :, 0].tolist() == [
        0,
        0,
        0,
        0,
    ]


def test_an_identity_grid_returns_the_image():
    for corners in (True, False):
        theta = jnp.array([[[1.0, 0, 0], [0, 1.0, 0]]]).repeat(2, 0)
        grid = F.affine_grid(theta, X.shape, corners)
        np.testing.assert_allclose(F.grid_sample(X, grid, align_corners=corners), X, atol=1e-5)


PAD = jnp.ones((1, 3, 3, 1))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: F.interpolate(X, size=2, mode="cubic"), "the mode does not exist for this number of axes"),
        (
            lambda: F.interpolate(LINE, size=2, mode="bilinear"),
            "the mode does not exist for this number of axes",
        ),
        (lambda: F.interpolate(X, size=2, data_format="NCHW"), "activations are channels-last"),
        (lambda: F.interpolate(X), "one of size and scale_factor"),
        (lambda: F.interpolate(X, size=2, scale_factor=2), "one of size and scale_factor"),
        (lambda: F.interpolate(X, size=2, align_corners=True), "nearest has no align_corners"),
        (lambda: F.interpolate(X, size=2, mode="bilinear", align_mode=2), "unknown align_mode"),
        (
            lambda: F.interpolate(X, size=[2, 2, 2]),
            "interpolate: size takes one number, or one for each axis",
        ),
        (lambda: F.interpolate(X, size=[0, 2]), "sizes start at 1"),
        (lambda: F.interpolate(X, scale_factor=-1.0), "scales are positive"),
        (lambda: F.interpolate(X, scale_factor=0.1), "sizes start at 1"),
        (lambda: F.grid_sample(X, jnp.zeros((1, 2, 2, 2))), "grid_sample: input and grid do not agree"),
        (lambda: F.grid_sample(X, jnp.zeros((2, 2, 2, 2)), mode="bicubic"), "grid_sample: unknown mode"),
        (lambda: F.affine_grid(jnp.zeros((1, 3, 3)), X.shape), "affine_grid: maps and shape do not agree"),
        (lambda: F.pad(PAD, [1, 1, 1]), "two numbers for each spatial axis"),
        (lambda: F.pad(PAD, [1, 1, 1, 1], mode="edge"), "unknown padding mode"),
        (lambda: F.pad(PAD, [-1, 0, 0, 0], mode="replicate"), "only mode constant cuts"),
        (lambda: F.pad(PAD, [3, 0, 0, 0], mode="reflect"), "mode reflect needs a larger axis"),
        (lambda: F.pad(PAD, [4, 0, 0, 0], mode="circular"), "mode circular needs a larger axis"),
        (lambda: F.pixel_shuffle(X, 2), "pixel_shuffle: channels divide into blocks"),
        (lambda: F.pixel_unshuffle(X, 4), "pixel_unshuffle: height and width divide into blocks"),
        (lambda: F.channel_shuffle(X, 2), "channel_shuffle: channels divide into groups"),
        (lambda: F.unfold(LINE, 2), r"unfold takes \[N, H, W, C\]"),
        (lambda: F.unfold(X, 2, paddings=[1, 2, 3]), "padding of unfold and fold"),
        (lambda: F.fold(jnp.ones((1, 5, 4)), 4, 2, 2), "fold: windows and sizes do not agree"),
    ],
)
def test_errors(run, message):
    with pytest.raises(ShapeError, match=message):
        run()


def test_pad_of_every_axis_and_cutting():
    assert F.pad(jnp.ones((1, 2)), [1, 0, 0, 2]).tolist() == [[0, 0, 0, 0], [1, 1, 0, 0]]
    assert F.pad(X, [-1, 0, 0, -2]).shape == (2, 2, 5, 3)
    assert F.pad(X, [0, 0, 1, 1, 1, 1, 0, 0]).shape == (2, 6, 8, 3)


@pytest.mark.parametrize("size", [(6, 10), (5, 7)], ids=["whole factor", "other sizes"])
def test_nearest_has_a_gradient_in_16_bits(size: tuple[int, int]) -> None:
    """Of low activations, which keep their type: what is added up must not mix two."""
    x = np.random.default_rng(0).standard_normal((1, 3, 5, 2)).astype(np.float32)

    def total(values: jax.Array) -> jax.Array:
        return F.interpolate(values, size=size, mode="nearest").astype(jnp.float32).sum()

    low = jax.grad(total)(jnp.asarray(x, jnp.bfloat16))
    assert low.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(low, np.float32), np.asarray(jax.grad(total)(jnp.asarray(x))))


@pytest.mark.parametrize("align_corners", [False, True])
def test_an_identity_map_reads_a_volume_back(align_corners: bool) -> None:
    x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3, 4, 5, 2)), jnp.float32)
    theta = jnp.broadcast_to(jnp.eye(3, 4), (2, 3, 4))
    grid = F.affine_grid(theta, x.shape, align_corners)
    assert grid.shape == (2, 3, 4, 5, 3)
    np.testing.assert_allclose(F.grid_sample(x, grid, align_corners=align_corners), x, atol=1e-5)
    swapped = F.grid_sample(x, grid[..., ::-1], "nearest", align_corners=align_corners)
    assert not np.allclose(swapped, x)
