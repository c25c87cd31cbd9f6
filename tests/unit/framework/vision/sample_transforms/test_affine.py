"""framework.vision.sample_transforms.affine: angles, shares and shears by hand."""

import numpy as np

from framework.vision.sample import Sample
from framework.vision.sample_transforms import RandomAffine, RandomRotation

SQUARE = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def moved(warp, *xy):
    return np.round(warp.points(np.array(xy, np.float64)), 9).tolist()


def test_rotation_is_clockwise_about_the_centre():
    out = RandomRotation((90, 90))(Sample(SQUARE, boxes=np.array([[0, 0, 1, 2]], np.float32)), rng())
    np.testing.assert_array_equal(out.image, np.rot90(SQUARE, -1))
    np.testing.assert_allclose(out.boxes, [[2, 0, 4, 1]], atol=1e-6)


def test_rotation_expands():
    quarter = RandomRotation((90, 90), expand=True)(Sample(np.zeros((2, 6, 3), np.uint8)), rng())
    assert quarter.size_hw == (6, 2)
    eighth = RandomRotation((45, 45), expand=True, fill=200)(Sample(np.zeros((10, 10, 3), np.uint8)), rng())
    assert eighth.size_hw == (15, 15) and eighth.image[0, 0].tolist() == [200, 200, 200]  # 10 * sqrt(2)


def test_rotation_range_and_probability():
    angles = []
    for seed in range(300):
        (cos, sin), _ = RandomRotation(20.0).plan((8, 8), rng(seed)).matrix[:2, :2].T
        angles.append(np.rad2deg(np.arctan2(sin, cos)))
    assert -20 <= min(angles) < -17 and 17 < max(angles) <= 20
    sample = Sample(SQUARE)
    assert RandomRotation(20.0, p=0)(sample, rng()) is sample
    assert RandomRotation((0, 0))(sample, rng()) is sample


def test_border_of_a_turned_mask():
    sample = Sample(np.zeros((4, 4, 3), np.uint8), mask=np.zeros((4, 4), np.uint8))
    mask = RandomRotation((45, 45), ignore_index=9)(sample, rng()).mask
    assert mask[0, 0] == mask[3, 3] == 9 and mask[1, 1] == mask[2, 2] == 0


def test_affine_alone_by_alone():
    scaled = RandomAffine(scale=(2, 2)).plan((4, 6), rng())
    assert moved(scaled, (3, 2), (4, 2)) == [[3, 2], [5, 2]]  # the centre stays
    turned = RandomAffine(degrees=(90, 90)).plan((4, 6), rng())
    assert moved(turned, (3, 2), (4, 2)) == [[3, 2], [3, 3]]
    sheared = RandomAffine(shear=(45, 45)).plan((4, 6), rng())
    assert moved(sheared, (3, 2), (3, 3)) == [[3, 2], [4, 3]]
    both = RandomAffine(degrees=(90, 90), shear=(45, 45)).plan((4, 6), rng())
    assert moved(both, (3, 3)) == [[2, 3]]  # sheared to (4, 3), then turned about (3, 2)


def test_affine_shift():
    shifts = np.array(
        [RandomAffine(translate=(0.5, 0.25)).plan((8, 8), rng(s)).matrix[:2, 2] for s in range(300)]
    )
    assert (abs(shifts) <= (4, 2)).all() and (abs(shifts).max(axis=0) > (3.7, 1.85)).all()
    assert (shifts.min(axis=0) < 0).all() and (shifts.max(axis=0) > 0).all()


def test_affine_without_a_change():
    sample = Sample(SQUARE)
    assert RandomAffine()(sample, rng()) is sample and RandomAffine(degrees=90, p=0)(sample, rng()) is sample
    assert RandomAffine(degrees=30)(Sample(np.full((1, 1, 3), 7, np.uint8)), rng()).image.shape == (1, 1, 3)


def test_what_is_hardly_seen_is_dropped():
    sample = Sample(SQUARE, boxes=np.array([[0, 0, 1, 1], [1, 1, 3, 3]], np.float32), labels=np.array([1, 2]))
    assert RandomAffine(scale=(2, 2))(sample, rng()).labels.tolist() == [2]
    # Of the second, grown to 8 x 8 about the centre of the 4 x 4 image, a quarter is seen.
    large = RandomAffine(scale=(4, 4), min_visible=0.3)(sample, rng())
    assert large.labels.tolist() == []
