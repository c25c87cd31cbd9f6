"""Every constructor of `Warp`: there and back again, for points, boxes, masks and images."""

from __future__ import annotations

import numpy as np
import pytest

from framework.vision.warp import Warp

SOURCE_HW = (60, 90)
QUAD = np.array([[10, 5], [80, 10], [70, 55], [5, 50]])
# One row for each constructor and each of its switches.
WARPS: dict[str, list[Warp]] = {
    "identity": [Warp.identity(SOURCE_HW)],
    "resize": [Warp.resize(SOURCE_HW, (31, 200)), Warp.resize(SOURCE_HW, (1, 1))],
    "crop": [Warp.crop(SOURCE_HW, (10, 5, 40, 50)), Warp.crop(SOURCE_HW, (-4, 50, 11, 70))],
    "pad": [Warp.pad(SOURCE_HW, 3, 4, 5, 6)],
    "flip": [
        Warp.flip(SOURCE_HW, horizontal=across, vertical=down)
        for across, down in ((True, False), (False, True), (True, True))
    ],
    "rotate90": [Warp.rotate90(SOURCE_HW, turns) for turns in (-1, 1, 2, 3)],
    "rotate": [Warp.rotate(SOURCE_HW, 17.0), Warp.rotate(SOURCE_HW, -40.0, expand=True)],
    "perspective": [Warp.perspective(SOURCE_HW, QUAD, (40, 70))],
    "letterbox": [
        Warp.letterbox(SOURCE_HW, (128, 100)),
        Warp.letterbox(SOURCE_HW, (64, 128), align="top_left"),
    ],
}
every = pytest.mark.parametrize(
    "warp",
    [
        pytest.param(warp, id=f"{name}-{number}")
        for name, rows in WARPS.items()
        for number, warp in enumerate(rows)
    ],
)


def test_every_constructor_has_a_row() -> None:
    assert {name for name, value in vars(Warp).items() if isinstance(value, classmethod)} == set(WARPS)


def inner_points(dtype: type) -> np.ndarray:
    return np.random.default_rng(0).uniform((12, 12), (68, 48), (50, 2)).astype(dtype)


@every
def test_points_come_back(warp: Warp) -> None:
    back = warp.inverse()
    assert (back.size_hw, back.source_hw) == (warp.source_hw, warp.size_hw)
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-2)):
        xy = inner_points(dtype)
        moved = warp.points(xy)
        assert moved.dtype == dtype
        np.testing.assert_allclose(back.points(moved), xy, rtol=0, atol=tolerance)
        np.testing.assert_allclose(warp.then(back).points(xy), xy, rtol=0, atol=tolerance)
    assert warp.points(np.zeros((0, 2))).shape == (0, 2)


@every
def test_boxes_hold_the_points_of_the_box(warp: Warp) -> None:
    """Upright bounds: every point of a box is in the warped box, and the box comes back at least as large."""
    xy = inner_points(np.float64)
    box = np.concatenate([xy.min(0), xy.max(0)])[None]
    moved, points = warp.boxes(box), warp.points(xy)
    assert (points >= moved[:, :2] - 1e-9).all() and (points <= moved[:, 2:] + 1e-9).all()
    returned = warp.inverse().boxes(moved)
    assert (returned[:, :2] <= box[:, :2] + 1e-9).all() and (returned[:, 2:] >= box[:, 2:] - 1e-9).all()
    assert warp.boxes(np.zeros((0, 4))).shape == (0, 4)


@every
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_keep_dtype_and_channels(warp: Warp, dtype: type) -> None:
    for shape in (SOURCE_HW, (*SOURCE_HW, 1), (*SOURCE_HW, 3)):
        out = warp.image(np.full(shape, 7, dtype), border=7)
        assert out.dtype == dtype and out.shape == (*warp.size_hw, *shape[2:])
        np.testing.assert_allclose(out, 7, rtol=1e-6)


@every
def test_a_mask_goes_where_its_points_go(warp: Warp) -> None:
    """The centre of every pixel of the result lies, taken back, in the mask or outside of it as the result says."""
    mask = np.zeros(SOURCE_HW, bool)
    mask[20:40, 30:60] = True
    out = warp.mask(mask)
    assert out.dtype == bool and out.shape == warp.size_hw
    rows, columns = np.indices(warp.size_hw)
    x, y = np.moveaxis(warp.inverse().points(np.stack([columns, rows], -1) + 0.5), -1, 0)
    # One pixel of slack at the edge: the nearest pixel is the question there.
    surely_in = (abs(x - 45) < 14) & (abs(y - 30) < 9)
    surely_out = (abs(x - 45) > 16) | (abs(y - 30) > 11)
    assert out[surely_in].all() and not out[surely_out].any()
    assert (surely_in | surely_out).mean() > 0.5
