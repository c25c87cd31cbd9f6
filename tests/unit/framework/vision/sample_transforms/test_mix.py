"""framework.vision.sample_transforms.mix: hand-computed mosaics and blends."""

from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from framework.vision.sample import Sample
from framework.vision.sample_transforms import MixUp, Mosaic
from framework.vision.warp import Warp


class Drawn:
    """A generator that gives what it was told."""

    def __init__(self, *, uniform: float = 0.0, integers: tuple[int, ...] = (), beta: float = 0.5) -> None:
        self.uniform, self.numbers, self.share = uniform, list(integers), beta

    def random(self) -> float:
        return self.uniform

    def integers(self, low: int, high: int) -> int:
        value = self.numbers.pop(0)
        assert low <= value < high
        return value

    def beta(self, a: float, b: float) -> float:
        return self.share


def plain(value: int, size_hw: tuple[int, int] = (4, 4), **fields: object) -> Sample:
    return Sample(np.full((*size_hw, 3), value, np.uint8), id=f"p{value}", **fields)  # pyright: ignore[reportArgumentType]


def boxed(value: int, box: tuple[float, ...], label: int, size_hw: tuple[int, int] = (4, 4)) -> Sample:
    return plain(value, size_hw, boxes=np.array([box], np.float32), labels=np.array([label]))


def test_four_images_meet_at_the_point() -> None:
    """Canvas 8 x 8, quarter 4 x 4, the point (x 3, y 5): the left ones lose a column, the lower ones a row."""
    four = [boxed(10 * (n + 1), (0, 0, 4, 4), n) for n in range(4)]
    out = Mosaic((8, 8), fill=0)(four[0], Drawn(integers=(5, 3)), four[1:])  # pyright: ignore[reportArgumentType]
    want = np.zeros((8, 8), np.uint8)
    want[1:5, 0:3], want[1:5, 3:7], want[5:8, 0:3], want[5:8, 3:7] = 10, 20, 30, 40
    np.testing.assert_array_equal(out.image[..., 1], want)
    assert out.boxes is not None and out.labels is not None
    assert out.boxes.tolist() == [[0, 1, 3, 5], [3, 1, 7, 5], [0, 5, 3, 8], [3, 5, 7, 8]]
    assert out.labels.tolist() == [0, 1, 2, 3]
    assert out.id == "p10" and out.warp is None and out.source_size is None


def test_images_are_scaled_to_a_quarter_with_their_aspect() -> None:
    """A 2 x 4 and an 8 x 4 image into 4 x 4: doubled to 4 x 2 is too high; both sides get one factor."""
    wide, high = boxed(50, (1, 0, 3, 2), 0, (2, 4)), boxed(60, (0, 0, 4, 8), 1, (8, 4))
    out = Mosaic((8, 8))(wide, Drawn(integers=(4, 4)), [high, wide, high])  # pyright: ignore[reportArgumentType]
    assert out.boxes is not None
    # wide keeps factor 1 (width 4 fills the quarter), high gets 1/2; corners lie at (4, 4)
    assert out.boxes.tolist() == [[1, 2, 3, 4], [4, 0, 6, 4], [1, 4, 3, 6], [4, 4, 6, 8]]
    assert (out.image[0, 0] == 114).all() and (out.image[3, 0] == 50).all() and (out.image[0, 7] == 114).all()


def test_objects_that_are_cut_away_are_dropped() -> None:
    sample = boxed(9, (0, 0, 1, 1), 3)
    fully = Mosaic((8, 8))(sample, Drawn(integers=(3, 3)), [sample] * 3)  # pyright: ignore[reportArgumentType]
    # the upper ones lost their first row, the left ones their first column
    assert fully.boxes is not None and fully.boxes.tolist() == [[3, 3, 4, 4]]
    large = boxed(9, (0, 0, 2, 4), 3)
    some = Mosaic((8, 8), min_visible=0.6)(large, Drawn(integers=(4, 3)), [large] * 3)  # pyright: ignore[reportArgumentType]
    assert some.boxes is not None  # half of the two left ones is cut
    assert some.boxes.tolist() == [[3, 0, 5, 4], [3, 4, 5, 8]]


def test_all_fields_move_together() -> None:
    mask = np.zeros((1, 4, 4), bool)
    mask[0, 1, 2] = True
    sample = plain(
        7,
        boxes=np.array([[2, 1, 3, 2]], np.float32),
        polygons=(np.array([[2, 1], [3, 1], [3, 2]], np.float32),),
        keypoints=np.array([[[2.5, 1.5, 2], [0, 0, 0]]], np.float32),
        mask=mask,
        text=("a",),
        valid=np.array([False]),
        areas=np.array([5], np.float32),
        warp=Warp.identity((4, 4)),
    )
    out = Mosaic((8, 8))(sample, Drawn(integers=(4, 4)), [sample] * 3)  # pyright: ignore[reportArgumentType]
    assert out.keypoints is not None and out.mask is not None and out.polygons is not None
    assert out.valid is not None and out.areas is None
    assert out.keypoints[3].tolist() == [[6.5, 5.5, 2], [0, 0, 0]]
    assert out.polygons[1].tolist() == [[6, 1], [7, 1], [7, 2]]
    assert [np.argwhere(one).tolist() for one in out.mask] == [[[1, 2]], [[1, 6]], [[5, 2]], [[5, 6]]]
    assert out.text == ("a",) * 4 and out.valid.tolist() == [False] * 4


