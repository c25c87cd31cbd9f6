"""framework.vision.warp: points by hand, inverses, and pixels against OpenCV's own half-pixel resize."""

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision import image as images
from framework.vision import polygons
from framework.vision.warp import Warp

RNG = np.random.default_rng(0)
PHOTO = images.resize(
    RNG.integers(0, 256, (9, 13, 3), np.uint8), (60, 90), "cubic"
)  # smooth, so filters can agree

WARPS = {
    "identity": Warp.identity((60, 90)),
    "resize": Warp.resize((60, 90), (31, 200)),
    "crop": Warp.crop((60, 90), (10, 5, 40, 50)),
    "pad": Warp.pad((60, 90), 3, 4, 5, 6),
    "flip": Warp.flip((60, 90), horizontal=True),
    "flip both": Warp.flip((60, 90), horizontal=True, vertical=True),
    "rotate90": Warp.rotate90((60, 90), 1),
    "rotate270": Warp.rotate90((60, 90), 3),
    "rotate": Warp.rotate((60, 90), 17.0),
    "rotate expanded": Warp.rotate((60, 90), -40.0, expand=True),
    "perspective": Warp.perspective((60, 90), np.array([[10, 5], [80, 10], [70, 55], [5, 50]]), (40, 70)),
    "letterbox": Warp.letterbox((60, 90), (128, 128)),
}


def moved(warp: Warp, *xy: float) -> list[float]:
    return warp.points(np.array([xy], np.float64))[0].round(9).tolist()


def test_points_by_hand():
    assert moved(Warp.resize((10, 20), (30, 40)), 5, 5) == [10, 15]
    assert moved(Warp.crop((10, 20), (2, 3, 8, 9)), 2, 3) == [0, 0]
    assert moved(Warp.pad((10, 20), 1, 2, 3, 4), 0, 0) == [1, 2]
    assert Warp.pad((10, 20), 1, 2, 3, 4).size_hw == (16, 24)
    assert moved(Warp.flip((10, 20), horizontal=True), 0, 1) == [20, 1]
    assert moved(Warp.flip((10, 20), vertical=True), 3, 0) == [3, 10]
    # A quarter turn clockwise brings the top-left corner to the top right, of an image 10 wide.
    assert moved(Warp.rotate90((10, 20), 1), 0, 0) == [10, 0]
    assert moved(Warp.rotate90((10, 20), 2), 0, 0) == [20, 10]
    assert moved(Warp.rotate90((10, 20), -1), 0, 0) == [0, 20]
    assert moved(Warp.rotate((10, 20), 90, expand=True), 0, 0) == [10, 0]
    assert Warp.rotate((10, 20), 90, expand=True).size_hw == (20, 10)
    assert moved(Warp.rotate((10, 20), 180), 0, 0) == [20, 10]
    quad = np.array([[10, 0], [20, 10], [10, 20], [0, 10]])
    assert moved(Warp.perspective((30, 30), quad, (50, 100)), 20, 10) == [100, 0]
    assert moved(Warp.perspective((30, 30), quad, (50, 100)), 10, 10) == [50, 25]


def test_letterbox():
    centred = Warp.letterbox((100, 200), (64, 64))
    assert moved(centred, 0, 0) == [0, 16] and moved(centred, 200, 100) == [64, 48]
    corner = Warp.letterbox((100, 200), (64, 64), align="top_left")
    assert moved(corner, 0, 0) == [0, 0] and moved(corner, 200, 100) == [64, 32]
    out = centred.image(np.full((100, 200, 3), 7, np.uint8), border=114)
    assert (out[:16] == 114).all() and (out[16:48] == 7).all() and (out[48:] == 114).all()
    assert Warp.letterbox((1, 10_000), (64, 64)).image(np.ones((1, 10_000), np.uint8)).sum() == 64


def test_boxes_become_upright_bounds():
    assert Warp.rotate90((10, 20), 1).boxes(np.array([[0.0, 0, 4, 2]])).tolist() == [[8, 0, 10, 4]]
    turned = Warp.rotate((10, 10), 45).boxes(np.array([[4.0, 4, 6, 6]]))[0]
    np.testing.assert_allclose(turned, [5 - 2**0.5, 5 - 2**0.5, 5 + 2**0.5, 5 + 2**0.5])
    assert Warp.identity((4, 4)).boxes(np.zeros((0, 4), np.float32)).shape == (0, 4)
    assert Warp.identity((4, 4)).boxes(np.zeros((1, 4), np.float32)).dtype == np.float32


def test_points_dtypes_and_shapes():
    warp = Warp.resize((10, 10), (20, 20))
    assert warp.points(np.zeros((2, 5, 2), np.float32)).dtype == np.float32
    assert warp.points(np.ones((3, 2), np.int64)).tolist() == [[2.0, 2.0]] * 3
    assert warp.points(np.zeros((0, 2))).shape == (0, 2)


