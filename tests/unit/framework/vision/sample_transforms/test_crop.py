"""framework.vision.sample_transforms.crop: which pixels are kept, by hand."""

import numpy as np
import pytest

from framework.core.errors import ConfigError
from framework.vision import boxes
from framework.vision.image import resize
from framework.vision.sample import Sample
from framework.vision.sample_transforms import CenterCrop, RandomCrop, RandomIoUCrop, RandomResizedCrop


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def numbered(height: int, width: int) -> Sample:
    values = np.arange(height * width, dtype=np.uint8).reshape(height, width)
    return Sample(np.repeat(values[..., None], 3, axis=2), mask=values)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ((2, 2), [[5, 6], [9, 10]]),
        ((1, 3), [[4, 5, 6]]),  # between two pixels: the first
        ((4, 4), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]),
        ((1, 6), [[99, 4, 5, 6, 7, 99]]),
    ],
)
def test_center_crop(wanted, expected):
    out = CenterCrop(wanted, fill=99, ignore_index=77)(numbered(4, 4), rng())
    assert out.image[..., 0].tolist() == expected
    assert out.mask.tolist() == [[77 if value == 99 else value for value in row] for row in expected]


def test_random_crop_reaches_every_place():
    corners = {int(RandomCrop((2, 3))(numbered(4, 4), rng(seed)).image[0, 0, 0]) for seed in range(200)}
    assert corners == {0, 1, 4, 5, 8, 9}
    only = RandomCrop((4, 4))(numbered(4, 4), rng())
    np.testing.assert_array_equal(only.image, numbered(4, 4).image)


def test_random_crop_with_padding():
    rows = set()
    for seed in range(300):
        out = RandomCrop((1, 1), padding=1, fill=99)(numbered(1, 1), rng(seed))
        rows.add((int(out.image[0, 0, 0]), tuple(out.warp.points(np.zeros(2))) if out.warp else (0.0, 0.0)))
    assert rows == {(0 if (x, y) == (0, 0) else 99, (x, y)) for x in (-1, 0, 1) for y in (-1, 0, 1)}


def test_random_crop_of_an_image_that_is_too_small():
    places = set()
    for seed in range(100):
        out = RandomCrop((2, 3), fill=99)(numbered(1, 2), rng(seed))
        assert out.image.shape == (2, 3, 3) and sorted(set(out.image[..., 0].flat)) == [0, 1, 99]
        places.add(tuple(np.argwhere(out.image[..., 0] == 0)[0]))
    assert places == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_random_crop_drops_what_is_hardly_seen():
    sample = Sample(np.zeros((4, 4, 3), np.uint8), boxes=np.array([[0, 0, 4, 4]], np.float32))
    assert RandomCrop((2, 2))(sample, rng()).boxes.tolist() == [[0, 0, 2, 2]]
    assert len(RandomCrop((2, 2), min_visible=0.5)(sample, rng()).boxes) == 0


def test_random_resized_crop_parts():
    crop = RandomResizedCrop((8, 8), scale=(0.2, 0.6), ratio=(0.5, 2.0))
    shares, ratios = [], []
    for seed in range(500):
        x0, y0, x1, y1 = crop.plan((100, 120), rng(seed)).inverse().boxes(np.array([[0.0, 0, 8, 8]]))[0]
        assert x0 >= -1e-9 and y0 >= -1e-9 and x1 <= 120 + 1e-9 and y1 <= 100 + 1e-9
        shares.append((x1 - x0) * (y1 - y0) / 12000)
        ratios.append((x1 - x0) / (y1 - y0))
    assert 0.19 < min(shares) < 0.25 and 0.5 < max(shares) < 0.61
    assert 0.49 < min(ratios) < 0.6 and 1.7 < max(ratios) < 2.05
    assert 0.4 < np.mean(np.array(ratios) < 1) < 0.6  # tall and wide parts are about equally frequent


