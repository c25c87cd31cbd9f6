"""Windows, scales and mirrors by hand-made networks; device and host agree."""

import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError
from segmentation.test_time_augmentation import Slide, TestTimeAugmentation, best_class, resize_channels

RNG = np.random.default_rng(0)


def bright(images):
    """Two classes: 100 and the first channel."""
    xp = np if isinstance(images, np.ndarray) else jnp
    first = images[..., 0].astype(np.float32)
    return xp.stack([xp.full_like(first, 100), first], axis=-1)


def test_windows_cover_and_end_with_the_image():
    slide = Slide((4, 6), (3, 4))
    assert slide.corners((8, 6)) == [(0, 0), (3, 0), (4, 0)]
    assert slide.corners((4, 11)) == [(0, 0), (0, 4), (0, 5)]
    assert slide.corners((4, 6)) == [(0, 0)]


@pytest.mark.parametrize(("crop", "stride"), [((4, 4), (5, 4)), ((4, 4), (4, 0)), ((0, 4), (1, 1))])
def test_windows_with_gaps_are_refused(crop, stride):
    with pytest.raises(ConfigError, match="do not cover an image"):
        Slide(crop, stride)


@pytest.mark.parametrize("scales", [(), (0.0,), (1.0, -0.5)])
def test_scales_are_checked(scales):
    with pytest.raises(ConfigError, match="scales must be numbers above 0"):
        TestTimeAugmentation(scales)


def test_the_greater_score_is_the_label():
    image = jnp.array([[[[99], [101], [100]]]], jnp.uint8)  # [1, 1, 3, 1]; the first class wins a draw
    out = TestTimeAugmentation().on_device(bright, image)
    assert out["labels"].dtype == np.uint8
    np.testing.assert_array_equal(out["labels"], [[[0, 1, 0]]])


@pytest.mark.parametrize(
    ("classes", "dtype"), [(1, np.uint8), (19, np.uint8), (150, np.uint8), (300, np.uint16)]
)
def test_the_best_class(classes, dtype):
    scores = RNG.integers(0, 9, (2, 5, 7, classes)).astype(np.float32)  # with draws
    found = best_class(jnp.asarray(scores))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, scores.argmax(-1))


def test_windows_are_averaged():
    """A network that gives each window its own mean: where two windows overlap, the mean of both."""

    def mean(windows):
        return (np.full((*window.shape[:2], 1), window.mean(), np.float32) for window in windows)

    image = np.array([0, 0, 6, 6, 12, 12], np.uint8).reshape(1, 6, 1)
    inference = TestTimeAugmentation(slide=Slide((1, 4), (1, 2)))
    # windows 0..3 (mean 3) and 2..5 (mean 9)
    np.testing.assert_allclose(inference.on_host(mean, image)[0, :, 0], [3, 3, 6, 6, 9, 9])


def test_a_mirrored_image_is_averaged_with_the_straight_one():
    def place(images):  # a network that knows left from right
        for image in images:
            yield np.broadcast_to(np.arange(image.shape[1], dtype=np.float32)[:, None], (*image.shape[:2], 1))

    found = TestTimeAugmentation(flip=True).on_host(place, np.zeros((2, 5, 3), np.uint8))
    np.testing.assert_allclose(found, 2.0)


def test_sizes_of_the_scales_are_rounded():
    seen = []

    def record(images):
        for image in images:
            seen.append(image.shape[:2])
            yield np.zeros((*image.shape[:2], 2), np.float32)

    found = TestTimeAugmentation((0.5, 1.0, 1.75)).on_host(record, np.zeros((5, 6, 3), np.uint8))
    assert seen == [(3, 3), (5, 6), (9, 11)]  # 2.5 and 8.75 up, 10.5 up
    assert found.shape == (5, 6, 2)


CASES = [
    TestTimeAugmentation(output="scores"),
    TestTimeAugmentation((0.5, 1.0, 1.5), flip=True, output="scores"),
    TestTimeAugmentation(slide=Slide((8, 8), (5, 6)), output="scores"),
    TestTimeAugmentation((0.75, 1.25), flip=True, slide=Slide((8, 12), (4, 8)), output="scores"),
]


@pytest.mark.parametrize("inference", CASES, ids=["whole", "scales", "slide", "all"])
@pytest.mark.parametrize("size", [(17, 23), (5, 30), (1, 1)])
def test_device_and_host_agree(inference, size):
    image = RNG.integers(0, 256, (*size, 3), np.uint8)
    host = inference.on_host(lambda images: map(bright, images), image)
    device = inference.on_device(bright, jnp.asarray(image[None]))["scores"][0]
    assert host.shape == (*size, 2)
    np.testing.assert_allclose(host, device, atol=2e-3)  # of 255


def test_many_channels_are_resized_like_few():
    x = RNG.random((7, 5, 9)).astype(np.float32)
    wide = resize_channels(x, (11, 13))
    np.testing.assert_array_equal(wide[..., :3], resize_channels(np.ascontiguousarray(x[..., :3]), (11, 13)))