def test_points_on_the_horizon_are_not_finite():
    tilted = Warp(np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1.0]]), (4, 4), (4, 4))
    assert not np.isfinite(tilted.points(np.array([[-1.0, 0.0]]))).any()


@pytest.mark.parametrize("name", WARPS)
def test_inverse(name):
    warp, xy = WARPS[name], RNG.uniform(0, 60, (50, 2))
    np.testing.assert_allclose(warp.inverse().points(warp.points(xy)), xy, atol=1e-9)
    assert warp.inverse().size_hw == warp.source_hw and warp.inverse().source_hw == warp.size_hw
    np.testing.assert_allclose(warp.inverse().inverse().matrix, warp.matrix, atol=1e-9)
    np.testing.assert_allclose(warp.then(warp.inverse()).matrix, np.eye(3), atol=1e-9)


def test_then_is_the_first_and_then_the_second():
    first, second = Warp.resize((60, 90), (120, 180)), Warp.crop((120, 180), (10, 20, 110, 90))
    both, xy = first.then(second), RNG.uniform(0, 60, (20, 2))
    np.testing.assert_allclose(both.points(xy), second.points(first.points(xy)))
    assert (both.source_hw, both.size_hw) == ((60, 90), (70, 100))
    np.testing.assert_array_equal(both.image(PHOTO), second.image(first.image(PHOTO)))


@pytest.mark.parametrize("size_hw", [(30, 45), (31, 47), (97, 200), (1, 1), (60, 1)])
@pytest.mark.parametrize("interpolation", ["nearest", "linear", "cubic", "area", "lanczos"])
def test_resize_is_opencv_resize(size_hw, interpolation):
    np.testing.assert_array_equal(
        Warp.resize((60, 90), size_hw).image(PHOTO, interpolation),
        images.resize(PHOTO, size_hw, interpolation),
    )


@pytest.mark.parametrize("interpolation", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("size_hw", [(120, 180), (97, 200)])
def test_general_path_has_the_same_pixel_centres(interpolation, size_hw):
    """A perspective of 1e-7 is no change to speak of, but keeps the exact path away."""
    exact = Warp.resize((60, 90), size_hw)
    almost = Warp(exact.matrix + np.array([[0, 0, 0], [0, 0, 0], [1e-7, 0, 0]]), size_hw, (60, 90))
    expected = exact.image(PHOTO, interpolation).astype(int)
    error = np.abs(almost.image(PHOTO, interpolation, border=None) - expected)
    # OpenCV places samples to 1/32 pixel; half a pixel off would be a mean error of 4 and more.
    assert error.mean() < 1.0, error.mean()
    shifted = np.abs(np.roll(expected, 1, axis=1) - expected)
    assert shifted.mean() > 4 * error.mean()


@pytest.mark.parametrize("shape", [(60, 90, 3), (60, 90), (60, 90, 1)])
def test_grid_symmetries_are_exact(shape):
    image = PHOTO[..., :1].reshape(60, 90, 1)[..., 0] if len(shape) == 2 else PHOTO[..., : shape[2]]
    for turns in range(4):
        np.testing.assert_array_equal(Warp.rotate90((60, 90), turns).image(image), np.rot90(image, -turns))
    np.testing.assert_array_equal(WARPS["flip"].image(image), image[:, ::-1])
    np.testing.assert_array_equal(WARPS["flip both"].image(image), image[::-1, ::-1])
    np.testing.assert_array_equal(Warp.rotate((60, 90), 90, expand=True).image(image), np.rot90(image, -1))
    np.testing.assert_array_equal(WARPS["crop"].image(image), image[5:50, 10:40])
    chain = (
        Warp.rotate90((60, 90), 1)
        .then(Warp.flip((90, 60), vertical=True))
        .then(Warp.crop((90, 60), (1, 2, 9, 8)))
    )
    np.testing.assert_array_equal(chain.image(image), np.rot90(image, -1)[::-1][2:8, 1:9])


def test_crop_outside_and_border():
    out = Warp.crop((2, 2), (-1, -1, 3, 1)).image(np.array([[1, 2], [3, 4]], np.uint8), border=9)
    assert out.tolist() == [[9, 9, 9, 9], [9, 1, 2, 9]]
    repeated = Warp.crop((2, 2), (-1, -1, 3, 1)).image(np.array([[1, 2], [3, 4]], np.uint8), border=None)
    assert repeated.tolist() == [[1, 1, 2, 2], [1, 1, 2, 2]]
    nothing = Warp.crop((2, 2), (5, 5, 7, 7)).image(np.ones((2, 2, 3), np.uint8), border=(7, 8, 9))
    assert nothing.tolist() == [[[7, 8, 9]] * 2] * 2
    resized_away = Warp.resize((2, 2), (4, 4)).then(Warp.crop((4, 4), (9, 9, 11, 11)))
    assert (resized_away.image(np.ones((2, 2), np.uint8), border=3) == 3).all()


def test_resize_and_crop_are_one_step():
    shrunk = Warp.resize((60, 90), (40, 57)).then(Warp.crop((40, 57), (8, 3, 48, 35)))
    np.testing.assert_array_equal(shrunk.image(PHOTO), images.resize(PHOTO, (40, 57))[3:35, 8:48])


def test_small_crop_and_resize_are_one_step():
    warp = Warp.crop((60, 90), (10, 5, 20, 15)).then(Warp.resize((10, 10), (33, 31)))
    np.testing.assert_array_equal(warp.image(PHOTO), images.resize(PHOTO[5:15, 10:20].copy(), (33, 31)))


def test_result_never_shares_memory():
    for name in ("identity", "crop", "flip", "rotate90"):
        out = WARPS[name].image(PHOTO)
        assert not np.shares_memory(out, PHOTO) and out.flags.c_contiguous, name


def test_one_pixel():
    one = np.array([[[1, 2, 3]]], np.uint8)
    for warp in (Warp.identity((1, 1)), Warp.rotate90((1, 1), 1), Warp.flip((1, 1), horizontal=True)):
        np.testing.assert_array_equal(warp.image(one), one)
    assert (Warp.resize((1, 1), (5, 7)).image(one) == one[0, 0]).all()
    assert Warp.rotate((1, 1), 33).image(one, border=None).tolist() == one.tolist()


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.uint16, np.int16, np.int32, np.int64])
def test_mask_is_nearest_and_keeps_its_dtype(dtype):
    mask = np.array([[0, 1], [1, 0]], dtype)
    out = Warp.resize((2, 2), (4, 4)).mask(mask)
    assert out.dtype == dtype
    assert out.astype(int).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]
    turned = Warp.rotate((2, 2), 45).mask(mask)
    assert turned.dtype == dtype and set(np.unique(turned).astype(int)) <= {0, 1}
    assert int(Warp.pad((2, 2), 1, 0, 0, 0).mask(mask, border=1)[0, 0]) == 1


