"""framework.vision.ops beside their parity with Paddle: numbers by hand, empty inputs, layers, files, messages."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from framework import nn
from framework.core.errors import ConfigError, InputError, ShapeError
from framework.vision import ops

MAP = jnp.arange(24, dtype=jnp.float32).reshape(1, 4, 6, 1)
ONE = jnp.asarray([1], jnp.int32)


def test_roi_align_by_hand() -> None:
    box = jnp.asarray([[1.0, 1.0, 3.0, 3.0]])  # pixels 1 and 2 of rows 1 and 2
    np.testing.assert_allclose(ops.roi_align(MAP, box, ONE, 2)[0, ..., 0], [[7, 8], [13, 14]])
    np.testing.assert_allclose(ops.roi_align(MAP, box, ONE, 1, sampling_ratio=2)[0, 0, 0], [10.5])
    np.testing.assert_allclose(ops.roi_align(MAP, box * 2, ONE, 1, spatial_scale=0.5)[0, 0, 0], [10.5])


def test_roi_pool_by_hand() -> None:
    box = jnp.asarray([[1.4, 0.6, 3.4, 2.4]])  # columns 1 to 3, rows 1 to 2
    np.testing.assert_allclose(ops.roi_pool(MAP, box, ONE, (2, 1))[0, ..., 0], [[9], [15]])


def test_psroi_pool_by_hand() -> None:
    x = jnp.broadcast_to(jnp.arange(4.0), (1, 4, 6, 4))
    np.testing.assert_allclose(
        ops.psroi_pool(x, jnp.asarray([[0.0, 0, 3, 3]]), ONE, 2)[0, ..., 0], [[0, 1], [2, 3]]
    )


@pytest.mark.parametrize("pool", [ops.roi_align, ops.roi_pool, ops.psroi_pool])
def test_pools_of_no_boxes_and_of_padded_ones(pool: Callable[..., jax.Array]) -> None:
    assert pool(MAP, jnp.zeros((0, 4)), ONE * 0, 1).shape == (0, 1, 1, 1)
    boxes = jnp.asarray([[0.0, 0, 3, 3], [1, 1, 2, 2], [0, 0, 5, 5]])
    out = jax.jit(lambda boxes, count: pool(MAP, boxes, count, 1))(boxes, ONE)
    assert out[0, 0, 0, 0] != 0 and not out[1:].any()


def test_boxes_without_area_give_zeros_and_no_nan() -> None:
    flat = jnp.asarray([[2.0, 1.0, 2.0, 1.0], [3.0, 3.0, 1.0, 1.0]])
    for ratio in (-1, 2):
        assert np.isfinite(ops.roi_align(MAP, flat, ONE * 2, 2, sampling_ratio=ratio)).all()
    assert not ops.roi_align(MAP, flat, ONE * 2, 2).any()


def test_deform_conv2d_without_offsets_is_a_convolution() -> None:
    rng = np.random.default_rng(0)
    x, weight = (
        jnp.asarray(rng.standard_normal(shape), jnp.float32) for shape in ((2, 6, 5, 4), (6, 2, 3, 3))
    )
    expected = nn.functional.conv2d(x, weight, stride=2, padding=1, groups=2)
    found = ops.deform_conv2d(
        x, jnp.zeros((2, 3, 3, 36)), weight, stride=2, padding=1, groups=2, deformable_groups=2
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_box_coder_decodes_what_it_encodes() -> None:
    priors = jnp.asarray([[0.0, 0, 4, 8], [2, 2, 9, 5]])
    boxes = jnp.asarray([[1.0, 1, 3, 6], [0, 2, 5, 9], [3, 3, 4, 4]])
    codes = ops.box_coder(priors, [0.1, 0.1, 0.2, 0.2], boxes)
    back = ops.box_coder(priors, [0.1, 0.1, 0.2, 0.2], codes, "decode_center_size")
    np.testing.assert_allclose(back, np.broadcast_to(boxes[:, None], (3, 2, 4)), rtol=1e-5, atol=1e-5)
    single = ops.box_coder(priors, None, jnp.zeros((2, 4)), "decode_center_size")
    np.testing.assert_allclose(single, priors)
    assert ops.box_coder(priors, None, jnp.zeros((0, 4))).shape == (0, 2, 4)


def test_yolo_loss_counts_boxes() -> None:
    x = jnp.zeros((1, 2, 2, 6))
    numbers: dict[str, Any] = {
        "anchors": [16, 16], "anchor_mask": [0], "class_num": 1, "ignore_thresh": 0.7, "downsample_ratio": 16,
        "use_label_smooth": False,
    }  # fmt: skip
    none = ops.yolo_loss(x, jnp.zeros((1, 0, 4)), jnp.zeros((1, 0), jnp.int32), **numbers)
    np.testing.assert_allclose(none, [4 * np.log(2)], rtol=1e-6)  # objectness of four places
    box = jnp.asarray([[[0.25, 0.25, 0.5, 0.5]]])
    one = ops.yolo_loss(x, box, jnp.zeros((1, 1), jnp.int32), **numbers)
    np.testing.assert_allclose(one - none, [2 * 1.75 * np.log(2) + np.log(2)], rtol=1e-6)


def test_layers() -> None:
    layer = ops.DeformConv2D(4, 6, 3, padding=1, deformable_groups=2)
    assert layer.state_shapes() == {"weight": (6, 4, 3, 3), "bias": (6,)}
    x = jnp.ones((1, 5, 5, 4))
    expected = nn.functional.conv2d(x, layer.weight, layer.bias, padding=1)
    np.testing.assert_allclose(
        layer(x, jnp.zeros((1, 5, 5, 36)), jnp.ones((1, 5, 5, 18))), expected, rtol=1e-5, atol=1e-5
    )
    box = jnp.asarray([[1.0, 1.0, 3.0, 3.0]])
    for pool, function in (
        (ops.RoIAlign, ops.roi_align),
        (ops.RoIPool, ops.roi_pool),
        (ops.PSRoIPool, ops.psroi_pool),
    ):
        np.testing.assert_allclose(pool(1, 0.5)(MAP, box, ONE), function(MAP, box, ONE, 1, 0.5))
    block = ops.ConvNormActivation(3, 8, 5, stride=2, groups=1)
    assert list(block.state_shapes())[:2] == ["0.weight", "1.weight"] and len(block) == 3
    assert block.eval()(jnp.ones((1, 7, 7, 3))).shape == (1, 4, 4, 8)
    assert list(ops.ConvNormActivation(3, 8, norm_layer=None, activation_layer=None).state_shapes()) == [
        "0.weight",
        "0.bias",
    ]


def test_files(tmp_path: Path) -> None:
    pixels = np.full((6, 9, 3), (200, 20, 20), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.jpg")
    data = ops.read_file(tmp_path / "a.jpg")
    assert data.dtype == np.uint8 and data.shape == ((tmp_path / "a.jpg").stat().st_size,)
    assert np.abs(ops.decode_jpeg(data).astype(int) - pixels).max() < 4
    assert ops.decode_jpeg(data, "gray").shape == (6, 9, 1)
    gray = io.BytesIO()
    Image.fromarray(pixels[..., 0]).save(gray, "JPEG")
    encoded = np.frombuffer(gray.getvalue(), np.uint8)
    assert ops.decode_jpeg(encoded).shape == (6, 9, 1) and ops.decode_jpeg(encoded, "rgb").shape == (6, 9, 3)
    png = io.BytesIO()
    Image.fromarray(pixels).save(png, "PNG")
    for damaged, message in (
        (data[:-2], "cut off"),
        (np.frombuffer(png.getvalue(), np.uint8), "not the bytes of a JPEG"),
    ):
        with pytest.raises(InputError, match=message):
            ops.decode_jpeg(damaged)
    with pytest.raises(ConfigError, match="unchanged"):
        ops.decode_jpeg(data, "hsv")
    with pytest.raises(InputError, match="there is no such"):
        ops.read_file(tmp_path / "b.jpg")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.roi_align(MAP, jnp.zeros((1, 5)), ONE, 1), ShapeError, "no boxes"),
        (lambda: ops.roi_align(MAP, jnp.zeros((1, 4)), jnp.ones(2), 1), ShapeError, "channels-last"),
        (lambda: ops.psroi_pool(MAP, jnp.zeros((1, 4)), ONE, 2), ShapeError, "a multiple of 4"),
        (
            lambda: ops.deform_conv2d(MAP, jnp.zeros((1, 4, 6, 2)), jnp.zeros((1, 1, 3, 3))),
            ShapeError,
            "offset",
        ),
        (
            lambda: ops.deform_conv2d(MAP, jnp.zeros((1, 4, 6, 2)), jnp.zeros((1, 2, 1, 1))),
            ShapeError,
            "divide into groups",
        ),
        (lambda: ops.deform_conv2d(MAP[0], MAP, MAP), ShapeError, "other ranks"),
        (lambda: ops.DeformConv2D(4, 6, 3, groups=4), ShapeError, "divide into groups"),
        (
            lambda: ops.box_coder(jnp.zeros((2, 4)), None, jnp.zeros((2, 4)), "decode"),
            ConfigError,
            "code_type",
        ),
        (
            lambda: ops.box_coder(jnp.zeros((2, 4)), None, jnp.zeros((2, 3, 4)), "decode_center_size"),
            ShapeError,
            "M priors for axis 0",
        ),
        (lambda: ops.prior_box(MAP, MAP, [4.0], [5.0, 6.0]), ConfigError, "as many max_sizes"),
        (lambda: ops.yolo_box(MAP, ONE, [10, 13], 2, 0.1, 32), ShapeError, r"\[N, H, W, 7\]"),
        (
            lambda: ops.yolo_loss(
                jnp.zeros((1, 2, 2, 6)), jnp.zeros((1, 2, 4)), ONE, [1, 1], [0], 1, 0.5, 32
            ),
            ShapeError,
            "boxes and labels",
        ),
    ],
)
def test_messages(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
