"""framework.vision.sample_transforms.pad: borders by hand."""

import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from framework.vision.sample import Sample
from framework.vision.sample_transforms import Pad, PadToMultiple, PadToSize, RandomExpand

PIXEL = Sample(
    np.full((1, 1, 3), 7, np.uint8),
    mask=np.array([[5]], np.uint8),
    boxes=np.array([[0, 0, 1, 1]], np.float32),
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_pad():
    out = Pad((1, 0, 2, 1), fill=3, ignore_index=9)(PIXEL, rng())
    assert out.image[..., 1].tolist() == [[3, 7, 3, 3], [3, 3, 3, 3]]
    assert out.mask.tolist() == [[9, 5, 9, 9], [9, 9, 9, 9]] and out.boxes.tolist() == [[1, 0, 2, 1]]
    assert Pad(2)(PIXEL, rng()).size_hw == (5, 5) and Pad(0)(PIXEL, rng()) is PIXEL


def test_pad_to_size():
    assert PadToSize((2, 3), fill=1)(PIXEL, rng()).image[..., 0].tolist() == [[7, 1, 1], [1, 1, 1]]
    centred = PadToSize((2, 4), align="center", fill=1)(PIXEL, rng())
    assert centred.image[..., 0].tolist() == [[1, 7, 1, 1], [1, 1, 1, 1]]
    assert PadToSize((1, 1))(PIXEL, rng()) is PIXEL
    with pytest.raises(
        ShapeError, match=r"larger than the size[\s\S]*\(3, 2\)[\s\S]*at most \(2, 2\)[\s\S]*fit"
    ):
        PadToSize((2, 2))(Sample(np.zeros((3, 2, 3), np.uint8)), rng())


@pytest.mark.parametrize(("size", "expected"), [((1, 1), (4, 4)), ((4, 8), (4, 8)), ((5, 7), (8, 8))])
def test_pad_to_multiple(size, expected):
    out = PadToMultiple(4, fill=2)(Sample(np.zeros((*size, 3), np.uint8)), rng())
    assert out.size_hw == expected
    assert (out.image == 2).sum() == 3 * (expected[0] * expected[1] - size[0] * size[1])


def test_pad_to_multiple_in_the_middle():
    out = PadToMultiple(3, align="center", fill=1)(PIXEL, rng())
    assert np.argwhere(out.image[..., 0] == 7).tolist() == [[1, 1]]


def test_random_expand():
    sample = Sample(np.full((4, 6, 3), 7, np.uint8), boxes=np.array([[1, 1, 3, 3]], np.float32))
    sizes = []
    for seed in range(200):
        out = RandomExpand(max_ratio=3, p=1)(sample, rng(seed))
        height, width = out.size_hw
        sizes.append(height)
        assert 4 <= height <= 12 and 6 <= width <= 18 and abs(width - 1.5 * height) <= 1.5
        (x, y), box = (out.warp.points(np.zeros(2)) if out.warp else np.zeros(2)), out.boxes[0]
        assert box.tolist() == [x + 1, y + 1, x + 3, y + 3]
        assert (out.image[int(y) : int(y) + 4, int(x) : int(x) + 6] == 7).all()
        assert (out.image == 7).sum() == 4 * 6 * 3
    assert set(sizes) >= set(range(4, 12))
    assert (
        RandomExpand(p=0)(sample, rng()) is sample and RandomExpand(max_ratio=1, p=1)(sample, rng()) is sample
    )


def test_few_multiples_to_a_doubling():
    pad, sides = PadToMultiple(32, per_octave=4), range(1, 1025)
    made = [pad.plan((side, 1), rng()).size_hw[0] for side in sides]
    assert sorted(set(made)) == [32, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024]
    assert all(side <= new <= max(1.25 * side, side + 31) for side, new in zip(sides, made))
    with pytest.raises(ConfigError, match="per_octave"):
        PadToMultiple(32, per_octave=0)