@pytest.mark.parametrize("name", ["rotate", "rotate expanded", "perspective", "resize", "letterbox"])
def test_warped_mask_lies_where_the_warped_outline_does(name):
    warp, quad = WARPS[name], np.array([[25.0, 12], [66, 16], [62, 46], [20, 40]])
    warped = warp.mask(polygons.fill([quad], (60, 90)))
    expected = polygons.fill([warp.points(quad)], warp.size_hw)
    assert abs(int(warped.sum()) - int(expected.sum())) < 0.02 * expected.sum()
    # A mistake of half a pixel in the convention would move the centre of gravity by as much.
    centres = [np.argwhere(mask).mean(axis=0) for mask in (warped, expected)]
    np.testing.assert_allclose(*centres, atol=0.1)


def test_very_long_images():
    strip = np.zeros((40, 40_000), np.uint8)
    strip[:, 39_000:39_010] = 200
    quad = np.array([[38_990, 5], [39_020, 8], [39_019, 35], [38_989, 32]], np.float64)
    out = Warp.perspective((40, 40_000), quad, (30, 30)).image(strip, border=None)
    assert out.max() == 200 and out[:, 25:].max() == 0
    assert np.array_equal(Warp.rotate90((40, 40_000), 1).image(strip), np.rot90(strip, -1))
    with pytest.raises(ShapeError, match="OpenCV cannot warp this image"):
        Warp.rotate((40, 40_000), 0.1).image(strip)


def test_errors():
    with pytest.raises(ShapeError, match="the matrix of a warp must be finite and invertible"):
        Warp(np.zeros((3, 3)), (2, 2), (2, 2))
    with pytest.raises(ShapeError, match="the matrix of a warp must be finite and invertible"):
        Warp(np.eye(2), (2, 2), (2, 2))
    with pytest.raises(ShapeError, match="no such size"):
        Warp.crop((4, 4), (2, 2, 2, 4))
    with pytest.raises(ShapeError, match="do not follow one another"):
        Warp.identity((2, 2)).then(Warp.identity((3, 3)))
    with pytest.raises(ShapeError, match="not the one that this warp was made for"):
        Warp.identity((2, 2)).image(np.zeros((3, 3), np.uint8))
    with pytest.raises(ShapeError, match="must have the shape of an image"):
        Warp.identity((2, 2)).image(np.zeros((2, 0), np.uint8))
    with pytest.raises(ShapeError, match="a quadrilateral must have four points"):
        Warp.perspective((4, 4), np.zeros((3, 2)), (2, 2))
    with pytest.raises(ShapeError, match="three corners of the quadrilateral lie on one line"):
        Warp.perspective((4, 4), np.array([[0, 0], [1, 1], [2, 2], [3, 3]]), (2, 2))
    with pytest.raises(ShapeError, match="OpenCV cannot warp this image"):
        Warp.rotate((4, 4), 10).image(np.zeros((4, 4), np.int64))


def test_matrix_is_read_only():
    given = np.eye(3)
    warp = Warp(given, (2, 2), (2, 2))
    given[0, 0] = 5
    assert warp.matrix[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        warp.matrix[0, 0] = 2
