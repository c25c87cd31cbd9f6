"""framework.vision.sample_transforms.affine_crop: where the corners and the keypoints of a crop come from, by hand."""

import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from framework.vision.sample import Sample
from framework.vision.sample_transforms import CropToObject, RandomCropToObject, RandomFrame
from framework.vision.sample_transforms.affine_crop import plan_frame

IMAGE = np.arange(40 * 60, dtype=np.uint32).astype(np.uint8).reshape(40, 60)[..., None].repeat(3, axis=2)
PLAIN = {"scale": 0.0, "degrees": 0.0, "p_flip": 0.0, "p_half_body": 0.0}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def person(**changes) -> Sample:
    """Box of 8 x 16 around (30, 20), with keypoints at its centre, on its right edge, beside the image, and none."""
    fields = {
        "boxes": np.array([[26, 12, 34, 28]], np.float32),
        "keypoints": np.array([[[30, 20, 2], [34, 20, 1], [70, 20, 2], [0, 0, 0]]], np.float32),
        "labels": np.array([0]),
        "valid": np.array([True]),
        "areas": np.array([99], np.float32),
    }
    return Sample(IMAGE, id=7, **{**fields, **changes})


def test_framed():
    warp = plan_frame((40, 60), np.array([30.0, 20.0]), np.array([10.0, 20.0]), (40, 20))
    assert warp.size_hw == (40, 20) and warp.source_hw == (40, 60)
    assert warp.points(np.array([[30.0, 20], [25, 10], [35, 30]])).tolist() == [[10, 20], [0, 0], [20, 40]]
    wide = plan_frame((40, 60), np.array([30.0, 20.0]), np.array([40.0, 20.0]), (40, 20))
    assert wide.points(np.array([[10.0, 20], [30, 0]])).tolist() == [[0, 20], [10, 10]]  # half the scale
    turned = plan_frame((40, 60), np.array([30.0, 20.0]), np.array([10.0, 20.0]), (40, 20), degrees=90)
    np.testing.assert_allclose(turned.points(np.array([[31.0, 20]])), [[10, 22]], atol=1e-9)  # clockwise
    mirror = plan_frame((40, 60), np.array([30.0, 20.0]), np.array([10.0, 20.0]), (40, 20), mirrored=True)
    np.testing.assert_allclose(mirror.points(np.array([[31.0, 20], [30, 21]])), [[8, 20], [10, 22]])
    point = plan_frame((40, 60), np.array([30.0, 20.0]), np.array([0.0, 0.0]), (40, 20))  # one pixel at least
    assert point.points(np.array([[30.5, 20.0]])).tolist() == [[20, 20]]


def test_crop_to_object():
    out = CropToObject((40, 20))(person(), rng())  # 16 * 1.25 = 20 pixels become 40
    assert out.size_hw == (40, 20) and out.source_size == (40, 60) and out.id == 7
    assert out.keypoints.tolist() == [[[10, 20, 2], [18, 20, 1], [90, 20, 2], [0, 0, 0]]]
    assert out.boxes.tolist() == [[2, 4, 18, 36]] and out.areas.tolist() == [99]
    np.testing.assert_allclose(out.warp.inverse().points(np.array([[18.0, 20.0]])), [[34, 20]])
    # 2 x without a shift: the middle of the crop are the pixels around (30, 20), outside is the fill
    corner = IMAGE[19:21, 29:31].astype(float)  # its centre is a quarter of a pixel into the lower right one
    weights = np.array([[1, 3], [3, 9]]) / 16
    np.testing.assert_allclose(out.image[20, 10], (corner * weights[..., None]).sum(axis=(0, 1)), atol=1)
    near_edge = CropToObject((40, 20), fill=9)(person(boxes=np.array([[-4, 12, 4, 28]], np.float32)), rng())
    assert (near_edge.image[:, :9] == 9).all() and near_edge.boxes.tolist() == [[2, 4, 18, 36]]


def test_crops_need_one_box():
    two = person(boxes=np.zeros((2, 4), np.float32), keypoints=None, labels=None, valid=None, areas=None)
    for crop in (CropToObject((4, 4)), RandomCropToObject((4, 4))):
        with pytest.raises(
            ShapeError, match=rf"{type(crop).__name__}, sample 7: (?s:.)*2 boxes(?s:.)*one object"
        ):
            crop(two, rng())
        with pytest.raises(ShapeError, match="0 boxes"):
            crop(Sample(IMAGE), rng())


def test_random_crop_without_chance_is_the_crop():
    for seed in range(5):
        out = RandomCropToObject((40, 20), **PLAIN)(person(), rng(seed))
        assert out.keypoints.tolist() == CropToObject((40, 20))(person(), rng()).keypoints.tolist()


def test_random_crop_mirrors_and_changes_sides():
    flip = RandomCropToObject((40, 20), **{**PLAIN, "p_flip": 1.0}, keypoint_flip_pairs=((0, 1),))
    out = flip(person(), rng())
    np.testing.assert_allclose(
        out.keypoints[0], [[2, 20, 1], [10, 20, 2], [-70, 20, 2], [0, 0, 0]], atol=1e-5
    )
    with pytest.raises(ShapeError, match="keypoint that is not there"):
        RandomCropToObject((40, 20), p_flip=1.0, keypoint_flip_pairs=((0, 4),))(person(), rng())


