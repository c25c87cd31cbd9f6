"""framework.vision.sample_transforms.resize: sizes by hand, and all fields in the same scale."""

import numpy as np
import pytest

from framework.core.errors import ConfigError
from framework.vision.sample import Sample
from framework.vision.sample_transforms import BatchRandomResize, LetterBox, RandomScale, Resize, ResizeShort


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def image(height: int, width: int) -> Sample:
    return Sample(np.full((height, width, 3), 50, np.uint8))


@pytest.mark.parametrize(
    ("mode", "wanted", "size", "expected"),
    [
        ("exact", (7, 5), (20, 30), (7, 5)),
        ("short", (10, 10), (20, 30), (10, 15)),
        ("short", (10, 10), (30, 20), (15, 10)),
        ("short", (256, 256), (333, 500), (256, 384)),  # 384.4
        ("long", (10, 10), (20, 30), (7, 10)),  # 6.67
        ("long", (10, 10), (1, 100), (1, 10)),  # a side never vanishes
        ("fit", (10, 40), (20, 30), (10, 15)),
        ("fit", (40, 10), (20, 30), (7, 10)),
        ("fit", (40, 60), (20, 30), (40, 60)),
        ("short", (4, 4), (1, 1), (4, 4)),
    ],
)
def test_sizes(mode, wanted, size, expected):
    out = Resize(wanted, mode=mode)(image(*size), rng())
    assert out.size_hw == expected == out.image.shape[:2]
    assert (out.image == 50).all()


def test_fields_are_scaled():
    sample = Sample(
        np.zeros((2, 4, 3), np.uint8),
        mask=np.array([[0, 0, 1, 1], [0, 0, 2, 2]], np.uint8),
        boxes=np.array([[1, 0, 3, 2]], np.float32),
    )
    out = Resize((4, 2))(sample, rng())
    assert out.boxes.tolist() == [[0.5, 0, 1.5, 4]]
    assert out.mask.tolist() == [[0, 1], [0, 1], [0, 2], [0, 2]]


def test_interpolation():
    image = np.repeat(np.array([[[0], [100]]], np.uint8), 3, axis=2)
    near = Resize((1, 4), interpolation="nearest")(Sample(image), rng()).image[0, :, 0]
    linear = Resize((1, 4))(Sample(image), rng()).image[0, :, 0]
    assert near.tolist() == [0, 0, 100, 100] and linear.tolist() == [0, 25, 75, 100]


def test_random_scale():
    free = RandomScale((0.5, 2.0))
    sizes = [free.plan((100, 200), rng(seed)).size_hw for seed in range(200)]
    assert all(50 <= h <= 200 and 100 <= w <= 400 for h, w in sizes) and len(set(sizes)) > 50
    assert all(abs(w - 2 * h) <= 2 for h, w in sizes)
    stepped = RandomScale((0.5, 2.0), step=0.1)
    assert {stepped.plan((10, 10), rng(seed)).size_hw[0] for seed in range(500)} == set(range(5, 21))
    # The end is not reached by whole steps.
    assert {RandomScale((1, 2), step=0.4).plan((10, 10), rng(s)).size_hw[0] for s in range(99)} == {
        10,
        14,
        18,
    }
    assert RandomScale((2, 2))(image(3, 1), rng()).size_hw == (6, 2)


def test_batch_random_resize_draws_from_its_sizes():
    transform = BatchRandomResize((4, (6, 8)))
    sizes = [transform(image(20, 30), rng(seed)).size_hw for seed in range(100)]
    assert set(sizes) == {(4, 4), (6, 8)} and 30 < sizes.count((4, 4)) < 70
    moved = transform(image(20, 30).replace(boxes=np.array([[3, 2, 30, 20]], np.float32)), rng(0))
    height, width = moved.size_hw
    np.testing.assert_allclose(moved.boxes, [[0.1 * width, 0.1 * height, width, height]], rtol=1e-6)


def test_batch_random_resize_may_draw_the_interpolation():
    noise = Sample(np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8))
    for chosen, count in ((False, 1), (True, 5)):
        transform = BatchRandomResize((9,), random_interpolation=chosen)
        assert len({transform(noise, rng(seed)).image.tobytes() for seed in range(60)}) == count


@pytest.mark.parametrize("sizes", [(), (0,), ((3, 0),)])
def test_batch_random_resize_out_of_range(sizes):
    with pytest.raises(ConfigError, match=r"BatchRandomResize\.sizes"):
        BatchRandomResize(sizes)


def test_letter_box():
    sample = image(20, 40).replace(boxes=np.array([[0, 0, 40, 20]], np.float32))
    centred = LetterBox((40, 40))(sample, rng())
    assert centred.boxes.tolist() == [[0, 10, 40, 30]]
    assert centred.image[:, 0, 0].tolist() == [114] * 10 + [50] * 20 + [114] * 10
    first = LetterBox((10, 10), align="top_left", fill=7)(sample, rng())
    assert first.boxes.tolist() == [[0, 0, 10, 5]] and first.image[:, 3, 1].tolist() == [50] * 5 + [7] * 5
    with pytest.raises(ConfigError, match=r"LetterBox\.size_hw"):
        LetterBox((0, 3))
    with pytest.raises(ConfigError, match=r"LetterBox\.fill"):
        LetterBox((3, 3), fill=300)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((600, 800), (800, 1067)),
        ((800, 600), (1067, 800)),
        ((400, 1000), (533, 1333)),  # the long side would be 2000
        ((1600, 1600), (800, 800)),
        ((1, 2000), (1, 1333)),
    ],
)
def test_resize_short(size, expected):
    assert ResizeShort().plan(size, rng()).size_hw == expected


def test_resize_short_of_several_lengths():
    sizes = {ResizeShort((10, 20), 50).plan((100, 200), rng(seed)).size_hw for seed in range(20)}
    assert sizes == {(10, 20), (20, 40)}
    for wrong in ({"short": ()}, {"short": 0}, {"short": 20, "longest": 10}):
        with pytest.raises(ConfigError, match="ResizeShort"):
            ResizeShort(**wrong)
