"""framework.vision.masks: COCO run lengths by hand and from pycocotools."""

import numpy as np
import pytest

from framework.core.errors import FormatError, ShapeError
from framework.vision import masks

RNG = np.random.default_rng(0)
SMALL = np.array([[0, 0, 1], [1, 0, 0]], bool)  # down the columns: 0 1 0 0 1 0


def test_rle_by_hand():
    assert masks.encode_rle(SMALL) == {"size": [2, 3], "counts": [1, 1, 2, 1, 1]}
    assert masks.encode_rle(~SMALL) == {"size": [2, 3], "counts": [0, 1, 1, 2, 1, 1]}
    assert masks.encode_rle(np.zeros((2, 2))) == {"size": [2, 2], "counts": [4]}
    assert masks.encode_rle(np.ones((1, 1))) == {"size": [1, 1], "counts": [0, 1]}
    # From the fourth run on the difference to the run before last: 1 1 2 (1 - 1) (1 - 2) -> '1' '1' '2' '0' 'O'
    assert masks.encode_rle(SMALL, compressed=True)["counts"] == "1120O"


def test_rle_of_pycocotools():
    """Strings that pycocotools 2.0 makes of these masks."""
    mask = np.zeros((50, 60), bool)
    mask[10:40, 20:50] = True
    assert masks.encode_rle(mask, compressed=True)["counts"] == COCO_RECTANGLE
    decoded = masks.decode_rle({"size": [50, 60], "counts": COCO_RECTANGLE.encode()})
    np.testing.assert_array_equal(decoded, mask)


COCO_RECTANGLE = "bo0n0d0000000000000000000000000000000000000000000000000000000000Z?"


@pytest.mark.parametrize("compressed", [False, True])
def test_rle_round_trip(compressed):
    for height, width in ((1, 1), (1, 9), (9, 1), (40, 30), (300, 200)):
        for density in (0, 0.02, 0.5, 1):
            mask = RNG.random((height, width)) < density
            decoded = masks.decode_rle(masks.encode_rle(mask, compressed=compressed))
            assert decoded.dtype == np.bool_ and decoded.flags.c_contiguous
            np.testing.assert_array_equal(decoded, mask)
    assert masks.decode_rle(masks.encode_rle(np.zeros((0, 3)), compressed=compressed)).shape == (0, 3)


def test_rle_errors():
    wrapped = [2**62] * 4 + [4]  # together 4, where a sum of 64 bits wraps around
    for counts in ([3], [2, 4], [5, -1], [[4]], [2**70], wrapped, "", "ooooooO" * 2):
        with pytest.raises(FormatError, match="the runs do not cover the mask"):
            masks.decode_rle({"size": [2, 2], "counts": counts})
    with pytest.raises(FormatError, match="size is out of range"):
        masks.decode_rle({"size": [10**6, 10**6], "counts": [10**12]})
    with pytest.raises(FormatError, match="is damaged"):
        masks.decode_rle({"size": [2, 2], "counts": "4 "})
    with pytest.raises(FormatError, match="is damaged"):
        masks.decode_rle({"size": [2, 2], "counts": "o" * 20 + "0"})
    with pytest.raises(FormatError, match="is cut off"):
        masks.decode_rle({"size": [50, 60], "counts": "Z"})
    with pytest.raises(ShapeError, match="a mask must be an array"):
        masks.encode_rle(np.zeros((1, 2, 2)))


def test_to_boxes():
    many = np.zeros((3, 5, 6), bool)
    many[0, 1:3, 2:5] = many[2, 4, 0] = True
    assert masks.to_boxes(many).tolist() == [[2, 1, 5, 3], [0, 0, 0, 0], [0, 4, 1, 5]]
    assert masks.to_boxes(many[:0]).shape == (0, 4)
    with pytest.raises(ShapeError, match="masks must be an array"):
        masks.to_boxes(many[0])


def test_colors_are_stable_and_apart():
    assert masks.color(3) == masks.color(3) == tuple(masks.palette(4)[3])
    table = masks.palette(64).astype(int)
    assert table.shape == (64, 3) and len({tuple(row) for row in table.tolist()}) == 64
    distance = np.abs(table[:8, None] - table[None, :8]).sum(axis=-1) + 999 * np.eye(8, dtype=int)
    assert distance.min() > 80
    assert masks.palette(0).shape == (0, 3)