def test_random_resized_crop_is_crop_and_resize():
    image = rng(1).integers(0, 256, (37, 53, 3), dtype=np.uint8)
    crop = RandomResizedCrop((16, 16), interpolation="area")
    for seed in range(20):
        warp = crop.plan((37, 53), rng(seed))
        x0, y0, x1, y1 = np.rint(warp.inverse().boxes(np.array([[0.0, 0, 16, 16]]))[0]).astype(int)
        out = crop(Sample(image), rng(seed))
        np.testing.assert_array_equal(out.image, resize(image[y0:y1, x0:x1], (16, 16), "area"))


@pytest.mark.parametrize(
    ("size", "expected"),
    # No part with all of the area and a ratio from 3/4 to 4/3 fits: the middle, as wide or as high as may be.
    [((30, 90), (25, 0, 65, 30)), ((90, 30), (0, 25, 30, 65)), ((1, 1), (0, 0, 1, 1))],
)
def test_random_resized_crop_falls_back_to_the_middle(size, expected):
    crop = RandomResizedCrop((8, 8), scale=(1.0, 1.0))
    box = crop.plan(size, rng()).inverse().boxes(np.array([[0.0, 0, 8, 8]]))[0]
    np.testing.assert_allclose(box, expected, atol=1e-9)


def two_objects(valid=(True, True)) -> Sample:
    return Sample(
        np.zeros((100, 100, 3), np.uint8),
        boxes=np.array([[10, 10, 40, 40], [60, 60, 90, 90]], np.float32),
        labels=np.array([1, 2]),
        valid=np.array(valid),
    )


def test_iou_crop_keeps_what_is_centred_and_overlaps_enough():
    sample = two_objects()
    transform = RandomIoUCrop((0.3,), allow_no_crop=False)
    seen = set()
    for seed in range(60):
        out = transform(sample, rng(seed))
        if out is sample:
            continue
        part = out.warp.inverse().boxes(np.array([[0, 0, out.size_hw[1], out.size_hw[0]]], np.float64))
        assert boxes.iou(sample.boxes, part).max() >= 0.3
        x0, y0, x1, y1 = part[0]
        assert 21 <= x1 - x0 <= 100 and 0.45 < (x1 - x0) / (y1 - y0) < 2.2
        centred = [label for label, c in ((1, 25), (2, 75)) if x0 <= c < x1 and y0 <= c < y1]
        assert out.labels.tolist() == centred and centred
        seen.add(tuple(centred))
    assert {(1,), (2,)} <= seen


def test_iou_crop_objects_to_ignore_do_not_count():
    for seed in range(30):
        out = RandomIoUCrop((0.1,), allow_no_crop=False)(two_objects((True, False)), rng(seed))
        assert 1 in out.labels.tolist()
    ignored = two_objects((False, False))
    assert RandomIoUCrop(allow_no_crop=False)(ignored, rng()) is ignored


def test_iou_crop_leaves_images_alone():
    empty = Sample(np.zeros((9, 9, 3), np.uint8), boxes=np.zeros((0, 4), np.float32))
    assert RandomIoUCrop(allow_no_crop=False)(empty, rng()) is empty
    sample = two_objects()
    left = sum(RandomIoUCrop((0.0,))(sample, rng(seed)) is sample for seed in range(100))
    assert 30 < left < 70  # one of two choices
    impossible = RandomIoUCrop((0.99,), attempts=3, allow_no_crop=False)
    assert all(impossible(sample, rng(seed)) is sample for seed in range(10))


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"thresholds": ()}, "thresholds"),
        ({"thresholds": (0.5, 1.5)}, "thresholds"),
        ({"scale": (0.3, 1.2)}, "scale"),
        ({"ratio": (0, 1)}, "ratio"),
        ({"attempts": 0}, "attempts"),
    ],
)
def test_iou_crop_out_of_range(wrong, name):
    with pytest.raises(ConfigError, match=f"RandomIoUCrop.{name}"):
        RandomIoUCrop(**wrong)
