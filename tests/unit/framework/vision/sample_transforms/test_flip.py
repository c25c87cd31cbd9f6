"""framework.vision.sample_transforms.affine: pixels, boxes and the change of left and right."""

import numpy as np
import pytest

from framework.vision.sample import Sample
from framework.vision.sample_transforms import RandomHorizontalFlip, RandomVerticalFlip

VALUES = np.array([[1, 2, 3], [4, 5, 6]], np.uint8)
SAMPLE = Sample(
    np.repeat(VALUES[..., None], 3, axis=2),
    mask=VALUES,
    boxes=np.array([[0, 0, 1, 2]], np.float32),
    keypoints=np.array([[[0.5, 0.5, 2], [1.5, 1.5, 1]]], np.float32),
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_horizontal():
    out = RandomHorizontalFlip(p=1, keypoint_flip_pairs=((0, 1),))(SAMPLE, rng())
    assert out.image[..., 2].tolist() == [[3, 2, 1], [6, 5, 4]] == out.mask.tolist()
    assert out.boxes.tolist() == [[2, 0, 3, 2]]
    assert out.keypoints.tolist() == [[[1.5, 1.5, 1], [2.5, 0.5, 2]]]


def test_vertical():
    out = RandomVerticalFlip(p=1)(SAMPLE, rng())
    assert out.image[..., 0].tolist() == [[4, 5, 6], [1, 2, 3]] == out.mask.tolist()
    assert out.boxes.tolist() == [[0, 0, 1, 2]]
    assert out.keypoints.tolist() == [[[0.5, 1.5, 2], [1.5, 0.5, 1]]]


@pytest.mark.parametrize("flip", [RandomHorizontalFlip, RandomVerticalFlip])
def test_probability(flip):
    assert all(flip(p=0)(SAMPLE, rng(seed)) is SAMPLE for seed in range(50))
    assert all(flip(p=1)(SAMPLE, rng(seed)) is not SAMPLE for seed in range(50))
    assert 60 < sum(flip(p=0.25)(SAMPLE, rng(seed)) is not SAMPLE for seed in range(400)) < 140


def test_one_pixel():
    pixel = Sample(np.full((1, 1, 3), 9, np.uint8))
    assert RandomHorizontalFlip(p=1)(pixel, rng()).image.tolist() == [[[9, 9, 9]]]