def test_random_crop_scales_and_turns_within_its_limits():
    scales, angles = [], []
    crop = RandomCropToObject((40, 20), scale=0.5, degrees=40, p_rotate=0.6, p_flip=0.0)
    for seed in range(300):
        across, _ = crop(person(), rng(seed)).warp.matrix[:2, :2].T
        scales.append(np.hypot(*across))
        angles.append(np.rad2deg(np.arctan2(across[1], across[0])))
    # what is seen is 0.5 to 1.5 times as large: 2 / 1.5 to 2 / 0.5
    assert min(scales) == pytest.approx(4 / 3) and max(scales) == pytest.approx(4)
    assert 0.35 < np.mean(np.abs(angles) < 1e-9) < 0.45
    assert min(angles) == pytest.approx(-80) and max(angles) == pytest.approx(80)


def test_half_body():
    keypoints = np.zeros((1, 6, 3), np.float32)
    keypoints[0, :, 2] = 1
    keypoints[0, :3, :2] = [[10, 10], [20, 10], [15, 16]]  # upper: centre (15, 12), 10 x 6
    keypoints[0, 3:, :2] = [[10, 30], [12, 36], [14, 36]]  # lower: centre (12, 34), 4 x 6
    crop = RandomCropToObject(
        (30, 30), **{**PLAIN, "p_half_body": 1.0}, upper_body=(0, 1, 2), half_body_least=5
    )
    middles, sides = set(), set()
    for seed in range(40):
        back = crop(person(keypoints=keypoints), rng(seed)).warp.inverse()
        middles.add(tuple(np.round(back.points(np.array([15.0, 15.0])), 4).tolist()))
        sides.add(round(float(np.ptp(back.points(np.array([[0.0, 0.0], [30.0, 0.0]]))[:, 0])), 4))
    assert middles == {(15, 12), (12, 34)} and sides == {15, 9}
    few = keypoints.copy()
    few[0, 3:5, 2] = 0  # four are left: the box stands
    out = crop(person(keypoints=few), rng())
    np.testing.assert_allclose(out.warp.inverse().points(np.array([15.0, 15.0])), [30, 20])
    two = keypoints.copy()
    two[0, 5, 2] = 0  # five are left, two of them below: always the upper ones
    more = RandomCropToObject(
        (30, 30), **{**PLAIN, "p_half_body": 1.0}, upper_body=(0, 1, 2), half_body_least=4
    )
    for seed in range(20):
        back = more(person(keypoints=two), rng(seed)).warp.inverse()
        np.testing.assert_allclose(back.points(np.array([15.0, 15.0])), [15, 12], atol=1e-6)


def test_random_frame():
    still = RandomFrame((20, 20), degrees=0, scale=(1, 1), translate=0)
    warp = still.plan((40, 60), rng())
    assert warp.points(np.array([[30.0, 20], [10, 0], [50, 40]])).tolist() == [[10, 10], [0, 0], [20, 20]]
    out = still(person(mask=np.ones((40, 60), bool)), rng())
    assert out.keypoints.tolist() == [[[10, 10, 2], [12, 10, 1], [0, 0, 0], [0, 0, 0]]] and out.mask.all()
    double = RandomFrame((20, 20), degrees=0, scale=(2, 2), translate=0)(
        person(mask=np.ones((40, 60), bool)), rng()
    )
    assert not double.mask[:5].any() and double.mask[5:15, 3:17].all()  # above and below is nothing
    shifts = []
    for seed in range(200):
        back = RandomFrame((20, 20), scale=(0.75, 1.5), translate=0.2).plan((40, 60), rng(seed)).inverse()
        (x0, y0), (x1, y1) = back.points(np.array([[10.0, 10.0], [20.0, 10.0]]))
        side, angle = 2 * np.hypot(x1 - x0, y1 - y0), np.rad2deg(np.arctan2(y1 - y0, x1 - x0))
        assert 30 <= side <= 60 and abs(angle) <= 30
        shifts.append(max(abs(x0 - 30), abs(y0 - 20)) / side)
    assert 0.19 < max(shifts) <= 0.2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CropToObject((0, 4)), r"CropToObject\.size_hw"),
        (lambda: CropToObject((4, 4), padding=0), r"CropToObject\.padding"),
        (lambda: RandomCropToObject((4, 4), scale=1.0), "augmentation is not possible"),
        (lambda: RandomCropToObject((4, 4), half_body_least=1), "augmentation is not possible"),
        (lambda: RandomCropToObject((4, 4), upper_body=(-1,)), "augmentation is not possible"),
        (lambda: RandomCropToObject((4, 4), degrees=91), r"RandomCropToObject\.degrees"),
        (lambda: RandomCropToObject((4, 4), p_half_body=2), r"RandomCropToObject\.p_half_body"),
        (lambda: RandomCropToObject((4, 4), keypoint_flip_pairs=((0, 0),)), "cannot change places"),
        (lambda: RandomFrame((4, 4), scale=(0, 1)), r"RandomFrame\.scale"),
        (lambda: RandomFrame((4, 4), translate=1.5), r"RandomFrame\.translate"),
        (lambda: RandomFrame((4, 4), fill=256), "no such value"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_one_pixel():
    pixel = Sample(np.full((1, 1, 3), 9, np.uint8), boxes=np.array([[0, 0, 1, 1]], np.float32))
    assert (CropToObject((5, 5), padding=1.0)(pixel, rng()).image == 9).all()
    assert RandomFrame((5, 5))(pixel, rng()).size_hw == (5, 5)