def test_a_mask_of_classes_is_pasted() -> None:
    sample = plain(7, mask=np.full((4, 4), 3, np.uint8))
    out = Mosaic((8, 8))(sample, Drawn(integers=(2, 2)), [sample] * 3)  # pyright: ignore[reportArgumentType]
    want = np.full((8, 8), 255)
    want[:6, :6] = 3
    assert out.mask is not None
    np.testing.assert_array_equal(out.mask, want)


def test_sometimes_nothing_is_mixed_and_nothing_loaded() -> None:
    sample = plain(7)
    for transform in (Mosaic((8, 8), p=0.5), MixUp(p=0.5)):
        assert transform(sample, Drawn(uniform=0.5), None) is sample  # pyright: ignore[reportArgumentType]


def test_blend() -> None:
    one = boxed(100, (0, 0, 2, 2), 1, (2, 4))
    other = boxed(40, (1, 1, 3, 3), 2, (4, 3))
    out = MixUp()(one, Drawn(beta=0.25), [other])  # pyright: ignore[reportArgumentType]
    want = np.zeros((4, 4))
    want[:2, :] += 25
    want[:4, :3] += 30
    np.testing.assert_array_equal(out.image[..., 0], want)
    assert out.boxes is not None and out.labels is not None
    assert out.boxes.tolist() == [[0, 0, 2, 2], [1, 1, 3, 3]] and out.labels.tolist() == [1, 2]


def test_unfit_samples() -> None:
    mix = MixUp()
    rng = np.random.default_rng(0)
    with pytest.raises(
        ShapeError, match=r"sample 'p7'(?s:.)*cannot be mixed(?s:.)*boxes, labels; an image alone"
    ):
        mix(boxed(7, (0, 0, 1, 1), 0), rng, [plain(8)])
    one = plain(7, labels=np.array(3))
    with pytest.raises(ShapeError, match="a label of the image"):
        mix(one, rng, [one])
    with pytest.raises(ShapeError, match="a text of the image"):
        Mosaic((8, 8))(plain(7, text="a"), rng, [plain(7, text="a")] * 3)
    masked = plain(7, mask=np.zeros((4, 4), np.uint8))
    with pytest.raises(ShapeError, match="masks of classes cannot be blended"):
        mix(masked, rng, [masked])


def test_settings_out_of_range() -> None:
    with pytest.raises(ConfigError, match="four images do not fit"):
        Mosaic((1, 8))
    with pytest.raises(ConfigError, match=r"Mosaic\.p"):
        Mosaic((8, 8), p=2)
    with pytest.raises(ConfigError, match=r"MixUp\.alpha"):
        MixUp(alpha=0)


@pytest.mark.parametrize(
    ("channels", "dtype", "value"),
    [(1, np.uint8, 200), (2, np.uint8, 200), (4, np.uint8, 200), (3, np.uint16, 4000), (1, np.float32, 0.25)],
)
def test_images_of_other_sensors_keep_their_channels_and_values(
    channels: int, dtype: type, value: float
) -> None:
    """A mosaic of 16 bits was one of 8: 4000 became 160."""
    image = np.full((4, 4, channels), value, dtype)
    for out in (
        Mosaic((8, 8), fill=0)(Sample(image), np.random.default_rng(0), [Sample(image)] * 3),
        MixUp()(Sample(image), np.random.default_rng(0), [Sample(image[:2])]),
    ):
        assert (out.image.dtype, out.image.shape[2]) == (dtype, channels)
        assert out.image.max() == pytest.approx(value, abs=1 if value > 1 else 1e-6)


@pytest.mark.parametrize("other", [np.zeros((4, 4, 3), np.uint16), np.zeros((4, 4, 4), np.uint8)])
def test_images_of_different_kinds_are_not_mixed(other: np.ndarray) -> None:
    for mix in (Mosaic((8, 8)), MixUp()):
        with pytest.raises(ShapeError, match="different channels or types cannot be mixed"):
            mix(plain(7), np.random.default_rng(0), [Sample(other)] * mix.extra)


def test_masks_of_classes_keep_classes_above_those_of_a_narrower_one() -> None:
    masks = [np.full((4, 4), value, dtype) for value, dtype in ((7, np.uint8), (300, np.uint16))]
    first, second = (plain(0, mask=mask) for mask in masks)
    out = Mosaic((8, 8))(first, Drawn(integers=(4, 4)), [second] * 3)  # pyright: ignore[reportArgumentType]
    assert out.mask is not None and set(np.unique(out.mask)) == {7, 300}
