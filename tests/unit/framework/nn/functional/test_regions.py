"""roi, deform, proposals and yolo beside their parity with Paddle: numbers by hand, empty inputs, messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, ShapeError
from framework.nn.functional import deform, proposals, roi, yolo

MAP = jnp.arange(24, dtype=jnp.float32).reshape(1, 4, 6, 1)
ONE = jnp.asarray([1], jnp.int32)


def test_roi_align_by_hand() -> None:
    box = jnp.asarray([[1.0, 1.0, 3.0, 3.0]])  # pixels 1 and 2 of rows 1 and 2
    np.testing.assert_allclose(roi.roi_align(MAP, box, ONE, 2)[0, ..., 0], [[7, 8], [13, 14]])
    np.testing.assert_allclose(roi.roi_align(MAP, box, ONE, 1, sampling_ratio=2)[0, 0, 0], [10.5])
    np.testing.assert_allclose(roi.roi_align(MAP, box * 2, ONE, 1, spatial_scale=0.5)[0, 0, 0], [10.5])


def test_roi_pool_by_hand() -> None:
    box = jnp.asarray([[1.4, 0.6, 3.4, 2.4]])  # columns 1 to 3, rows 1 to 2
    np.testing.assert_allclose(roi.roi_pool(MAP, box, ONE, (2, 1))[0, ..., 0], [[9], [15]])


def test_psroi_pool_by_hand() -> None:
    x = jnp.broadcast_to(jnp.arange(4.0), (1, 4, 6, 4))
    np.testing.assert_allclose(
        roi.psroi_pool(x, jnp.asarray([[0.0, 0, 3, 3]]), ONE, 2)[0, ..., 0], [[0, 1], [2, 3]]
    )


@pytest.mark.parametrize("pool", [roi.roi_align, roi.roi_pool, roi.psroi_pool])
def test_pools_of_no_boxes_and_of_padded_ones(pool: Callable[..., jax.Array]) -> None:
    assert pool(MAP, jnp.zeros((0, 4)), ONE * 0, 1).shape == (0, 1, 1, 1)
    boxes = jnp.asarray([[0.0, 0, 3, 3], [1, 1, 2, 2], [0, 0, 5, 5]])
    out = jax.jit(lambda boxes, count: pool(MAP, boxes, count, 1))(boxes, ONE)
    assert out[0, 0, 0, 0] != 0 and not out[1:].any()


def test_boxes_without_area_give_zeros_and_no_nan() -> None:
    flat = jnp.asarray([[2.0, 1.0, 2.0, 1.0], [3.0, 3.0, 1.0, 1.0]])
    for ratio in (-1, 2):
        assert np.isfinite(roi.roi_align(MAP, flat, ONE * 2, 2, sampling_ratio=ratio)).all()
    assert not roi.roi_align(MAP, flat, ONE * 2, 2).any()


def test_deform_conv2d_without_offsets_is_a_convolution() -> None:
    rng = np.random.default_rng(0)
    x, weight = (
        jnp.asarray(rng.standard_normal(shape), jnp.float32) for shape in ((2, 6, 5, 4), (6, 2, 3, 3))
    )
    expected = nn.functional.conv2d(x, weight, stride=2, padding=1, groups=2)
    found = deform.deform_conv2d(
        x, jnp.zeros((2, 3, 3, 36)), weight, stride=2, padding=1, groups=2, deformable_groups=2
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_box_coder_decodes_what_it_encodes() -> None:
    priors = jnp.asarray([[0.0, 0, 4, 8], [2, 2, 9, 5]])
    boxes = jnp.asarray([[1.0, 1, 3, 6], [0, 2, 5, 9], [3, 3, 4, 4]])
    codes = proposals.box_coder(priors, [0.1, 0.1, 0.2, 0.2], boxes)
    back = proposals.box_coder(priors, [0.1, 0.1, 0.2, 0.2], codes, "decode_center_size")
    np.testing.assert_allclose(back, np.broadcast_to(boxes[:, None], (3, 2, 4)), rtol=1e-5, atol=1e-5)
    single = proposals.box_coder(priors, None, jnp.zeros((2, 4)), "decode_center_size")
    np.testing.assert_allclose(single, priors)
    assert proposals.box_coder(priors, None, jnp.zeros((0, 4))).shape == (0, 2, 4)


def test_yolo_loss_counts_boxes() -> None:
    x = jnp.zeros((1, 2, 2, 6))
    numbers: dict[str, Any] = {
        "anchors": [16, 16], "anchor_mask": [0], "class_num": 1, "ignore_thresh": 0.7, "downsample_ratio": 16,
        "use_label_smooth": False,
    }  # fmt: skip
    none = yolo.yolo_loss(x, jnp.zeros((1, 0, 4)), jnp.zeros((1, 0), jnp.int32), **numbers)
    np.testing.assert_allclose(none, [4 * np.log(2)], rtol=1e-6)  # objectness of four places
    box = jnp.asarray([[[0.25, 0.25, 0.5, 0.5]]])
    one = yolo.yolo_loss(x, box, jnp.zeros((1, 1), jnp.int32), **numbers)
    np.testing.assert_allclose(one - none, [2 * 1.75 * np.log(2) + np.log(2)], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: roi.roi_align(MAP, jnp.zeros((1, 5)), ONE, 1), ShapeError, "boxes must be"),
        (lambda: roi.roi_align(MAP, jnp.zeros((1, 4)), jnp.ones(2), 1), ShapeError, "channels-last"),
        (lambda: roi.psroi_pool(MAP, jnp.zeros((1, 4)), ONE, 2), ShapeError, "a multiple of 4"),
        (
            lambda: deform.deform_conv2d(MAP, jnp.zeros((1, 4, 6, 2)), jnp.zeros((1, 1, 3, 3))),
            ShapeError,
            "offset",
        ),
        (
            lambda: deform.deform_conv2d(MAP, jnp.zeros((1, 4, 6, 2)), jnp.zeros((1, 2, 1, 1))),
            ShapeError,
            "divide into groups",
        ),
        (lambda: deform.deform_conv2d(MAP[0], MAP, MAP), ShapeError, "other ranks"),
        (
            lambda: proposals.box_coder(jnp.zeros((2, 4)), None, jnp.zeros((2, 4)), "decode"),
            ConfigError,
            "code_type",
        ),
        (
            lambda: proposals.box_coder(jnp.zeros((2, 4)), None, jnp.zeros((2, 3, 4)), "decode_center_size"),
            ShapeError,
            "M priors for axis 0",
        ),
        (lambda: proposals.prior_box(MAP, MAP, [4.0], [5.0, 6.0]), ConfigError, "as many max_sizes"),
        (lambda: yolo.yolo_box(MAP, ONE, [10, 13], 2, 0.1, 32), ShapeError, r"\[N, H, W, 7\]"),
        (
            lambda: yolo.yolo_loss(
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
